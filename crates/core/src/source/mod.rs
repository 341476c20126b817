//! The sending side: one type on one stream.
//!
//! A conversation knows what its peer asks for, what it was told, and what
//! it answered. What to say next is worked out from that and the database when
//! the transport can take a message; nothing is queued.
//!
//! ```text
//!   request ─▶ handle ─▶ interest, slots, cursors ─┐
//!   database ─▶ dirty names, news in views ────────┴▶ select ─▶ response
//!                                                        │         │ outstanding
//!   accepted ◀── ACK ── verdict ◀── request ◀────────────┴─────────┘
//!   bisected, then parked ◀── NACK
//! ```
//!
//! State of the world and delta share all of it; `delta.rs` and `sotw.rs` only
//! read requests and write responses.

mod apart;
mod ask;
mod behind;
mod closed;
mod cursor;
mod delta;
mod errors;
mod forms;
mod moving;
mod select;
mod slot;
mod sotw;
mod standing;
mod step;
mod together;
mod ttl;
mod variants;
mod verdict;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use hashbrown::HashMap;

pub(crate) use ask::InitialVersions;
use closed::Closed;
pub(crate) use cursor::Cursor;
pub(crate) use delta::DeltaAsks;
pub use forms::Dialect;
pub(crate) use forms::is_negative;
pub(crate) use select::{Context, Selected};
pub(crate) use slot::{AskKey, Key, Slot, Told};
pub(crate) use standing::Standing;
use variants::Located;
pub(crate) use verdict::Outstanding;

use crate::database::{Choice, Database, Scope, SubscriberId, TypeId};
use crate::interest::Wildcard;
use crate::kind::Kind;
use crate::message::{ErrorDetail, Mode};
use crate::moment::Moment;
use crate::name::Name;
use crate::params::ParamsId;
use crate::resource::{Nonce, TypeUrl, Version};
use crate::timer::Timers;

/// See the module's documentation.
#[derive(Debug)]
pub(crate) struct Conversation {
    pub(crate) url: TypeUrl,
    pub(crate) kind: Kind,
    pub(crate) type_id: TypeId,
    pub(crate) mode: Mode,
    pub(crate) dialect: Dialect,
    /// Whether the peer understands `resource_errors` (TP3).
    pub(crate) speaks_errors: bool,
    /// Whether the peer may not see the type.
    pub(crate) denied: bool,
    pub(crate) subscriber: SubscriberId,
    /// The parameters of plain names, and of what wildcard and globs bring.
    pub(crate) params: ParamsId,
    /// Those that came with a wildcard or glob, in place of the stream's (TP2).
    pub(crate) own_params: Option<ParamsId>,
    pub(crate) wildcard: Wildcard,
    /// What wildcard and globs follow. A place is reused when it is empty.
    pub(crate) cursors: Vec<Option<Cursor>>,
    /// Every named subscription.
    pub(crate) asks: HashMap<AskKey, Slot>,
    /// Those of them with parameters of their own, by name (TP2).
    pub(crate) located: Located,
    /// How many of them are hosts of which there may be any number (S72).
    pub(crate) strangers: usize,
    /// What may have to be said; looked at when the conversation may speak.
    pub(crate) pending: BTreeSet<Key>,
    /// What waits for another type, and until when at the latest (S73).
    pub(crate) waiting: BTreeMap<Key, Moment>,
    /// What was rejected together with others, and what was sent then.
    pub(crate) suspects: BTreeMap<Key, Choice>,
    /// Groups of suspects that will be tried on their own (S12).
    pub(crate) trials: VecDeque<Vec<Key>>,
    /// How many responses were rejected since one was accepted.
    pub(crate) rejected_in_a_row: u32,
    /// When a group was last tried.
    pub(crate) tried_at: Moment,
    /// What failed alone, by the version that did: not sent again (S12).
    pub(crate) parked: BTreeMap<Name, Version>,
    /// Names that only the peer knows of: it is told that they are gone.
    pub(crate) foreign: BTreeSet<Name>,
    /// Under which name a peer holds something older, where that may not be the
    /// name that it asks by: a host.
    pub(crate) held_as: BTreeMap<AskKey, Name>,
    /// Names that never exist, by which a client that waits for virtual hosts
    /// hears that there are none yet (S76).
    pub(crate) placeholders: BTreeSet<Name>,
    /// What hosts are not spoken of for now.
    pub(crate) closed: Closed,
    /// Names that are refused, not remembered: told that they do not exist (S72).
    pub(crate) refused: BTreeSet<Name>,
    /// By which names that do not exist are told apart from those of other
    /// responses.
    pub(crate) negatives: u64,
    /// Stands for the names that the last list had and that were refused.
    refused_sum: u64,
    /// Responses without an answer: one, or two if the peer is silent for long.
    pub(crate) outstanding: VecDeque<Outstanding>,
    pub(crate) last_nonce: Option<Nonce>,
    pub(crate) last_acked: Option<Nonce>,
    /// What the peer last said of something that it rejects (S16).
    pub(crate) last_error: Option<ErrorDetail>,
    /// The peer waits for an answer, be it empty (S25).
    pub(crate) owes_answer: bool,
    /// Whether the next turn is a trial's, so that neither news nor trials starve.
    pub(crate) trial_turn: bool,
    /// When what has a ttl must be spoken of again (S59).
    pub(crate) refresh: Timers<Key>,
    /// The sum of the fingerprints of what the named subscriptions hold.
    pub(crate) told_sum: u128,
}

