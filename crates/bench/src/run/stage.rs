//! The things that can happen to a server and its clients.

use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, sleep_until, timeout};

use super::phase::PhaseStart;
use super::plan::{Action, Plan};
use super::target::Target;
use crate::client::{self, Complete, Ended, Orders, Pool, Shared, Spec, Zipf};
use crate::contents::{Kind, Place};
use crate::driver::Put;
use crate::error::{Error, Result};
use crate::options::{Asking, Options};
use crate::progress::Progress;
use crate::report::{Check, Phase, Report, Scenario};

/// How often something that is waited for is looked at.
const LOOK: Duration = Duration::from_millis(50);

/// See the module's documentation.
pub(super) struct Stage<'a> {
    options: &'a Options,
    shared: Arc<Shared>,
    specs: Vec<Spec>,
    /// Streams that somebody waits for.
    counted: usize,
    pool: Option<Arc<Pool>>,
    clients: JoinSet<Ended>,
    phases: Vec<Phase>,
    progress: Progress,
    /// The last change that has arrived everywhere, as those before it.
    settled: u32,
    /// The server's memory with one stream; before the first, if there is no
    /// other.
    memory: Option<u64>,
    /// Bytes that the first stream took.
    first: Option<f64>,
    /// How busy the machine was before.
    load: Option<f64>,
}

impl<'a> Stage<'a> {
    /// Makes a stage on which nothing has happened yet.
    pub(super) fn new(options: &'a Options, shared: Arc<Shared>, specs: Vec<Spec>) -> Self {
        let counts = |spec: &&Spec| spec.complete != Complete::Never;
        Self {
            counted: specs.iter().filter(counts).count(),
            options,
            shared,
            specs,
            pool: None,
            clients: JoinSet::new(),
            phases: Vec::new(),
            progress: Progress::new(),
            settled: 1,
            memory: None,
            first: None,
            load: super::load(),
        }
    }

    /// Gives the server its contents.
    pub(super) async fn load(&mut self, target: &mut Target) -> Result<()> {
        let begun = PhaseStart::new("load", &self.shared, target).await;
        let truth = &self.shared.truth;
        let kinds = self.options.types.iter();
        let all: Vec<Place> = kinds.flat_map(|kind| truth.places(*kind)).collect();
        let mut done = 0;
        for some in all.chunks(target.batch()) {
            let puts: Vec<Put> = some.iter().map(|place| self.make_put(*place, 1)).collect();
            target.put(&puts).await?;
            for place in some {
                self.shared.truth.note_loaded(*place);
            }
            done += some.len() as u64;
            self.progress.tell("load", done, all.len() as u64);
        }
        self.end_phase(begun, target).await;
        Ok(())
    }

    /// Makes a revision of a resource, to be put.
    fn make_put(&self, place: Place, revision: u32) -> Put {
        Put::new(&self.shared.truth.recipe, place, revision)
    }

    /// Connects all clients, and waits until each has its first configuration.
    /// The first is connected alone: what a server makes for it and keeps for
    /// the others costs nothing for each of them.
    pub(super) async fn connect(&mut self, target: &mut Target) -> Result<()> {
        let begun = PhaseStart::new("connect", &self.shared, target).await;
        self.memory = begun.memory();
        let pool = Pool::new(self.options, &target.address)?;
        pool.try_tls().await?;
        self.pool = Some(Arc::new(pool));
        let mut specs = std::mem::take(&mut self.specs).into_iter();
        if self.counted > 1 {
            self.spawn(specs.by_ref().take(1), 0.0);
            self.wait_configured(1).await?;
            self.note_first(target).await;
        }
        self.spawn(specs, self.options.ramp);
        self.wait_configured(self.counted as u64).await?;
        let phase = begun.end(&self.shared, target).await;
        self.record_phase(phase);
        Ok(())
    }

    /// Starts clients, spread evenly over `ramp` seconds.
    fn spawn(&mut self, specs: impl ExactSizeIterator<Item = Spec>, ramp: f64) {
        let Some(pool) = self.pool.clone() else {
            return;
        };
        let zipf = (self.options.ask == Asking::Demand)
            .then(|| Arc::new(Zipf::new(self.options.resources, self.options.zipf)));
        let (start, each) = (Instant::now(), ramp / specs.len().max(1) as f64);
        for (place, spec) in specs.enumerate() {
            let begin = start + Duration::from_secs_f64(each * place as f64);
            let (shared, pool) = (Arc::clone(&self.shared), Arc::clone(&pool));
            let life = client::run(spec, shared, pool, zipf.clone(), begin);
            self.clients.spawn(life);
        }
    }

