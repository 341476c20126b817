//! A server with a victim and a driver beside it, and what is measured of them.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde::Serialize;

use crate::attacks::Attack;
use crate::driver::Driver;
use crate::error::{Error, Result};
use crate::field::{Field, Scale};
use crate::ledger::{Faults, Ledger};
use crate::metrics::Sample;
use crate::options::Options;
use crate::process::Peak;
use crate::server::{Server, Setup};
use crate::victim::Victim;

/// How long the victim may take to have everything once nothing changes.
const CATCH_UP: Duration = Duration::from_secs(20);

/// See the module's documentation.
#[derive(Debug)]
pub(crate) struct Scene {
    pub(crate) server: Server,
    ledger: Arc<Ledger>,
    driver: Driver,
    _victim: Victim,
}

/// Milliseconds.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub(crate) struct Latency {
    pub(crate) p50: f64,
    pub(crate) p99: f64,
}

/// What was measured in a phase.
#[derive(Debug, Default)]
pub(crate) struct Phase {
    /// How many of the victim's pushes the server counted.
    pub(crate) pushes: u64,
    /// From a change being accepted until its bytes were given to the transport;
    /// `None` if the server did not say.
    pub(crate) in_server: Option<Latency>,
    /// From a change being sent until the victim had it.
    pub(crate) seen: Latency,
    pub(crate) peak: u64,
    pub(crate) cpu: f64,
    /// Seconds that the server's threads waited for a core.
    pub(crate) waited: f64,
    /// Refusals that the server counted.
    pub(crate) refusals: BTreeMap<String, u64>,
}

impl Scene {
    /// Starts all of it, and waits until the victim has what it subscribed to.
    pub(crate) async fn start(options: &Options, setup: Setup) -> Result<Self> {
        let server = Server::start(options, setup).await?;
        let ledger = Arc::new(Ledger::default());
        let victim = Victim::start(server.doors.xds.clone(), Arc::clone(&ledger));
        let driver = Driver::start(server.doors.admin.clone(), Arc::clone(&ledger));
        let scene = Self {
            server,
            ledger,
            driver,
            _victim: victim,
        };
        scene.await_first_change().await?;
        Ok(scene)
    }

    async fn await_first_change(&self) -> Result<()> {
        let begun = Instant::now();
        while !self.ledger.has_seen_any() {
            if begun.elapsed() > CATCH_UP {
                return Err(Error::Start("the victim gets nothing".into()));
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        Ok(())
    }

    /// Makes an attack, and returns the field with what happened on it.
    pub(crate) async fn attack(&self, attack: &Attack, scale: Scale) -> Field {
        let field = Field::new(&self.server.doors, scale);
        let running = (attack.run)(field.clone());
        // One that hangs is cut off.
        let _ = tokio::time::timeout(field.longest(), running).await;
        field
    }

    /// Measures while something goes on.
    pub(crate) async fn measure<T>(&self, action: impl Future<Output = T>) -> (Phase, T) {
        let before = self.sample().await;
        let process = self.server.process;
        let (peak, cpu, waited) = (Peak::watch(process), process.cpu(), process.waited());
        self.ledger.begin();
        let done = action.await;

        let (p50, p99) = self.ledger.end();
        let mut phase = Phase {
            seen: Latency { p50, p99 },
            peak: peak.most(),
            cpu: process.cpu() - cpu,
            // Threads that have ended meanwhile are not counted.
            waited: (process.waited() - waited).max(0.0),
            ..Phase::default()
        };
        if let (Ok(before), Ok(after)) = (before, self.sample().await) {
            let pushes = after.pushes_since(&before);
            let quantiles = pushes.quantile(0.5).zip(pushes.quantile(0.99));
            phase.pushes = pushes.count();
            phase.in_server = quantiles.map(|(p50, p99)| Latency { p50, p99 });
            phase.refusals = after.refusals_since(&before);
        }
        (phase, done)
    }

    async fn sample(&self) -> Result<Sample> {
        Sample::take(&self.server.doors.admin).await
    }

    /// What went wrong with the victim and the driver so far.
    pub(crate) fn faults(&self) -> Faults {
        self.ledger.faults()
    }

    /// Takes the reason for which the last change that failed did.
    pub(crate) fn take_reason(&self) -> Option<String> {
        self.ledger.take_reason()
    }

    /// Waits until the victim has all that was applied while changes go on, and
    /// returns whether it does.
    pub(crate) async fn is_up_to_date(&self) -> bool {
        let begun = Instant::now();
        while self.ledger.behind() > 0 {
            if begun.elapsed() > CATCH_UP {
                return false;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        true
    }

    /// Ends the changes, and returns how many clusters the victim then lacks.
    pub(crate) async fn lacking(&mut self) -> usize {
        self.driver.stop().await;
        let begun = Instant::now();
        while self.ledger.behind() > 0 && begun.elapsed() < CATCH_UP {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        self.ledger.behind()
    }
}
