//! The ejection of outliers of a cluster (A50): the machine of traffic, its
//! timer, and the endpoints that hear of it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use hashbrown::HashMap;
use tokio::task::AbortHandle;
use trunkline_proto::envoy::envoy::config::cluster::v3::OutlierDetection;
use trunkline_traffic::Findings;
use trunkline_traffic::balance::Host;
use trunkline_traffic::cluster::{Ejection, OutlierConfig, Outliers};

use super::subchannel::Pool;

/// See the module's documentation.
#[derive(Debug)]
pub(super) struct Ejector {
    pub(super) settings: OutlierDetection,
    state: Arc<Mutex<State>>,
    pool: Arc<Pool>,
    task: AbortHandle,
}

#[derive(Debug)]
struct State {
    outliers: Outliers,
    hosts: HashMap<String, Arc<Host>>,
}

impl Drop for Ejector {
    /// Takes back all endpoints that are ejected.
    fn drop(&mut self) {
        self.task.abort();
        for host in self.lock().hosts.values() {
            host.counters().set_ejected(false);
        }
        self.pool.note_change();
    }
}

impl Ejector {
    /// Starts the ejection of a cluster, in the present runtime.
    pub(super) fn start(settings: &OutlierDetection, pool: &Arc<Pool>) -> Result<Self, Findings> {
        let config = OutlierConfig::compile(settings)?;
        let state = Arc::new(Mutex::new(State {
            outliers: Outliers::new(config, Vec::new(), pool.now()),
            hosts: HashMap::new(),
        }));
        let timer = run_timer(Arc::downgrade(&state), Arc::clone(pool));
        Ok(Self {
            settings: settings.clone(),
            state,
            pool: Arc::clone(pool),
            task: tokio::spawn(timer).abort_handle(),
        })
    }

    /// Replaces the endpoints of the cluster. Those that stay keep what was
    /// counted of them; those that go are not ejected any more.
    pub(super) fn set_hosts(&self, hosts: impl Iterator<Item = Arc<Host>>) {
        let mut state = self.lock();
        let hosts = hosts.map(|host| (host.address().to_owned(), host));
        let hosts: HashMap<_, _> = hosts.collect();
        let old_hosts = std::mem::replace(&mut state.hosts, hosts);

        let State { outliers, hosts } = &mut *state;
        for (address, host) in &old_hosts {
            if !hosts.contains_key(address) {
                outliers.remove(address);
                host.counters().set_ejected(false);
            }
        }
        for address in hosts
            .keys()
            .filter(|address| !old_hosts.contains_key(*address))
        {
            outliers.add(address.clone());
        }
    }

    /// Counts a call to an endpoint that has ended, and ejects the endpoint if
    /// it is time for that.
    pub(super) fn count(&self, host: &str, is_success: bool) {
        let status = if is_success { 200 } else { 503 };
        let mut state = self.lock();
        let (now, random) = (self.pool.now(), self.pool.random());
        let change = state.outliers.handle_status(host, status, now, random);
        state.apply_ejections(change, &self.pool);
    }

    /// Locks the outliers. Ignores poison: a call that panicked ends alone.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Ejects endpoints, or takes them back. Endpoints that are gone are
    /// ignored.
    fn apply_ejections(&self, changes: impl IntoIterator<Item = Ejection>, pool: &Pool) {
        let mut is_changed = false;
        for change in changes {
            let (address, is_out) = match &change {
                Ejection::Out(address) => (address, true),
                Ejection::Back(address) => (address, false),
            };
            if let Some(host) = self.hosts.get(address) {
                host.counters().set_ejected(is_out);
                is_changed = true;
            }
        }
        if is_changed {
            pool.note_change();
        }
    }
}

/// Looks at all endpoints at the end of each interval, until the ejector is
/// dropped.
async fn run_timer(state: Weak<Mutex<State>>, pool: Arc<Pool>) {
    loop {
        let Some(ejector_state) = state.upgrade() else {
            return;
        };
        let wait = {
            let mut state = ejector_state.lock().unwrap_or_else(PoisonError::into_inner);
            let changes = state
                .outliers
                .handle_timeout(pool.now(), &mut || pool.random());
            state.apply_ejections(changes, &pool);
            state.outliers.next_deadline().saturating_sub(pool.now())
        };
        drop(ejector_state);
        tokio::time::sleep(wait.max(Duration::from_millis(1))).await;
    }
}
