//! Many servers, relays and clients in one thread, with virtual time and
//! seeded faults.
//!
//! ```text
//!   operator ─▶ server ──▶ client          every arrow is a stream that may
//!                 ├──────▶ client          break, stall or be slow; servers
//!                 └─▶ relay ─▶ client      and relays restart
//!                        └──▶ client
//! ```
//!
//! Each step is one message, one transaction or one fault, chosen by the seed.
//! After each, the invariants are checked; after a time of quiet, that every
//! client holds what the operator published. The same seed gives the same
//! trace.

mod check;
pub mod client;
pub mod contents;
mod faults;
pub mod link;
pub mod relay;
pub(crate) mod words;

use std::collections::BTreeSet;
use std::time::Duration;

use fastrand::Rng;
use trunkline_core::Moment;
use trunkline_core::database::Database;
use trunkline_core::limits::Limits;
use trunkline_core::message::Mode;
use trunkline_core::name::Name;

use client::{Client, Habit};
use contents::Contents;
use link::Link;
use relay::Relay;

/// A client or relay below its parent.
#[derive(Debug)]
struct Child {
    role: Role,
    mode: Mode,
    /// The limits that its parent sets: small responses for some.
    limits: Limits,
    /// A child with a smaller number; `None` is the server.
    parent: Option<usize>,
    link: Option<Link>,
    /// Clusters that its routes lead to, and that its relay did not have then.
    dangling: BTreeSet<Name>,
}

#[derive(Debug)]
enum Role {
    Client(Box<Client>),
    Relay(Box<Relay>),
}

/// See the module's documentation.
#[derive(Debug)]
pub struct World {
    rng: Rng,
    now: Moment,
    contents: Contents,
    server: Database,
    children: Vec<Child>,
    trace: u64,
    /// Every step in words, if they were asked for.
    story: Option<Vec<String>>,
}

/// The outcome of a run.
pub type Fault = String;

/// Whether responses are so small that the contents take several.
fn has_parts(limits: &Limits) -> bool {
    limits.response_bytes < Limits::default().response_bytes
}

