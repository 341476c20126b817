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

    fn connected(&mut self) {
        match self {
            Self::Full(full) => full.connected(),
            Self::Light(light) => light.connected(),
        }
    }

    fn disconnected(&mut self) {
        match self {
            Self::Full(full) => full.disconnected(),
            Self::Light(light) => light.disconnected(),
        }
    }

    fn hear(&mut self, raw: Bytes) -> bool {
        match self {
            Self::Full(full) => full.hear(raw),
            Self::Light(light) => light.hear(&raw),
        }
    }

    fn say(&mut self) -> Option<Bytes> {
        match self {
            Self::Full(full) => full.say(),
            Self::Light(light) => light.say(),
        }
    }

    fn want(&mut self, kind: Kind, index: usize) {
        match self {
            Self::Full(full) => full.want(kind, index),
            Self::Light(light) => light.want(kind, index),
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

/// Lives until told to stop; says what it held then.
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
        if let End::Broken = client.stream(&mut orders).await {
            sleep(AGAIN).await;
        }
    }
    let (behind, missing) = client.machine.ledger().check();
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
    /// One stream, from its beginning to its end.
    async fn stream(&mut self, orders: &mut watch::Receiver<Orders>) -> End {
        self.machine.ledger().begin();
        let alone = matches!(self.spec.habit, Habit::Sleeps(_));
        let opened = self
            .pool
            .open(self.spec.number, self.spec.path(), alone)
            .await;
        let mut stream = match opened {
            Ok(stream) => stream,
            Err(error) => {
                Counters::add(&self.shared.counters.refused, 1);
                self.shared.fault(format!("cannot connect: {error}"));
                return End::Broken;
            }
        };
        self.machine.connected();
        self.unsent = None;
        self.speak(stream.halves().0);
        self.shared.connected();
        let end = self.converse(&mut stream, orders).await;
        self.machine.disconnected();
        self.shared.disconnected();
        match end {
            Ok(()) => End::Ordered,
            Err(fault) => {
                if self.spec.complete != Complete::Never {
                    Counters::add(&self.shared.counters.broken, 1);
                }
                self.shared.fault(fault);
                End::Broken
            }
        }
    }

    async fn converse(
        &mut self,
        stream: &mut Stream,
        orders: &mut watch::Receiver<Orders>,
    ) -> Result<(), String> {
        if let Habit::Sleeps(long) = self.spec.habit {
            let leave = orders.wait_for(|orders| orders.away || orders.stop);
            tokio::select! {
                _ = leave => return Ok(()),
                () = slumber(long) => {}
            }
        }
        let mut next = self.next_demand();
        let (requests, responses) = stream.halves();
        loop {
            tokio::select! {
                biased;
                _ = orders.wait_for(|orders| orders.away || orders.stop) => return Ok(()),
                heard = responses.next() => self.hear(heard)?,
                ready = requests.ready(), if self.unsent.is_some() => {
                    ready.map_err(|error| error.to_string())?;
                }
                () = at(next) => {
                    self.demand();
                    next = self.next_demand();
                }
            }
            self.speak(requests);
        }
    }

    fn hear(&mut self, heard: Result<Option<Bytes>, StreamError>) -> Result<(), String> {
        match heard {
            Err(error) => Err(error.to_string()),
            Ok(None) => Err("the server ended the stream".into()),
            Ok(Some(message)) => {
                if !self.machine.hear(message) {
                    Counters::add(&self.shared.counters.unreadable, 1);
                }
                Ok(())
            }
        }
    }

    /// Sends requests as long as there are some and the stream is ready.
    fn speak(&mut self, requests: &mut RequestSender) {
        while let Some(request) = self.unsent.take().or_else(|| self.machine.say()) {
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

    fn next_demand(&mut self) -> Option<Instant> {
        let rate = self.spec.demand.filter(|rate| *rate > 0.0)?;
        // Evenly spread around the mean, so that clients do not move in step.
        let wait = 2.0 * self.random.f64() / rate;
        Some(Instant::now() + Duration::from_secs_f64(wait))
    }

    /// Subscribes to one name more.
    fn demand(&mut self) {
        let Some(zipf) = &self.zipf else { return };
        let index = zipf.place(self.random.f64());
        for (kind, _) in self.spec.wants.clone() {
            if self.machine.ledger().known(kind, index).revision() == 0 {
                self.machine.ledger().ask(kind, index);
                self.machine.want(kind, index);
            }
        }
    }
}

async fn slumber(long: Option<Duration>) {
    match long {
        Some(long) => sleep(long).await,
        None => std::future::pending().await,
    }
}

async fn at(moment: Option<Instant>) {
    match moment {
        Some(moment) => sleep_until(moment).await,
        None => std::future::pending().await,
    }
}
