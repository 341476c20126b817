//! A world of variants (TP2): a server whose variants are split, merged,
//! narrowed and replaced at random, and clients of many categories that
//! subscribe by plain names, wildcards and locators, delta and state of the
//! world.
//!
//! Each step is one message, one transaction, one client that changes its
//! parameters or its subscriptions, or reconnects. After every response that a
//! client takes:
//!
//! - no subscription resolves to two variants;
//! - no subscription loses its variant while there is one for it.
//!
//! The receiving side of the clients is core's sink. In a [`World::wild`] one
//! some contents are bad and are rejected, alone or with all that came beside
//! them, by clients of another make as well as by sinks; caching proxies change
//! their parameters, too.
//!
//! After a time of quiet every client holds just what the operator means it to,
//! and then a transaction reaches each whom it concerns in one response of a
//! type, and nobody else.

mod client;
mod contents;
mod held;
mod quiet;
mod simple;
mod sinking;

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use fastrand::Rng;
use trunkline_core::Moment;
use trunkline_core::database::Database;
use trunkline_core::message::Mode;
use trunkline_core::params::Params;
use trunkline_core::session::{Config, Session};
use trunkline_core::sink::{Request, Response};

use crate::world::{Fault, words};
use client::{Asked, Client, Rejects, Subscription};
use contents::{Contents, is_bad, random_params};

/// Responses below this are small: a name or two.
const SMALL: usize = 61;

/// A client and its stream.
#[derive(Debug)]
struct Peer {
    client: Client,
    session: Session,
    up: VecDeque<(Request, BTreeSet<Asked>)>,
    down: VecDeque<Sent>,
    /// The subscriptions that the server was told so far.
    heard: BTreeSet<Asked>,
    /// Whether the server had nothing to send since it first heard of a type.
    looked: bool,
    /// All parameters of the client since it was last quiet.
    was: Vec<Params>,
    /// Bytes of a response, for some small.
    response_bytes: usize,
}

/// A response, the contents when it was sent, and the subscriptions then.
#[derive(Debug)]
struct Sent {
    response: Response,
    contents: Arc<Contents>,
    heard: BTreeSet<Asked>,
    /// The client's parameters then.
    params: Params,
}

/// See the module's documentation.
#[derive(Debug)]
pub struct World {
    rng: Rng,
    now: Moment,
    server: Database,
    contents: Arc<Contents>,
    peers: Vec<Peer>,
    /// Every step in words, if they were asked for.
    story: Option<Vec<String>>,
}

