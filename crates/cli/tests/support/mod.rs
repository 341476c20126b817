//! Runs the program as people do.
#![allow(dead_code, clippy::unwrap_used, unreachable_pub)]

pub mod envoy_admin;
pub mod peer;
pub mod program;

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Child, ChildStderr, Command, ExitStatus, Output, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

const PATIENCE: Duration = Duration::from_secs(30);

/// Runs the program with these arguments and this standard input.
pub fn run_with(args: &[&str], input: &str) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_trunkline"))
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child
        .stdin
        .take()
        .unwrap()
        .write_all(input.as_bytes())
        .unwrap();
    child.wait_with_output().unwrap()
}

/// Runs the program with these arguments.
pub fn run(args: &[&str]) -> Output {
    run_with(args, "")
}

/// Its output, after a check that it succeeded.
pub fn good(output: &Output) -> String {
    assert_eq!(output.status.code(), Some(0), "{}", said(output));
    String::from_utf8(output.stdout.clone()).unwrap()
}

/// Its error output, after a check that it ended with this code.
pub fn bad(output: &Output, code: i32) -> String {
    assert_eq!(output.status.code(), Some(code), "{}", said(output));
    said(output)
}

pub fn said(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

/// Calls `ask` until it returns something.
pub fn until<T>(what: &str, mut ask: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(answer) = ask() {
            return answer;
        }
        assert!(Instant::now() < deadline, "waited too long for {what}");
        thread::sleep(Duration::from_millis(10));
    }
}

/// A running program; it is ended when it is dropped.
pub struct Running {
    child: Child,
    lines: Arc<Mutex<Vec<String>>>,
    /// The end of the pipe, where nobody reads it.
    unread: Option<BufReader<ChildStderr>>,
}

