//! Make before break, decided for each referenced resource (S52, S73).
//!
//! Two rules, both about what this peer asks for and holds:
//!
//! - What refers to something of an earlier type waits until the peer holds
//!   that: a route waits for its new cluster. It does not wait for what the
//!   peer does not ask for, what does not exist, or what was rejected; and not
//!   longer than a limit, so that silence stalls nothing.
//! - What is gone is taken away once nothing that the peer holds refers to it
//!   and is about to change. This may take long; nothing else waits for it.
//!   What a reconnecting peer holds from before is not known; while it has not
//!   been replaced, it may refer to anything.
//!
//! Additions never wait for removals.

use std::cell::OnceCell;
use std::collections::BTreeMap;

use hashbrown::HashSet;

use crate::database::Database;
use crate::facts::Reference;
use crate::kind::Kind;
use crate::moment::Moment;
use crate::name::Name;
use crate::resource::{Resource, TypeUrl};
use crate::source::{Conversation, Standing};

/// References that are still in use although the peer accepted a change
/// without them, and until when: an old listener drains for a while (S73).
pub(crate) type Draining = BTreeMap<Reference, Moment>;

/// What the peer still uses although it is about to go.
#[derive(Default)]
struct InUse {
    /// By the references that it holds.
    references: HashSet<Reference>,
    /// It may use anything of these types: it holds something unknown that
    /// may refer to them.
    types: HashSet<&'static str>,
}

/// The other types of a stream, as one type sees them.
pub(crate) struct Order<'a> {
    others: &'a [Option<Box<Conversation>>],
    draining: &'a Draining,
    /// The peer resumed a moment ago, and has yet to say what it holds.
    resuming: bool,
    /// Worked out when the first removal asks.
    in_use: OnceCell<InUse>,
}

impl<'a> Order<'a> {
    pub(crate) fn new(
        others: &'a [Option<Box<Conversation>>],
        draining: &'a Draining,
        resuming: bool,
    ) -> Self {
        Self {
            others,
            draining,
            resuming,
            in_use: OnceCell::new(),
        }
    }

    /// Whether something that a resource refers to has to come first.
    pub(crate) fn addition_waits(
        &self,
        db: &mut Database,
        kind: &Kind,
        resource: &Resource,
    ) -> bool {
        let references = &resource.facts().references;
        references
            .iter()
            .any(|reference| match self.standing(db, kind, reference) {
                Standing::Coming => true,
                Standing::Held => self.lacks_something(db, kind, reference),
                Standing::Nothing | Standing::Unwanted => false,
            })
    }

    /// Whether a resource that the peer holds waits for something to be of use
    /// itself: a cluster for its endpoints (S52).
    fn lacks_something(&self, db: &mut Database, kind: &Kind, reference: &Reference) -> bool {
        let Some(other) = self.conversation(&reference.type_url) else {
            return false;
        };
        let choice = db.choose_name(other.type_id, &reference.name, other.params);
        let needed = choice.resource().map(|r| &r.facts().references);
        needed.is_some_and(|needed| {
            let mut needed = needed.iter();
            needed.any(|reference| self.standing(db, kind, reference) == Standing::Coming)
        })
    }

    /// How something stands with the peer, as far as its type comes first.
    fn standing(&self, db: &mut Database, kind: &Kind, reference: &Reference) -> Standing {
        self.conversation(&reference.type_url)
            .filter(|other| other.kind.rank < kind.rank)
            .map_or(Standing::Unwanted, |other| {
                other.standing(db, &reference.name)
            })
    }

    /// Whether the peer still uses a resource that is gone.
    pub(crate) fn removal_waits(&self, db: &mut Database, url: &TypeUrl, name: &Name) -> bool {
        let reference = Reference {
            type_url: url.clone(),
            name: name.clone(),
        };
        let drains = self.draining.contains_key(&reference);
        let in_use = match self.in_use.get() {
            Some(known) => known,
            None => {
                let found = self.find_in_use(db);
                self.in_use.get_or_init(|| found)
            }
        };
        let may_be =
            in_use.types.contains(url.as_str()) || (self.resuming && Kind::is_referred_to(url));
        drains || may_be || in_use.references.contains(&reference)
    }

    fn find_in_use(&self, db: &mut Database) -> InUse {
        let mut in_use = InUse::default();
        for other in self.others.iter().flatten() {
            if other.holds_unknown() {
                in_use.types.extend(other.kind.refers_to);
            }
            for (held, target) in other.unsettled(db) {
                let kept = target.resource().map(|r| r.facts());
                for reference in &held.facts().references {
                    if kept.is_none_or(|facts| !facts.refers_to(reference)) {
                        in_use.references.insert(reference.clone());
                    }
                }
            }
        }
        in_use
    }

    fn conversation(&self, url: &TypeUrl) -> Option<&'a Conversation> {
        let mut all = self.others.iter().flatten();
        all.find(|other| other.url == *url).map(|other| &**other)
    }
}
