//! Tests of how much one response has room for (S44, S80).

use std::sync::Arc;

use bytes::Bytes;

use crate::change::Change;
use crate::database::Database;
use crate::kind;
use crate::message::{DeltaRequest, DeltaResponse, Locator, Mode, Node, SotwRequest};
use crate::moment::Moment;
use crate::name::Name;
use crate::resource::{Resource, TypeUrl};
use crate::resource_list::ResourceList;
use crate::session::{Config, Session};

const NOW: Moment = Moment::START;

/// An Envoy on a delta stream that is subscribed to one type.
struct Client {
    db: Database,
    session: Session,
    type_url: TypeUrl,
}

impl Client {
    fn new(type_url: &str, response_bytes: usize, subscriptions: usize) -> Self {
        let mut db = Database::new();
        let mut config = Config::new(Mode::Delta);
        config.limits.response_bytes = response_bytes;
        config.limits.subscriptions = subscriptions;
        let session = Session::open(&mut db, config);
        let type_url = type_url.into();
        Self {
            db,
            session,
            type_url,
        }
    }

    fn apply(&mut self, resources: &[Arc<Resource>]) {
        let upsert = |r: &Arc<Resource>| Change::Upsert(self.type_url.clone(), Arc::clone(r));
        self.db
            .apply(resources.iter().map(upsert).collect())
            .unwrap();
    }

    fn request(&mut self, request: DeltaRequest) {
        let node = Node {
            user_agent: "envoy".to_owned(),
            ..Node::default()
        };
        let request = DeltaRequest {
            node: Some(node),
            type_url: Some(self.type_url.clone()),
            ..request
        };
        self.session
            .handle_delta(&mut self.db, request, NOW)
            .unwrap();
    }

    fn subscribe(&mut self, names: &[&str]) {
        let locators = names.iter().map(|name| Locator {
            name: (*name).to_owned(),
            params: None,
        });
        self.request(DeltaRequest {
            subscribe: locators.collect(),
            ..DeltaRequest::default()
        });
    }

    /// All responses that are due; the client ACKs each.
    fn responses(&mut self) -> Vec<DeltaResponse> {
        let mut responses = Vec::new();
        while let Some(response) = self.session.poll(&mut self.db, NOW) {
            let response = response.into_delta().unwrap();
            self.request(DeltaRequest {
                nonce: Some(response.nonce.clone()),
                ..DeltaRequest::default()
            });
            responses.push(response);
        }
        responses
    }
}

fn resources<const N: usize>(names: [&str; N]) -> [Arc<Resource>; N] {
    let body = Bytes::from_static(b"a body");
    names.map(|name| Arc::new(Resource::new(name.into(), body.clone())))
}

fn resource_counts(responses: &[DeltaResponse]) -> Vec<usize> {
    responses.iter().map(|r| r.resources.len()).collect()
}

/// Names of this length: no two are the same.
fn long_names(count: usize, length: usize) -> Vec<String> {
    let name = |n: usize| format!("r/{n:0>width$}", width = length - 2);
    (0..count).map(name).collect()
}

/// Proves that no response has more than `most` bytes, and that all but the
/// last are at least a third full.
fn assert_well_filled(sizes: &[usize], most: usize) {
    assert!(sizes.len() > 2, "{sizes:?}");
    assert!(sizes.iter().all(|size| *size <= most), "{sizes:?}");
    let (_, full) = sizes.split_last().unwrap();
    assert!(full.iter().all(|size| *size >= most / 3), "{sizes:?}");
}

#[test]
fn s44_a_response_is_filled_to_the_last_byte() {
    let contents = resources(["a", "b", "c"]);
    let size = contents[0].wire_size();
    for (subscribed, room, counts) in [
        (&["*"][..], 2 * size, &[2, 1][..]),
        (&["*"], 2 * size - 1, &[1, 1, 1]),
        (&["a", "b", "c"], 2 * size, &[2, 1]),
        (&["a", "b", "c"], 2 * size - 1, &[1, 1, 1]),
    ] {
        let mut client = Client::new(kind::CDS, room, usize::MAX);
        client.apply(&contents);
        client.subscribe(subscribed);
        assert_eq!(resource_counts(&client.responses()), counts);
    }
}

