//! The database against a map that a reader can check by eye.
//!
//! Random transactions over few names, types and parameters; after each, every
//! answer of the database is compared with a naive model, every view with a
//! filter over the whole set, and every follower's held state with what it
//! would have collected by itself.

#![allow(clippy::unwrap_used)] // a test: what cannot fail here is part of it

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use proptest::prelude::*;
use trunkline_core::change::Change;
use trunkline_core::database::{Choice, CursorId, Database, Position, Scope, SubscriberId, TypeId};
use trunkline_core::name::{Glob, Name};
use trunkline_core::params::{Constraints, Params};
use trunkline_core::resource::{ErrorCode, Resource, ResourceError, TypeUrl};

const NAMES: [&str; 6] = [
    "a",
    "b",
    "xdstp://au/t/g/1",
    "xdstp://au/t/g/2",
    "xdstp://au/t/g/2?k=v",
    "xdstp://au/t/h/1",
];
/// Disjoint constraints, and one that overlaps with them.
const CONSTRAINTS: [&str; 4] = ["env=prod", "env=test", "NOT env exists", "zone=z"];
const PARAMS: [&[(&str, &str)]; 4] = [
    &[],
    &[("env", "prod")],
    &[("env", "test"), ("zone", "z")],
    &[("env", "dev"), ("zone", "y")],
];

#[derive(Clone, Debug)]
enum Op {
    Apply(Vec<Edit>),
    Follow { params: usize, glob: bool },
    Step { who: usize },
    Leave { who: usize },
    Subscribe { params: usize, name: usize },
}

#[derive(Clone, Debug)]
enum Edit {
    Upsert {
        name: usize,
        constraint: Option<usize>,
        body: u8,
        alias: Option<usize>,
    },
    Remove {
        name: usize,
    },
    RemoveVariant {
        name: usize,
        constraint: Option<usize>,
    },
    ReplaceAll {
        names: Vec<usize>,
        body: u8,
    },
    Fail {
        name: usize,
    },
}

fn edit() -> impl Strategy<Value = Edit> {
    let name = 0..NAMES.len();
    let constraint = proptest::option::of(0..CONSTRAINTS.len());
    prop_oneof![
        6 => (name.clone(), constraint.clone(), 0..4u8, proptest::option::weighted(0.2, name.clone()))
            .prop_map(|(name, constraint, body, alias)| Edit::Upsert { name, constraint, body, alias }),
        3 => name.clone().prop_map(|name| Edit::Remove { name }),
        1 => (name.clone(), constraint).prop_map(|(name, constraint)| Edit::RemoveVariant { name, constraint }),
        1 => (proptest::collection::vec(name.clone(), 0..4), 0..4u8)
            .prop_map(|(names, body)| Edit::ReplaceAll { names, body }),
        1 => name.prop_map(|name| Edit::Fail { name }),
    ]
}

fn op() -> impl Strategy<Value = Op> {
    let who = 0..8usize;
    prop_oneof![
        6 => proptest::collection::vec(edit(), 1..4).prop_map(Op::Apply),
        2 => (0..PARAMS.len(), any::<bool>()).prop_map(|(params, glob)| Op::Follow { params, glob }),
        5 => who.clone().prop_map(|who| Op::Step { who }),
        1 => who.prop_map(|who| Op::Leave { who }),
        2 => (0..PARAMS.len(), 0..NAMES.len()).prop_map(|(params, name)| Op::Subscribe { params, name }),
    ]
}

/// What a name holds, in the model.
#[derive(Clone, Debug, Default)]
struct Held {
    variants: BTreeMap<Option<Constraints>, Arc<Resource>>,
    /// It cannot be had anew; what there is stays in use.
    failed: bool,
}

type Model = BTreeMap<Name, Held>;

struct Follower {
    subscriber: SubscriberId,
    follow: CursorId,
    params: Params,
    glob: Option<Glob>,
    position: Position,
    held: BTreeMap<Name, Arc<Resource>>,
}

struct Asker {
    subscriber: SubscriberId,
    params: Params,
    name: Name,
    seen: Choice,
}

struct World {
    db: Database,
    type_id: TypeId,
    model: Model,
    followers: Vec<Follower>,
    askers: Vec<Asker>,
}

fn url() -> TypeUrl {
    TypeUrl::from("t")
}

fn params(index: usize) -> Params {
    Params::new(PARAMS[index].iter().copied()).unwrap()
}

fn constraints(index: Option<usize>) -> Option<Constraints> {
    index.map(|i| CONSTRAINTS[i].parse().unwrap())
}