/// How a stream speaks of all its types.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Terms {
    pub(crate) mode: Mode,
    pub(crate) dialect: Dialect,
    pub(crate) speaks_errors: bool,
    pub(crate) denied: bool,
    pub(crate) params: ParamsId,
}

impl Conversation {
    pub(crate) fn new(
        db: &mut Database,
        stream: crate::database::StreamId,
        url: &TypeUrl,
        type_id: TypeId,
        terms: Terms,
    ) -> Self {
        let Terms {
            mode,
            dialect,
            speaks_errors,
            denied,
            params,
        } = terms;
        Self {
            url: url.clone(),
            kind: Kind::of(url),
            type_id,
            mode,
            dialect,
            speaks_errors,
            denied,
            subscriber: db.add_subscriber(stream, type_id, params),
            params,
            own_params: None,
            wildcard: Wildcard::Never,
            cursors: Vec::new(),
            asks: HashMap::new(),
            located: Located::new(),
            strangers: 0,
            pending: BTreeSet::new(),
            waiting: BTreeMap::new(),
            suspects: BTreeMap::new(),
            trials: VecDeque::new(),
            rejected_in_a_row: 0,
            tried_at: Moment::START,
            parked: BTreeMap::new(),
            foreign: BTreeSet::new(),
            held_as: BTreeMap::new(),
            placeholders: BTreeSet::new(),
            closed: Closed::default(),
            refused: BTreeSet::new(),
            negatives: 1,
            refused_sum: 0,
            outstanding: VecDeque::new(),
            last_nonce: None,
            last_acked: None,
            last_error: None,
            owes_answer: false,
            trial_turn: false,
            refresh: Timers::default(),
            told_sum: 0,
        }
    }

    /// Leaves the database without a trace of this conversation.
    pub(crate) fn close(&mut self, db: &mut Database) {
        for index in 0..self.cursors.len() {
            self.drop_cursor(db, index);
        }
        for key in std::mem::take(&mut self.asks).into_keys() {
            db.unsubscribe(self.subscriber, key.entry, key.params);
        }
        db.remove_subscriber(self.subscriber);
    }

    /// How many subscriptions it holds.
    pub(crate) fn subscriptions(&self) -> usize {
        self.asks.len() + self.cursors.iter().flatten().count()
    }

    /// How many globs it follows.
    pub(crate) fn globs(&self) -> usize {
        let cursors = self.cursors.iter().flatten();
        cursors.filter(|c| c.scope != Scope::All).count()
    }

    /// Who asks for nothing any more is not owed an answer (S10).
    pub(crate) fn forgive_answer(&mut self) {
        self.owes_answer &= self.wildcard.is_on() || self.subscriptions() > 0;
    }

    /// Whether the type is delivered as a whole in every response.
    pub(crate) fn is_whole(&self) -> bool {
        self.mode == Mode::Sotw && self.kind.whole_set
    }

    pub(crate) fn slot(&self, key: &Key) -> Option<&Slot> {
        match key {
            Key::Ask(ask) => self.asks.get(ask),
            Key::Member(cursor, name) => self.cursors.get(*cursor)?.as_ref()?.members.get(name),
        }
    }

    pub(crate) fn slot_mut(&mut self, key: &Key) -> Option<&mut Slot> {
        match key {
            Key::Ask(ask) => self.asks.get_mut(ask),
            Key::Member(cursor, name) => self
                .cursors
                .get_mut(*cursor)?
                .as_mut()?
                .members
                .get_mut(name),
        }
    }

    /// What the database has for the peer under a key. A failure that leaves
    /// contents in use is none to a peer that does not read of it (S61).
    pub(crate) fn target(&self, db: &mut Database, key: &Key) -> Choice {
        let (index, name) = match key {
            Key::Ask(ask) => {
                return match db.choose(self.type_id, ask.entry, ask.params) {
                    Choice::Failed(_, Some(kept)) if !self.speaks_errors => Choice::Is(kept),
                    choice => choice,
                };
            }
            Key::Member(index, name) => (*index, name),
        };
        let Some(cursor) = self.cursors.get(index).and_then(Option::as_ref) else {
            return Choice::Absent;
        };
        let entry = db.find(self.type_id, name);
        match entry.and_then(|entry| db.listed(cursor.follow, entry)) {
            Some(resource) => Choice::Is(resource),
            None if db.knows_all(cursor.follow) => Choice::Absent,
            None => Choice::Unknown,
        }
    }

    /// The name behind a key.
    pub(crate) fn key_name(&self, db: &Database, key: &Key) -> Name {
        match key {
            Key::Ask(ask) => db.name(self.type_id, ask.entry).clone(),
            Key::Member(_, name) => name.clone(),
        }
    }

    /// Whether nothing can be said of a key for now (S76). Who asks is answered.
    fn is_closed(&self, db: &Database, key: &Key) -> bool {
        let asks = |slot: &Slot| slot.forced || slot.told == Told::Nothing;
        self.kind.on_demand
            && !self.slot(key).is_some_and(asks)
            && self.closed.has(&self.key_name(db, key))
    }

    /// Forgets all that is under way about a key.
    pub(crate) fn forget(&mut self, key: &Key) {
        self.pending.remove(key);
        self.waiting.remove(key);
        self.suspects.remove(key);
        for trial in &mut self.trials {
            trial.retain(|other| other != key);
        }
        for response in &mut self.outstanding {
            response.keys.retain(|(other, _)| other != key);
        }
    }
}
