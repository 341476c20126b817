//! The owner of the tree: subscribes as the tree says, reads watches, and looks
//! at every snapshot.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use fastrand::Rng;
use trunkline_core::Moment;
use trunkline_core::client::{Client, SourceId, State, WatchId, Watched};
use trunkline_core::name::Selector;
use trunkline_core::params::Params;
use trunkline_core::sink::Subscription;
use trunkline_core::tree::{Action, Content, Key, NodeId, Part, RootId, Snapshot, Tree, Update};

use super::contents::{Contents, ROOTS, number, references, split, text};
use crate::world::Fault;

/// How long a first answer is waited for (E2).
const FETCH: Duration = Duration::from_secs(15);

type TestPart = Part<(), String>;

/// See the module's documentation.
#[derive(Debug)]
pub(super) struct Owner {
    source: SourceId,
    tree: Tree<(), String>,
    roots: BTreeMap<&'static str, Root>,
    nodes: BTreeMap<NodeId, (Arc<Key<()>>, WatchId)>,
    watches: BTreeMap<WatchId, NodeId>,
    arrivals: Arrivals,
}

/// The order in which versions of each name arrived. A server that gives up one
/// that was rejected, or was never accepted for certain, sends an older one
/// again (S12), which is the newest then.
#[derive(Debug, Default)]
struct Arrivals {
    newest: BTreeMap<String, String>,
    /// The last arrival of each name and body.
    numbers: BTreeMap<(String, String), usize>,
    count: usize,
}

impl Arrivals {
    fn note(&mut self, name: &str, body: &str) {
        if self.newest.get(name).is_some_and(|newest| newest == body) {
            return;
        }
        self.count += 1;
        self.newest.insert(name.to_owned(), body.to_owned());
        let version = (name.to_owned(), body.to_owned());
        self.numbers.insert(version, self.count);
    }

    fn number(&self, name: &str, body: &str) -> Option<usize> {
        let version = (name.to_owned(), body.to_owned());
        self.numbers.get(&version).copied()
    }
}

/// A root, and what it has shown.
#[derive(Debug)]
struct Root {
    id: RootId,
    shown: Option<Arc<Snapshot<(), String>>>,
    /// The arrival of what was shown of each name.
    arrivals: BTreeMap<String, Option<usize>>,
}

impl Owner {
    pub(super) fn new(source: SourceId) -> Self {
        let mut owner = Self {
            source,
            tree: Tree::new(),
            roots: BTreeMap::new(),
            nodes: BTreeMap::new(),
            watches: BTreeMap::new(),
            arrivals: Arrivals::default(),
        };
        owner.add_root(ROOTS[0]);
        owner
    }

    fn add_root(&mut self, name: &'static str) {
        let root = Root {
            id: self.tree.add_root(key(name)),
            shown: None,
            arrivals: BTreeMap::new(),
        };
        self.roots.insert(name, root);
    }

    /// A root comes, or goes if it is not the last. Returns what happened.
    pub(super) fn toggle_root(&mut self, rng: &mut Rng) -> String {
        let name = ROOTS[rng.usize(..ROOTS.len())];
        match self.roots.contains_key(name) && self.roots.len() > 1 {
            true => {
                if let Some(root) = self.roots.remove(name) {
                    self.tree.remove_root(root.id);
                }
                format!("without the root {name}")
            }
            false if self.roots.contains_key(name) => format!("{name} stays"),
            false => {
                self.add_root(name);
                format!("with the root {name}")
            }
        }
    }

    pub(super) fn poll_timeout(&self) -> Option<Moment> {
        self.tree.poll_timeout()
    }

    /// Reads what is new, and does what is due. Returns what was shown, in
    /// words.
    pub(super) fn run(&mut self, client: &mut Client, now: Moment) -> Result<Vec<String>, Fault> {
        let mut told = Vec::new();
        self.tree.handle_timeout(now);
        loop {
            while let Some(watch) = client.poll_watch() {
                self.read(client, watch);
            }
            match self.tree.poll_action() {
                None => break,
                Some(Action::Subscribe(node, key)) => self.subscribe(client, node, key, now)?,
                Some(Action::Unsubscribe(node)) => {
                    if let Some((key, watch)) = self.nodes.remove(&node) {
                        client.unwatch(watch);
                        self.watches.remove(&watch);
                        client.unsubscribe(self.source, &key.type_url, &subscription(&key), now);
                    }
                }
                Some(Action::Publish(id, snapshot)) => {
                    let of = self.roots.iter().find(|(_, root)| root.id == id);
                    let Some(name) = of.map(|(name, _)| *name) else {
                        return Err("a root that was removed is shown".to_owned());
                    };
                    told.push(format!("shown {}", show(&snapshot.root)));
                    self.check(client, name, &snapshot)?;
                }
            }
        }
        self.tree.check()?;
        Ok(told)
    }

    fn subscribe(
        &mut self,
        client: &mut Client,
        node: NodeId,
        key: Arc<Key<()>>,
        now: Moment,
    ) -> Result<(), Fault> {
        let subscribed = client.subscribe(self.source, &key.type_url, subscription(&key), now);
        subscribed.map_err(|error| error.to_string())?;
        let watch = client.watch(Watched {
            type_url: key.type_url.clone(),
            selector: Selector::Name(key.name.clone()),
            params: Params::default(),
            source: Some(self.source),
        });
        self.tree.handle_subscribed(node, Some(now + FETCH));
        self.nodes.insert(node, (key, watch));
        self.watches.insert(watch, node);
        self.read(client, watch);
        Ok(())
    }

