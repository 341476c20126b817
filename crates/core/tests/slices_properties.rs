//! A transaction in slices against the same transaction at once.
//!
//! Random transactions over few names of four types. One database gets each of
//! them at once, another in slices of random size, and its subscribers look at
//! it after some slices. In the end both hold the same and told the same; and
//! in between nothing is missing that was there before and will be after.

#![allow(clippy::unwrap_used)] // a test: what cannot fail here is part of it

use std::collections::BTreeMap;
use std::sync::Arc;

use proptest::prelude::*;
use trunkline_core::change::Change;
use trunkline_core::database::{
    Choice, Commit, CursorId, Database, EntryId, Position, Progress, Scope, SubscriberId, TypeId,
};
use trunkline_core::facts::Facts;
use trunkline_core::hosts::{Domain, Domains};
use trunkline_core::kind::{CDS, EDS, Kind, LDS, VHDS};
use trunkline_core::name::Name;
use trunkline_core::params::{Params, ParamsId};
use trunkline_core::resource::{ErrorCode, Resource, ResourceError, TypeUrl};

/// In the order of their ranks.
const TYPES: [&str; 4] = [CDS, EDS, LDS, VHDS];
const NAMES: [&str; 6] = ["r/a", "r/b", "r/c", "r/d", "r/e", "s/a"];
const DOMAINS: [&str; 5] = ["a.com", "b.com", "*.a.com", "x.a.com", "*"];
/// Virtual hosts are asked for by host.
const HOSTS: [&str; 5] = ["r/a.com", "r/b.com", "r/x.a.com", "r/y", "s/a.com"];
const CLIENTS: [Option<&str>; 3] = [None, Some("env=a"), Some("env=b")];

type Held = BTreeMap<(TypeUrl, Name), Vec<Arc<Resource>>>;

fn resource() -> impl Strategy<Value = Arc<Resource>> {
    let clients = prop_oneof![4 => Just(0), 1 => 1..CLIENTS.len()];
    let domains = proptest::collection::vec(0..DOMAINS.len(), 0..3);
    let alias = proptest::option::weighted(0.1, 0..NAMES.len());
    (0..NAMES.len(), clients, 0..3u8, domains, alias).prop_map(
        |(name, clients, body, domains, alias)| {
            let name = Name::new(NAMES[name]);
            let alias = alias.map(|nth| Name::new(NAMES[nth]));
            // A version is of all that a body says.
            let text = format!("{body} {domains:?} {alias:?}");
            Arc::new(Resource {
                constraints: CLIENTS[clients].map(|text| text.parse().unwrap()),
                aliases: alias.into_iter().filter(|alias| *alias != name).collect(),
                facts: Some(Box::new(Facts {
                    domains: Domains::new(domains.iter().map(|nth| DOMAINS[*nth])),
                    ..Facts::default()
                })),
                ..Resource::new(name, text.into_bytes().into())
            })
        },
    )
}

fn change() -> impl Strategy<Value = Change> {
    let url = || (0..TYPES.len()).prop_map(|nth| TypeUrl::from(TYPES[nth]));
    let name = || (0..NAMES.len()).prop_map(|nth| Name::new(NAMES[nth]));
    let clients = (0..CLIENTS.len()).prop_map(|nth| CLIENTS[nth].map(|c| c.parse().unwrap()));
    let code = prop_oneof![Just(ErrorCode::Unavailable), Just(ErrorCode::NotFound)];
    let error = code.prop_map(|code| {
        let message = "down".into();
        Arc::new(ResourceError { code, message })
    });
    prop_oneof![
        12 => (url(), resource()).prop_map(|(url, r)| Change::Upsert(url, r)),
        4 => (url(), name()).prop_map(|(url, name)| Change::Remove(url, name)),
        1 => (url(), name(), clients).prop_map(|(u, n, c)| Change::RemoveVariant(u, n, c)),
        2 => (url(), proptest::collection::vec(resource(), 0..5))
            .prop_map(|(url, all)| Change::ReplaceAll(url, all)),
        1 => (url(), name(), error).prop_map(|(u, n, e)| Change::Fail(u, n, e)),
    ]
}

