//! Invariants of a world of trees: after each step, and after a time of quiet.

use trunkline_core::kind::{CDS, EDS, LDS, RDS};
use trunkline_core::message::Mode;
use trunkline_core::resource::{Resource, TypeUrl};

use super::contents::{is_bad, is_empty};
use super::mixed::Mixed;
use super::{Child, Role, World};
use crate::world::Fault;

impl World {
    /// After every step.
    pub(super) fn always(&mut self) -> Result<(), Fault> {
        for server in &mut self.servers {
            server.db.check()?;
        }
        for index in 0..self.children.len() {
            let fault = |fault: Fault| format!("client {index}: {fault}");
            let Child {
                role, link, server, ..
            } = &mut self.children[index];
            if let (Some(link), Some(server)) = (link, server) {
                let db = &mut self.servers[*server].db;
                link.session.check(db).map_err(fault)?;
            }
            if let Role::Envoy(envoy) = role
                && !self.shape.is_beyond_help(envoy.wire.mode)
            {
                envoy.can_route().map_err(fault)?;
            }
        }
        Ok(())
    }

    /// Lets everything come to rest: streams are read, time passes.
    pub(super) fn settle(&mut self) -> Result<(), Fault> {
        for server in &mut self.servers {
            server.publish(&self.contents.published);
        }
        for child in &mut self.children {
            child.link.iter_mut().for_each(|link| link.stalled = false);
        }
        for _ in 0..200 {
            let mut rounds = 0;
            while self.round()? {
                self.always()
                    .map_err(|fault| format!("settling: {fault}"))?;
                rounds += 1;
                if rounds > 2000 {
                    return Err("no rest: messages go back and forth for ever".to_owned());
                }
            }
            let Some(next) = self.next_timeout() else {
                for child in &mut self.children {
                    if let Role::Mixed(mixed) = &mut child.role {
                        mixed.rest();
                    }
                }
                return Ok(());
            };
            self.now = self.now.max(next);
            for index in 0..self.children.len() {
                if let Role::Envoy(envoy) = &mut self.children[index].role {
                    let waits = envoy.waits_in_vain(self.now);
                    waits.map_err(|fault| format!("client {index}: {fault}"))?;
                    envoy.go_on(self.now);
                }
            }
        }
        Err("no rest: there is always another deadline".to_owned())
    }

    fn round(&mut self) -> Result<bool, Fault> {
        let mut busy = false;
        for index in 0..self.children.len() {
            busy |= self.speak_up(index);
            busy |= self.deliver_up(index);
            busy |= self.send_down(index);
            busy |= self.deliver_down(index)?;
        }
        Ok(busy)
    }

    fn next_timeout(&self) -> Option<trunkline_core::Moment> {
        let moments = self.children.iter().flat_map(|child| {
            let drained = match &child.role {
                Role::Envoy(envoy) => envoy.timeout(),
                _ => None,
            };
            let session = child.link.as_ref().and_then(|l| l.session.poll_timeout());
            [drained, session]
        });
        moments.flatten().min()
    }

    /// After a time of quiet.
    pub(super) fn finally(&mut self) -> Result<(), Fault> {
        for index in 0..self.children.len() {
            let name = self.children[index].role.name();
            let mode = self.children[index].role.wire().mode;
            let fault = |fault: Fault| format!("client {index} ({name}, {mode:?}): {fault}");
            match &self.children[index].role {
                Role::Envoy(envoy) => envoy.is_warm(),
                Role::Grpc(grpc) => grpc.has_moved(),
                Role::Mixed(_) => Ok(()),
            }
            .map_err(fault)?;
            self.holds_what_is_published(index).map_err(fault)?;
            self.client_cache_is_right(index).map_err(fault)?;
            self.only_what_is_bad_is_rejected(index).map_err(fault)?;
        }
        Ok(())
    }

