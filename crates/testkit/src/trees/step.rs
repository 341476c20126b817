//! One step: a message, a transaction, a fault, or a change of subscriptions.

use std::time::Duration;

use trunkline_core::change::Change;
use trunkline_core::message::Mode;
use trunkline_core::session::Config;

use super::contents::difference;
use super::{Child, Role, Server, Shape, World};
use crate::world::link::Link;
use crate::world::{Fault, words};

impl World {
    pub(super) fn step(&mut self) -> Result<(), Fault> {
        // Now and then longer than an ACK is awaited.
        let pause = if self.rng.u8(0..60) == 0 { 7000 } else { 30 };
        self.now = self.now + Duration::from_millis(self.rng.u64(0..pause));
        let child = self.rng.usize(0..self.children.len());
        let Shape {
            breaks, restarts, ..
        } = self.shape;
        match self.rng.u8(0..100) {
            0..5 => self.operate(),
            5..7 if breaks => self.break_stream(child),
            7 if restarts => self.restart(),
            8..10 => self.catch_up(),
            10..12 => self.stall(child),
            12..35 => drop(self.deliver_up(child)),
            35..58 => drop(self.send_down(child)),
            58..82 => drop(self.deliver_down(child)?),
            82..85 => self.change_mind(child),
            _ => drop(self.speak_up(child)),
        }
        Ok(())
    }

    fn operate(&mut self) {
        let before = self.contents.published.clone();
        self.contents.edit(&mut self.rng);
        self.servers[0].publish(&self.contents.published);
        let changes = difference(&before, &self.contents.published);
        self.tell(|| format!("operator: {}", told(&changes)));
    }

    /// A replica gets the newest contents.
    fn catch_up(&mut self) {
        let one = self.rng.usize(0..self.servers.len());
        self.servers[one].publish(&self.contents.published);
        self.tell(|| format!("server {one} has the newest"));
    }

    /// A server begins anew, with the newest contents and no knowledge of others.
    fn restart(&mut self) {
        let one = self.rng.usize(0..self.servers.len());
        if self.rng.bool() {
            self.operate();
        }
        self.servers[one] = Server::new(&self.contents.published);
        self.tell(|| format!("server {one} restarts"));
        for index in 0..self.children.len() {
            if self.children[index].server == Some(one)
                && self.children[index].link.take().is_some()
            {
                self.children[index].server = None;
                self.dial(index, true);
            }
        }
    }

    fn break_stream(&mut self, index: usize) {
        if let Some(link) = self.children[index].link.take() {
            if let Some(server) = self.children[index].server {
                link.session.close(&mut self.servers[server].db);
            }
            self.tell(|| format!("stream of {index} breaks"));
            self.dial(index, true);
        }
    }

    /// Connects to either server; a client that was connected reconnects.
    pub(super) fn dial(&mut self, index: usize, again: bool) {
        let server = self.rng.usize(0..self.servers.len());
        let child = &mut self.children[index];
        let mode = child.role.wire().mode;
        // A client that is silent for long is waited for: a resource that it
        // lacks then, it lacks because a response was sent too early.
        let config = Config {
            limits: child.limits.clone(),
            dependency_timeout: Duration::from_secs(3600),
            ..Config::new(mode)
        };
        let link = Link::with(&mut self.servers[server].db, config);
        let before = child.server.replace(server);
        child.link = Some(link);
        if again {
            match &mut child.role {
                Role::Envoy(envoy) => {
                    let other = Some(&self.servers[server].published);
                    let other = other.filter(|_| before != Some(server));
                    envoy.reconnect(&mut self.rng, other);
                }
                Role::Grpc(grpc) => grpc.reconnect(&mut self.rng),
                Role::Mixed(mixed) => mixed.reconnect(&mut self.rng),
            }
            self.tell(|| format!("{index} comes back to server {server}"));
            // All types at once; the server may send in between.
            while self.speak_up(index) {
                self.deliver_up(index);
                if self.rng.bool() {
                    self.send_down(index);
                }
            }
        }
    }

