//! Invariants of a world: after each step, and in the end.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use trunkline_core::kind::{CDS, EDS, Kind, LDS, RDS, SDS};
use trunkline_core::message::Mode;
use trunkline_core::name::Name;
use trunkline_core::resource::{Resource, TypeUrl};
use trunkline_core::sink::Response;

use super::client::{Client, Habit, references};
use super::contents::{Contents, SOUND_CLUSTERS};
use super::link::Link;
use super::{Fault, Role, World};

impl World {
    /// After every step.
    pub(super) fn always(&mut self) -> Result<(), Fault> {
        self.server.check()?;
        for index in 0..self.children.len() {
            if let Role::Relay(relay) = &mut self.children[index].role {
                relay.db.check()?;
            }
            self.client_is_whole(index)
                .map_err(|fault| format!("client {index}: {fault}"))?;
            self.session_is_consistent(index)?;
            let link = self.children[index].link.as_ref();
            if let Some(link) = link.filter(|link| link.answered > link.sent) {
                return Err(format!(
                    "{index}: {} answers to {} responses",
                    link.answered, link.sent
                ));
            }
            if let Some(link) = link {
                nothing_is_beside_what_is_rejected(link)
                    .map_err(|fault| format!("{index}: {fault}"))?;
            }
        }
        Ok(())
    }

    /// No route that a delta client holds leads to a cluster that it does not:
    /// no cluster is removed before the route that uses it, and none comes
    /// after (S52). A state-of-the-world client that reconnects cannot be
    /// helped: what it held is not known.
    fn client_is_whole(&mut self, index: usize) -> Result<(), Fault> {
        let Role::Client(client) = &self.children[index].role else {
            return Ok(());
        };
        let missing = missing_clusters(client);
        let mut dangling = BTreeSet::new();
        for (cluster, route) in missing {
            let was = self.children[index].dangling.contains(&cluster);
            if !was && !self.may_dangle(index, &cluster) {
                return Err(format!("{route:?} leads to {cluster}, which is not there"));
            }
            dangling.insert(cluster);
        }
        self.children[index].dangling = dangling;
        Ok(())
    }

    /// Whether the relay of a client never had a cluster that a route of the
    /// client leads to. A relay gets its types one after another: if the first
    /// subscription to clusters below it is new, those that its older routes
    /// lead to may have been removed before.
    fn may_dangle(&self, index: usize, cluster: &Name) -> bool {
        let parent = self.children[index].parent;
        let parent = parent.map(|parent| &self.children[parent].role);
        matches!(parent, Some(Role::Relay(relay)) if !relay.had.contains(cluster))
    }

    fn session_is_consistent(&mut self, index: usize) -> Result<(), Fault> {
        let Some(link) = self.children[index].link.take() else {
            return Ok(());
        };
        let parent = self.children[index].parent;
        let sound = self.with_parent(parent, |db| link.session.check(db));
        self.children[index].link = Some(link);
        sound.map_err(|fault| format!("{index}: {fault}"))
    }

    /// After a time of quiet.
    pub(super) fn finally(&mut self) -> Result<(), Fault> {
        for index in 0..self.children.len() {
            self.every_response_was_answered(index)?;
            self.client_cache_is_right(index)?;
            if let Role::Client(client) = &self.children[index].role {
                self.holds_what_is_published(client)
                    .map_err(|fault| format!("client {index} ({:?}): {fault}", client.habit))?;
            }
        }
        Ok(())
    }

    fn every_response_was_answered(&self, index: usize) -> Result<(), Fault> {
        match &self.children[index].link {
            Some(link) if !link.is_quiet() => Err(format!("{index}: not quiet")),
            Some(link) if link.answered != link.sent => Err(format!(
                "{index}: {} answers to {} responses",
                link.answered, link.sent
            )),
            Some(_) => Ok(()),
            None => Err(format!("{index}: not connected")),
        }
    }

