//! The trees of a client: the machine of the engine, and what it decides done.
//!
//! ```text
//!   client's machine ──▶ Mailbox ──▶ Trees ──▶ snapshots
//!                  ◀── subscriptions, watches ──┘
//! ```
//!
//! A lock of its own is around the trees, which may be held while that of the
//! client is taken, never the other way round: the mailbox is between them.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use hashbrown::HashMap;
use tokio::sync::watch;
use tokio::task::AbortHandle;
use tokio::time::sleep_until;
use trunkline_core::Moment;
use trunkline_core::tree::{Action, NodeId, RootId, Tree, Update, Warming, Work};

use super::dns;
use super::follow::Following;
use super::held::{Held, RawSnapshot};
use super::mailbox::{Mailbox, News};
use super::place::{NodeKey, Place};
use crate::client::config_source::ConfigSource;
use crate::client::handle::Running;

/// How a root is shown.
pub(super) type Shown = watch::Receiver<Option<Arc<RawSnapshot>>>;

/// The trees of a client.
#[derive(Default)]
pub(in crate::client) struct Trees {
    state: Mutex<TreeState>,
    mailbox: Arc<Mailbox>,
    /// Counts the requests to resolve hosts again (C55).
    resolutions: watch::Sender<u64>,
}

#[derive(Default)]
struct TreeState {
    tree: Tree<Place, Held>,
    following: HashMap<NodeId, Following>,
    roots: HashMap<RootId, watch::Sender<Option<Arc<RawSnapshot>>>>,
    /// Collections of which their sources have not said all.
    unanswered: BTreeSet<NodeId>,
}

impl Trees {
    /// Locks the trees. Ignores poison: a panic under the lock is a fault of
    /// the engine, and others go on.
    fn lock(&self) -> MutexGuard<'_, TreeState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a root, and subscribes to it. The receiver has no snapshot until the
    /// first is complete.
    pub(super) fn add(&self, client: &Arc<Running>, key: NodeKey) -> (RootId, Shown) {
        let mut state = self.lock();
        let id = state.tree.add_root(key);
        let (sender, receiver) = watch::channel(None);
        state.roots.insert(id, sender);
        state.run(client, &self.mailbox);
        drop(state);
        // The loop of `grow` has to learn of its deadlines.
        self.mailbox.notify.notify_one();
        (id, receiver)
    }

    /// Changes the machine, does what it decides, and wakes the loop of `grow`,
    /// which learns of new deadlines.
    fn change(&self, client: &Arc<Running>, change: impl FnOnce(&mut Tree<Place, Held>)) {
        let mut state = self.lock();
        change(&mut state.tree);
        state.run(client, &self.mailbox);
        drop(state);
        self.mailbox.notify.notify_one();
    }

    /// Removes a root, and ends the subscriptions that no other root needs.
    pub(super) fn remove(&self, client: &Arc<Running>, id: RootId) {
        self.lock().roots.remove(&id);
        self.change(client, |tree| tree.remove_root(id));
    }

    /// Subscribes to a resource beside those that a root refers to.
    pub(super) fn subscribe(&self, client: &Arc<Running>, id: RootId, key: NodeKey) {
        self.change(client, |tree| tree.subscribe(id, key));
    }

    /// Ends a subscription that [`subscribe`](Self::subscribe) began.
    pub(super) fn unsubscribe(&self, client: &Arc<Running>, id: RootId, key: &NodeKey) {
        self.change(client, |tree| tree.unsubscribe(id, key));
    }

    /// Returns the nodes of all trees that have no active version yet, or a next
    /// one beside it.
    pub(super) fn warming(&self) -> Vec<Warming<Place>> {
        self.lock().tree.warming()
    }

    /// Takes the count of the work since the last call.
    pub(super) fn take_work(&self) -> Work {
        self.lock().tree.take_work()
    }

    /// Requests that the tasks of all hosts resolve them again, and does not wait
    /// for that (C55).
    pub(super) fn resolve_again(&self) {
        self.resolutions.send_modify(|count| *count += 1);
    }

    /// Starts a task that resolves the host of a node.
    pub(super) fn resolve(&self, client: &Running, node: NodeId, target: &str) -> AbortHandle {
        let task = dns::follow(
            client.settings.resolver.clone(),
            target.to_owned(),
            node,
            Arc::clone(&self.mailbox),
            self.resolutions.subscribe(),
        );
        client.runtime.spawn(task).abort_handle()
    }

