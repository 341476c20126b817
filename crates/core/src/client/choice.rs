//! Which servers the sources of a client use, and what follows when that
//! changes (C46-C49).

use super::server::Link;
use super::source::Source;
use super::{Client, ServerId, SourceId};
use crate::Moment;
use crate::change::Change;
use crate::sink::{Effects, WatchError};

impl Client {
    /// Goes back to a better server that has sent a resource (C48). Returns
    /// whether the choice has changed: what the server has said before, while
    /// another one was used, counts from now on.
    pub(super) fn return_to(
        &mut self,
        source: SourceId,
        id: ServerId,
        effects: &Effects,
        now: Moment,
    ) -> bool {
        let brings = |change: &Change| matches!(change, Change::Upsert(..));
        let Some(of) = self.sources.get_mut(&source) else {
            return false;
        };
        let before = open_servers(of);
        let place = of.place_of(id);
        let is_better = effects.changes.iter().any(brings)
            && place.is_some_and(|place| of.fallback.return_to(place));
        if is_better {
            of.mark_foreign();
            self.reopen(source, &before, now);
        }
        is_better
    }

    /// Applies what a server has said before it was used again: names that it
    /// does not have, and wildcards of which it has sent all.
    pub(super) fn recall(&mut self, source: SourceId, id: ServerId) {
        let (Some(of), Some(server)) = (self.sources.get_mut(&source), self.servers.get(&id))
        else {
            return;
        };
        for (type_url, name) in of.foreign() {
            if let Some(event) = server.sink.replay(&type_url, &name) {
                of.absorb_event(&event);
            }
        }
        for (type_url, subscription) in server.complete() {
            of.complete(type_url, subscription);
        }
    }

    /// Gives a source what others have from a server that it uses from now on,
    /// too: the server was asked for it before, and does not send it again.
    pub(super) fn share(&mut self, source: SourceId, id: ServerId) {
        let uses = |(other, of): &(&SourceId, &Source)| {
            **other != source && of.place_of(id) == Some(of.fallback.current())
        };
        let Some(other) = self.sources.iter().find(uses).map(|(other, _)| *other) else {
            return;
        };
        let (Some(mut of), Some(other)) = (self.sources.remove(&source), self.sources.get(&other))
        else {
            return;
        };
        of.copy_from(other);
        self.sources.insert(source, of);
    }

    /// Connects a source to its next servers, if the present one has failed and
    /// something is missing (C46, C47).
    pub(super) fn fall_back(&mut self, source: SourceId, now: Moment) {
        let Some(of) = self.sources.get_mut(&source) else {
            return;
        };
        let missing = of.is_missing_any();
        let before = open_servers(of);
        let servers = &self.servers;
        let ids = of.servers.clone();
        let has_failed = |place: usize| {
            let server = ids.get(place).and_then(|id| servers.get(id));
            server.is_some_and(|server| server.has_failed)
        };
        if of.fallback.fall_back(missing, has_failed) {
            of.mark_foreign();
            self.reopen(source, &before, now);
        }
    }

    /// Subscribes at the servers that were opened for a source, and ends its
    /// subscriptions at those that were closed. A better server, which has
    /// failed, is to send everything when it is back.
    pub(super) fn reopen(&mut self, source: SourceId, before: &[ServerId], now: Moment) {
        let Some(of) = self.sources.get(&source) else {
            return;
        };
        let after = open_servers(of);
        let keys: Vec<_> = of.subscriptions().cloned().collect();
        let mut shared = Vec::new();
        for id in after.iter().filter(|id| !before.contains(id)) {
            let Some(server) = self.servers.get_mut(id) else {
                continue;
            };
            for key in &keys {
                let added = server.subscribe(key, now);
                debug_assert!(
                    added.is_ok(),
                    "the servers of a source carry the same types"
                );
            }
            shared.push(*id);
        }
        for id in before.iter().filter(|id| !after.contains(id)) {
            let Some(server) = self.servers.get_mut(id) else {
                continue;
            };
            keys.iter().for_each(|key| server.unsubscribe(key));
        }
        for id in after.iter().filter(|id| before.contains(id)) {
            if let Some(server) = self.servers.get_mut(id)
                && server.has_failed
                && server.link != Link::Up
            {
                server.start_anew(now);
            }
        }
        shared.into_iter().for_each(|id| self.share(source, id));
    }

    /// Whether no server of a source can be reached (C49).
    pub(super) fn all_failed(&self, source: SourceId) -> bool {
        let Some(of) = self.sources.get(&source) else {
            return false;
        };
        let failed = |id: &ServerId| {
            let server = self.servers.get(id);
            server.is_none_or(|server| server.has_failed)
        };
        // A server that was not needed was not tried.
        let places = 0..=of.fallback.current();
        let mut tried = places.filter_map(|place| of.servers.get(place));
        tried.all(failed)
    }

    pub(super) fn set_unreachable(&mut self, source: SourceId, error: Option<WatchError>) {
        let Some(of) = self.sources.get_mut(&source) else {
            return;
        };
        if of.set_unreachable(error) {
            let keys = of.all_keys();
            keys.iter().for_each(|key| self.touch(key));
        }
    }
}

/// The servers that a source connects to.
pub(super) fn open_servers(source: &Source) -> Vec<ServerId> {
    let servers = source.servers.iter().enumerate();
    let open = servers.filter(|(place, _)| source.fallback.is_open(*place));
    open.map(|(_, id)| *id).collect()
}
