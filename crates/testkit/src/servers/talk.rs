//! Messages between the client and its servers, and the time that passes.

use std::time::Duration;

use trunkline_core::client::{Action, ServerId};
use trunkline_core::message::Request;
use trunkline_core::resource::TypeUrl;

use super::consumer::short;
use super::{World, server};
use crate::world::Fault;

/// More messages than this without a pause are a loop.
const ENDLESS: usize = 20_000;

impl World {
    /// Time passes, deadline by deadline.
    pub(super) fn pass(&mut self, time: Duration) -> Result<(), Fault> {
        let end = self.now + time;
        for _ in 0..ENDLESS {
            let servers = self.servers.iter().filter_map(|(_, s)| s.poll_timeout());
            let next = servers.chain(self.client.poll_timeout()).min();
            let Some(next) = next.filter(|next| *next <= end) else {
                self.now = end;
                return Ok(());
            };
            self.now = next.max(self.now);
            self.client.handle_timeout(self.now);
            while self.talk()? {}
            // A deadline that nobody acts on would stand still.
            self.now = self.now + Duration::from_millis(1);
        }
        Err("time does not pass".to_owned())
    }

    /// One connection, request or response, if there is any. Returns whether
    /// there was.
    pub(super) fn talk(&mut self) -> Result<bool, Fault> {
        match self.client.poll_action(self.now) {
            Some(Action::Connect(id)) => {
                self.connect(id);
                return Ok(true);
            }
            Some(Action::Close(id)) => {
                let place = self.place(id);
                self.servers[place].1.hang_up();
                self.tell(|| format!("server {place}: closed"));
                return Ok(true);
            }
            None => {}
        }
        let first = self.rng.usize(..self.servers.len());
        for nth in 0..self.servers.len() {
            if self.talk_to((first + nth) % self.servers.len())? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn connect(&mut self, id: ServerId) {
        let place = self.place(id);
        let server = &mut self.servers[place].1;
        let is_up = server.is_up;
        match is_up {
            true => {
                server.accept();
                self.client.handle_connected(id, self.now);
            }
            false => _ = self.client.handle_disconnected(id, "refused", self.now),
        }
        self.tell(|| format!("server {place}: connected {is_up}"));
    }

    /// One request or response of a server.
    fn talk_to(&mut self, place: usize) -> Result<bool, Fault> {
        let (id, server) = &mut self.servers[place];
        if !server.has_stream() {
            return Ok(false);
        }
        if let Some(request) = self.client.poll_request(*id, self.now) {
            let words = self.story.is_some().then(|| describe(&request));
            server.handle(request, self.now)?;
            self.tell(|| format!("server {place} <- {}", words.unwrap_or_default()));
            return Ok(true);
        }
        if let Some(response) = server.poll(self.now) {
            let words = server::judge(&mut self.client, *id, response, self.now)?;
            self.tell(|| format!("server {place} -> {words}"));
            return Ok(true);
        }
        Ok(false)
    }

    fn place(&self, id: ServerId) -> usize {
        let place = self.servers.iter().position(|(of, _)| *of == id);
        place.unwrap_or_default()
    }

    /// All servers are up and awake, nothing changes, and time passes.
    pub(super) fn be_quiet(&mut self) -> Result<(), Fault> {
        self.tell(|| "quiet".to_owned());
        for (_, server) in &mut self.servers {
            server.is_up = true;
            server.wake();
        }
        for _ in 0..6 {
            self.pass(Duration::from_secs(30))?;
            for _ in 0..ENDLESS {
                if !self.talk()? {
                    break;
                }
            }
        }
        Ok(())
    }
}

/// A request in words.
fn describe(request: &Request) -> String {
    match request {
        Request::Sotw(request) => {
            let ack = if request.error.is_some() { "nack" } else { "" };
            format!(
                "{} {:?} {ack}",
                short_of(request.type_url.as_ref()),
                request.names
            )
        }
        Request::Delta(request) => format!(
            "{} +{:?} -{:?} has {:?} {}",
            short_of(request.type_url.as_ref()),
            request.subscribe,
            request.unsubscribe,
            request.initial_versions,
            if request.error.is_some() { "nack" } else { "" },
        ),
    }
}

fn short_of(url: Option<&TypeUrl>) -> &str {
    url.map(short).unwrap_or_default()
}