/// A client of one type: follows all of it, and asks for every name.
struct Client {
    subscriber: SubscriberId,
    type_id: TypeId,
    params: ParamsId,
    follow: CursorId,
    position: Position,
    listed: BTreeMap<Name, Arc<Resource>>,
    answers: BTreeMap<EntryId, Choice>,
}

impl Client {
    fn open(db: &mut Database, type_id: TypeId, params: &[(&str, &str)]) -> Self {
        let params = db.intern_params(Params::new(params.iter().copied()).unwrap());
        let stream = db.open_stream();
        let subscriber = db.add_subscriber(stream, type_id, params);
        let names = match db.type_url(type_id).as_str() {
            VHDS => &HOSTS[..],
            _ => &NAMES,
        };
        let asked: Vec<_> = names
            .iter()
            .map(|name| db.subscribe(subscriber, &Name::new(name), params))
            .collect();
        let answers = asked.into_iter().map(|entry| (entry, Choice::Absent));
        Self {
            subscriber,
            type_id,
            params,
            follow: db.open_cursor(subscriber, &Scope::All),
            position: 0,
            listed: BTreeMap::new(),
            answers: answers.collect(),
        }
    }

    /// Takes all that it was told of.
    fn look(&mut self, db: &mut Database) {
        let batch = db.view_changes(self.follow, self.position);
        for (name, item) in &batch.items {
            match item {
                Some(resource) => self.listed.insert(name.clone(), Arc::clone(resource)),
                None => self.listed.remove(name),
            };
        }
        db.pin(self.follow, batch.to);
        db.unpin(self.follow, self.position);
        self.position = batch.to;
        for (entry, params) in db.take_dirty(self.subscriber, usize::MAX) {
            let choice = db.choose(self.type_id, entry, params);
            self.answers.insert(entry, choice);
        }
    }

    /// What it was told of is all there is.
    fn check(&self, db: &mut Database) {
        let listed: Vec<_> = self.listed.values().cloned().collect();
        assert_eq!(db.list(self.follow), listed);
        for (entry, answer) in &self.answers {
            let now = db.choose(self.type_id, *entry, self.params);
            assert!(now.same_for_client(answer), "{now:?} {answer:?}");
        }
    }

    /// By name, for the other database has other places.
    fn answers(&self, db: &Database) -> BTreeMap<Name, Choice> {
        let answers = self.answers.iter();
        let answers =
            answers.map(|(entry, answer)| (db.name(self.type_id, *entry).clone(), answer.clone()));
        answers.collect()
    }
}

struct World {
    db: Database,
    clients: Vec<Client>,
}

impl World {
    fn new() -> Self {
        let mut db = Database::new();
        let mut clients = Vec::new();
        for url in TYPES {
            let type_id = db.type_id(&url.into());
            for params in [&[][..], &[("env", "a")], &[("env", "b")]] {
                clients.push(Client::open(&mut db, type_id, params));
            }
        }
        Self { db, clients }
    }

    fn look(&mut self) {
        for client in &mut self.clients {
            client.look(&mut self.db);
        }
        self.db.take_woken_streams();
    }

    fn held(&self) -> Held {
        let mut held = Held::new();
        for (type_id, url) in self.db.types() {
            for name in NAMES.map(Name::new) {
                let variants = self.db.variants(type_id, &name);
                if !variants.is_empty() {
                    held.insert((url.clone(), name), variants.to_vec());
                }
            }
        }
        held
    }

