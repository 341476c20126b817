//! A client that subscribes to clusters by `*`, names and globs at once,
//! changes its subscriptions, and takes nothing of a response that it NACKs or
//! the good part of it.

use std::collections::BTreeSet;
use std::sync::Arc;

use fastrand::Rng;
use trunkline_core::kind::CDS;
use trunkline_core::message::{Mode, Response};
use trunkline_core::name::Name;
use trunkline_core::resource::Resource;

use super::contents::{EXTRAS, Published, is_bad, is_empty};
use super::wire::{Names, News, Wire};

/// Selectors beside the names of clusters.
const SCOPES: [&str; 3] = ["*", "xdstp://a/t/g/*", "xdstp://a/t/h/*"];

/// See the module's documentation.
#[derive(Debug)]
pub(super) struct Mixed {
    pub(super) wire: Wire,
    /// The resources that it accepted.
    pub(super) held: Published,
    rejects_whole: bool,
    /// Good bodies that it ever saw, to tell a last good version from a wrong
    /// one.
    pub(super) good: BTreeSet<(Name, Vec<u8>)>,
}

impl Mixed {
    pub(super) fn new(mode: Mode, rng: &mut Rng) -> Self {
        let agent = ["envoy", "other"][rng.usize(0..2)];
        let mut mixed = Self {
            wire: Wire::new(mode, agent),
            held: Published::new(),
            rejects_whole: rng.bool(),
            good: BTreeSet::new(),
        };
        mixed.toggle(rng);
        mixed
    }

    /// Subscribes to one selector more, or unsubscribes from it.
    pub(super) fn toggle(&mut self, rng: &mut Rng) {
        let mut names = self.wire.names(CDS);
        let one = match rng.u8(0..3) {
            0 => SCOPES[rng.usize(0..SCOPES.len())],
            _ => EXTRAS[rng.usize(0..EXTRAS.len())],
        };
        let given_up = names.remove(one);
        if !given_up {
            names.insert(one.to_owned());
        }
        if names.is_empty() {
            return;
        }
        if given_up && self.wire.mode == Mode::Delta {
            // Whatever else brings it, the server resends what the client has
            // from now on (S23).
            self.held.remove(&(CDS.into(), Name::new(one)));
            self.drop_unasked(&names);
        }
        self.wire.ask(CDS, names, &self.held);
    }

    /// Whether any selector covers a name.
    pub(super) fn asks_for(&self, name: &str) -> bool {
        covers(&self.wire.names(CDS), name)
    }

    /// No message is on its way: it drops what it is not subscribed to.
    pub(super) fn rest(&mut self) {
        let names = self.wire.names(CDS);
        self.drop_unasked(&names);
    }

    fn drop_unasked(&mut self, names: &Names) {
        self.held
            .retain(|(_, name), _| covers(names, name.as_str()));
    }

    pub(super) fn take(&mut self, response: Response) {
        let news = News::from(response);
        self.wire.received(&news);
        let bad = |r: &Arc<Resource>| is_bad(CDS, r);
        let any = news.resources.iter().any(bad);
        // An invalid cluster can be read: it is rejected alone.
        let unread = news.resources.iter().any(|r| bad(r) && !is_empty(r));
        let whole = unread && self.rejects_whole;
        self.wire.unclear |= unread && news.resources.iter().any(|r| is_empty(r));
        for resource in news.resources.iter().filter(|r| !bad(r)) {
            let body = resource.body.clone().unwrap_or_default().to_vec();
            self.good.insert((resource.name.clone(), body));
        }
        if !whole {
            for name in news.gone(&self.held) {
                self.held.remove(&(CDS.into(), name));
            }
            for resource in news.resources.iter().filter(|r| !bad(r)) {
                let key = (CDS.into(), resource.name.clone());
                self.held.insert(key, Arc::clone(resource));
            }
            self.rest();
        }
        // The text of its NACK names nothing.
        self.wire
            .answer(&news, any.then(|| "something is not good".to_owned()));
    }

    pub(super) fn reconnect(&mut self, rng: &mut Rng) {
        self.wire.reconnect(&self.held, rng);
    }
}

fn covers(names: &Names, name: &str) -> bool {
    let glob = |scope: &String| {
        let prefix = scope.strip_suffix('*').filter(|prefix| !prefix.is_empty());
        prefix.is_some_and(|prefix| name.starts_with(prefix))
    };
    names.contains(name) || names.contains("*") || names.iter().any(glob)
}
