//! The operator of a world of variants: for each name a set of variants that
//! exclude each other, changed by random transitions.
//!
//! The variant of a client is found by reading the expressions one by one, as
//! TP2 says what they mean; nothing of that is shared with the code under test.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use fastrand::Rng;
use trunkline_core::change::{Change, Transaction};
use trunkline_core::kind::{CDS, RDS};
use trunkline_core::name::Name;
use trunkline_core::params::{Constraints, Expr, Params};
use trunkline_core::resource::{Resource, TypeUrl, Version};

/// The names of each type.
pub(super) const NAMES: [&str; 3] = ["a", "b", "c"];
/// The types, one that is a whole set in state of the world, one not.
pub(super) const TYPES: [&str; 2] = [CDS, RDS];
const KEYS: [&str; 3] = ["env", "version", "zone"];
const VALUES: [&str; 2] = ["1", "2"];

/// A name of a type.
pub(super) type Place = (TypeUrl, Name);

#[derive(Clone, Debug)]
struct Variant {
    expr: Expr,
    resource: Arc<Resource>,
}

/// All that is published at one time.
#[derive(Clone, Debug, Default)]
pub(super) struct Contents {
    published: BTreeMap<Place, Vec<Variant>>,
    edits: u64,
    /// Some contents are bad: every client rejects them.
    pub(super) bad: bool,
}

/// Parameters of a random client.
pub(super) fn random_params(rng: &mut Rng) -> Params {
    let pairs = KEYS.iter().filter_map(|key| {
        let value = ["", "1", "2", "3"][rng.usize(0..4)];
        (!value.is_empty()).then_some((*key, value))
    });
    #[expect(clippy::expect_used, reason = "three are few")]
    Params::new(pairs).expect("few parameters")
}

impl Contents {
    /// What a client with these parameters gets under a name.
    #[must_use]
    pub(super) fn given(&self, place: &Place, client: &Params) -> Option<Arc<Resource>> {
        let variants = self.published.get(place)?;
        let mut found = variants.iter().filter(|v| v.expr.holds(client));
        let first = found.next()?;
        assert!(found.next().is_none(), "the operator is ambiguous");
        Some(Arc::clone(&first.resource))
    }

    /// Whether anything is bad now.
    pub(super) fn has_bad(&self) -> bool {
        let mut all = self.published.values().flatten();
        all.any(|variant| is_bad(&variant.resource))
    }

    /// A random transaction.
    pub(super) fn edit(&mut self, rng: &mut Rng) -> Transaction {
        let before = self.published.clone();
        for _ in 0..rng.usize(1..4) {
            let name = Name::new(NAMES[rng.usize(0..NAMES.len())]);
            let place = (TypeUrl::from(TYPES[rng.usize(0..2)]), name);
            let mut variants = self.published.remove(&place).unwrap_or_default();
            self.change(rng, &place.1, &mut variants);
            variants.retain(|variant| is_possible(&variant.expr));
            if !variants.is_empty() {
                self.published.insert(place, variants);
            }
        }
        difference(&before, &self.published)
    }

    /// One transition of the variants of a name. They go on excluding each other.
    fn change(&mut self, rng: &mut Rng, name: &Name, variants: &mut Vec<Variant>) {
        let cut = cut(rng);
        if variants.is_empty() || rng.u8(0..12) == 0 {
            variants.clear();
            return variants.push(self.variant(name, Expr::always()));
        }
        let one = variants.swap_remove(rng.usize(0..variants.len()));
        if is_bad(&one.resource) {
            // The next thing that happens to it is that it is mended.
            return variants.push(self.variant(name, one.expr));
        }
        if self.bad && rng.u8(0..4) == 0 {
            self.edits += 1;
            let body = Bytes::from(format!("bad {}", self.edits));
            return variants.push(variant(name, one.expr, body));
        }
        match rng.u8(0..12) {
            // One variant becomes two; a part may keep the contents.
            0..4 => {
                let same = rng.bool();
                let rest = and(&one.expr, &not(&cut));
                variants.push(self.variant(name, and(&one.expr, &cut)));
                variants.push(match same {
                    true => variant(name, rest, body(&one)),
                    false => self.variant(name, rest),
                });
            }
            // Two become one.
            4..6 if !variants.is_empty() => {
                let other = variants.swap_remove(rng.usize(0..variants.len()));
                variants.push(self.variant(name, or(&one.expr, &other.expr)));
            }
            // It is for fewer clients than before.
            6 => variants.push(variant(name, and(&one.expr, &cut), body(&one))),
            // Clients that have no variant get one.
            7..9 => {
                variants.push(one);
                let covered = variants.iter().map(|v| v.expr.clone());
                let covered = covered.reduce(|a, b| or(&a, &b));
                let free = covered.map_or_else(Expr::always, |all| not(&all));
                variants.push(self.variant(name, and(&free, &cut)));
            }
            9 => {}
            _ => variants.push(self.variant(name, one.expr)),
        }
    }

