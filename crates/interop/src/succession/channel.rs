//! Trunkline's channel for tonic as a client that calls all the time, behind a
//! latency.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use http::uri::PathAndQuery;
use tonic::client::Grpc;
use tonic::{Request, Status};
use tonic_prost::ProstCodec;
use trunkline::channel::XdsChannel;
use trunkline::client::{Bootstrap, Client as XdsClient};

use super::contents::LISTENER;
use super::now;
use super::play::Client;
use super::record::{Lost, Tally};
use crate::{Gate, bootstrap};

/// As many callers as those of other languages have.
const CALLERS: usize = 3;

/// Of each, between two calls.
const PACE: Duration = Duration::from_millis(10);

/// A call that takes longer hangs.
const WITHIN: Duration = Duration::from_millis(2500);

/// See the module's documentation.
#[derive(Debug)]
pub struct Channel {
    name: String,
    calls: Arc<Calls>,
    thread: Option<JoinHandle<()>>,
    /// Ends the connection when dropped.
    _gate: Gate,
}

/// What became of calls so far.
#[derive(Debug, Default)]
struct Calls {
    is_over: AtomicBool,
    made: AtomicUsize,
    seen: Mutex<BTreeSet<String>>,
    lost: Mutex<Vec<Lost>>,
}

impl Channel {
    /// Starts calls through a channel whose control plane is at a port, with
    /// such a latency each way.
    ///
    /// # Panics
    ///
    /// When the system gives no thread.
    #[must_use]
    pub fn start(server: u16, latency: Duration) -> Self {
        let gate = Gate::far_from(server, latency);
        let bootstrap = bootstrap::grpc(gate.port, "g1");
        let calls = Arc::new(Calls::default());
        let shared = Arc::clone(&calls);
        let thread = thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .unwrap_or_else(|error| panic!("no runtime: {error}"));
            runtime.block_on(run(&bootstrap, &shared));
        });
        Self {
            name: format!("Trunkline's channel at {} ms", latency.as_millis() * 2),
            calls,
            thread: Some(thread),
            _gate: gate,
        }
    }
}

/// Calls until it is over.
async fn run(bootstrap: &str, calls: &Arc<Calls>) {
    let bootstrap = Bootstrap::from_grpc("bootstrap.json", bootstrap);
    let bootstrap = bootstrap.unwrap_or_else(|error| panic!("{error}"));
    let client = XdsClient::builder().bootstrap(bootstrap).build();
    let channel = XdsChannel::builder(&client, LISTENER).build();
    let callers = (0..CALLERS).map(|_| {
        let (channel, calls) = (channel.clone(), Arc::clone(calls));
        tokio::spawn(async move {
            while !calls.is_over.load(Ordering::Relaxed) {
                let called = call(&channel).await;
                calls.note(called);
                tokio::time::sleep(PACE).await;
            }
        })
    });
    for caller in callers.collect::<Vec<_>>() {
        // One that has panicked is missed by its calls.
        let _ = caller.await;
    }
}

async fn call(channel: &XdsChannel) -> Result<String, Status> {
    let mut request = Request::new(());
    request.set_timeout(WITHIN);
    let path = PathAndQuery::from_static("/test/Call");
    let mut grpc = Grpc::new(channel.clone());
    grpc.ready().await?;
    let codec = ProstCodec::<(), String>::default();
    let answer = grpc.unary(request, path, codec).await?;
    Ok(answer.into_inner())
}

impl Calls {
    fn note(&self, called: Result<String, Status>) {
        self.made.fetch_add(1, Ordering::Relaxed);
        match called {
            Ok(answer) => {
                let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
                seen.insert(answer);
            }
            Err(status) => {
                let text = format!("{:?} {}", status.code(), status.message());
                let mut lost = self.lost.lock().unwrap_or_else(PoisonError::into_inner);
                lost.push(Lost { at: now(), text });
            }
        }
    }
}

impl Client for Channel {
    fn name(&self) -> String {
        self.name.clone()
    }

    fn has_seen(&self, answer: &str) -> bool {
        let seen = self.calls.seen.lock();
        let seen = seen.unwrap_or_else(PoisonError::into_inner);
        seen.contains(answer)
    }

    fn stop(mut self: Box<Self>) -> Tally {
        self.calls.is_over.store(true, Ordering::Relaxed);
        let joined = self.thread.take().map(JoinHandle::join);
        assert!(
            matches!(joined, Some(Ok(()))),
            "{} did not end well",
            self.name
        );
        let mut lost = self
            .calls
            .lost
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        Tally {
            who: self.name.clone(),
            made: self.calls.made.load(Ordering::Relaxed),
            lost: std::mem::take(&mut *lost),
        }
    }
}