#[test]
fn s44_a_name_beside_the_wildcard_takes_room_from_it() {
    let contents = resources(["a", "b", "c"]);
    let size = contents[0].wire_size();
    let mut client = Client::new(kind::CDS, 2 * size, usize::MAX);
    client.apply(&contents);
    client.subscribe(&["*", "c"]);
    assert_eq!(resource_counts(&client.responses()), [2, 1]);
}

#[test]
fn s80_answers_that_hosts_do_not_exist_are_split_by_their_size() {
    for length in [12, 100] {
        let names = long_names(200, length);
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let mut client = Client::new(kind::VHDS, 1000, usize::MAX);
        client.subscribe(&names);
        let responses = client.responses();
        // Each has the name of the host twice: as its own, and as an alias.
        let sizes: Vec<usize> = responses
            .iter()
            .map(|response| 2 * length * response.resources.len())
            .collect();
        assert_well_filled(&sizes, 1000);
        assert_eq!(resource_counts(&responses).iter().sum::<usize>(), 200);
    }
}

#[test]
fn s80_refusals_are_split_by_their_size() {
    let names = long_names(200, 12);
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let mut client = Client::new(kind::VHDS, 1000, 0);
    client.subscribe(&names);
    let responses = client.responses();
    let sizes: Vec<usize> = responses
        .iter()
        .map(|response| 2 * 12 * response.resources.len())
        .collect();
    assert_well_filled(&sizes, 1000);
    assert_eq!(resource_counts(&responses).iter().sum::<usize>(), 200);
}

#[test]
fn s80_a_response_that_is_full_of_refusals_has_nothing_else() {
    let names = long_names(10, 100);
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let mut client = Client::new(kind::CDS, 1000, 1);
    client.apply(&resources(["a"]));
    client.subscribe(&["*"]);
    assert_eq!(resource_counts(&client.responses()), [1]);
    let changed = Resource::new("a".into(), Bytes::from_static(b"another"));
    client.apply(&[Arc::new(changed)]);
    client.subscribe(&names);
    let responses = client.responses();
    let (last, full) = responses.split_last().unwrap();
    assert!(full.iter().all(|response| response.resources.is_empty()));
    assert_eq!(last.resources.len(), 1);
}

#[test]
fn s80_removals_are_split_by_their_size() {
    const LENGTH: usize = 24;
    let names = long_names(200, LENGTH);
    let contents: Vec<Arc<Resource>> = names
        .iter()
        .map(|name| Arc::new(Resource::new(Name::new(name), Bytes::from_static(b"x"))))
        .collect();
    let mut client = Client::new(kind::CDS, 1000, usize::MAX);
    client.apply(&contents);
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    client.subscribe(&names);
    let sent = resource_counts(&client.responses());
    assert_eq!(sent.iter().sum::<usize>(), 200);
    let removal = |name: &&str| Change::Remove(client.type_url.clone(), Name::new(name));
    let removals = names.iter().map(removal).collect();
    client.db.apply(removals).unwrap();
    let responses = client.responses();
    let sizes: Vec<usize> = responses.iter().map(|r| LENGTH * r.removed.len()).collect();
    assert_well_filled(&sizes, 1000);
}

#[test]
fn s38_clients_of_one_wildcard_share_the_list_of_a_whole_set() {
    let mut client = Client::new(kind::CDS, usize::MAX, usize::MAX);
    client.apply(&resources(["a", "b"]));
    let lists = [(); 2].map(|()| {
        let mut session = Session::open(&mut client.db, Config::new(Mode::Sotw));
        let request = SotwRequest {
            type_url: Some(kind::CDS.into()),
            ..SotwRequest::default()
        };
        session.handle_sotw(&mut client.db, request, NOW).unwrap();
        let response = session.poll(&mut client.db, NOW).unwrap();
        match response.into_sotw().unwrap().resources {
            ResourceList::Shared(list) => list,
            ResourceList::Own(_) => panic!("the list is for one stream"),
        }
    });
    assert!(Arc::ptr_eq(&lists[0], &lists[1]));
}
