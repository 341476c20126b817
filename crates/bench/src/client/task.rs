//! A client's life: connect, receive, acknowledge, lose the stream, reconnect.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::watch;
use tokio::time::{Instant, sleep, sleep_until};
use trunkline::client::transport::{RequestSender, Stream, StreamError};

use super::demand::Zipf;
use super::full::Full;
use super::ledger::{Complete, Ledger};
use super::light::Light;
use super::pool::Pool;
use super::shared::{Orders, Shared};
use super::spec::{Habit, Spec};
use crate::contents::Kind;
use crate::measure::Counters;

/// How long a client waits before it tries again.
const AGAIN: Duration = Duration::from_millis(200);

/// The outcome of a client at the end.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Ended {
    /// Resources that are not the newest.
    pub(crate) behind: u64,
    /// Resources that are not there.
    pub(crate) missing: u64,
}

#[derive(Debug)]
enum Machine {
    Full(Box<Full>),
    Light(Box<Light>),
}

impl Machine {
    fn ledger(&mut self) -> &mut Ledger {
        match self {
            Self::Full(full) => &mut full.ledger,
            Self::Light(light) => &mut light.ledger,
        }
    }

    fn handle_connected(&mut self) {
        match self {
            Self::Full(full) => full.handle_connected(),
            Self::Light(light) => light.handle_connected(),
        }
    }

    fn handle_disconnected(&mut self) {
        match self {
            Self::Full(full) => full.handle_disconnected(),
            Self::Light(light) => light.handle_disconnected(),
        }
    }

    fn handle_response(&mut self, raw: Bytes) -> bool {
        match self {
            Self::Full(full) => full.handle_response(raw),
            Self::Light(light) => light.handle_response(&raw),
        }
    }

    fn poll_request(&mut self) -> Option<Bytes> {
        match self {
            Self::Full(full) => full.poll_request(),
            Self::Light(light) => light.poll_request(),
        }
    }

    fn subscribe_name(&mut self, kind: Kind, index: usize) {
        match self {
            Self::Full(full) => full.subscribe_name(kind, index),
            Self::Light(light) => light.subscribe_name(kind, index),
        }
    }
}

/// How a stream came to its end.
enum End {
    /// The client was told to leave, or that it is over.
    Ordered,
    /// By itself.
    Broken,
}

/// Runs a client from the moment `begin` until it is told to stop. Returns how
/// what it held then compares with what was put.
pub(crate) async fn run(
    spec: Spec,
    shared: Arc<Shared>,
    pool: Arc<Pool>,
    zipf: Option<Arc<Zipf>>,
    begin: Instant,
) -> Ended {
    let mut orders = shared.orders.subscribe();
    sleep_until(begin).await;
    let ledger = Ledger::new(&spec, Arc::clone(&shared));
    let machine = match spec.light {
        true => Machine::Light(Box::new(Light::new(&spec, Arc::clone(&shared), ledger))),
        false => Machine::Full(Box::new(Full::new(&spec, Arc::clone(&shared), ledger))),
    };
    let random = fastrand::Rng::with_seed(spec.number as u64);
    let mut client = Client {
        spec,
        shared,
        pool,
        zipf,
        machine,
        unsent: None,
        random,
    };
    loop {
        // The sender lives in what clients share.
        let _ = orders.wait_for(|orders| !orders.away || orders.stop).await;
        if orders.borrow().stop {
            break;
        }
        if let End::Broken = client.run_stream(&mut orders).await {
            sleep(AGAIN).await;
        }
    }
    let (behind, missing) = client.machine.ledger().compare();
    Ended { behind, missing }
}

struct Client {
    spec: Spec,
    shared: Arc<Shared>,
    pool: Arc<Pool>,
    zipf: Option<Arc<Zipf>>,
    machine: Machine,
    /// A request that the stream was not ready for.
    unsent: Option<Bytes>,
    random: fastrand::Rng,
}

