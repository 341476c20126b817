//! A world of chains: a source with canaries, control planes that are its
//! sinks, and a client behind each, with loss on both hops (M2-M14).
//!
//! ```text
//!              ┌─ canary ──▶ control plane ── xDS ─▶ client
//!   operator ─▶ source       (McpSink, then a database)
//!              └─ others ──▶ control planes ── xDS ─▶ clients
//! ```
//!
//! Each step is one message, one verdict, one change of the operator's, one lost
//! stream on either hop, or time that passes; the seed decides. After each, a
//! control plane that is no canary holds nothing that was not promoted. After a
//! time of quiet with good contents and a canary, every control plane holds what
//! the source has, and every client what its control plane has.

mod plane;

use std::collections::BTreeSet;
use std::time::Duration;

use fastrand::Rng;
use trunkline_core::Moment;
use trunkline_core::change::{Change, Transaction};
use trunkline_core::kind::{CDS, EDS};
use trunkline_core::mcp::{Canaries, Publisher, Served, Stage};

use self::plane::Plane;
use crate::pair::put;
use crate::world::Fault;

/// The collections: types of xDS, so that a control plane serves what it gets.
const COLLECTIONS: [&str; 2] = [CDS, EDS];
const NAMES: [&str; 4] = ["a", "b", "c", "d"];
const SOAK: Duration = Duration::from_secs(30);
/// More steps without a change are a loop.
const ENDLESS: usize = 10_000;

/// See the module's documentation.
#[derive(Debug)]
pub struct World {
    rng: Rng,
    now: Moment,
    source: Publisher,
    planes: Vec<Plane>,
    /// States of a collection that were promoted, in words.
    promoted: BTreeSet<String>,
    story: Option<Vec<String>>,
}