    /// The client cache agrees with what the client holds.
    fn client_cache_is_right(&mut self, index: usize) -> Result<(), Fault> {
        for url in [CDS, EDS, LDS, RDS, SDS].map(TypeUrl::from) {
            let parent = self.children[index].parent;
            let Some(link) = self.children[index].link.take() else {
                continue;
            };
            let believed = self.with_parent(parent, |db| link.session.held_resources(db, &url));
            self.children[index].link = Some(link);
            let held = match &self.children[index].role {
                Role::Client(client) => by_name(client.of(url.as_str())),
                Role::Relay(relay) => {
                    let found = relay.db.find_type(&url);
                    by_name(found.into_iter().flat_map(|id| relay.db.resources(id)))
                }
            };
            let unclear = match &self.children[index].role {
                Role::Client(client) => client.unclear && url.as_str() == CDS,
                Role::Relay(_) => false,
            };
            for (name, resource) in believed.iter().filter(|_| !unclear) {
                let same = held.get(name).map(|r| &r.version) == Some(&resource.version);
                // After a NACK of a whole response, good resources may have
                // come twice.
                if !same {
                    let got = held.get(name);
                    return Err(format!(
                        "{index}: {url} {name} believed {resource:?}, holds {got:?}"
                    ));
                }
            }
        }
        Ok(())
    }

    /// The oracle: a client holds what is published of its subscriptions, or
    /// the last good version where that is bad.
    fn holds_what_is_published(&self, client: &Client) -> Result<(), Fault> {
        for (key, resource) in self.contents.published() {
            let wanted = client
                .sink
                .interest(&key.0)
                .is_some_and(|i| i.contains(&key.1));
            if !wanted || (client.unclear && key.0.as_str() == CDS) {
                continue;
            }
            let held = client.held.get(key);
            let right = match Contents::is_bad(resource) {
                false => held.map(|r| &r.version) == Some(&resource.version),
                true => held.is_none_or(|r| is_last_good(client, &key.0, r)),
            };
            if !right {
                return Err(format!(
                    "{} {} is {resource:?}, held {held:?}",
                    key.0, key.1
                ));
            }
        }
        let published = self.contents.published();
        for (key, held) in &client.held {
            let empty = held.body.as_ref().is_some_and(|b| b.first() == Some(&0x0a));
            if !published.contains_key(key) && !empty && !self.may_linger(client, key) {
                return Err(format!("{} {} is gone, held {held:?}", key.0, key.1));
            }
        }
        Ok(())
    }

    /// A removed resource stays while a bad one keeps an older user of it, or
    /// may do so as far as any source can tell.
    fn may_linger(&self, client: &Client, key: &(TypeUrl, Name)) -> bool {
        // In state of the world only whole sets say what is removed (S39).
        let silent = client.mode == Mode::Sotw && [EDS, RDS, SDS].contains(&key.0.as_str());
        let user = client
            .held
            .values()
            .any(|r| references(r, key.0.as_str()).any(|n| *n == key.1));
        let unknown = self.contents.published().iter().any(|(other, resource)| {
            Contents::is_bad(resource)
                && (client.held.contains_key(other) || client.is_untold(&other.0, &other.1))
                && Kind::of(&other.0).refers_to.contains(&key.0.as_str())
        });
        silent || user || unknown
    }
}

/// A resource that is expected to be NACKed goes alone (S35).
fn nothing_is_beside_what_is_rejected(link: &Link) -> Result<(), Fault> {
    for response in &link.down {
        let resources = match response {
            Response::Delta(response) => &response.resources[..],
            Response::Sotw(response) => &response.resources[..],
        };
        let all = resources.iter();
        let unreadable = all.filter(|d| Contents::is_unreadable(&d.resource)).count();
        if unreadable != 0 && unreadable != resources.len() {
            return Err(format!("beside what is rejected: {response:?}"));
        }
    }
    Ok(())
}

fn is_last_good(client: &Client, url: &TypeUrl, held: &Resource) -> bool {
    let body = held.body.clone().unwrap_or_default().to_vec();
    let empty = body.first() == Some(&0x0a);
    empty
        || client
            .good
            .contains(&(url.clone(), held.name.clone(), body))
}

fn by_name<'a>(all: impl Iterator<Item = &'a Arc<Resource>>) -> BTreeMap<Name, Arc<Resource>> {
    all.map(|r| (r.name.clone(), Arc::clone(r))).collect()
}

/// The clusters that routes of a delta client lead to and that it does not hold.
fn missing_clusters(client: &Client) -> BTreeMap<Name, Arc<Resource>> {
    let mut missing = BTreeMap::new();
    if client.habit != Habit::Envoy || client.mode != Mode::Delta {
        return missing;
    }
    for route in client.of(RDS) {
        for cluster in (0..SOUND_CLUSTERS).map(Contents::cluster) {
            let needed = references(route, CDS).any(|name| *name == cluster);
            let held = client.held.contains_key(&(CDS.into(), cluster.clone()));
            if needed && !held {
                missing.insert(cluster, Arc::clone(route));
            }
        }
    }
    missing
}
