//! What must hold in a world of servers.

use std::collections::BTreeMap;

use trunkline_core::client::{FallbackPolicy, State};
use trunkline_core::message::Mode;

use super::World;
use super::consumer::{Consumer, Key, body, short};
use super::server::Server;
use crate::world::Fault;

impl World {
    /// After each step.
    pub(super) fn check(&mut self) -> Result<(), Fault> {
        self.client.check()?;
        while self.client.poll_watch().is_some() {}
        for nth in 0..self.consumers.len() {
            let of = |fault| format!("source {nth}: {fault}");
            let states = self.consumers[nth].states(&self.client);
            self.check_values(nth, &states).map_err(of)?;
            self.check_losses(nth, &states).map_err(of)?;
            self.check_many(nth, &states).map_err(of)?;
        }
        Ok(())
    }

    /// A watch sees good contents only, which a server of its source has had,
    /// and nothing without a subscription.
    fn check_values(&self, nth: usize, states: &BTreeMap<Key, State>) -> Result<(), Fault> {
        let consumer = &self.consumers[nth];
        for (key, state) in states {
            let Some(body) = body(state) else {
                continue;
            };
            let name = show(key);
            if consumer.subscribed_since(key).is_none() {
                return Err(format!("{name}: {body} without a subscription"));
            }
            if !body.starts_with("good") {
                return Err(format!("{name}: {body} was accepted"));
            }
            let mut servers = consumer.places.iter();
            if !servers.any(|place| self.servers[*place].1.had.contains(&body)) {
                return Err(format!("{name}: none of its servers ever had {body}"));
            }
        }
        Ok(())
    }

    /// A value of which all servers of the source have had good ones since it
    /// was subscribed to does not go away, whatever happens to servers and
    /// streams. Servers
    /// look for a bad resource in a state of the world by leaving out some
    /// (S12): those are excepted.
    fn check_losses(&mut self, nth: usize, states: &BTreeMap<Key, State>) -> Result<(), Fault> {
        let (consumer, servers) = (&mut self.consumers[nth], &self.servers);
        let shown = states
            .iter()
            .filter_map(|(key, state)| Some((key.clone(), body(state)?)));
        let before = std::mem::replace(&mut consumer.shown, shown.collect());
        for (key, body) in before {
            let Some(since) = consumer.subscribed_since(&key) else {
                continue;
            };
            let always = |place: &usize| {
                let server = &servers[*place].1;
                let good_since = server.good_since.get(&key);
                let is_whole = server.mode == Mode::Delta || !server.had_bad(&key.0);
                is_whole && good_since.is_some_and(|step| *step < since)
            };
            if !consumer.shown.contains_key(&key) && consumer.places.iter().all(always) {
                return Err(format!("{}: {body} is gone", show(&key)));
            }
        }
        Ok(())
    }

    /// A watch of all names was told what those of single names show.
    fn check_many(&mut self, nth: usize, states: &BTreeMap<Key, State>) -> Result<(), Fault> {
        let told = self.consumers[nth].told(&mut self.client);
        for (key, state) in states {
            let told = told.get(key).cloned().unwrap_or_default();
            if body(&told) != body(state) {
                let name = show(key);
                return Err(format!("{name}: {state:?}, and told {told:?}"));
            }
        }
        Ok(())
    }

    /// In quiet: what the best server has, if it has anything for the source,
    /// or else what one of its servers has.
    pub(super) fn check_quiet(&mut self) -> Result<(), Fault> {
        self.check()?;
        for (nth, consumer) in self.consumers.iter().enumerate() {
            let states = consumer.states(&self.client);
            let servers = consumer.places.iter().map(|place| &self.servers[*place].1);
            let servers: Vec<_> = servers.collect();
            let is_bound = consumer.policy == FallbackPolicy::Grpc
                && servers
                    .first()
                    .is_some_and(|best| serves_any(best, consumer));
            let allowed = if is_bound {
                &servers[..1]
            } else {
                &servers[..]
            };
            let faults = allowed.iter().map(|server| {
                let mut states = states.iter();
                states.find_map(|(key, state)| mismatch(consumer, server, key, state))
            });
            let faults: Vec<_> = faults.collect();
            if faults.iter().all(Option::is_some) {
                let first = faults.into_iter().flatten().next();
                return Err(format!("source {nth}: {}", first.unwrap_or_default()));
            }
        }
        Ok(())
    }
}

/// Returns whether a server has a good resource that a source subscribes to.
fn serves_any(server: &Server, consumer: &Consumer) -> bool {
    let mut contents = server.contents.iter();
    contents.any(|(key, body)| body.starts_with("good") && consumer.subscribed_since(key).is_some())
}

/// Returns what is wrong with a name if the server is the one in use.
fn mismatch(consumer: &Consumer, server: &Server, key: &Key, state: &State) -> Option<Fault> {
    let expected = server.contents.get(key);
    let held = body(state);
    let is_right = match expected {
        _ if consumer.subscribed_since(key).is_none() => held.is_none(),
        // State of the world cannot say that endpoints are gone (C29), and
        // keeps clusters that may be in use (S82).
        None => held.is_none() || server.mode == Mode::Sotw,
        Some(good) if good.starts_with("good") => held.as_ref() == Some(good),
        // The last good one stays, whoever sent it.
        Some(_) => true,
    };
    (!is_right).then(|| format!("{}: {state:?} instead of {expected:?}", show(key)))
}

fn show((url, name): &Key) -> String {
    format!("{} {name}", short(url))
}
