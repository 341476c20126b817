//! A world of trees: clients that move from one tree of listener, routes,
//! cluster and endpoints to the next as real ones do, come back to servers with
//! other contents, and must always be able to route (S81, S82).
//!
//! ```text
//!   operator ─▶ server ─▶ replica      the replica lags behind, both restart
//!                  │          │        with the newest contents
//!                  └── clients ┘       that may come back to either
//! ```
//!
//! Each step is one message, one transaction or one fault, chosen by the seed.
//! After each, what a client routes to must be there, if contents always had a
//! whole tree for it, and sessions prove what they believe. After a time of quiet
//! belief is truth, every client holds what is published, and nobody is told of a
//! rejection of what is not rejected now (S83).
//!
//! The last digit of a seed in base eight says what its world has, so that a
//! fault can be looked for where little else happens: see [`Shape`].

mod check;
mod contents;
mod envoy;
mod grpc;
mod mixed;
mod wire;

use std::time::Duration;

use fastrand::Rng;
use trunkline_core::Moment;
use trunkline_core::database::Database;
use trunkline_core::limits::Limits;
use trunkline_core::message::Mode;
use trunkline_core::session::Config;

use crate::world::link::Link;
use crate::world::{Fault, words};
use contents::{Contents, Published, difference};
use envoy::Envoy;
use grpc::Grpc;
use mixed::Mixed;
use wire::Wire;

/// What happens in a world beside changes and slow peers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Streams break, and clients come back.
    pub breaks: bool,
    /// Servers restart with the newest contents; there may be a replica.
    pub restarts: bool,
    /// Some clusters beside the trees are bad.
    pub bad: bool,
}

impl Shape {
    /// The shape of a seed's world.
    #[must_use]
    pub fn of(seed: u64) -> Self {
        Self {
            breaks: seed & 1 > 0,
            restarts: seed & 2 > 0,
            bad: seed & 4 > 0,
        }
    }
}

/// A server, and what it has.
#[derive(Debug)]
struct Server {
    db: Database,
    published: Published,
}

impl Server {
    fn new(published: &Published) -> Self {
        let mut server = Self {
            db: Database::new(),
            published: Published::new(),
        };
        server.publish(published);
        server
    }

    fn publish(&mut self, published: &Published) {
        let changes = difference(&self.published, published);
        #[expect(clippy::expect_used, reason = "the operator writes no variants")]
        self.db.apply(changes).expect("sound contents");
        self.published.clone_from(published);
    }
}

/// A client and its stream.
#[derive(Debug)]
struct Child {
    role: Role,
    link: Option<Link>,
    server: usize,
    limits: Limits,
}

#[derive(Debug)]
enum Role {
    Envoy(Box<Envoy>),
    Grpc(Box<Grpc>),
    Mixed(Box<Mixed>),
}

impl Role {
    fn random(rng: &mut Rng) -> Self {
        let mode = if rng.bool() { Mode::Delta } else { Mode::Sotw };
        match rng.u8(0..5) {
            0 | 1 => Self::Envoy(Box::new(Envoy::new(mode, rng))),
            2 | 3 => Self::Grpc(Box::new(Grpc::new(mode, rng))),
            _ => Self::Mixed(Box::new(Mixed::new(mode, rng))),
        }
    }

    fn wire(&mut self) -> &mut Wire {
        match self {
            Self::Envoy(envoy) => &mut envoy.wire,
            Self::Grpc(grpc) => &mut grpc.wire,
            Self::Mixed(mixed) => &mut mixed.wire,
        }
    }

    fn held(&self) -> &Published {
        match self {
            Self::Envoy(envoy) => &envoy.held,
            Self::Grpc(grpc) => &grpc.held,
            Self::Mixed(mixed) => &mixed.held,
        }
    }

    fn name(&self) -> &'static str {
        match self {
            Self::Envoy(_) => "Envoy",
            Self::Grpc(_) => "gRPC",
            Self::Mixed(_) => "mixed",
        }
    }
}

/// See the module's documentation.
#[derive(Debug)]
pub struct World {
    rng: Rng,
    now: Moment,
    shape: Shape,
    contents: Contents,
    servers: Vec<Server>,
    children: Vec<Child>,
    /// Every step in words, if they were asked for.
    story: Option<Vec<String>>,
}