    /// Reads all news, and does what is due. Returns the next deadline, and
    /// whether there are collections whose sources have not said all: those are
    /// looked at again with every change of the client's machine.
    fn grow(&self, client: &Arc<Running>) -> (Option<Moment>, bool) {
        let mut state = self.lock();
        state.tree.handle_timeout(client.shared.now());
        state.look_at_collections(client);
        state.run(client, &self.mailbox);
        (state.tree.poll_timeout(), !state.unanswered.is_empty())
    }
}

impl TreeState {
    /// Reads news and does what the machine decides, until there is nothing left
    /// to do. What it does may bring news at once, as of a resource that is known
    /// already.
    fn run(&mut self, client: &Arc<Running>, mailbox: &Arc<Mailbox>) {
        loop {
            for (node, news) in mailbox.take() {
                self.read(client, node, news);
            }
            match self.tree.poll_action() {
                Some(Action::Subscribe(node, key)) => self.follow(client, node, key, mailbox),
                Some(Action::Unsubscribe(node)) => {
                    self.unanswered.remove(&node);
                    self.following.remove(&node);
                }
                Some(Action::Publish(root, snapshot)) => {
                    if let Some(sender) = self.roots.get(&root) {
                        sender.send_replace(Some(snapshot));
                    }
                }
                None => return,
            }
        }
    }

    /// Subscribes to the resource of a node, which starts the time of its fetch
    /// timeout. A node without a source fails at once.
    fn follow(
        &mut self,
        client: &Arc<Running>,
        node: NodeId,
        key: Arc<NodeKey>,
        mailbox: &Arc<Mailbox>,
    ) {
        let wait = match &key.source {
            Place::Source { wait, .. } => *wait,
            Place::Dns => Some(ConfigSource::INITIAL_FETCH_TIMEOUT),
            // These are known, or go with what refers to them.
            Place::Static | Place::Member(_) | Place::Invalid(_) => None,
        };
        let deadline = wait.map(|wait| client.shared.now() + wait);
        self.tree.handle_subscribed(node, deadline);
        match Following::start(client, node, key, mailbox) {
            Ok(following) => {
                if following.is_collection() {
                    self.unanswered.insert(node);
                }
                self.following.insert(node, following);
            }
            Err(error) => self.tree.handle_update(node, Update::Failed(error)),
        }
    }

    /// Tells the machine the news of a node. News of a node that was
    /// unsubscribed from meanwhile are dropped.
    fn read(&mut self, client: &Running, node: NodeId, news: News) {
        let Some(following) = self.following.get_mut(&node) else {
            return;
        };
        let update = match news {
            News::State(state) => following.read(client, state),
            // All of a collection is told together first.
            News::Names if self.unanswered.contains(&node) => None,
            News::Names => following.read_names(client),
            News::Addresses(addresses) => following.read_addresses(addresses),
        };
        if let Some(update) = update {
            self.tree.handle_update(node, update);
        }
    }

    /// Reads the collections of which the sources have said all by now, and ends
    /// the wait for them.
    fn look_at_collections(&mut self, client: &Running) {
        let following = &mut self.following;
        let mut updates = Vec::new();
        self.unanswered.retain(|node| {
            let Some(following) = following.get_mut(node) else {
                return false;
            };
            let is_unanswered = following.is_unanswered(client);
            if !is_unanswered {
                updates.extend(following.read_names(client).map(|update| (*node, update)));
            }
            is_unanswered
        });
        for (node, update) in updates {
            self.tree.handle_update(node, update);
        }
    }
}

/// Runs the trees until the client is dropped.
pub(in crate::client) async fn grow(client: Weak<Running>) {
    loop {
        let Some(running) = client.upgrade() else {
            return;
        };
        let shared = Arc::clone(&running.shared);
        let mailbox = Arc::clone(&running.trees.mailbox);
        let mut progress = shared.progress.subscribe();
        let (next, waits_for_collections) = running.trees.grow(&running);
        drop(running);

        let time = async {
            match next {
                Some(moment) => sleep_until(shared.instant(moment)).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = mailbox.notify.notified() => {}
            _ = progress.changed(), if waits_for_collections => {}
            () = time => {}
        }
    }
}