impl Running {
    /// Starts it; it logs JSON.
    pub fn start(args: &[&str]) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_trunkline"))
            .args(["--log-format", "json"])
            .args(args)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = Arc::<Mutex<Vec<String>>>::default();
        let (kept, stderr) = (Arc::clone(&lines), child.stderr.take().unwrap());
        thread::spawn(move || {
            for line in BufReader::new(stderr).lines().map_while(Result::ok) {
                kept.lock().unwrap().push(line);
            }
        });
        Self {
            child,
            lines,
            unread: None,
        }
    }

    /// Starts it, and reads its log only up to a line with this text: then the
    /// pipe fills.
    pub fn start_unread(args: &[&str], text: &str) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_trunkline"))
            .args(["--log-format", "json"])
            .args(args)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut unread = BufReader::with_capacity(1, child.stderr.take().unwrap());
        let mut lines = Vec::new();
        while !lines
            .last()
            .is_some_and(|line: &String| line.contains(text))
        {
            let mut line = String::new();
            assert_ne!(unread.read_line(&mut line).unwrap(), 0, "{lines:?}");
            lines.push(line);
        }
        Self {
            child,
            lines: Arc::new(Mutex::new(lines)),
            unread: Some(unread),
        }
    }

    /// The pipe with the lines that nobody has read.
    pub fn take_unread(&mut self) -> BufReader<ChildStderr> {
        self.unread.take().unwrap()
    }

    pub fn pid(&self) -> rustix::process::Pid {
        rustix::process::Pid::from_child(&self.child)
    }

    pub fn log(&self) -> Vec<Value> {
        let lines = self.lines.lock().unwrap().clone();
        let parsed = lines.iter().map(|line| serde_json::from_str(line));
        parsed.filter_map(Result::ok).collect()
    }

    /// The first line of the log with this message.
    pub fn logged(&self, message: &str) -> Value {
        until(message, || {
            let mut lines = self.log().into_iter();
            lines.find(|line| {
                line["message"]
                    .as_str()
                    .unwrap_or_default()
                    .contains(message)
            })
        })
    }

    /// Waits for a line that has this text, of a program that does not log.
    pub fn said(&self, text: &str) -> String {
        until(text, || {
            let lines = self.lines.lock().unwrap();
            lines.iter().find(|line| line.contains(text)).cloned()
        })
    }

    pub fn signal(&self, signal: rustix::process::Signal) {
        rustix::process::kill_process(self.pid(), signal).unwrap();
    }

    pub fn wait(&mut self) -> ExitStatus {
        until("the end of the program", || self.child.try_wait().unwrap())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A server on ports of its own.
pub struct Server {
    pub running: Running,
    pub listen: SocketAddr,
    pub admin: SocketAddr,
}

impl Server {
    /// Starts `serve` with these flags, and waits until it is ready. Without
    /// files it is ready at once.
    pub fn start(flags: &[&str]) -> Self {
        let mut flags = flags.to_vec();
        if !flags.contains(&"--config") {
            flags.push("--allow-empty");
        }
        Self::start_until(&flags, "ready")
    }

    /// The same, until it logs this message.
    pub fn start_until(flags: &[&str], message: &str) -> Self {
        let mut args = vec!["serve", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"];
        args.extend(flags);
        Self::of(Running::start(&args), message)
    }

    /// The same with a log that nobody reads once the server is ready.
    pub fn start_unread(flags: &[&str]) -> Self {
        let mut args = vec!["serve", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"];
        args.push("--allow-empty");
        args.extend(flags);
        Self::of(Running::start_unread(&args, "\"ready\""), "ready")
    }

    /// A server whose addresses are in the line with this message.
    fn of(running: Running, message: &str) -> Self {
        let line = running.logged(message);
        let address = |key: &str| line[key].as_str().unwrap().parse().unwrap();
        Self {
            listen: address("listen"),
            admin: address("admin"),
            running,
        }
    }

    /// Runs the program with `--admin` for this server.
    pub fn ask(&self, args: &[&str]) -> Output {
        self.ask_with(args, "")
    }

    pub fn ask_with(&self, args: &[&str], input: &str) -> Output {
        let admin = self.admin.to_string();
        let mut all = args.to_vec();
        all.extend(["--admin", &admin]);
        run_with(&all, input)
    }

    pub fn get(&self, path: &str) -> (u16, String) {
        self.http("GET", path, &[], "")
    }

    /// The names of all resources of a type.
    pub fn names(&self, kind: &str) -> Vec<String> {
        let (status, body) = self.get(&format!("/api/v1/resources/{kind}?summary=true"));
        assert_eq!(status, 200, "{body}");
        let body: Value = serde_json::from_str(&body).unwrap();
        let all = body["resources"].as_array().unwrap().iter();
        all.map(|one| one["name"].as_str().unwrap().to_owned())
            .collect()
    }

    /// Sends an HTTP request.
    pub fn http(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> (u16, String) {
        Self::http_at(self.admin, method, path, headers, body)
    }

    /// The same to another address.
    pub fn http_at(
        address: SocketAddr,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> (u16, String) {
        let mut socket = TcpStream::connect(address).unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        let mut text = format!("{method} {path} HTTP/1.1\r\nconnection: close\r\n");
        if !headers.iter().any(|(name, _)| *name == "host") {
            text.push_str(&format!("host: {address}\r\n"));
        }
        for (name, value) in headers {
            text.push_str(&format!("{name}: {value}\r\n"));
        }
        text.push_str(&format!("content-length: {}\r\n\r\n{body}", body.len()));
        socket.write_all(text.as_bytes()).unwrap();
        let mut answer = String::new();
        socket.read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        match head.contains("transfer-encoding: chunked") {
            true => (status, join_chunks(body)),
            false => (status, body.to_owned()),
        }
    }
}

/// Returns a body that came in chunks, each after its length.
fn join_chunks(mut body: &str) -> String {
    let mut whole = String::new();
    while let Some((length, rest)) = body.split_once("\r\n") {
        let length = usize::from_str_radix(length, 16).unwrap();
        whole.push_str(&rest[..length]);
        body = rest[length..].trim_start_matches("\r\n");
    }
    whole
}

/// Writes a file as a careful program does: beside it, then in its place.
pub fn put(path: &Path, text: &str) {
    let new = path.with_extension("new");
    std::fs::write(&new, text).unwrap();
    std::fs::rename(new, path).unwrap();
}

/// Routes that lead to the cluster of [`CLUSTER`].
pub const ROUTES: &str = r#"resources:
- "@type": type.googleapis.com/envoy.config.route.v3.RouteConfiguration
  name: routes
  virtual_hosts:
  - name: all
    domains: ["*"]
    routes: [{match: {prefix: /}, route: {cluster: backend}}]
"#;

pub const CLUSTER: &str = r#"resources:
- "@type": type.googleapis.com/envoy.config.cluster.v3.Cluster
  name: backend
  connect_timeout: 1s
"#;

pub const SECRET: &str = r#"resources:
- "@type": type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret
  name: cert
  tls_certificate: {private_key: {inline_string: swordfish}}
"#;