    /// Waits until so many clients have their first configuration.
    async fn wait_configured(&mut self, all: u64) -> Result<()> {
        let shared = Arc::clone(&self.shared);
        let configured = || shared.configured_count() as u64;
        self.wait("connect", all, configured).await
    }

    /// Notes the server's memory with one stream, and how much of it that
    /// stream took.
    async fn note_first(&mut self, target: &Target) {
        // Its ACK is taken, too.
        sleep(LOOK).await;
        let (before, now) = (self.memory, target.usage().map(|usage| usage.memory));
        self.memory = now;
        self.first = before
            .zip(now)
            .map(|(before, now)| now as f64 - before as f64);
    }

    /// Makes changes, one when the last has arrived or so many in a second.
    pub(super) async fn change(&mut self, target: &mut Target) -> Result<()> {
        if self.options.changes == 0 {
            return Ok(());
        }
        let begun = PhaseStart::new("changes", &self.shared, target).await;
        let mut plan = Plan::new(self.options, self.changing_kind());
        let all = self.options.changes;
        let mut next = Instant::now();
        while plan.left() > 0 {
            let before = plan.left();
            let actions = plan.next(self.options.batch.max(1));
            self.make_changes(target, &actions).await?;
            let made = all - plan.left();
            self.progress.tell("changes", made as u64, all as u64);
            if self.options.rate > 0.0 {
                let some = before - plan.left();
                next += Duration::from_secs_f64(some as f64 / self.options.rate);
                sleep_until(next).await;
            } else {
                self.settle_all().await?;
            }
        }
        self.settle_all().await?;
        let phase = begun.end(&self.shared, target).await;
        self.record_phase(phase);
        Ok(())
    }

    /// Returns the type of the resources that change.
    fn changing_kind(&self) -> Kind {
        self.options.change.unwrap_or(self.options.types[0])
    }

    /// Makes changes together. Returns how many bytes the changed resources
    /// have at all clients that get them.
    async fn make_changes(&self, target: &mut Target, actions: &[(Place, Action)]) -> Result<u64> {
        let (mut puts, mut gone) = (Vec::new(), Vec::new());
        let mut bytes = 0;
        let truth = &self.shared.truth;
        for (place, action) in actions {
            let (revision, list) = match action {
                Action::Change => (truth.begin_change(*place), &mut puts),
                Action::Remove => (truth.begin_removal(*place), &mut gone),
            };
            if let Some(revision) = revision {
                let put = self.make_put(*place, revision);
                if *action == Action::Change {
                    bytes += put.body.len() as u64 * u64::from(truth.holders(*place));
                }
                list.push(put);
            }
        }
        for some in puts.chunks(target.batch()) {
            target.put(some).await?;
        }
        for some in gone.chunks(target.batch()) {
            target.remove(some).await?;
        }
        Ok(bytes)
    }

    /// Has all clients lose their connections and connect again, while a part
    /// of the contents changes, and measures that as a phase.
    pub(super) async fn storm(&mut self, target: &mut Target) -> Result<()> {
        self.shared.orders.send_modify(|orders| orders.away = true);
        let shared = Arc::clone(&self.shared);
        let gone = (self.clients.len()) as u64;
        let away = || gone.saturating_sub(shared.connected_count() as u64);
        self.wait("leave", gone, away).await?;
        // The server notices, too.
        sleep(Duration::from_millis(500)).await;
        let kind = self.changing_kind();
        let truth = &self.shared.truth;
        let changed = super::changed_meanwhile(self.options);
        let places = truth.places(kind).take(changed);
        let actions: Vec<_> = places.map(|place| (place, Action::Change)).collect();
        let bytes = self.make_changes(target, &actions).await?;
        self.shared.converged.take();
        self.shared.converged_picky.take();

        let begun = PhaseStart::new("reconnect storm", &self.shared, target).await;
        self.shared.orders.send_modify(|orders| orders.away = false);
        let all = self.clients.len() as u64;
        let shared = Arc::clone(&self.shared);
        self.wait("return", all, || shared.connected_count() as u64)
            .await?;
        // A client that sees its variant of this one has been sent all that
        // came before.
        let last = |place: &Place| place.index + 1 == self.options.resources;
        let places = self.shared.truth.places(kind).filter(last);
        let actions: Vec<_> = places.map(|place| (place, Action::Change)).collect();
        self.make_changes(target, &actions).await?;
        self.settle_all().await?;
        let mut phase = begun.end(&self.shared, target).await;
        // For most of the time from a change to its arrival no client was
        // connected.
        phase.convergence = None;
        phase.convergence_of_nackers = None;
        phase.changed_bytes = Some(bytes);
        self.record_phase(phase);
        Ok(())
    }