impl World {
    /// The world of a seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        let mut rng = Rng::with_seed(seed);
        let canaries = Canaries {
            key: "env".to_owned(),
            value: "canary".to_owned(),
            soak: SOAK,
        };
        // Without canaries every state is promoted at once.
        let canaries = Some(canaries).filter(|_| rng.u8(..4) > 0);
        let has_canaries = canaries.is_some();
        let planes = (0..rng.usize(2..=4)).map(|nth| {
            let is_canary = has_canaries && (nth == 0 || rng.u8(..4) == 0);
            Plane::new(nth, is_canary, &mut rng)
        });
        let planes = planes.collect();
        Self {
            now: Moment::START,
            source: Publisher::new(Served::Any, canaries),
            planes,
            promoted: BTreeSet::new(),
            story: None,
            rng,
        }
    }

    /// The same, which keeps its story.
    #[must_use]
    pub fn telling(mut self) -> Self {
        self.story = Some(Vec::new());
        self
    }

    /// What happened so far.
    #[must_use]
    pub fn story(&self) -> &[String] {
        self.story.as_deref().unwrap_or_default()
    }

    /// Runs so many steps, then a time of quiet.
    ///
    /// # Errors
    /// An invariant does not hold.
    pub fn run(&mut self, steps: usize) -> Result<(), Fault> {
        for _ in 0..steps {
            self.step()?;
            self.check()?;
        }
        self.become_quiet()
    }

    fn step(&mut self) -> Result<(), Fault> {
        let nth = self.rng.usize(..self.planes.len());
        match self.rng.u8(..40) {
            0..3 => self.change(true)?,
            3 => {
                self.tell(|| format!("plane {nth} loses its source"));
                let applies = self.rng.bool();
                self.planes[nth].lose_source(&mut self.source, self.now, applies);
            }
            4 => {
                self.tell(|| format!("plane {nth} loses its client"));
                self.planes[nth].lose_client();
            }
            5 => {
                let seconds = self.rng.u64(1..40);
                self.pass(Duration::from_secs(seconds));
            }
            6 => self.planes[nth].serve(),
            _ => {
                let moved = self.planes[nth].step(&mut self.source, self.now)?;
                if let Some(moved) = moved {
                    self.tell(|| format!("plane {nth}: {moved}"));
                }
            }
        }
        Ok(())
    }

    /// The operator writes one collection anew, or changes a name of it. Bad
    /// contents are those that a control plane rejects.
    fn change(&mut self, may_be_bad: bool) -> Result<(), Fault> {
        let (nth_url, nth_name) = (
            self.rng.usize(..COLLECTIONS.len()),
            self.rng.usize(..NAMES.len()),
        );
        let (url, name) = (COLLECTIONS[nth_url], NAMES[nth_name]);
        let bad = may_be_bad && self.rng.u8(..5) == 0;
        let body = match bad {
            true => format!("bad{}", self.rng.u8(..3)),
            false => format!("v{}", self.rng.u8(..3)),
        };
        let changes: Transaction = match self.rng.u8(..4) {
            0 => {
                let rng = &mut self.rng;
                let names = NAMES.iter().filter(|_| rng.bool());
                let all = names.map(|name| match put(url, name, &body) {
                    Change::Upsert(_, resource) => resource,
                    _ => unreachable!("it is put"),
                });
                vec![Change::ReplaceAll(url.into(), all.collect())]
            }
            1 => vec![Change::Remove(url.into(), name.into())],
            _ => vec![put(url, name, &body)],
        };
        self.tell(|| format!("the operator: {changes:?}"));
        let applied = self.source.apply(changes, self.now);
        applied.map_err(|error| format!("a change was refused: {error}"))?;
        self.note_promoted();
        Ok(())
    }

    /// Time passes, and the source brings what has soaked to everyone.
    fn pass(&mut self, time: Duration) {
        self.now = self.now + time;
        let news = self.source.promote(self.now);
        if !news.is_empty() {
            self.tell(|| "promoted".to_owned());
        }
        self.note_promoted();
    }

    /// Remembers the newest contents, if they are promoted.
    fn note_promoted(&mut self) {
        if matches!(self.source.stage(), None | Some(Stage::Promoted)) {
            let states = COLLECTIONS.map(|url| plane::words(self.source.contents(), url));
            self.promoted.extend(states);
        }
    }

    /// A control plane that is no canary holds a promoted state of each
    /// collection, or nothing at all.
    fn check(&self) -> Result<(), Fault> {
        for (nth, plane) in self.planes.iter().enumerate() {
            for url in COLLECTIONS {
                let held = plane.holds(url);
                let is_first = held == plane::words_of(url, std::iter::empty());
                if !plane.is_canary() && !is_first && !self.promoted.contains(&held) {
                    return Err(format!("plane {nth} holds {held}, which was not promoted"));
                }
            }
        }
        Ok(())
    }

    /// The contents become good, nothing is lost any more, and all messages
    /// arrive.
    fn become_quiet(&mut self) -> Result<(), Fault> {
        for url in COLLECTIONS {
            let all = NAMES.map(|name| match put(url, name, "good") {
                Change::Upsert(_, resource) => resource,
                _ => unreachable!("it is put"),
            });
            let change = Change::ReplaceAll(url.into(), all.to_vec());
            let applied = self.source.apply(vec![change], self.now);
            applied.map_err(|error| format!("good contents were refused: {error}"))?;
        }
        self.note_promoted();
        // Once to the canaries, and once more to the others.
        for _ in 0..2 {
            self.deliver()?;
            self.pass(SOAK);
        }
        self.deliver()?;
        for (nth, plane) in self.planes.iter_mut().enumerate() {
            plane.serve();
            for url in COLLECTIONS {
                let (has, held) = (plane::words(self.source.contents(), url), plane.holds(url));
                if has != held {
                    return Err(format!("plane {nth} holds {held}, the source has {has}"));
                }
                let client = plane.client_holds(url);
                if client != held {
                    return Err(format!(
                        "the client of plane {nth} holds {client}, not {held}"
                    ));
                }
            }
        }
        Ok(())
    }

    /// All messages arrive.
    fn deliver(&mut self) -> Result<(), Fault> {
        for _ in 0..ENDLESS {
            let mut any = false;
            for nth in 0..self.planes.len() {
                any |= self.planes[nth].step(&mut self.source, self.now)?.is_some();
                self.check()?;
            }
            if !any {
                return Ok(());
            }
        }
        Err("it does not come to an end".to_owned())
    }

    fn tell(&mut self, line: impl FnOnce() -> String) {
        if let Some(story) = &mut self.story {
            story.push(line());
        }
    }
}
