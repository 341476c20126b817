//! Requests through a listener of Envoy, all the time.
//!
//! A listener that is replaced goes on serving the connections that it has, by
//! the routes that it had, until it has drained. So most visitors keep their
//! connections: one is busy, and some ask now and then, since Envoy closes a
//! connection of a listener that drains with an answer, the more likely the
//! longer it drains. One visitor makes a new connection for each request, and
//! tells what the newest listener answers.

use std::collections::BTreeSet;
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use super::now;
use super::play::Client;
use super::record::{Lost, Tally};
use crate::http::{self, Kept, Response};

const HOST: &str = "svc";

/// Pauses between two requests, of a visitor who keeps the connection and of
/// the one who does not.
const BUSY: Duration = Duration::from_millis(8);
const QUIET: Duration = Duration::from_millis(100);
const FRESH: Duration = Duration::from_millis(8);

/// Those who keep their connection.
const KEEPERS: [Duration; 5] = [BUSY, QUIET, QUIET, QUIET, QUIET];

/// They visit until they are stopped.
#[derive(Debug)]
pub struct Visitors {
    name: String,
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct Shared {
    stopping: AtomicBool,
    made: AtomicUsize,
    seen: Mutex<BTreeSet<String>>,
    lost: Mutex<Vec<Lost>>,
}

impl Visitors {
    /// Begin to visit a listener.
    #[must_use]
    pub fn start(name: &str, listener: SocketAddr) -> Box<dyn Client> {
        let shared = Arc::new(Shared::default());
        let keepers = KEEPERS.into_iter().map(|pause| {
            let shared = Arc::clone(&shared);
            thread::spawn(move || shared.keep_visiting(listener, pause))
        });
        let mut threads: Vec<_> = keepers.collect();
        let fresh = Arc::clone(&shared);
        threads.push(thread::spawn(move || fresh.visit_anew(listener)));
        Box::new(Self {
            name: name.to_owned(),
            shared,
            threads,
        })
    }

    fn end(&mut self) {
        self.shared.stopping.store(true, Ordering::SeqCst);
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

impl Drop for Visitors {
    fn drop(&mut self) {
        self.end();
    }
}

impl Client for Visitors {
    fn name(&self) -> String {
        self.name.clone()
    }

    fn has_seen(&self, answer: &str) -> bool {
        lock(&self.shared.seen).contains(answer)
    }

    fn stop(mut self: Box<Self>) -> Tally {
        self.end();
        Tally {
            who: self.name.clone(),
            made: self.shared.made.load(Ordering::SeqCst),
            lost: std::mem::take(&mut *lock(&self.shared.lost)),
        }
    }
}

impl Shared {
    fn visit_anew(&self, listener: SocketAddr) {
        while !self.stopping.load(Ordering::SeqCst) {
            let answer = http::get_as(listener, HOST, "/");
            if let Ok(answer) = &answer
                && answer.status == 200
            {
                lock(&self.seen).insert(answer.body.clone());
            }
            self.note("new connection", answer);
            thread::sleep(FRESH);
        }
    }

    fn keep_visiting(&self, listener: SocketAddr, pause: Duration) {
        let mut kept = None;
        while !self.stopping.load(Ordering::SeqCst) {
            let answer = ask(&mut kept, listener);
            self.note("kept connection", answer);
            thread::sleep(pause);
        }
    }

    fn note(&self, how: &str, answer: io::Result<Response>) {
        self.made.fetch_add(1, Ordering::SeqCst);
        let text = match answer {
            Ok(answer) if answer.status == 200 => return,
            Ok(answer) => format!("{how}: {} {:?}", answer.status, answer.body),
            Err(error) => format!("{how}: {error}"),
        };
        lock(&self.lost).push(Lost { at: now(), text });
    }
}

/// Asks on the connection that is kept. Where the peer ended it between two
/// requests the same request goes out on a new one, as HTTP clients do.
fn ask(kept: &mut Option<Kept>, listener: SocketAddr) -> io::Result<Response> {
    loop {
        let mut open = kept.take().map_or_else(|| Kept::open(listener), Ok)?;
        let Some(answer) = open.get_as(HOST, "/")? else {
            continue;
        };
        if answer.header("connection") != Some("close") {
            *kept = Some(open);
        }
        return Ok(answer);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