    /// Lets time pass.
    pub(super) async fn idle(&mut self, target: &mut Target) {
        if self.options.duration <= 0.0 {
            return;
        }
        let begun = PhaseStart::new("idle", &self.shared, target).await;
        sleep(Duration::from_secs_f64(self.options.duration)).await;
        self.end_phase(begun, target).await;
    }

    /// Ends a phase and adds it to the report.
    async fn end_phase(&mut self, begun: PhaseStart, target: &mut Target) {
        let phase = begun.end(&self.shared, target).await;
        self.record_phase(phase);
    }

    /// Adds a phase to the report, with the memory of each stream, and takes
    /// the line of progress away.
    fn record_phase(&mut self, mut phase: Phase) {
        // The first is in the memory that is compared with, unless it is alone.
        let first = usize::from(self.first.is_some());
        let streams = self.shared.connected_count().saturating_sub(first);
        if let (Some(server), Some(before)) = (phase.server, self.memory)
            && streams > 0
        {
            let more = server.memory as f64 - before as f64;
            phase.memory_per_stream = Some(more / streams as f64);
        }
        self.phases.push(phase);
        self.progress.clear();
    }

    /// Waits until a change has arrived at all who should see it.
    async fn settle(&mut self, revision: u32) -> Result<()> {
        let shared = Arc::clone(&self.shared);
        loop {
            let arrived = shared.truth.arrived.notified();
            if shared.truth.waiting_clients(revision) == 0 {
                return Ok(());
            }
            if timeout(LOOK, arrived).await.is_err() {
                break;
            }
        }
        // It takes long enough to watch for progress.
        let all = shared.truth.waiting_clients(revision);
        let done = || all.saturating_sub(shared.truth.waiting_clients(revision));
        self.wait("changes", all, done).await
    }

    /// Waits until all changes so far have arrived at all who should see them.
    async fn settle_all(&mut self) -> Result<()> {
        for revision in self.settled + 1..=self.shared.truth.last_revision() {
            self.settle(revision).await?;
            self.settled = revision;
        }
        Ok(())
    }

    /// Waits until `done` returns `all` or more. An error if it has not grown
    /// for as long as the flags allow.
    async fn wait(&mut self, phase: &'static str, all: u64, done: impl Fn() -> u64) -> Result<()> {
        let patience = Duration::from_secs(self.options.patience);
        let (mut best, mut since) = (0, Instant::now());
        loop {
            let now = done();
            self.progress.tell(phase, now, all);
            if now >= all {
                self.progress.clear();
                return Ok(());
            }
            if now > best {
                (best, since) = (now, Instant::now());
            }
            if since.elapsed() > patience {
                self.progress.clear();
                let fault = self.shared.last_fault();
                return Err(Error::Late {
                    phase,
                    done: now,
                    all,
                    seconds: self.options.patience,
                    hint: fault.unwrap_or_else(|| "no stream failed".into()),
                });
            }
            // Looked at often while little is left to wait for.
            let progress = self.shared.progress.notified();
            let _ = timeout(LOOK.min(Duration::from_millis(5)), progress).await;
        }
    }

    /// Ends all clients, and returns the report.
    pub(super) async fn finish(mut self, target: &Target) -> Report {
        let stop = Orders {
            stop: true,
            ..Orders::default()
        };
        self.shared.orders.send_replace(stop);
        let mut check = Check::default();
        while let Some(ended) = self.clients.join_next().await {
            let ended = ended.unwrap_or_default();
            check.stale += ended.behind;
            check.missing += ended.missing;
        }
        let count = self.shared.counters.read();
        check.wrong = count.wrong;
        check.foreign = count.foreign;
        check.backwards = count.backwards;
        check.lost = count.lost;
        let first = Place {
            kind: self.options.types[0],
            index: 0,
            variant: 0,
        };
        let size = self.make_put(first, 1).body.len();
        Report {
            scenario: Scenario::of(self.options, target.name.clone(), size),
            warnings: super::warnings(self.options, &self.phases, &self.shared, self.load),
            load: self.load,
            started_in: target.started_in(),
            memory_of_first_stream: self.first,
            phases: self.phases,
            check,
        }
    }
}