    fn stall(&mut self, index: usize) {
        if let Some(link) = &mut self.children[index].link {
            link.stalled = !link.stalled;
        }
    }

    /// The client changes its subscriptions, or time does its work.
    fn change_mind(&mut self, index: usize) {
        let now = self.now;
        let Child { role, link, .. } = &mut self.children[index];
        let quiet = |link: &Link| link.is_quiet() && link.answered == link.sent;
        match role {
            Role::Envoy(envoy) => envoy.go_on(now),
            Role::Grpc(_) => {}
            // A list counts with the newest acknowledgement only (S6): a name
            // that leaves the list and returns before that was never
            // unsubscribed.
            Role::Mixed(mixed) if mixed.wire.mode == Mode::Sotw => {
                if mixed.wire.queue.is_empty() && link.as_ref().is_some_and(quiet) {
                    mixed.toggle(&mut self.rng);
                }
            }
            Role::Mixed(mixed) => mixed.toggle(&mut self.rng),
        }
    }

    pub(super) fn speak_up(&mut self, index: usize) -> bool {
        let Child { role, link, .. } = &mut self.children[index];
        let (Some(link), Some(request)) = (link, role.wire().queue.pop_front()) else {
            return false;
        };
        let line = words::request(&request);
        link.up.push_back(request);
        self.tell(|| format!("{index} asks: {line}"));
        true
    }

    pub(super) fn deliver_up(&mut self, index: usize) -> bool {
        let now = self.now;
        let Child { link, server, .. } = &mut self.children[index];
        let (Some(link), Some(server)) = (link, server) else {
            return false;
        };
        if link.up.is_empty() {
            return false;
        }
        let line = self
            .story
            .is_some()
            .then(|| link.up.front().map(words::request));
        let events = link.deliver_up(&mut self.servers[*server].db, now);
        self.tell(|| format!("server of {index} reads: {line:?} {events:?}"));
        true
    }

    pub(super) fn send_down(&mut self, index: usize) -> bool {
        let now = self.now;
        let Child { link, server, .. } = &mut self.children[index];
        let (Some(link), Some(server)) = (link, server) else {
            return false;
        };
        let sent = link.send(&mut self.servers[*server].db, now);
        let line = link.down.back().filter(|_| sent).map(words::response);
        if let Some(line) = line {
            self.tell(|| format!("server of {index} sends: {line}"));
        }
        sent
    }

    pub(super) fn deliver_down(&mut self, index: usize) -> Result<bool, Fault> {
        let now = self.now;
        let Child { role, link, .. } = &mut self.children[index];
        let Some(link) = link.as_mut().filter(|link| !link.stalled) else {
            return Ok(false);
        };
        let Some(response) = link.down.pop_front() else {
            return Ok(false);
        };
        let line = words::response(&response);
        let taken = match role {
            Role::Envoy(envoy) => {
                envoy.take(response, now);
                Ok(())
            }
            Role::Grpc(grpc) => grpc.take(response),
            Role::Mixed(mixed) => {
                mixed.take(response);
                Ok(())
            }
        };
        self.tell(|| format!("{index} reads: {line}"));
        taken.map_err(|fault| format!("client {index}: {fault} by {line}"))?;
        Ok(true)
    }
}

/// What a transaction does, in few words.
fn told(changes: &[Change]) -> String {
    let line = |change: &Change| match change {
        Change::Upsert(_, r) => {
            let body = String::from_utf8_lossy(r.body.as_deref().unwrap_or_default()).into_owned();
            let to: Vec<_> = r
                .facts()
                .references
                .iter()
                .map(|to| to.name.as_str())
                .collect();
            format!("+{body} -> {to:?}")
        }
        Change::Remove(url, name) => format!("-{}/{name}", words::short(url)),
        other => format!("{other:?}"),
    };
    changes.iter().map(line).collect::<Vec<_>>().join(", ")
}