fn resource(
    name: usize,
    constraint: Option<usize>,
    body: u8,
    alias: Option<usize>,
) -> Arc<Resource> {
    let name = Name::new(NAMES[name]);
    let alias = alias.map(|a| Name::new(NAMES[a])).filter(|a| *a != name);
    Arc::new(Resource {
        constraints: constraints(constraint),
        aliases: alias.into_iter().collect(),
        ..Resource::new(name, Bytes::from(vec![body; 40]))
    })
}

fn change(edit: &Edit) -> Change {
    match edit.clone() {
        Edit::Upsert {
            name,
            constraint,
            body,
            alias,
        } => Change::Upsert(url(), resource(name, constraint, body, alias)),
        Edit::Remove { name } => Change::Remove(url(), Name::new(NAMES[name])),
        Edit::RemoveVariant { name, constraint } => {
            Change::RemoveVariant(url(), Name::new(NAMES[name]), constraints(constraint))
        }
        Edit::ReplaceAll { names, body } => {
            let all = names.into_iter().map(|n| resource(n, None, body, None));
            Change::ReplaceAll(url(), all.collect())
        }
        Edit::Fail { name } => Change::Fail(url(), Name::new(NAMES[name]), unavailable()),
    }
}

fn unavailable() -> Arc<ResourceError> {
    Arc::new(ResourceError {
        code: ErrorCode::Unavailable,
        message: "down".into(),
    })
}

/// The model's own idea of a transaction.
fn apply_to_model(model: &Model, edits: &[Edit]) -> Model {
    let mut next = model.clone();
    let put = |next: &mut Model, r: Arc<Resource>| {
        let held = next.entry(r.name.clone()).or_default();
        held.failed = false;
        held.variants.insert(r.constraints.clone(), r);
    };
    for edit in edits {
        match change(edit) {
            Change::Upsert(_, r) => put(&mut next, r),
            Change::Remove(_, name) => {
                next.remove(&name);
            }
            Change::RemoveVariant(_, name, constraints) => {
                let held = next.entry(name).or_default();
                held.failed = false;
                held.variants.remove(&constraints);
            }
            Change::ReplaceAll(_, all) => {
                next.clear();
                all.into_iter().for_each(|r| put(&mut next, r));
            }
            Change::Fail(_, name, _) => {
                next.entry(name).or_default().failed = true;
            }
        }
    }
    next.retain(|_, held| held.failed || !held.variants.is_empty());
    next
}

/// Whether some client of a small world would match two variants.
fn overlaps(model: &Model) -> bool {
    let values = |options: &'static [&'static str]| {
        std::iter::once(None).chain(options.iter().copied().map(Some))
    };
    model.values().any(|held| {
        values(&["prod", "test", "other"]).any(|env| {
            values(&["z", "other"]).any(|zone| {
                let pairs = [("env", env), ("zone", zone)];
                let client =
                    Params::new(pairs.iter().filter_map(|(k, v)| Some((*k, (*v)?)))).unwrap();
                matching(&held.variants, &client).count() > 1
            })
        })
    })
}

fn matching<'a>(
    all: &'a BTreeMap<Option<Constraints>, Arc<Resource>>,
    client: &'a Params,
) -> impl Iterator<Item = &'a Arc<Resource>> {
    all.iter()
        .filter(|(c, _)| c.as_ref().is_none_or(|c| c.matches(client)))
        .map(|(_, r)| r)
}

fn own(model: &Model, name: &Name, client: &Params) -> Choice {
    match model.get(name) {
        None => Choice::Absent,
        Some(held) => match (held.failed, matching(&held.variants, client).next()) {
            (true, kept) => Choice::Failed(unavailable(), kept.cloned()),
            (false, Some(resource)) => Choice::Resource(Arc::clone(resource)),
            (false, None) => Choice::Absent,
        },
    }
}

/// What a client sees under a name: its own contents, else the first alias.
fn seen(model: &Model, name: &Name, client: &Params) -> Choice {
    let own_choice = own(model, name, client);
    if own_choice != Choice::Absent {
        return own_choice;
    }
    let answers = |r: &Arc<Resource>| r.aliases.contains(name);
    let owners = model
        .iter()
        .filter(|(_, held)| held.variants.values().any(answers));
    owners
        .map(|(owner, _)| own(model, owner, client))
        .find(|choice| choice.resource().is_some())
        .unwrap_or_default()
}

impl World {
    fn new() -> Self {
        let mut db = Database::new();
        let type_id = db.type_id(&url());
        Self {
            db,
            type_id,
            model: Model::new(),
            followers: Vec::new(),
            askers: Vec::new(),
        }
    }

    fn run(&mut self, op: &Op) {
        match op {
            Op::Apply(edits) => self.apply(edits),
            Op::Follow { params: p, glob } => self.follow(params(*p), *glob),
            Op::Step { who } => self.step(*who),
            Op::Leave { who } => self.leave(*who),
            Op::Subscribe { params: p, name } => self.subscribe(params(*p), *name),
        }
    }