impl Client {
    /// Runs one stream, from its beginning to its end.
    async fn run_stream(&mut self, orders: &mut watch::Receiver<Orders>) -> End {
        self.machine.ledger().note_begin();
        let alone = matches!(self.spec.habit, Habit::Sleeps(_));
        let opened = self
            .pool
            .open(self.spec.number, self.spec.path(), alone)
            .await;
        let mut stream = match opened {
            Ok(stream) => stream,
            Err(error) => {
                Counters::add(&self.shared.counters.refused, 1);
                self.shared.note_fault(format!("cannot connect: {error}"));
                return End::Broken;
            }
        };
        self.machine.handle_connected();
        self.unsent = None;
        self.send_requests(stream.halves().0);
        self.shared.count_connected();
        let end = self.send_and_receive(&mut stream, orders).await;
        self.machine.handle_disconnected();
        self.shared.count_disconnected();
        match end {
            Ok(()) => End::Ordered,
            Err(fault) => {
                if self.spec.complete != Complete::Never {
                    Counters::add(&self.shared.counters.broken, 1);
                }
                self.shared.note_fault(fault);
                End::Broken
            }
        }
    }

    /// Sends requests and receives responses until the client is told to leave.
    /// An error says how the stream ended before.
    async fn send_and_receive(
        &mut self,
        stream: &mut Stream,
        orders: &mut watch::Receiver<Orders>,
    ) -> Result<(), String> {
        if let Habit::Sleeps(long) = self.spec.habit {
            let leave = orders.wait_for(|orders| orders.away || orders.stop);
            tokio::select! {
                _ = leave => return Ok(()),
                () = sleep_for(long) => {}
            }
        }
        let mut next = self.next_demand_at();
        let (requests, responses) = stream.halves();
        loop {
            tokio::select! {
                biased;
                _ = orders.wait_for(|orders| orders.away || orders.stop) => return Ok(()),
                heard = responses.next() => self.handle_message(heard)?,
                ready = requests.ready(), if self.unsent.is_some() => {
                    ready.map_err(|error| error.to_string())?;
                }
                () = wait_until(next) => {
                    self.subscribe_on_demand();
                    next = self.next_demand_at();
                }
            }
            self.send_requests(requests);
        }
    }

    /// Takes a message of the server. One that cannot be read is counted; the
    /// end of the stream is an error.
    fn handle_message(&mut self, heard: Result<Option<Bytes>, StreamError>) -> Result<(), String> {
        match heard {
            Err(error) => Err(error.to_string()),
            Ok(None) => Err("the server ended the stream".into()),
            Ok(Some(message)) => {
                if !self.machine.handle_response(message) {
                    Counters::add(&self.shared.counters.unreadable, 1);
                }
                Ok(())
            }
        }
    }

    /// Sends requests as long as there are some and the stream is ready.
    fn send_requests(&mut self, requests: &mut RequestSender) {
        while let Some(request) = self.unsent.take().or_else(|| self.machine.poll_request()) {
            if !requests.is_ready() {
                self.unsent = Some(request);
                return;
            }
            let counters = &self.shared.counters;
            Counters::add(&counters.requests, 1);
            Counters::add(&counters.request_bytes, request.len());
            requests.send(request);
        }
    }

    /// Returns when the client subscribes to the next name on demand; `None` if
    /// it does not.
    fn next_demand_at(&mut self) -> Option<Instant> {
        let rate = self.spec.demand.filter(|rate| *rate > 0.0)?;
        // Evenly spread around the mean, so that clients do not move in step.
        let wait = 2.0 * self.random.f64() / rate;
        Some(Instant::now() + Duration::from_secs_f64(wait))
    }

    /// Subscribes to one more name of each type, unless the client knows it.
    /// Popular names come more often.
    fn subscribe_on_demand(&mut self) {
        let Some(zipf) = &self.zipf else { return };
        let index = zipf.place(self.random.f64());
        for (kind, _) in self.spec.wants.clone() {
            if self.machine.ledger().known(kind, index).revision() == 0 {
                self.machine.ledger().note_subscribed(kind, index);
                self.machine.subscribe_name(kind, index);
            }
        }
    }
}

/// Sleeps for a time, or for ever.
async fn sleep_for(long: Option<Duration>) {
    match long {
        Some(long) => sleep(long).await,
        None => std::future::pending().await,
    }
}

/// Waits until a moment, or for ever.
async fn wait_until(moment: Option<Instant>) {
    match moment {
        Some(moment) => sleep_until(moment).await,
        None => std::future::pending().await,
    }
}
