//! Requests one after another while a test goes on.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crate::http;

const PATIENCE: Duration = Duration::from_secs(10);
const PAUSE: Duration = Duration::from_millis(5);
/// Between two requests, so that other tests have the machine as well.
const PACE: Duration = Duration::from_millis(2);

/// Sends requests to a listener until it is stopped.
#[derive(Debug)]
pub struct Flow {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<Vec<String>>>,
}

#[derive(Debug, Default)]
struct Shared {
    stop: AtomicBool,
    answered: AtomicUsize,
}

/// What became of the requests.
#[derive(Debug, Default)]
pub struct Flowed {
    /// How many were answered with success.
    pub answered: usize,
    /// What went wrong with the others.
    pub failures: Vec<String>,
}

impl Flow {
    /// Begins to send.
    #[must_use]
    pub fn start(listener: SocketAddr) -> Self {
        Self::start_as(listener, &listener.to_string())
    }

    /// Begins to send to a host by name.
    #[must_use]
    pub fn start_as(listener: SocketAddr, host: &str) -> Self {
        let shared = Arc::new(Shared::default());
        let thread = thread::spawn({
            let (shared, host) = (Arc::clone(&shared), host.to_owned());
            move || flow(listener, &host, &shared)
        });
        Self {
            shared,
            thread: Some(thread),
        }
    }

    /// Waits until so many more requests were answered.
    ///
    /// # Panics
    ///
    /// When they are not in time.
    pub fn go_on_for(&self, requests: usize) {
        let answered = || self.shared.answered.load(Ordering::SeqCst);
        let (enough, deadline) = (answered() + requests, Instant::now() + PATIENCE);
        while answered() < enough {
            assert!(Instant::now() < deadline, "requests are not answered");
            thread::sleep(PAUSE);
        }
    }

    /// Stops, and says what became of the requests.
    #[must_use]
    pub fn stop(mut self) -> Flowed {
        self.end()
    }

    fn end(&mut self) -> Flowed {
        self.shared.stop.store(true, Ordering::SeqCst);
        let ended = self.thread.take().and_then(|thread| thread.join().ok());
        Flowed {
            answered: self.shared.answered.load(Ordering::SeqCst),
            failures: ended.unwrap_or_default(),
        }
    }
}

impl Drop for Flow {
    fn drop(&mut self) {
        self.end();
    }
}

fn flow(listener: SocketAddr, host: &str, shared: &Shared) -> Vec<String> {
    let mut failures = Vec::new();
    while !shared.stop.load(Ordering::SeqCst) {
        match http::get_as(listener, host, "/") {
            Ok(response) if response.status == 200 => {
                shared.answered.fetch_add(1, Ordering::SeqCst);
            }
            Ok(response) => failures.push(format!("{} {}", response.status, response.body)),
            Err(error) => failures.push(error.to_string()),
        }
        thread::sleep(PACE);
    }
    failures
}
