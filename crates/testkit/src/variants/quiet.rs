//! Invariants when no message is on its way: every client holds what it should,
//! and a change is one response to those whom it concerns.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use trunkline_core::kind::RDS;
use trunkline_core::message::Mode;
use trunkline_core::resource::Resource;
use trunkline_core::sink::Response;

use super::client::Client;
use super::contents::{Contents, Place, TYPES, is_bad};
use super::held::Key;
use super::{SMALL, World};
use crate::world::Fault;

type Held = BTreeMap<Key, Arc<Resource>>;

/// The resources that a client should hold.
fn meant(contents: &Contents, client: &Client) -> Held {
    let all = client.subscriptions().into_iter();
    all.filter_map(|(place, params)| {
        let given = contents.given(&place, &params)?;
        Some(((place, given.constraints.clone()), given))
    })
    .collect()
}

/// The same without constraints: a leaf takes what it is sent, and its sink does
/// not keep them.
fn without_constraints(held: Held) -> Held {
    let all = held.into_iter().map(|((place, _), resource)| {
        let bare = Resource {
            constraints: None,
            ..Resource::clone(&resource)
        };
        ((place, None), Arc::new(bare))
    });
    all.collect()
}

fn of_type(held: &Held, url: &str) -> Held {
    let own = held
        .iter()
        .filter(|((place, _), _)| place.0.as_str() == url);
    own.map(|(key, r)| (key.clone(), Arc::clone(r))).collect()
}

impl World {
    /// Lets everything come to rest; time passes when nothing else can happen.
    pub(super) fn settle(&mut self) -> Result<(), Fault> {
        for _ in 0..200 {
            for _ in 0..1000 {
                if !self.round()? {
                    break;
                }
            }
            let due = self.peers.iter().filter_map(|p| p.session.poll_timeout());
            let Some(next) = due.min() else {
                for peer in &mut self.peers {
                    peer.was = vec![peer.client.params.clone()];
                    peer.client.rest();
                }
                return Ok(());
            };
            self.now = self.now.max(next);
        }
        Err("there is no rest".to_owned())
    }

    /// Everything that can happen now, once.
    fn round(&mut self) -> Result<bool, Fault> {
        let mut busy = false;
        for index in 0..self.peers.len() {
            busy |= self.deliver_up(index)?;
            busy |= self.send_down(index);
            busy |= self.deliver_down(index)?;
        }
        Ok(busy)
    }

    /// Every client holds what it should, and nothing else.
    pub(super) fn compare(&self) -> Result<(), Fault> {
        for (index, peer) in self.peers.iter().enumerate() {
            let client = &peer.client;
            let mut meant = meant(&self.contents, client);
            let mut held = client.held().as_map().clone();
            if client.is_leaf {
                held = without_constraints(held);
                meant = without_constraints(meant);
            }
            // Of a rejected resource the last good version is held, or nothing:
            // it may be of another variant, which was for all clients that this
            // one is for now.
            let bad = meant.extract_if(.., |_, resource| is_bad(resource));
            let bad: Vec<_> = bad.collect();
            if bad.iter().any(|(key, _)| key.0.0.as_str() == RDS) {
                // Nobody knows which clusters its older routes lead to (S73).
                held.retain(|key, _| key.0.0.as_str() == RDS || meant.contains_key(key));
            }
            for ((place, _), _) in bad {
                held.retain(|(other, _), _| *other != place);
                meant.retain(|(other, _), _| *other != place);
            }
            if client.mode == Mode::Sotw {
                // This protocol cannot say of this type that a name is removed
                // (S39).
                let named: BTreeSet<&Place> = meant.keys().map(|(place, _)| place).collect();
                held.retain(|(place, _), _| place.0.as_str() != RDS || named.contains(place));
            }
            if held != meant {
                let (mode, leaf) = (client.mode, client.is_leaf);
                return Err(format!(
                    "client {index} ({mode:?}, leaf: {leaf}) asks for {:?} as {}\nholds {held:?}\nmeant {meant:?}",
                    client.asked, client.params
                ));
            }
        }
        Ok(())
    }

    /// One transaction: clients that it does not concern are sent nothing, and
    /// the others all of it in one response of each type.
    pub(super) fn change_in_quiet(&mut self) -> Result<(), Fault> {
        // Resources that a client which reconnected may still use stay for a
        // while (S82): that has passed.
        self.now = self.now + Duration::from_secs(601);
        let before = self.contents.clone();
        self.operate()?;
        if before.has_bad() || self.contents.has_bad() {
            // In as many responses as it takes to find it.
            return Ok(());
        }
        for index in 0..self.peers.len() {
            let news = TYPES.map(|url| (url, self.has_news(index, url, &before)));
            let news = news.into_iter().filter_map(|(url, has)| has.then_some(url));
            let news: Vec<&str> = news.collect();
            if self.peers[index].response_bytes < SMALL && !news.is_empty() {
                // In as many responses as it takes.
                continue;
            }
            for url in news {
                self.hears_once(index, url)?;
            }
            if self.send_down(index) {
                let more = self.peers[index].down.back().map(|sent| &sent.response);
                return Err(format!(
                    "client {index} hears more than it has to: {more:?}"
                ));
            }
        }
        self.settle()?;
        self.compare()
    }

    /// Whether a transaction concerns a client in a type.
    fn has_news(&self, index: usize, url: &str, before: &Contents) -> bool {
        let client = &self.peers[index].client;
        let old = of_type(&meant(before, client), url);
        let new = of_type(&meant(&self.contents, client), url);
        if client.mode == Mode::Delta || url != RDS {
            return old != new;
        }
        // The parts of a state of the world do not list removed names.
        let remain: BTreeSet<&Place> = new.keys().map(|(place, _)| place).collect();
        let changed = |(key, r): (&_, &_)| old.get(key) != Some(r);
        let left = |(key, _): (&(Place, _), _)| remain.contains(&key.0) && !new.contains_key(key);
        new.iter().any(changed) || old.iter().any(left)
    }

    fn hears_once(&mut self, index: usize, url: &str) -> Result<(), Fault> {
        if !self.send_down(index) {
            return Err(format!("client {index} hears nothing of {url}"));
        }
        let sent = self.peers[index].down.back();
        let sent = sent.map(|sent| match &sent.response {
            Response::Delta(r) => r.type_url.clone(),
            Response::Sotw(r) => r.type_url.clone(),
        });
        if sent.as_ref().is_none_or(|sent| sent.as_str() != url) {
            return Err(format!("client {index} hears of {sent:?}, not of {url}"));
        }
        while self.deliver_down(index)? {}
        while self.deliver_up(index)? {}
        Ok(())
    }
}