    fn apply(&mut self, edits: &[Edit]) {
        let next = apply_to_model(&self.model, edits);
        let result = self.db.apply(edits.iter().map(change).collect());
        assert_eq!(result.is_err(), overlaps(&next), "{result:?}");
        if result.is_ok() {
            self.model = next;
        }
        self.tell_askers();
    }

    /// A name whose answer changed is marked, so its asker looks again.
    fn tell_askers(&mut self) {
        for asker in &mut self.askers {
            let now = seen(&self.model, &asker.name, &asker.params);
            let dirty = self.db.take_dirty(asker.subscriber, usize::MAX);
            if !now.same_for_client(&asker.seen) {
                assert!(
                    !dirty.is_empty(),
                    "{} changed and its asker was not told",
                    asker.name
                );
            }
            asker.seen = now;
        }
    }

    fn follow(&mut self, client: Params, glob: bool) {
        let id = self.db.intern_params(client.clone());
        let stream = self.db.open_stream();
        let subscriber = self.db.add_subscriber(stream, self.type_id, id);
        let glob = glob.then(|| Glob::of(&Name::new(NAMES[2])).unwrap());
        let scope = glob.clone().map_or(Scope::All, Scope::Glob);
        let follow = self.db.open_cursor(subscriber, &scope);
        let held = BTreeMap::new();
        self.followers.push(Follower {
            subscriber,
            follow,
            params: client,
            glob,
            position: 0,
            held,
        });
    }

    fn step(&mut self, who: usize) {
        let count = self.followers.len();
        let Some(follower) = (count > 0).then(|| &mut self.followers[who % count]) else {
            return;
        };
        let batch = self.db.view_changes(follower.follow, follower.position);
        assert_eq!(batch.from, follower.position);
        for (name, item) in &batch.items {
            match item {
                Some(resource) => follower.held.insert(name.clone(), Arc::clone(resource)),
                None => follower.held.remove(name),
            };
        }
        self.db.pin(follower.follow, batch.to);
        self.db.unpin(follower.follow, batch.from);
        follower.position = batch.to;
    }

    fn leave(&mut self, who: usize) {
        if self.followers.is_empty() {
            return;
        }
        let follower = self.followers.swap_remove(who % self.followers.len());
        self.db.close_cursor(follower.follow);
        self.db.remove_subscriber(follower.subscriber);
    }

    fn subscribe(&mut self, client: Params, name: usize) {
        let name = Name::new(NAMES[name]);
        let id = self.db.intern_params(client.clone());
        let stream = self.db.open_stream();
        let subscriber = self.db.add_subscriber(stream, self.type_id, id);
        let entry = self.db.subscribe(subscriber, &name, id);
        let now = self.db.choose(self.type_id, entry, id);
        self.askers.push(Asker {
            subscriber,
            params: client,
            name,
            seen: now,
        });
    }

    fn check(&mut self) {
        self.db.check().unwrap();
        assert_eq!(self.db.len(self.type_id), self.with_contents());
        for name in NAMES.map(Name::new) {
            for p in 0..PARAMS.len() {
                let client = params(p);
                let id = self.db.intern_params(client.clone());
                let got = self.db.choose_name(self.type_id, &name, id);
                assert_eq!(
                    got,
                    seen(&self.model, &name, &client),
                    "{name} for {client}"
                );
            }
        }
        for follower in &self.followers {
            check_follower(&mut self.db, self.type_id, &self.model, follower);
        }
    }

    fn with_contents(&self) -> usize {
        let has = |held: &&Held| !held.variants.is_empty();
        self.model.values().filter(has).count()
    }
}

/// A view is a filter over the whole set, and a follower holds what it collected.
fn check_follower(db: &mut Database, type_id: TypeId, model: &Model, follower: &Follower) {
    let Follower {
        follow,
        params,
        glob,
        position,
        held,
        ..
    } = follower;
    let expected: Vec<_> = model
        .keys()
        .filter(|name| glob.as_ref().is_none_or(|g| g.matches(name)))
        .filter_map(|name| own(model, name, params).resource().cloned())
        .collect();
    assert_eq!(db.list(*follow), expected);
    for name in NAMES.map(Name::new) {
        let entry = db.find(type_id, &name);
        let got = entry.and_then(|entry| db.resource_at(*follow, entry, *position));
        assert_eq!(got.as_ref(), held.get(&name), "{name} at {position}");
    }
    if *position == db.head(*follow) {
        assert!(held.values().eq(expected.iter()));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_database_is_what_the_model_says(ops in proptest::collection::vec(op(), 1..40)) {
        let mut world = World::new();
        for op in &ops {
            world.run(op);
            world.check();
        }
        while !world.followers.is_empty() {
            world.leave(0);
        }
        world.check();
    }
}
