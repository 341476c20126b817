//! Backends that say what they saw, at some addresses of loopback.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{IpAddr, Ipv4Addr, TcpListener, TcpStream};
use std::thread;

use interop::free_port;

/// The number of backends.
pub(crate) const COUNT: u8 = 12;

/// The port of all backends. They serve until the process ends.
pub(crate) fn start() -> u16 {
    for _ in 0..100 {
        let port = free_port();
        let bound = (1..=COUNT).map(|last| TcpListener::bind((address(last), port)));
        let Ok(listeners) = bound.collect::<Result<Vec<_>, _>>() else {
            continue;
        };
        for listener in listeners {
            thread::spawn(move || {
                for stream in listener.incoming().map_while(Result::ok) {
                    thread::spawn(move || serve(stream));
                }
            });
        }
        return port;
    }
    panic!("no port is free at all addresses");
}

/// The address of a backend.
pub(crate) fn address(last: u8) -> IpAddr {
    Ipv4Addr::new(127, 0, 77, last).into()
}

/// What a backend answers to an attempt: a status, and what else it says.
///
/// A plan is a list such as `503,200g14,200r`: `g14` is a gRPC status in a
/// header, `r` asks not to be tried again.
pub(crate) fn planned(plan: &str, attempt: u32) -> (u16, Vec<(String, String)>) {
    let acts: Vec<&str> = plan.split(',').collect();
    let act = acts[(attempt as usize - 1).min(acts.len() - 1)];
    let end = act.find(|c: char| !c.is_ascii_digit());
    let (status, rest) = act.split_at(end.unwrap_or(act.len()));
    let mut headers = vec![("x-r-1".to_owned(), "up".to_owned())];
    if let Some(code) = rest.strip_prefix('g') {
        headers.push(("grpc-status".to_owned(), code.to_owned()));
    }
    if rest == "r" {
        headers.push(("x-envoy-ratelimited".to_owned(), "true".to_owned()));
    }
    (status.parse().unwrap_or(200), headers)
}

/// Answers each request with the address that it came to, its path and its
/// headers. Without a plan the status is 200.
fn serve(stream: TcpStream) -> Option<()> {
    let address = stream.local_addr().ok()?.ip();
    let mut stream = BufReader::new(stream);
    loop {
        let mut head = Vec::new();
        loop {
            let mut line = String::new();
            if stream.read_line(&mut line).ok()? == 0 {
                return None;
            }
            match line.trim_end() {
                "" => break,
                line => head.push(line.to_owned()),
            }
        }
        let header = |name: &str| {
            let mut lines = head.iter().filter_map(|line| line.split_once(": "));
            lines.find(|(known, _)| *known == name).map(|(_, v)| v)
        };
        let attempt = header("x-envoy-attempt-count").and_then(|count| count.parse().ok());
        let (status, headers) = planned(header("x-plan").unwrap_or("200"), attempt.unwrap_or(1));
        let body = format!("{address}\n{}\n", head.join("\n"));
        let mut answer = format!("HTTP/1.1 {status} S\r\ncontent-length: {}\r\n", body.len());
        for (name, value) in headers {
            answer.push_str(&format!("{name}: {value}\r\n"));
        }
        answer.push_str("\r\n");
        answer.push_str(&body);
        stream.get_mut().write_all(answer.as_bytes()).ok()?;
    }
}
