//! Requests one after another while a test goes on.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

use interop::http;

/// Sends until it is stopped.
pub(crate) struct Flow {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<Flowed>>,
}

/// What became of the requests.
#[derive(Debug, Default)]
pub(crate) struct Flowed {
    pub(crate) answered: usize,
    pub(crate) failures: Vec<String>,
}

impl Flow {
    pub(crate) fn start(listener: SocketAddr) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let thread = thread::spawn({
            let stop = Arc::clone(&stop);
            move || flow(listener, &stop)
        });
        Self {
            stop,
            thread: Some(thread),
        }
    }

    pub(crate) fn stop(mut self) -> Flowed {
        self.end().expect("runs once")
    }

    fn end(&mut self) -> Option<Flowed> {
        self.stop.store(true, Ordering::SeqCst);
        self.thread.take()?.join().ok()
    }
}

impl Drop for Flow {
    fn drop(&mut self) {
        self.end();
    }
}

fn flow(listener: SocketAddr, stop: &AtomicBool) -> Flowed {
    let mut flowed = Flowed::default();
    while !stop.load(Ordering::SeqCst) {
        match http::get(listener, "/") {
            Ok(response) if response.status == 200 => flowed.answered += 1,
            Ok(response) => flowed
                .failures
                .push(format!("{} {}", response.status, response.body)),
            Err(error) => flowed.failures.push(error.to_string()),
        }
    }
    flowed
}