    /// The client holds each resource that it subscribed to, or its last good
    /// version, and nothing else.
    fn holds_what_is_published(&mut self, index: usize) -> Result<(), Fault> {
        let wire = self.children[index].role.wire();
        let unclear = wire.unclear;
        // A server that knows nothing of the client sends a set without the bad
        // resource, and so without the version that the client had before. Such
        // a set is worse than one that is not ACKed.
        let helpless = self.shape.is_beyond_help(wire.mode) && !wire.has_accepted(CDS);
        let role = &self.children[index].role;
        let held = role.held();
        // The client keeps clusters that it cannot get rid of, and their
        // endpoints.
        let told = |key: &(TypeUrl, _)| !(unclear && [CDS, EDS].contains(&key.0.as_str()));
        for (key, resource) in self.contents.published.iter().filter(|(key, _)| told(key)) {
            let has = held.get(key);
            let asked = match role {
                Role::Mixed(mixed) => key.0.as_str() == CDS && mixed.asks_for(key.1.as_str()),
                Role::Envoy(_) => [CDS, LDS].contains(&key.0.as_str()) || has.is_some(),
                Role::Grpc(_) => has.is_some(),
            };
            let right = match (is_bad(key.0.as_str(), resource), role) {
                (false, _) => has.map(|r| &r.version) == Some(&resource.version),
                (true, Role::Mixed(mixed)) => has.is_none_or(|r| was_good(mixed, r)),
                (true, _) => true,
            };
            if asked && !right {
                return Err(format!("{} {} is {resource:?}, held {has:?}", key.0, key.1));
            }
        }
        let told = |key: &(TypeUrl, _)| told(key) && !(helpless && key.0.as_str() == CDS);
        for (key, resource) in held.iter().filter(|(key, _)| told(key)) {
            if !self.contents.published.contains_key(key) && !is_empty(resource) {
                return Err(format!("{} {} is gone, held {resource:?}", key.0, key.1));
            }
        }
        Ok(())
    }

    /// The client cache agrees with what the client holds.
    fn client_cache_is_right(&mut self, index: usize) -> Result<(), Fault> {
        let Child {
            role, link, server, ..
        } = &mut self.children[index];
        let (Some(link), Some(server)) = (link, server) else {
            return Err("not connected".to_owned());
        };
        let unclear = role.wire().unclear;
        for url in [LDS, RDS, CDS, EDS].map(TypeUrl::from) {
            if unclear && url.as_str() == CDS {
                continue;
            }
            let believed = link
                .session
                .held_resources(&mut self.servers[*server].db, &url);
            for (name, resource) in &believed {
                let held = role.held().get(&(url.clone(), name.clone()));
                if held.map(|r| &r.version) != Some(&resource.version) {
                    return Err(format!(
                        "{url} {name}: believed {resource:?}, held {held:?}"
                    ));
                }
            }
            // Where nothing was rejected and nothing was held before, the
            // client cache has everything.
            if self.shape.bad || role.wire().resumed {
                continue;
            }
            let own = role.held().keys().filter(|(of, _)| *of == url);
            let mut own = own.map(|(_, name)| name);
            if let Some(name) = own.find(|name| !believed.contains_key(*name)) {
                return Err(format!("{url} {name} is held, and not believed to be"));
            }
        }
        Ok(())
    }

    /// A NACK is forgotten with the resource that caused it (S83).
    fn only_what_is_bad_is_rejected(&mut self, index: usize) -> Result<(), Fault> {
        let unclear = self.children[index].role.wire().unclear;
        let Child { role, link, .. } = &self.children[index];
        for status in link.iter().flat_map(|link| link.session.status()) {
            let url = &status.type_url;
            if unclear && url.as_str() == CDS {
                continue;
            }
            let asked = |name: &str| match role {
                Role::Mixed(mixed) => mixed.asks_for(name),
                _ => true,
            };
            for (name, version) in &status.quarantined {
                let now = self.contents.published.get(&(url.clone(), name.clone()));
                let bad = now.is_some_and(|r| is_bad(url.as_str(), r) && r.version == *version);
                if !bad || !asked(name.as_str()) {
                    return Err(format!("{url} {name} is parked, and is {now:?}"));
                }
            }
            if let Some(error) = status.error.filter(|_| status.quarantined.is_empty()) {
                return Err(format!("{url}: nothing is rejected but {error:?}"));
            }
        }
        Ok(())
    }
}

impl super::Shape {
    /// Where a resource of a whole set is rejected and no server knows what the
    /// client held before, nothing can replace it in the set during trials.
    fn is_beyond_help(self, mode: Mode) -> bool {
        self.bad && self.restarts && mode == Mode::Sotw
    }
}

fn was_good(mixed: &Mixed, held: &Resource) -> bool {
    let body = held.body.clone().unwrap_or_default().to_vec();
    mixed.good.contains(&(held.name.clone(), body))
}