    /// Applies in slices; says what was made, in order.
    fn apply_slices(&mut self, changes: Vec<Change>, looks: &[bool], budget: usize) -> Vec<Step> {
        let before = self.held();
        let mut steps = Vec::new();
        let Ok(mut commit) = Commit::new(changes) else {
            return steps;
        };
        let mut states = Vec::new();
        for slice in 0.. {
            let tell = |made: trunkline_core::database::ChangedName<'_>| {
                let key = (made.type_url.clone(), made.name.clone());
                steps.push((key, made.before.to_vec(), made.after.to_vec()));
            };
            let progress = commit.advance(&mut self.db, budget, tell);
            self.db.check().unwrap();
            self.check_domains();
            states.push(self.held());
            if looks[slice % looks.len()] {
                self.look();
            }
            match progress {
                Ok(Progress::More) => {}
                Ok(Progress::Done) => break,
                Err(_) => {
                    assert_eq!(self.held(), before);
                    return Vec::new();
                }
            }
        }
        let after = self.held();
        for state in states {
            for key in before.keys().filter(|key| after.contains_key(key)) {
                assert!(state.contains_key(key), "{key:?} was gone for a while");
            }
        }
        steps
    }

    /// No client finds two virtual hosts by one domain.
    fn check_domains(&self) {
        let vhds = self.db.find_type(&VHDS.into()).unwrap();
        for domain in DOMAINS.map(Domain::of) {
            for client in ["a", "b", "c"] {
                let client = Params::new([("env", client)]).unwrap();
                let owners = self.db.hosts_with_domain(vhds, "r", domain).into_iter();
                let sees = |name: &Name| {
                    let mut variants = self.db.variants(vhds, name).iter();
                    variants.any(|r| {
                        r.facts().domains.contains(domain)
                            && r.constraints.as_ref().is_none_or(|c| c.matches(&client))
                    })
                };
                assert!(owners.filter(sees).count() <= 1, "{domain} twice");
            }
        }
    }
}

/// A name, what it held, and what it holds.
type Step = ((TypeUrl, Name), Vec<Arc<Resource>>, Vec<Arc<Resource>>);

/// What comes goes by rank and before all that goes; each name once. Virtual
/// hosts may go early, with those that take their domains.
fn check_order(steps: &[Step]) {
    let rank = |step: &Step| Kind::of(&step.0.0).rank;
    let early = |step: &&Step| step.0.0.as_str() != VHDS;
    let goes = |step: &Step| step.2.is_empty();
    let mut seen: Vec<_> = steps.iter().map(|step| &step.0).collect();
    seen.sort();
    assert!(seen.windows(2).all(|pair| pair[0] != pair[1]));
    let order: Vec<_> = steps.iter().filter(early).collect();
    let split = order.iter().position(|step| goes(step));
    let (come, gone) = order.split_at(split.unwrap_or(order.len()));
    assert!(gone.iter().all(|step| goes(step)));
    assert!(come.is_sorted_by_key(|step| rank(step)));
    assert!(gone.is_sorted_by_key(|step| std::cmp::Reverse(rank(step))));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn s85_slices_lead_to_what_leads_at_once(
        transactions in proptest::collection::vec(proptest::collection::vec(change(), 1..10), 1..10),
        looks in proptest::collection::vec(any::<bool>(), 1..8),
        budget in 1..6usize,
    ) {
        let (mut at_once, mut sliced) = (World::new(), World::new());
        for changes in transactions {
            let made = at_once.db.apply(changes.clone());
            let steps = sliced.apply_slices(changes, &looks, budget);
            prop_assert!(made.is_ok() || steps.is_empty());
            check_order(&steps);
            prop_assert_eq!(at_once.held(), sliced.held());
            at_once.look();
            sliced.look();
            for (one, other) in at_once.clients.iter().zip(&sliced.clients) {
                prop_assert_eq!(&one.listed, &other.listed);
                prop_assert_eq!(one.answers(&at_once.db), other.answers(&sliced.db));
                one.check(&mut at_once.db);
                other.check(&mut sliced.db);
            }
            sliced.db.check().unwrap();
        }
    }
}