    fn read(&mut self, client: &Client, watch: WatchId) {
        let (Some(node), Some(state)) = (self.watches.get(&watch), client.state(watch)) else {
            return;
        };
        let update = match (body(state), &state.error) {
            (Some(body), error) => Update::Value {
                children: references(&body).iter().map(|name| key(name)).collect(),
                value: body,
                error: error.clone(),
            },
            (None, Some(error)) => Update::Failed(error.clone()),
            (None, None) => return,
        };
        if let (Update::Value { value, .. }, Some((key, _))) = (&update, self.nodes.get(node)) {
            self.arrivals.note(&text(&key.type_url, &key.name), value);
        }
        self.tree.handle_update(*node, update);
    }

    /// Looks at a snapshot, see the module of the world.
    fn check(
        &mut self,
        client: &Client,
        name: &'static str,
        snapshot: &Arc<Snapshot<(), String>>,
    ) -> Result<(), Fault> {
        let warming = self.tree.warming();
        let warming: BTreeSet<_> = warming
            .iter()
            .map(|of| text(&of.key.type_url, &of.key.name))
            .collect();
        let watches = self.nodes.values();
        let states = watches.map(|(key, watch)| {
            let state = client.state(*watch).cloned().unwrap_or_default();
            (text(&key.type_url, &key.name), state)
        });
        let states: BTreeMap<_, _> = states.collect();
        let Some(root) = self.roots.get_mut(name) else {
            return Ok(());
        };
        let mut open = vec![&snapshot.root];
        while let Some(part) = open.pop() {
            open.extend(part.children.iter());
            let of = text(&part.key.type_url, &part.key.name);
            let fault =
                |what: &str| Err(format!("{of} in {name}: {what}: {}", show(&snapshot.root)));
            let accepted = states.get(&of).and_then(body);
            let is_warming = warming.contains(&of);
            let Some(shown) = part.content.value() else {
                if accepted.is_some() && !is_warming {
                    return fault("an error, although there is a resource (C51)");
                }
                continue;
            };
            let children = part.children.iter();
            let children: Vec<_> = children
                .map(|of| text(&of.key.type_url, &of.key.name))
                .collect();
            if children.iter().collect::<BTreeSet<_>>() != references(shown).iter().collect() {
                return fault("its children are not what it refers to (C51)");
            }
            if !shown.starts_with("good") {
                return fault("it was rejected");
            }
            if accepted.is_some_and(|accepted| accepted != *shown) && !is_warming {
                return fault("another version is in use, and none is warming (torn)");
            }
            let arrival = self.arrivals.number(&of, shown);
            let before = root.arrivals.insert(of.clone(), arrival);
            if before.is_some_and(|before| before > arrival) {
                return fault("it is older than what was shown before");
            }
        }
        root.shown = Some(Arc::clone(snapshot));
        Ok(())
    }

    /// In quiet nothing is warming, and roots show what the server has. What it
    /// has and is bad leaves the last good one; what is gone may stay with a
    /// client that holds a reference to it (S81).
    pub(super) fn is_as_published(&self, contents: &Contents) -> Result<(), Fault> {
        let warming = self.tree.warming();
        if let Some(of) = warming.first() {
            let name = text(&of.key.type_url, &of.key.name);
            return Err(format!("{name} is warming for ever"));
        }
        for (name, root) in &self.roots {
            let Some(snapshot) = &root.shown else {
                return Err(format!("{name} was never shown"));
            };
            let mut open = vec![&snapshot.root];
            while let Some(part) = open.pop() {
                open.extend(part.children.iter());
                let of = text(&part.key.type_url, &part.key.name);
                let (shown, body) = (part.content.value(), contents.bodies.get(&of));
                let good = body.filter(|body| body.starts_with("good"));
                let is_right = good.is_none_or(|body| shown == Some(body));
                if !is_right {
                    return Err(format!(
                        "{of} in {name} is {shown:?}, and {body:?} is served"
                    ));
                }
            }
        }
        Ok(())
    }
}

fn key(name: &str) -> Key<()> {
    let (url, name) = split(name);
    Key::new(url.as_str(), name, ())
}

fn subscription(key: &Key<()>) -> Subscription {
    Selector::Name(key.name.clone()).into()
}

fn body(state: &State) -> Option<String> {
    let body = state.value.as_ref()?.body.as_deref()?;
    Some(String::from_utf8_lossy(body).into_owned())
}

/// A part with everything below it, in words.
fn show(part: &TestPart) -> String {
    let content = match &part.content {
        Content::Value(value) => number(value).to_string(),
        Content::Stale(value, _) => format!("{}?", number(value)),
        Content::Failed(_) => "!".to_owned(),
    };
    let children: Vec<_> = part.children.iter().map(|part| show(part)).collect();
    let name = text(&part.key.type_url, &part.key.name);
    format!("{name}={content}({})", children.join(" "))
}
