//! Resources with a private key, on a connection that is not one for secrets.

use std::sync::Arc;

use super::*;
use crate::facts::RareFacts;
use crate::message::{Locator, SotwRequest};
use crate::resource::{Nonce, Version};

/// A client that is subscribed to all clusters.
struct Client {
    db: Database,
    session: Session,
    mode: Mode,
}

/// A cluster with a body, which is a key if it begins so.
fn cluster(name: &str, body: &'static str) -> Arc<Resource> {
    let rare = RareFacts {
        holds_secrets: body.starts_with("key"),
        holds_keys: body.starts_with("key"),
        ..RareFacts::default()
    };
    Arc::new(Resource {
        facts: Some(Box::new(Facts {
            rare: rare.boxed(),
            ..Facts::default()
        })),
        ..Resource::new(name.into(), body.into())
    })
}

impl Client {
    fn new(mode: Mode, withholds_keys: bool, contents: &[(&str, &'static str)]) -> Self {
        let mut db = Database::new();
        let mut config = Config::new(mode);
        config.withholds_keys = withholds_keys;
        let session = Session::open(&mut db, config);
        let mut client = Self { db, session, mode };
        client.apply(contents);
        client
    }

    fn apply(&mut self, contents: &[(&str, &'static str)]) {
        let upsert = |(name, body): &(&str, &'static str)| {
            Change::Upsert(kind::CDS.into(), cluster(name, body))
        };
        self.db
            .apply(contents.iter().map(upsert).collect())
            .unwrap();
    }

    fn request(&mut self, names: &[&str], ack: Option<(Nonce, Option<Version>)>) {
        let type_url = Some(kind::CDS.into());
        let names: Vec<Locator> = names.iter().map(|name| (*name).into()).collect();
        let (nonce, version) = ack.map_or((None, None), |(nonce, version)| (Some(nonce), version));
        let (db, now) = (&mut self.db, Moment::START);
        match self.mode {
            Mode::Sotw => {
                let request = SotwRequest {
                    type_url,
                    names: names.into(),
                    nonce,
                    version,
                    ..SotwRequest::default()
                };
                self.session.handle_sotw(db, request, now).unwrap();
            }
            Mode::Delta => {
                let request = DeltaRequest {
                    type_url,
                    subscribe: names,
                    nonce,
                    ..DeltaRequest::default()
                };
                self.session.handle_delta(db, request, now).unwrap();
            }
        }
    }

    /// The bodies and the removed names of all responses; the client ACKs them.
    fn responses(&mut self, names: &[&str]) -> (Vec<String>, Vec<String>) {
        let (mut bodies, mut removed) = (Vec::new(), Vec::new());
        while let Some(response) = self.session.poll(&mut self.db, Moment::START) {
            let nonce = response.nonce().clone();
            let (list, gone, version) = match response {
                Response::Sotw(r) => (r.resources, r.removed, Some(r.version)),
                Response::Delta(r) => (r.resources, r.removed, None),
            };
            for wire in list.iter() {
                let body = wire.resource.body.clone().unwrap_or_default();
                bodies.push(String::from_utf8(body.to_vec()).unwrap());
            }
            removed.extend(gone.iter().map(ToString::to_string));
            let names = match self.mode {
                Mode::Sotw => names,
                Mode::Delta => &[],
            };
            self.request(names, Some((nonce, version)));
            self.session.check(&mut self.db).unwrap();
        }
        (bodies, removed)
    }

    fn withheld(&mut self) -> Vec<String> {
        let events = std::iter::from_fn(|| self.session.poll_event());
        let withheld = events.filter_map(|event| match event {
            Event::Withheld { name, .. } => Some(name.to_string()),
            _ => None,
        });
        withheld.collect()
    }
}

const MODES: [Mode; 2] = [Mode::Sotw, Mode::Delta];

#[test]
fn a_key_is_withheld_and_all_else_is_sent() {
    for mode in MODES {
        for names in [&[][..], &["a", "b", "c"]] {
            let contents = [("a", "plain a"), ("b", "key b"), ("c", "plain c")];
            let mut client = Client::new(mode, true, &contents);
            client.request(names, None);
            let (bodies, _) = client.responses(names);
            assert_eq!(bodies, ["plain a", "plain c"], "{mode:?} {names:?}");
            assert_eq!(client.withheld(), ["b"], "{mode:?} {names:?}");

            client.apply(&[("a", "new a")]);
            let (bodies, removed) = client.responses(names);
            assert!(bodies.contains(&"new a".to_owned()), "{mode:?} {bodies:?}");
            assert!(!bodies.contains(&"key b".to_owned()), "{mode:?} {bodies:?}");
            assert_eq!(removed, [""; 0], "{mode:?} {names:?}");
            assert_eq!(client.withheld(), [""; 0], "reported once");
        }
    }
}

#[test]
fn others_get_the_key() {
    for mode in MODES {
        let mut client = Client::new(mode, false, &[("a", "plain a"), ("b", "key b")]);
        client.request(&[], None);
        assert_eq!(client.responses(&[]).0, ["plain a", "key b"], "{mode:?}");
        assert_eq!(client.withheld(), [""; 0]);
    }
}

#[test]
fn a_resource_that_gets_a_key_stays_as_it_was() {
    for mode in MODES {
        for names in [&[][..], &["a", "b"]] {
            let mut client = Client::new(mode, true, &[("a", "plain a"), ("b", "plain b")]);
            client.request(names, None);
            assert_eq!(client.responses(names).0.len(), 2);

            client.apply(&[("b", "key b")]);
            assert_eq!(client.responses(names).1, [""; 0], "{mode:?} {names:?}");
            assert_eq!(client.withheld(), ["b"], "{mode:?} {names:?}");
            // A whole set lists what the client has.
            client.apply(&[("a", "new a")]);
            let (bodies, removed) = client.responses(names);
            let expected = match mode {
                Mode::Sotw => &["new a", "plain b"][..],
                Mode::Delta => &["new a"],
            };
            assert_eq!(bodies, expected, "{names:?}");
            assert_eq!(removed, [""; 0], "{mode:?} {names:?}");

            client.apply(&[("b", "new b")]);
            let (bodies, _) = client.responses(names);
            assert!(bodies.contains(&"new b".to_owned()), "{mode:?} {names:?}");
            client
                .db
                .apply(vec![Change::Remove(kind::CDS.into(), "b".into())])
                .unwrap();
            let (bodies, removed) = client.responses(names);
            let is_gone = match mode {
                Mode::Sotw => !bodies.contains(&"new b".to_owned()),
                Mode::Delta => removed == ["b"],
            };
            assert!(is_gone, "{mode:?} {names:?} {bodies:?} {removed:?}");
        }
    }
}

#[test]
fn a_client_that_names_the_current_set_is_not_sent_its_keys() {
    let contents = [("a", "plain a"), ("b", "key b")];
    let mut other = Client::new(Mode::Sotw, false, &contents);
    other.request(&[], None);
    let response = other.session.poll(&mut other.db, Moment::START).unwrap();
    let version = response.into_sotw().unwrap().version;

    let mut client = Client::new(Mode::Sotw, true, &contents);
    let request = SotwRequest {
        type_url: Some(kind::CDS.into()),
        version: Some(version),
        ..SotwRequest::default()
    };
    let now = Moment::START;
    client
        .session
        .handle_sotw(&mut client.db, request, now)
        .unwrap();
    client.apply(&[("a", "new a")]);
    let (bodies, _) = client.responses(&[]);
    assert!(!bodies.contains(&"key b".to_owned()), "{bodies:?}");
}

#[test]
fn the_secrets_that_a_client_was_sent_are_known() {
    for mode in MODES {
        let mut client = Client::new(mode, false, &[("a", "plain a"), ("b", "key b")]);
        client.request(&[], None);
        let sent = |client: &mut Client| {
            let (db, url) = (&mut client.db, kind::CDS.into());
            let sent = client.session.sent_secrets(db, &url);
            sent.iter().map(|r| r.name.to_string()).collect::<Vec<_>>()
        };
        assert_eq!(sent(&mut client), [""; 0]);
        client.session.poll(&mut client.db, Moment::START).unwrap();
        assert_eq!(sent(&mut client), ["b"], "{mode:?}");
    }
}

/// A random number below `below`, of a generator that a seed starts.
fn next(seed: &mut u64, below: u64) -> u64 {
    *seed = seed
        .wrapping_mul(6_364_136_223_846_793_005)
        .wrapping_add(1_442_695_040_888_963_407);
    (*seed >> 33) % below
}

const BODIES: [&str; 4] = ["plain 1", "plain 2", "key 1", "key 2"];
const NAMES: [&str; 3] = ["a", "b", "c"];

/// Sends all that is due, and checks that no key is in it. Some responses are
/// NACKed, and some are left without an acknowledgement.
fn drive(client: &mut Client, listed: &[&str], seed: &mut u64) {
    for _ in 0..200 {
        let Some(response) = client.session.poll(&mut client.db, Moment::START) else {
            return;
        };
        let nonce = response.nonce().clone();
        let (list, version) = match response {
            Response::Sotw(r) => (r.resources, Some(r.version)),
            Response::Delta(r) => (r.resources, None),
        };
        let mut bodies = list.iter().filter_map(|wire| wire.resource.body.as_deref());
        assert!(!bodies.any(|body| body.starts_with(b"key")), "a key");
        let error = (next(seed, 4) == 0).then(|| ErrorDetail {
            code: 3,
            message: "no".to_owned(),
        });
        if next(seed, 8) == 0 {
            return;
        }
        let (db, now, type_url) = (&mut client.db, Moment::START, Some(kind::CDS.into()));
        let names: Vec<Locator> = listed.iter().map(|name| (*name).into()).collect();
        match client.mode {
            Mode::Sotw => {
                let request = SotwRequest {
                    type_url,
                    names: names.into(),
                    nonce: Some(nonce),
                    version,
                    error,
                    ..SotwRequest::default()
                };
                client.session.handle_sotw(db, request, now).unwrap();
            }
            Mode::Delta => {
                let request = DeltaRequest {
                    type_url,
                    nonce: Some(nonce),
                    error,
                    ..DeltaRequest::default()
                };
                client.session.handle_delta(db, request, now).unwrap();
            }
        }
        client.session.check(&mut client.db).unwrap();
    }
    panic!("an endless stream of responses");
}

#[test]
fn no_key_is_sent_whatever_happens() {
    for mode in MODES {
        for start in 0..500 {
            let mut seed = start;
            let mut client = Client::new(mode, true, &[("a", "plain 1"), ("b", "key 1")]);
            let listed: &[&str] = match next(&mut seed, 2) {
                0 => &[],
                _ => &NAMES,
            };
            client.request(listed, None);
            for _ in 0..20 {
                let name = NAMES[next(&mut seed, 3) as usize];
                match next(&mut seed, 6) {
                    0 => {
                        let removal = Change::Remove(kind::CDS.into(), name.into());
                        client.db.apply(vec![removal]).unwrap();
                    }
                    n => {
                        let other = next(&mut seed, 4) as usize;
                        let names = [name, NAMES[n as usize % 3]];
                        client.apply(&names.map(|name| (name, BODIES[other])));
                    }
                }
                drive(&mut client, listed, &mut seed);
            }
        }
    }
}
