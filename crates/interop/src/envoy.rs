//! A running Envoy.

use std::collections::BTreeMap;
use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::http::{self, Response};
use crate::place;
use crate::process::Process;

/// Envoy waits 15 seconds for a type that gets no response, and then becomes
/// ready without it. Ready later than this means that something was missing.
const READY_WITHIN: Duration = Duration::from_secs(10);
const PAUSE: Duration = Duration::from_millis(20);

/// A child process that runs Envoy; it stops when dropped.
#[derive(Debug)]
pub struct Envoy {
    process: Process,
    admin: SocketAddr,
}

impl Envoy {
    /// Starts Envoy with this bootstrap and waits until it is ready.
    ///
    /// The bootstrap has an admin page on port 0, as those in
    /// [`bootstrap`](crate::bootstrap) have.
    ///
    /// # Panics
    ///
    /// When Envoy is not installed, ends, or is not ready in ten seconds.
    #[must_use]
    pub fn start(bootstrap: &str) -> Self {
        Self::start_with(bootstrap, &[])
    }

    /// The same with more arguments on its command line.
    ///
    /// # Panics
    ///
    /// As [`Self::start`].
    #[must_use]
    pub fn start_with(bootstrap: &str, arguments: &[&str]) -> Self {
        let mut envoy = Self::spawn_with(bootstrap, arguments);
        envoy.wait_until_ready(READY_WITHIN);
        envoy
    }

    /// Starts Envoy and waits only until its admin page answers.
    ///
    /// # Panics
    ///
    /// When Envoy is not installed or does not get as far.
    #[must_use]
    pub fn spawn(bootstrap: &str) -> Self {
        Self::spawn_with(bootstrap, &[])
    }

    /// Lets Envoy judge a bootstrap without running it. The error is the end of
    /// its log.
    ///
    /// # Panics
    ///
    /// When Envoy is not installed.
    pub fn judge(bootstrap: &str, name: &str) -> Result<(), String> {
        let folder = place::scratch(name);
        let config = write(&folder, "bootstrap.yaml", bootstrap);
        let mut command = Command::new(place::envoy());
        command.args(["--mode", "validate", "--log-level", "error"]);
        command.arg("--config-path").arg(config);
        let output = command
            .output()
            .unwrap_or_else(|error| panic!("cannot start {:?}: {error}", command.get_program()));
        match output.status.success() {
            true => Ok(()),
            false => Err(String::from_utf8_lossy(&output.stderr).into_owned()),
        }
    }

    fn spawn_with(bootstrap: &str, arguments: &[&str]) -> Self {
        let folder = place::scratch("envoy");
        let config = write(&folder, "bootstrap.yaml", bootstrap);
        let admin = folder.join("admin-address.txt");
        let mut command = Command::new(place::envoy());
        command.args(["--concurrency", "1", "--disable-hot-restart"]);
        command.args(arguments);
        command.arg("--config-path").arg(config);
        command.arg("--admin-address-path").arg(&admin);
        let mut process = Process::spawn(&mut command, folder.join("log.txt"));
        let admin = wait("to open its admin page", READY_WITHIN, &mut process, || {
            fs::read_to_string(&admin).ok()?.trim().parse().ok()
        });
        Self { process, admin }
    }

    /// Waits until Envoy serves, and says how long that took.
    ///
    /// # Panics
    ///
    /// When it ends or takes longer.
    pub fn wait_until_ready(&mut self, within: Duration) -> Duration {
        let start = Instant::now();
        let admin = self.admin;
        wait("to be ready", within, &mut self.process, || {
            http::get(admin, "/ready")
                .ok()
                .filter(|response| response.status == 200)
        });
        start.elapsed()
    }

    /// Waits until a question about this Envoy has an answer.
    ///
    /// # Panics
    ///
    /// When it has none in time.
    pub fn wait_for<T>(&self, what: &str, within: Duration, ask: impl Fn(&Self) -> Option<T>) -> T {
        let deadline = Instant::now() + within;
        loop {
            if let Some(answer) = ask(self) {
                return answer;
            }
            assert!(
                Instant::now() < deadline,
                "waited {within:?} for {what}; {}",
                self.process.tail()
            );
            thread::sleep(PAUSE);
        }
    }

    /// Where the admin page is.
    #[must_use]
    pub fn admin(&self) -> SocketAddr {
        self.admin
    }

    /// Asks the admin page.
    ///
    /// # Panics
    ///
    /// When it does not answer.
    #[must_use]
    pub fn get(&self, path: &str) -> Response {
        http::get(self.admin, path).unwrap_or_else(|error| {
            panic!(
                "Envoy's admin page, {path}: {error}; {}",
                self.process.tail()
            )
        })
    }