impl World {
    /// A world of random shape.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        let mut rng = Rng::with_seed(seed ^ 0x7ee5);
        let shape = Shape::of(seed);
        let contents = Contents::new(&mut rng, shape.bad);
        let servers = if shape.restarts { rng.usize(1..3) } else { 1 };
        let servers = (0..servers).map(|_| Server::new(&contents.published));
        let mut world = Self {
            now: Moment::START,
            shape,
            servers: servers.collect(),
            contents,
            children: Vec::new(),
            story: None,
            rng: rng.fork(),
        };
        for _ in 0..rng.usize(1..4) {
            let mut limits = Limits::default();
            if rng.u8(0..4) == 0 {
                limits.response_bytes = 300;
            }
            world.children.push(Child {
                role: Role::random(&mut rng),
                link: None,
                server: 0,
                limits,
            });
            world.dial(world.children.len() - 1, false);
        }
        world
    }

    /// Keeps every step in words from now on.
    #[must_use]
    pub fn telling(mut self) -> Self {
        let line = |(index, child): (usize, &mut Child)| {
            format!(
                "{index} is {} {:?}",
                child.role.name(),
                child.role.wire().mode
            )
        };
        self.story = Some(self.children.iter_mut().enumerate().map(line).collect());
        self
    }

    /// What happened, if it was kept.
    #[must_use]
    pub fn story(&self) -> &[String] {
        self.story.as_deref().unwrap_or_default()
    }

    fn tell(&mut self, line: impl FnOnce() -> String) {
        let now = self.now.since_start().as_millis();
        if let Some(story) = &mut self.story {
            story.push(format!("{now:>6} {}", line()));
        }
    }

    /// Runs so many steps and comes to rest.
    ///
    /// # Errors
    /// What does not hold.
    pub fn run(&mut self, steps: usize) -> Result<(), Fault> {
        for step in 0..steps {
            let held = self.step().and_then(|()| self.always());
            held.map_err(|fault| format!("step {step}: {fault}"))?;
        }
        self.settle()?;
        self.finally().map_err(|fault| format!("at rest: {fault}"))
    }

    fn step(&mut self) -> Result<(), Fault> {
        // Now and then longer than an answer is waited for.
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
            if self.children[index].server == one && self.children[index].link.take().is_some() {
                self.dial(index, true);
            }
        }
    }

    fn break_stream(&mut self, index: usize) {
        if let Some(link) = self.children[index].link.take() {
            let server = self.children[index].server;
            link.session.close(&mut self.servers[server].db);
            self.tell(|| format!("stream of {index} breaks"));
            self.dial(index, true);
        }
    }

    /// Connects to either server; a client that was connected comes back.
    fn dial(&mut self, index: usize, again: bool) {
        let server = self.rng.usize(0..self.servers.len());
        let child = &mut self.children[index];
        let mode = child.role.wire().mode;
        // A client that is silent for long is waited for: what it lacks then, it
        // lacks because it was sent too early.
        let config = Config {
            limits: child.limits.clone(),
            hold: Duration::from_secs(3600),
            ..Config::new(mode)
        };
        let link = Link::with(&mut self.servers[server].db, config);
        (child.link, child.server) = (Some(link), server);
        if again {
            match &mut child.role {
                Role::Envoy(envoy) => envoy.reconnect(&mut self.rng),
                Role::Grpc(grpc) => grpc.reconnect(&mut self.rng),
                Role::Mixed(mixed) => mixed.reconnect(&mut self.rng),
            }
            self.tell(|| format!("{index} comes back to server {server}"));
            // All types at once; the server may speak in between.
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

    /// The client asks for something else, or time does its work.
    fn change_mind(&mut self, index: usize) {
        let now = self.now;
        let Child { role, link, .. } = &mut self.children[index];
        let quiet = |link: &Link| link.is_quiet() && link.answered == link.sent;
        match role {
            Role::Envoy(envoy) => envoy.go_on(now),
            Role::Grpc(_) => {}
            // A list counts with the newest answer only (S6): what is given up and
            // asked for again before that was never given up.
            Role::Mixed(mixed) if mixed.wire.mode == Mode::Sotw => {
                if mixed.wire.queue.is_empty() && link.as_ref().is_some_and(quiet) {
                    mixed.toggle(&mut self.rng);
                }
            }
            Role::Mixed(mixed) => mixed.toggle(&mut self.rng),
        }
    }

    fn speak_up(&mut self, index: usize) -> bool {
        let Child { role, link, .. } = &mut self.children[index];
        let (Some(link), Some(request)) = (link, role.wire().queue.pop_front()) else {
            return false;
        };
        let line = words::request(&request);
        link.up.push_back(request);
        self.tell(|| format!("{index} asks: {line}"));
        true
    }

    fn deliver_up(&mut self, index: usize) -> bool {
        let now = self.now;
        let Child { link, server, .. } = &mut self.children[index];
        let Some(link) = link.as_mut().filter(|link| !link.up.is_empty()) else {
            return false;
        };
        let line = self
            .story
            .is_some()
            .then(|| link.up.front().map(words::request));
        let events = link.deliver_up(&mut self.servers[*server].db, now);
        self.tell(|| format!("server of {index} reads: {line:?} {events:?}"));
        true
    }

    fn send_down(&mut self, index: usize) -> bool {
        let now = self.now;
        let Child { link, server, .. } = &mut self.children[index];
        let Some(link) = link else { return false };
        let sent = link.send(&mut self.servers[*server].db, now);
        let line = link.down.back().filter(|_| sent).map(words::response);
        if let Some(line) = line {
            self.tell(|| format!("server of {index} sends: {line}"));
        }
        sent
    }

    fn deliver_down(&mut self, index: usize) -> Result<bool, Fault> {
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
fn told(changes: &[trunkline_core::change::Change]) -> String {
    use trunkline_core::change::Change;
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