    fn variant(&mut self, name: &Name, expr: Expr) -> Variant {
        self.edits += 1;
        variant(name, expr, Bytes::from(self.edits.to_string()))
    }
}

/// Whether every client rejects it.
pub(super) fn is_bad(resource: &Resource) -> bool {
    let body = resource.body.as_ref();
    body.is_some_and(|body| body.starts_with(b"bad"))
}

fn cut(rng: &mut Rng) -> Expr {
    let key = KEYS[rng.usize(0..KEYS.len())];
    let expr = match rng.u8(0..4) {
        0 => Expr::exists(key),
        _ => Expr::value(key, VALUES[rng.usize(0..VALUES.len())]),
    };
    if rng.bool() { expr } else { not(&expr) }
}

fn and(a: &Expr, b: &Expr) -> Expr {
    short(Expr::and(vec![a.clone(), b.clone()]))
}

fn or(a: &Expr, b: &Expr) -> Expr {
    short(Expr::or(vec![a.clone(), b.clone()]))
}

fn not(it: &Expr) -> Expr {
    short(Expr::not(it.clone()))
}

/// The same in the fewest words, so that expressions do not grow for ever.
fn short(expr: Result<Expr, trunkline_core::params::ConstraintError>) -> Expr {
    #[expect(clippy::expect_used, reason = "three keys are few")]
    let meaning = Constraints::new(&expr.expect("small")).expect("small");
    meaning.expr().clone()
}

fn is_possible(expr: &Expr) -> bool {
    let never = Expr::or(Vec::new()).map(|never| Constraints::new(&never));
    let own = Constraints::new(expr);
    !matches!((never, own), (Ok(Ok(never)), Ok(own)) if never == own)
}

fn constraints(expr: &Expr) -> Option<Constraints> {
    let meaning = Constraints::new(expr).ok();
    meaning.filter(|meaning| !meaning.is_always())
}

/// The version tells variants apart, so that the version that a client names
/// when it reconnects can be taken at its word.
fn variant(name: &Name, expr: Expr, body: Bytes) -> Variant {
    let constraints = constraints(&expr);
    let only = constraints.as_ref().map(ToString::to_string);
    let told = [&body[..], only.unwrap_or_default().as_bytes()].concat();
    let resource = Arc::new(Resource {
        constraints,
        version: Version::of_body(&told),
        ..Resource::new(name.clone(), body)
    });
    Variant { expr, resource }
}

fn body(variant: &Variant) -> Bytes {
    variant.resource.body.clone().unwrap_or_default()
}

type Published = BTreeMap<Place, Vec<Variant>>;

fn difference(before: &Published, after: &Published) -> Transaction {
    let all = |published: &Published| -> BTreeMap<_, _> {
        let each = published.iter().flat_map(|(place, variants)| {
            let keyed = |v: &Variant| {
                let key = (place.clone(), v.resource.constraints.clone());
                (key, Arc::clone(&v.resource))
            };
            variants.iter().map(keyed).collect::<Vec<_>>()
        });
        each.collect()
    };
    let (before, after) = (all(before), all(after));
    let gone = before.keys().filter(|key| !after.contains_key(*key));
    let removed = gone
        .map(|((url, name), only)| Change::RemoveVariant(url.clone(), name.clone(), only.clone()));
    let new = after.iter().filter(|(key, r)| before.get(*key) != Some(r));
    let upserts = new.map(|(((url, _), _), r)| Change::Upsert(url.clone(), Arc::clone(r)));
    removed.chain(upserts).collect()
}