impl World {
    /// A world of random shape.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        let mut rng = Rng::with_seed(seed);
        let mut world = Self {
            now: Moment::START,
            contents: Contents::of(seed),
            server: Database::new(),
            children: Vec::new(),
            trace: 0,
            story: None,
            rng: rng.fork(),
        };
        for _ in 0..rng.usize(0..3) {
            let parent = world.random_parent(&mut rng);
            world.add(&mut rng, parent, false);
        }
        for _ in 0..rng.usize(1..5) {
            let parent = world.random_parent(&mut rng);
            world.add(&mut rng, parent, true);
        }
        world
    }

    fn random_parent(&self, rng: &mut Rng) -> Option<usize> {
        let relays = self
            .children
            .iter()
            .filter(|c| matches!(c.role, Role::Relay(_)))
            .count();
        let parent = rng.usize(0..=relays);
        parent.checked_sub(1)
    }

    fn add(&mut self, rng: &mut Rng, parent: Option<usize>, is_client: bool) {
        let id = self.children.len();
        let mode = if rng.bool() { Mode::Delta } else { Mode::Sotw };
        let mut role = if is_client {
            let habit = if rng.u8(0..3) == 0 {
                Habit::Grpc
            } else {
                Habit::Envoy
            };
            let mut client = Client::new(id, mode, habit, rng.bool());
            client.want(self.now);
            Role::Client(Box::new(client))
        } else {
            Role::Relay(Box::new(Relay::new(id, mode, false)))
        };
        let mut limits = Limits::default();
        if rng.u8(0..3) == 0 {
            limits.response_bytes = 300;
        }
        if let Role::Relay(relay) = &mut role {
            **relay = Relay::new(id, mode, has_parts(&limits));
        }
        self.children.push(Child {
            role,
            mode,
            limits,
            parent,
            link: None,
            dangling: BTreeSet::new(),
        });
    }

    /// Runs so many steps, then waits for quiet and checks the end.
    ///
    /// # Errors
    /// What does not hold.
    pub fn run(&mut self, steps: usize) -> Result<u64, Fault> {
        for step in 0..steps {
            self.step();
            self.always()
                .map_err(|fault| format!("step {step}: {fault}"))?;
        }
        self.settle()?;
        self.finally()?;
        Ok(self.trace)
    }

    /// One random step.
    fn step(&mut self) {
        self.now = self.now + Duration::from_millis(self.rng.u64(0..20));
        let child = self.rng.usize(0..self.children.len());
        match self.rng.u8(0..100) {
            0..6 => self.operate(),
            6..8 => self.break_stream(child),
            8..9 => self.restart(),
            9..12 => self.stall(child),
            12..35 => {
                self.deliver_up(child);
            }
            35..58 => {
                self.send_down(child);
            }
            58..80 => {
                self.deliver_down(child);
            }
            _ => {
                self.speak_up(child);
            }
        }
    }

    /// Keeps every step in words from now on.
    #[must_use]
    pub fn telling(mut self) -> Self {
        let line = |(index, child): (usize, &Child)| {
            let role = match &child.role {
                Role::Client(client) => format!("{:?}", client.habit),
                Role::Relay(_) => "Relay".to_owned(),
            };
            format!(
                "{index} is {role} {:?} below {:?}",
                child.mode, child.parent
            )
        };
        self.story = Some(self.children.iter().enumerate().map(line).collect());
        self
    }

    /// What happened, if it was kept.
    pub fn story(&self) -> impl Iterator<Item = &str> {
        self.story.iter().flatten().map(String::as_str)
    }

    fn tell(&mut self, line: impl FnOnce() -> String) {
        let now = self.now.since_start().as_millis();
        if let Some(story) = &mut self.story {
            story.push(format!("{now:>6} {}", line()));
        }
    }

    fn note(&mut self, what: &str, number: usize) {
        for byte in what.bytes().chain(number.to_le_bytes()) {
            self.trace = (self.trace ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }

    /// The operator publishes something.
    fn operate(&mut self) {
        let changes = self.contents.edit(&mut self.rng);
        self.note("edit", changes.len());
        self.tell(|| format!("operator: {changes:?}"));
        #[expect(clippy::expect_used, reason = "the operator writes no variants")]
        self.server.apply(changes).expect("sound contents");
    }

    /// The child sends a request, and dials first if it must.
    fn speak_up(&mut self, index: usize) -> bool {
        if self.children[index].link.is_none() {
            self.dial(index);
            return true;
        }
        let now = self.now;
        let Child { role, link, .. } = &mut self.children[index];
        let Some(link) = link else { return false };
        let request = match role {
            Role::Client(client) => client.poll_request(now),
            Role::Relay(relay) => {
                relay.pass_on(now);
                relay.poll_request(now)
            }
        };
        let spoke = request.is_some();
        let line = request
            .as_ref()
            .map(|r| format!("{index} asks: {}", words::request(r)));
        link.up.extend(request);
        if let Some(line) = line {
            self.tell(|| line);
        }
        self.note("speak", usize::from(spoke));
        spoke
    }

    fn dial(&mut self, index: usize) {
        let (parent, mode) = (self.children[index].parent, self.children[index].mode);
        let limits = self.children[index].limits.clone();
        let link = self.with_parent(parent, |db| Link::open(db, mode, limits));
        let child = &mut self.children[index];
        child.link = Some(link);
        match &mut child.role {
            Role::Client(client) => client.sink.handle_connected(),
            Role::Relay(relay) => relay.sink.handle_connected(),
        }
        self.note("dial", index);
        self.tell(|| format!("{index} dials"));
    }

    fn with_parent<T>(&mut self, parent: Option<usize>, act: impl FnOnce(&mut Database) -> T) -> T {
        match parent.map(|parent| &mut self.children[parent].role) {
            Some(Role::Relay(relay)) => act(&mut relay.db),
            _ => act(&mut self.server),
        }
    }

    /// The parent reads a request.
    fn deliver_up(&mut self, index: usize) -> bool {
        let now = self.now;
        let Some(mut link) = self.children[index].link.take() else {
            return false;
        };
        let some = !link.up.is_empty();
        let parent = self.children[index].parent;
        let events = self.with_parent(parent, |db| link.deliver_up(db, now));
        self.children[index].link = Some(link);
        self.note("up", events.len());
        if some {
            self.tell(|| format!("parent of {index} reads: {events:?}"));
        }
        some
    }

    /// The parent sends a response.
    fn send_down(&mut self, index: usize) -> bool {
        let (now, parent) = (self.now, self.children[index].parent);
        let Some(mut link) = self.children[index].link.take() else {
            return false;
        };
        let sent = self.with_parent(parent, |db| link.send(db, now));
        let line = link.down.back().filter(|_| sent).map(words::response);
        if let Some(line) = line {
            self.tell(|| format!("parent of {index} sends: {line}"));
        }
        self.children[index].link = Some(link);
        self.note("send", usize::from(sent));
        sent
    }

    /// The child reads a response, if it reads and can take one of that type.
    fn deliver_down(&mut self, index: usize) -> bool {
        let now = self.now;
        let Child { role, link, .. } = &mut self.children[index];
        let Some(link) = link else { return false };
        let Some(next) = link.down.front().filter(|_| !link.stalled) else {
            return false;
        };
        let url = words::response_type(next);
        if let Role::Client(client) = role
            && !client.can_take(&url)
        {
            return false;
        }
        let Some(response) = link.down.pop_front() else {
            return false;
        };
        match role {
            Role::Client(client) => client.take(response, now),
            Role::Relay(relay) => relay.take(response, now),
        }
        self.note(url.as_str(), index);
        self.tell(|| format!("{index} reads {}", words::short(&url)));
        true
    }

    /// Lets everything come to rest: streams are up and read, time passes.
    fn settle(&mut self) -> Result<(), Fault> {
        for child in &mut self.children {
            if let Some(link) = &mut child.link {
                link.stalled = false;
            }
        }
        // Ten hours are enough for every limit in turn; each round that finds
        // nothing to do lets the next one pass.
        for _ in 0..200 {
            let mut rounds = 0;
            while self.round() {
                self.always()
                    .map_err(|fault| format!("settling: {fault}"))?;
                rounds += 1;
                if rounds > 3000 {
                    return Err("no rest: messages go back and forth for ever".to_owned());
                }
            }
            let Some(next) = self.next_timeout() else {
                return Ok(());
            };
            self.now = self.now.max(next);
            self.pass_time();
        }
        Err("no rest: there is always another deadline".to_owned())
    }

    /// Everything that can happen now, once.
    fn round(&mut self) -> bool {
        let mut busy = false;
        for index in 0..self.children.len() {
            busy |= self.speak_up(index);
            busy |= self.deliver_up(index);
            busy |= self.send_down(index);
            busy |= self.deliver_down(index);
        }
        busy
    }

    fn next_timeout(&self) -> Option<Moment> {
        let sinks = self.children.iter().filter_map(|child| match &child.role {
            Role::Client(client) => client.sink.poll_timeout(),
            Role::Relay(relay) => relay.poll_timeout(),
        });
        let sessions = self
            .children
            .iter()
            .filter_map(|child| child.link.as_ref()?.session.poll_timeout());
        sinks.chain(sessions).min()
    }

    fn pass_time(&mut self) {
        let now = self.now;
        for child in &mut self.children {
            match &mut child.role {
                Role::Client(client) => {
                    client.timeout(now);
                    client.give_up_waiting(now);
                }
                Role::Relay(relay) => relay.timeout(now),
            }
        }
    }
}