impl World {
    /// A world of random shape.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self::with_clients(seed, || None)
    }

    /// The world of a seed with what happens in wild ones.
    #[must_use]
    pub fn wild(seed: u64) -> Self {
        let mut rng = Rng::with_seed(!seed);
        let mut world = Self::with_clients(seed, || match rng.bool() {
            true => Some(Rejects::Whole),
            false => Some(Rejects::Part),
        });
        Arc::make_mut(&mut world.contents).bad = true;
        world
    }

    fn with_clients(seed: u64, mut rejects: impl FnMut() -> Option<Rejects>) -> Self {
        let mut rng = Rng::with_seed(seed);
        let mut world = Self {
            now: Moment::START,
            server: Database::new(),
            contents: Arc::default(),
            peers: Vec::new(),
            story: None,
            rng: rng.fork(),
        };
        for _ in 0..rng.usize(2..7) {
            let client = Client::new(&mut rng, rejects());
            let small = client.is_leaf && rng.u8(0..4) == 0;
            let response_bytes = if small { SMALL - 1 } else { 1 << 20 };
            let session = open(&mut world.server, &client, response_bytes);
            let was = vec![client.params.clone()];
            world.peers.push(Peer {
                client,
                session,
                up: VecDeque::new(),
                down: VecDeque::new(),
                heard: BTreeSet::new(),
                looked: false,
                was,
                response_bytes,
            });
            world.request(world.peers.len() - 1);
        }
        world
    }

    /// Keeps every step in words from now on.
    #[must_use]
    pub fn telling(mut self) -> Self {
        let peers = self.peers.iter().enumerate();
        let line = |(index, peer): (usize, &Peer)| {
            let Client { mode, is_leaf, .. } = peer.client;
            format!(
                "{index} is {mode:?}, leaf: {is_leaf}, {}",
                peer.client.params
            )
        };
        self.story = Some(peers.map(line).collect());
        self
    }

    /// What happened, if it was kept.
    #[must_use]
    pub fn story(&self) -> &[String] {
        self.story.as_deref().unwrap_or_default()
    }

    fn tell(&mut self, line: impl FnOnce() -> String) {
        if let Some(story) = &mut self.story {
            story.push(line());
        }
    }

    /// Runs so many steps and comes to rest, so many times.
    ///
    /// # Errors
    /// What does not hold.
    pub fn run(&mut self, rounds: usize, steps: usize) -> Result<(), Fault> {
        for round in 0..rounds {
            for step in 0..steps {
                let held = self.step().and_then(|()| self.check());
                held.map_err(|fault| format!("round {round}, step {step}: {fault}"))?;
            }
            let quiet = self.settle().and_then(|()| self.compare());
            quiet.map_err(|fault| format!("round {round}, at rest: {fault}"))?;
            let told = self.change_in_quiet();
            told.map_err(|fault| format!("round {round}, in quiet: {fault}"))?;
        }
        Ok(())
    }

    /// Database and sessions prove their invariants.
    fn check(&mut self) -> Result<(), Fault> {
        for (index, peer) in self.peers.iter().enumerate() {
            let sound = peer.session.check(&mut self.server);
            sound.map_err(|fault| format!("client {index}: {fault}"))?;
        }
        self.server.check()
    }

    fn step(&mut self) -> Result<(), Fault> {
        // Now and then longer than an ACK is awaited.
        let pause = if self.rng.u8(0..100) == 0 { 6000 } else { 20 };
        self.now = self.now + Duration::from_millis(self.rng.u64(0..pause));
        let index = self.rng.usize(0..self.peers.len());
        match self.rng.u8(0..100) {
            0..8 => self.operate()?,
            8..11 => self.become_other(index),
            11..15 => self.ask_otherwise(index),
            15..17 => self.reconnect(index),
            17..45 => {
                self.deliver_up(index)?;
            }
            45..72 => {
                self.send_down(index);
            }
            _ => {
                self.deliver_down(index)?;
            }
        }
        Ok(())
    }

    fn operate(&mut self) -> Result<(), Fault> {
        let changes = Arc::make_mut(&mut self.contents).edit(&mut self.rng);
        self.tell(|| format!("operator: {changes:?}"));
        let applied = self.server.apply(changes);
        applied.map_err(|error| format!("variants that exclude each other are refused: {error}"))
    }

    /// A leaf changes its parameters; in a wild world a caching proxy too, when
    /// no message is on its way that it might drop for that.
    fn become_other(&mut self, index: usize) {
        let wild = self.contents.bad;
        let peer = &mut self.peers[index];
        let looked = peer.looked;
        let quiet = peer.up.is_empty() && peer.down.is_empty() && peer.session.is_acknowledged();
        let may = peer.client.may_become_other();
        if peer.client.is_leaf || (wild && quiet && may) {
            // The server's silence confirms only what it evaluated.
            if !peer.client.is_leaf && looked {
                let contents = &self.contents;
                let given = |(place, params): &Subscription| contents.given(place, params);
                peer.client.confirm(given);
            }
            peer.client.params = random_params(&mut self.rng);
            peer.was.push(peer.client.params.clone());
            let params = peer.client.params.clone();
            peer.session.set_params(&mut self.server, params.clone());
            self.tell(|| format!("{index} becomes {params}"));
        }
    }

    fn ask_otherwise(&mut self, index: usize) {
        let client = &mut self.peers[index].client;
        let mut asked: Vec<Asked> = client.asked.iter().cloned().collect();
        asked.retain(|(_, name, _)| name != "*");
        let asked = match self.rng.bool() {
            true => self.rng.choice(asked),
            false => Some(client.random_ask(&mut self.rng)),
        };
        if let Some(asked) = asked {
            self.peers[index].client.toggle(asked);
            self.request(index);
        }
    }

    fn reconnect(&mut self, index: usize) {
        let peer = &mut self.peers[index];
        let session = open(&mut self.server, &peer.client, peer.response_bytes);
        std::mem::replace(&mut peer.session, session).close(&mut self.server);
        peer.up.clear();
        peer.down.clear();
        peer.heard.clear();
        peer.client.reconnect();
        self.tell(|| format!("{index} reconnects"));
        self.request(index);
    }

    /// The client sends what is due.
    fn request(&mut self, index: usize) {
        let peer = &mut self.peers[index];
        let requests = peer.client.requests(self.now).into_iter();
        let asked = &peer.client.asked;
        peer.up
            .extend(requests.map(|request| (request, asked.clone())));
    }

    fn deliver_up(&mut self, index: usize) -> Result<bool, Fault> {
        let peer = &mut self.peers[index];
        let Some((request, asked)) = peer.up.pop_front() else {
            return Ok(false);
        };
        let url = match &request {
            Request::Delta(request) => request.type_url.clone(),
            Request::Sotw(request) => request.type_url.clone(),
        };
        let telling = self.story.is_some();
        let line =
            telling.then(|| format!("parent of {index} reads: {}", words::request(&request)));
        let result = match request {
            Request::Delta(r) => peer.session.handle_delta(&mut self.server, r, self.now),
            Request::Sotw(r) => peer.session.handle_sotw(&mut self.server, r, self.now),
        };
        result.map_err(|error| format!("client {index} breaks the protocol: {error}"))?;
        while peer.session.poll_event().is_some() {}
        let of_type = |asked: &&Asked| Some(&asked.0) == url.as_ref();
        peer.looked &= peer.heard.iter().any(|asked| of_type(&asked));
        peer.heard.retain(|asked| Some(&asked.0) != url.as_ref());
        peer.heard.extend(asked.iter().filter(of_type).cloned());
        self.story
            .iter_mut()
            .for_each(|story| story.extend(line.clone()));
        Ok(true)
    }

    fn send_down(&mut self, index: usize) -> bool {
        let peer = &mut self.peers[index];
        let response = peer.session.poll(&mut self.server, self.now);
        let sent = response.is_some();
        peer.looked |= !sent;
        let telling = sent && self.story.is_some();
        let line = telling.then(|| format!("parent of {index} sends: {response:?}"));
        peer.down.extend(response.map(|response| Sent {
            response,
            contents: Arc::clone(&self.contents),
            heard: peer.heard.clone(),
            params: peer.client.params.clone(),
        }));
        self.story
            .iter_mut()
            .for_each(|story| story.extend(line.clone()));
        sent
    }

    /// The client takes a response, and loses no more than it has to.
    fn deliver_down(&mut self, index: usize) -> Result<bool, Fault> {
        let peer = &mut self.peers[index];
        let Some(sent) = peer.down.pop_front() else {
            return Ok(false);
        };
        let known = peer.client.expand(&sent.heard);
        let had: BTreeSet<Subscription> = known
            .into_iter()
            .filter(|one| !peer.client.found(one).is_empty())
            .filter(|one| !peer.client.is_doubtful(&one.0, sent.contents.has_bad()))
            .collect();
        if let Some(story) = &mut self.story {
            story.push(format!("{index} reads"));
        }
        let taken = peer.client.take(sent.response.clone(), self.now);
        taken.map_err(|fault| format!("client {index}: {fault}"))?;
        self.request(index);
        let peer = &self.peers[index];
        let fault = |what: String| {
            format!(
                "client {index} ({:?}): {what}: {:?}",
                peer.client.mode, sent.response
            )
        };
        let url = sent.response.type_url();
        for one in peer.client.subscriptions() {
            let found = peer.client.found(&one);
            // A client that changed its parameters has no update of other types
            // yet, nor of a name of which it took none since it reconnected.
            let unheard = one.0.0 != *url || peer.client.is_unsettled(&one.0);
            if found.len() > 1 && !unheard {
                return Err(fault(format!("{one:?} leads to {found:?}")));
            }
            let nothing = |params: &Params| {
                let given = sent.contents.given(&one.0, params);
                given.is_none_or(|given| is_bad(&given))
            };
            let was = [one.1.clone()];
            let was = if peer.client.is_leaf {
                &peer.was[..]
            } else {
                &was
            };
            let same = peer.client.is_leaf || sent.params == peer.client.params;
            // In a whole set a trial may replace what was never accepted.
            let search = peer.client.mode == Mode::Sotw && sent.contents.has_bad();
            if found.is_empty() && same && !search && had.contains(&one) && !was.iter().any(nothing)
            {
                return Err(fault(format!("{one:?} lost what there is for it")));
            }
        }
        Ok(true)
    }
}

fn open(db: &mut Database, client: &Client, response_bytes: usize) -> Session {
    let mut config = Config::new(client.mode);
    config.params = client.params.clone();
    config.limits.response_bytes = response_bytes;
    Session::open(db, config)
}
