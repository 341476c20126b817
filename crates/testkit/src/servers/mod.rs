//! A world of servers: the client's machine before several servers that go
//! down, come up, or say nothing, with contents of their own (C46-C49, E11).
//!
//! ```text
//!   watches ─▶ source ─┬─▶ server 0     each source has a list of its own, so
//!   watches ─▶ source ─┼─▶ server 1     some servers are shared; each server
//!                      └─▶ server 2     says who it is in the bodies it sends
//! ```
//!
//! Each step is one message, one change of contents or subscriptions, or one
//! fault, chosen by the seed. After each, a source has nothing that none of its
//! servers ever had; a value that all of them have does not go away; a watch of
//! all names has seen what watches of single names show; and the client proves
//! its invariants. After a time of quiet with all servers up, a source holds
//! what one of its servers has, and nothing else: the best one, if that has
//! anything for it.

mod check;
mod consumer;
mod server;
mod talk;

use std::time::Duration;

use fastrand::Rng;
use trunkline_core::Moment;
use trunkline_core::client::{Client, FallbackPolicy, ServerConfig, ServerId};
use trunkline_core::kind::{EDS, LDS};
use trunkline_core::message::{Mode, Node};
use trunkline_core::name::{Name, Selector};
use trunkline_core::resource::TypeUrl;
use trunkline_core::sink::{BackoffConfig, SinkConfig};

use self::consumer::Consumer;
use self::server::Server;
use crate::world::Fault;

/// The names of each type; those of a glob come last.
const NAMES: [&str; 5] = ["a", "b", "c", "xdstp://x/T/d/1", "xdstp://x/T/d/2"];
const GLOB: &str = "xdstp://x/T/d/*";
const TYPES: [&str; 2] = [LDS, EDS];
const MOST_SERVERS: usize = 4;

/// See the module's documentation.
#[derive(Debug)]
pub struct World {
    rng: Rng,
    now: Moment,
    step: usize,
    client: Client,
    consumers: Vec<Consumer>,
    servers: Vec<(ServerId, Server)>,
    story: Option<Vec<String>>,
}

impl World {
    /// The world of a seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        let mut rng = Rng::with_seed(seed);
        let mut client = Client::new(seed);
        let modes = match rng.u8(..3) {
            0 => vec![Mode::Sotw],
            1 => vec![Mode::Delta],
            _ => vec![Mode::Sotw, Mode::Delta],
        };
        let servers: Vec<_> = (0..rng.usize(2..=MOST_SERVERS))
            .map(|place| {
                let mode = modes[rng.usize(..modes.len())];
                let id = client.add_server(ServerConfig {
                    sink: SinkConfig::new(mode, Node::default()),
                    backoff: BackoffConfig::default(),
                    rate_limit: None,
                });
                (id, Server::new(place, mode))
            })
            .collect();
        let ids: Vec<_> = servers.iter().map(|(id, _)| *id).collect();
        let consumers = (0..rng.usize(1..=3))
            .map(|_| {
                let mut places: Vec<_> = (0..servers.len()).collect();
                rng.shuffle(&mut places);
                places.truncate(rng.usize(1..=3));
                let policy = match rng.u8(..4) {
                    0 => FallbackPolicy::Envoy,
                    _ => FallbackPolicy::Grpc,
                };
                Consumer::new(&mut client, places, &ids, policy)
            })
            .collect();
        Self {
            rng,
            now: Moment::START,
            step: 0,
            client,
            consumers,
            servers,
            story: None,
        }
    }

    /// The same world, which notes what happens in it.
    #[must_use]
    pub fn telling(mut self) -> Self {
        let servers = self.servers.iter().map(|(_, server)| server.mode);
        let sources = self.consumers.iter().map(|of| (&of.places, of.policy));
        self.story = Some(vec![
            format!("servers {:?}", servers.collect::<Vec<_>>()),
            format!("sources {:?}", sources.collect::<Vec<_>>()),
        ]);
        self
    }

    /// What has happened, if the world notes it.
    #[must_use]
    pub fn story(&self) -> &[String] {
        self.story.as_deref().unwrap_or_default()
    }

    fn tell(&mut self, line: impl FnOnce() -> String) {
        if let Some(story) = &mut self.story {
            story.push(format!("{:?} {}", self.now, line()));
        }
    }

    /// Runs so many steps, and then until it is quiet.
    ///
    /// # Errors
    /// An invariant does not hold.
    pub fn run(&mut self, steps: usize) -> Result<(), Fault> {
        for step in 0..steps {
            self.step = step;
            self.take_step()?;
            self.check()?;
        }
        self.be_quiet()?;
        self.check_quiet()
    }

    fn take_step(&mut self) -> Result<(), Fault> {
        match self.rng.u8(..24) {
            0..=2 => self.change_contents()?,
            3..=4 => self.change_subscriptions()?,
            5 => self.toggle_server(),
            6 => self.break_stream(),
            7 => self.toggle_silence(),
            8 => {
                let time = Duration::from_millis(self.rng.u64(..20_000));
                while self.talk()? {}
                self.pass(time)?;
            }
            _ => _ = self.talk()?,
        }
        Ok(())
    }

    fn change_contents(&mut self) -> Result<(), Fault> {
        let place = self.rng.usize(..self.servers.len());
        let change = self.servers[place].1.change(&mut self.rng, self.step)?;
        self.tell(|| format!("server {place}: {change}"));
        Ok(())
    }

    fn change_subscriptions(&mut self) -> Result<(), Fault> {
        let of = self.rng.usize(..self.consumers.len());
        let url = TypeUrl::from(TYPES[self.rng.usize(..TYPES.len())]);
        let selector = match self.rng.u8(..8) {
            0 | 1 if url.as_str() == LDS => Selector::Wildcard,
            2 => Selector::parse(GLOB, 100).map_err(|error| error.to_string())?,
            _ => Selector::Name(Name::new(NAMES[self.rng.usize(..NAMES.len())])),
        };
        let consumer = &mut self.consumers[of];
        let added = consumer.toggle(&mut self.client, url, selector, self.step, self.now)?;
        self.tell(|| format!("source {of}: {added}"));
        Ok(())
    }

    fn toggle_server(&mut self) {
        let place = self.rng.usize(..self.servers.len());
        let (id, server) = &mut self.servers[place];
        server.is_up = !server.is_up;
        let is_up = server.is_up;
        if !is_up && server.hang_up() {
            self.client.handle_disconnected(*id, "down", self.now);
        }
        self.tell(|| format!("server {place}: up {is_up}"));
    }

    /// A server that is silent accepts streams and requests and says nothing
    /// on them, until it wakes up.
    fn toggle_silence(&mut self) {
        let place = self.rng.usize(..self.servers.len());
        let is_silent = self.servers[place].1.toggle_silence();
        self.tell(|| format!("server {place}: silent {is_silent}"));
    }

    fn break_stream(&mut self) {
        let place = self.rng.usize(..self.servers.len());
        let (id, server) = &mut self.servers[place];
        if server.hang_up() {
            self.client.handle_disconnected(*id, "cut", self.now);
            self.tell(|| format!("server {place}: cut"));
        }
    }
}