    /// Every counter and gauge by its name.
    ///
    /// # Panics
    ///
    /// When the admin page does not answer.
    #[must_use]
    pub fn stats(&self) -> BTreeMap<String, u64> {
        parse_stats(&self.get("/stats").body)
    }

    /// One counter or gauge, if there is such a one.
    ///
    /// # Panics
    ///
    /// When the admin page does not answer.
    #[must_use]
    pub fn stat(&self, name: &str) -> Option<u64> {
        self.stats().remove(name)
    }

    /// The configuration that Envoy holds, with endpoints.
    ///
    /// # Panics
    ///
    /// When the admin page does not answer with JSON.
    #[must_use]
    pub fn config_dump(&self) -> Value {
        self.json("/config_dump?include_eds")
    }

    /// The clusters from servers that are in use, not those that still warm,
    /// each with its connect timeout, by which tests tell versions apart.
    ///
    /// # Panics
    ///
    /// When the admin page does not answer with JSON.
    #[must_use]
    pub fn active_clusters(&self) -> BTreeMap<String, String> {
        let dump = self.config_dump();
        let configs = dump["configs"].as_array().into_iter().flatten();
        let clusters = configs
            .filter_map(|config| config["dynamic_active_clusters"].as_array())
            .flatten();
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        clusters
            .map(|entry| &entry["cluster"])
            .map(|cluster| (text(&cluster["name"]), text(&cluster["connect_timeout"])))
            .collect()
    }

    /// Where a listener listens, once it does.
    ///
    /// # Panics
    ///
    /// When the admin page does not answer with JSON.
    #[must_use]
    pub fn listener(&self, name: &str) -> Option<SocketAddr> {
        let listeners = self.json("/listeners?format=json");
        let all = listeners["listener_statuses"].as_array()?;
        let found = all.iter().find(|listener| listener["name"] == name)?;
        let address = &found["local_address"]["socket_address"];
        let ip = address["address"].as_str()?.parse().ok()?;
        let port = u16::try_from(address["port_value"].as_u64()?).ok()?;
        Some(SocketAddr::new(ip, port))
    }

    /// The file that Envoy logs to.
    #[must_use]
    pub fn log(&self) -> &Path {
        self.process.log()
    }

    /// Stops Envoy and gives its exit code; none when it was ended by a signal.
    pub fn stop(mut self) -> Option<i32> {
        self.process.stop()?.code()
    }

    fn json(&self, path: &str) -> Value {
        let body = self.get(path).body;
        serde_json::from_str(&body)
            .unwrap_or_else(|error| panic!("Envoy's admin page, {path}: {error} in {body}"))
    }
}

/// Checks that Envoy never waited for a resource in vain.
///
/// # Panics
///
/// When it did, with the counters that say so.
pub fn assert_no_init_fetch_timeout(envoy: &Envoy) {
    let mut given_up = envoy.stats();
    given_up.retain(|name, count| name.ends_with("init_fetch_timeout") && *count > 0);
    assert!(
        given_up.is_empty(),
        "Envoy gave up waiting for an answer: {given_up:?}"
    );
}

/// Lines of `name: value`; histograms, whose values are not numbers, are left
/// out.
fn parse_stats(text: &str) -> BTreeMap<String, u64> {
    let pairs = text.lines().filter_map(|line| line.rsplit_once(": "));
    pairs
        .filter_map(|(name, value)| Some((name.to_owned(), value.parse().ok()?)))
        .collect()
}

fn write(folder: &Path, name: &str, text: &str) -> PathBuf {
    let path = folder.join(name);
    fs::write(&path, text)
        .unwrap_or_else(|error| panic!("cannot write {}: {error}", path.display()));
    path
}

/// Waits for the process to get somewhere while it runs.
fn wait<T>(what: &str, within: Duration, process: &mut Process, ask: impl Fn() -> Option<T>) -> T {
    let deadline = Instant::now() + within;
    loop {
        if let Some(answer) = ask() {
            return answer;
        }
        if let Some(status) = process.ended() {
            panic!(
                "Envoy ended, {status}, before it came {what}; {}",
                process.tail()
            );
        }
        assert!(
            Instant::now() < deadline,
            "waited {within:?} for Envoy {what}; {}",
            process.tail()
        );
        thread::sleep(PAUSE);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_read_and_histograms_left_out() {
        let stats = parse_stats("a.b: 3\nc: No recorded values\nd: P0(nan,1)\n");
        assert_eq!(stats, [("a.b".to_owned(), 3)].into());
    }
}
