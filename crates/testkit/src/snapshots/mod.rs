//! A world of snapshots: a tree above the client's machine, before a server
//! whose contents change, that breaks streams, falls silent and restarts (C51,
//! C53, C54, E3, E18).
//!
//! ```text
//!   roots ─▶ Tree ─▶ subscriptions, watches ─▶ Client ─▶ Session ─▶ contents
//! ```
//!
//! Every body has a number, which grows with each edit, and names what it refers
//! to. Each snapshot is checked when it is shown. It is whole: a part has what
//! its own version refers to, and nothing else. It is not torn: a part is what
//! the client has accepted last of its name, unless a newer version is warming
//! or it was removed under its users. It is not older: nothing arrived before
//! what the root showed of the name the last time. In quiet nothing warms, and
//! what is shown is what the server has.

mod contents;
mod owner;
mod server;

use std::time::Duration;

use fastrand::Rng;
use trunkline_core::Moment;
use trunkline_core::client::{Action, Client, FallbackPolicy, ServerConfig, ServerId};
use trunkline_core::message::{Mode, Node};
use trunkline_core::sink::{BackoffConfig, SinkConfig};

use self::contents::Contents;
use self::owner::Owner;
use self::server::Server;
use crate::world::Fault;

/// More messages than this without a pause are a loop.
const ENDLESS: usize = 20_000;

/// See the module's documentation.
#[derive(Debug)]
pub struct World {
    rng: Rng,
    now: Moment,
    client: Client,
    id: ServerId,
    server: Server,
    contents: Contents,
    owner: Owner,
    story: Option<Vec<String>>,
}

impl World {
    /// The world of a seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        let mut rng = Rng::with_seed(seed);
        let mut client = Client::new(seed);
        let mode = match rng.bool() {
            true => Mode::Sotw,
            false => Mode::Delta,
        };
        let id = client.add_server(ServerConfig {
            sink: SinkConfig::new(mode, Node::default()),
            backoff: BackoffConfig::default(),
            rate_limit: None,
        });
        let source = client.add_source(vec![id], FallbackPolicy::Grpc);
        let contents = Contents::new(&mut rng);
        Self {
            server: Server::new(mode),
            owner: Owner::new(source),
            rng,
            now: Moment::START,
            client,
            id,
            contents,
            story: None,
        }
    }

    /// The same world, which notes what happens in it.
    #[must_use]
    pub fn telling(mut self) -> Self {
        self.story = Some(vec![format!("{:?}", self.server.mode)]);
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
        self.server.publish(&self.contents)?;
        for _ in 0..steps {
            self.take_step()?;
            self.look()?;
        }
        self.be_quiet()?;
        self.owner.is_as_published(&self.contents)
    }

    fn take_step(&mut self) -> Result<(), Fault> {
        match self.rng.u8(..24) {
            0..=2 => {
                let said = self.contents.edit(&mut self.rng);
                self.tell(|| said);
                self.server.publish(&self.contents)?;
            }
            3 => {
                let said = self.owner.toggle_root(&mut self.rng);
                self.tell(|| said);
            }
            4 => self.break_stream("cut"),
            5 => {
                self.break_stream("restart");
                self.server.restart(&self.contents)?;
            }
            6 => self.server.is_silent = !self.server.is_silent,
            7 => {
                let time = Duration::from_millis(self.rng.u64(..20_000));
                while self.talk()? {}
                self.pass(time)?;
            }
            _ => _ = self.talk()?,
        }
        Ok(())
    }

    fn break_stream(&mut self, why: &str) {
        if self.server.hang_up() {
            self.client.handle_disconnected(self.id, why, self.now);
            self.tell(|| why.to_owned());
        }
    }

    /// The owner of the tree does what is due, and looks at what is shown.
    fn look(&mut self) -> Result<(), Fault> {
        self.client.check()?;
        let shown = self.owner.run(&mut self.client, self.now)?;
        for line in shown {
            self.tell(|| line);
        }
        Ok(())
    }

    /// Time passes, deadline by deadline.
    fn pass(&mut self, time: Duration) -> Result<(), Fault> {
        let end = self.now + time;
        for _ in 0..ENDLESS {
            let deadlines = [
                self.server.poll_timeout(),
                self.client.poll_timeout(),
                self.owner.poll_timeout(),
            ];
            let next = deadlines.into_iter().flatten().min();
            let Some(next) = next.filter(|next| *next <= end) else {
                self.now = end;
                return self.look();
            };
            self.now = next.max(self.now);
            self.client.handle_timeout(self.now);
            self.look()?;
            while self.talk()? {
                self.look()?;
            }
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
                self.server.accept();
                self.client.handle_connected(id, self.now);
                self.tell(|| "connected".to_owned());
                return Ok(true);
            }
            Some(Action::Close(_)) => {
                self.server.hang_up();
                return Ok(true);
            }
            None => {}
        }
        if !self.server.has_stream() {
            return Ok(false);
        }
        if let Some(request) = self.client.poll_request(self.id, self.now) {
            self.server.handle(request, self.now)?;
            return Ok(true);
        }
        if let Some(response) = self.server.poll(self.now) {
            let said = server::judge(&mut self.client, self.id, response, self.now)?;
            self.tell(|| said);
            return Ok(true);
        }
        Ok(false)
    }

    /// The server is awake, nothing changes, and time passes.
    fn be_quiet(&mut self) -> Result<(), Fault> {
        self.tell(|| "quiet".to_owned());
        self.server.is_silent = false;
        for _ in 0..6 {
            self.pass(Duration::from_secs(30))?;
            while self.talk()? {
                self.look()?;
            }
        }
        Ok(())
    }
}
