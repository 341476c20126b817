//! A world of servers: the client's machine before several servers that go
//! down and come up, with contents of their own (C46-C49).
//!
//! ```text
//!   watches ─▶ client ─┬─▶ server 0     the best; each says who it is in the
//!                      ├─▶ server 1     bodies that it sends
//!                      └─▶ server 2
//! ```
//!
//! Each step is one message, one change of contents or subscriptions, or one
//! fault, chosen by the seed. After each, the client has nothing that no server
//! ever had, a watch sees what the contents have, and databases prove their
//! invariants. After a time of quiet with all servers up, a client that the
//! best server has anything for holds what that server has, and nothing else.

mod check;
mod server;

use std::collections::BTreeSet;
use std::time::Duration;

use fastrand::Rng;
use trunkline_core::Moment;
use trunkline_core::client::{
    Action, Client, FallbackPolicy, ServerConfig, ServerId, SourceId, WatchId, Watched,
};
use trunkline_core::kind::{CDS, EDS};
use trunkline_core::message::{Mode, Node};
use trunkline_core::name::{Name, Selector};
use trunkline_core::params::Params;
use trunkline_core::resource::TypeUrl;
use trunkline_core::sink::{BackoffConfig, SinkConfig, Subscription};

use self::server::Server;
use crate::world::Fault;

/// The names of each type.
const NAMES: [&str; 4] = ["a", "b", "c", "d"];
const TYPES: [&str; 2] = [CDS, EDS];
/// More messages than this without a pause are a loop.
const ENDLESS: usize = 20_000;

/// See the module's documentation.
#[derive(Debug)]
pub struct World {
    rng: Rng,
    mode: Mode,
    now: Moment,
    client: Client,
    source: SourceId,
    servers: Vec<(ServerId, Server)>,
    subscribed: BTreeSet<(TypeUrl, Selector)>,
    watches: Vec<(TypeUrl, Name, WatchId)>,
}

impl World {
    /// The world of a seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        let mut rng = Rng::with_seed(seed);
        let mode = *rng
            .choice(&[Mode::Sotw, Mode::Delta])
            .unwrap_or(&Mode::Delta);
        let mut client = Client::new(seed);
        let count = rng.usize(2..=3);
        let servers: Vec<_> = (0..count)
            .map(|place| {
                let id = client.add_server(ServerConfig {
                    sink: SinkConfig::new(mode, Node::default()),
                    backoff: BackoffConfig::default(),
                    rate_limit: None,
                });
                (id, Server::new(place, mode))
            })
            .collect();
        let ids = servers.iter().map(|(id, _)| *id).collect();
        let source = client.add_source(ids, FallbackPolicy::Grpc);
        let watches = TYPES.iter().flat_map(|url| NAMES.map(|name| (*url, name)));
        let watches: Vec<_> = watches
            .map(|(url, name)| {
                let (url, name) = (TypeUrl::from(url), Name::new(name));
                let watch = client.watch(Watched {
                    type_url: url.clone(),
                    selector: Selector::Name(name.clone()),
                    params: Params::default(),
                    source: Some(source),
                });
                (url, name, watch)
            })
            .collect();
        Self {
            rng,
            mode,
            now: Moment::START,
            client,
            source,
            servers,
            subscribed: BTreeSet::new(),
            watches,
        }
    }

    /// Runs so many steps, and then until it is quiet.
    ///
    /// # Errors
    /// An invariant does not hold.
    pub fn run(mut self, steps: usize) -> Result<(), Fault> {
        for _ in 0..steps {
            self.step()?;
            self.check()?;
        }
        self.be_quiet()?;
        self.check_quiet()
    }

    fn step(&mut self) -> Result<(), Fault> {
        match self.rng.u8(..20) {
            0..=2 => self.change_contents()?,
            3..=4 => self.change_subscriptions()?,
            5 => self.toggle_server(),
            6 => self.break_stream(),
            7 => {
                let time = Duration::from_millis(self.rng.u64(..20_000));
                self.pass(time)?;
            }
            _ => _ = self.talk()?,
        }
        Ok(())
    }

    fn change_contents(&mut self) -> Result<(), Fault> {
        let place = self.rng.usize(..self.servers.len());
        self.servers[place].1.change(&mut self.rng)
    }

    fn change_subscriptions(&mut self) -> Result<(), Fault> {
        let url = TypeUrl::from(TYPES[self.rng.usize(..TYPES.len())]);
        let selector = match url.as_str() == CDS && self.rng.u8(..3) == 0 {
            true => Selector::Wildcard,
            false => Selector::Name(Name::new(NAMES[self.rng.usize(..NAMES.len())])),
        };
        let subscription: Subscription = selector.clone().into();
        let key = (url.clone(), selector);
        if self.subscribed.remove(&key) {
            self.client
                .unsubscribe(self.source, &url, &subscription, self.now);
            return Ok(());
        }
        self.subscribed.insert(key);
        let added = self
            .client
            .subscribe(self.source, &url, subscription, self.now);
        added.map_err(|error| error.to_string())
    }

    fn toggle_server(&mut self) {
        let place = self.rng.usize(..self.servers.len());
        let (id, server) = &mut self.servers[place];
        server.is_up = !server.is_up;
        if !server.is_up && server.hang_up() {
            self.client.handle_disconnected(*id, "down", self.now);
        }
    }

    fn break_stream(&mut self) {
        let place = self.rng.usize(..self.servers.len());
        let (id, server) = &mut self.servers[place];
        if server.hang_up() {
            self.client.handle_disconnected(*id, "cut", self.now);
        }
    }

    /// Time passes, deadline by deadline.
    fn pass(&mut self, time: Duration) -> Result<(), Fault> {
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
    fn talk(&mut self) -> Result<bool, Fault> {
        match self.client.poll_action(self.now) {
            Some(Action::Connect(id)) => {
                let server = self.server(id);
                match server.is_up {
                    true => {
                        server.accept();
                        self.client.handle_connected(id, self.now);
                    }
                    false => _ = self.client.handle_disconnected(id, "refused", self.now),
                }
                return Ok(true);
            }
            Some(Action::Close(id)) => {
                self.server(id).hang_up();
                return Ok(true);
            }
            None => {}
        }
        let first = self.rng.usize(..self.servers.len());
        for nth in 0..self.servers.len() {
            let place = (first + nth) % self.servers.len();
            let (id, server) = &mut self.servers[place];
            if !server.has_stream() {
                continue;
            }
            if let Some(request) = self.client.poll_request(*id, self.now) {
                server.handle(request, self.now)?;
                return Ok(true);
            }
            if let Some(response) = server.poll(self.now) {
                server::judge(&mut self.client, *id, response, self.now)?;
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn server(&mut self, id: ServerId) -> &mut Server {
        let place = self.servers.iter().position(|(of, _)| *of == id);
        &mut self.servers[place.unwrap_or_default()].1
    }

    /// All servers are up, nothing changes, and time passes.
    fn be_quiet(&mut self) -> Result<(), Fault> {
        for (_, server) in &mut self.servers {
            server.is_up = true;
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
