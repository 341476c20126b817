//! A world of trees: clients that move from one tree of listener, routes,
//! cluster and endpoints to the next as real ones do, reconnect to servers with
//! other contents, and must always be able to route (S81, S82).
//!
//! ```text
//!   operator ─▶ server ─▶ replica      the replica lags behind, both restart
//!                  │          │        with the newest contents
//!                  └── clients ┘       that may come back to either
//! ```
//!
//! Each step is one message, one transaction or one fault, chosen by the seed.
//! After each, a client holds what it routes to, if the contents always had a
//! whole tree for it, and sessions prove their invariants. After a time of
//! quiet the client cache is right, every client holds what is published, and
//! no NACK is reported of a resource that is not rejected now (S83).
//!
//! The last digit of a seed in base eight says what its world has, so that a
//! fault can be sought where little else happens: see [`Shape`].

mod check;
mod contents;
mod envoy;
mod grpc;
mod mixed;
mod step;
mod wire;

use fastrand::Rng;
use trunkline_core::Moment;
use trunkline_core::database::Database;
use trunkline_core::limits::Limits;
use trunkline_core::message::Mode;

use crate::world::Fault;
use crate::world::link::Link;
use contents::{Contents, Published, difference};
use envoy::Envoy;
use grpc::Grpc;
use mixed::Mixed;
use wire::Wire;

/// What happens in a world beside changes and slow clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Streams break, and clients reconnect.
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

/// A server, and its contents.
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
    /// The server of its last stream, if that has not begun anew since.
    server: Option<usize>,
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
                server: None,
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
}
