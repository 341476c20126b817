//! Whole sets for a client that subscribes to very many names by the state of
//! the world (S38, S85).

use std::sync::Arc;

use crate::change::Change;
use crate::database::{Database, SLICE};
use crate::kind::CDS;
use crate::message::{Locator, Mode, Response, SotwRequest, SotwResponse};
use crate::moment::Moment;
use crate::name::Name;
use crate::resource::{Nonce, Resource, Version};
use crate::session::{Config, Session};

/// A client that subscribes to so many names, of which every thousandth exists.
struct Client {
    db: Database,
    session: Session,
    names: Vec<Locator>,
}

impl Client {
    fn subscribed(count: usize, reads_errors: bool) -> Self {
        let mut client = Self::new(count, reads_errors);
        client.request(None, None);
        client
    }

    /// The same, before its first request.
    fn new(count: usize, reads_errors: bool) -> Self {
        let mut db = Database::new();
        let mut session = Session::open(&mut db, Config::new(Mode::Sotw));
        session.set_supports_resource_errors(reads_errors);
        for nth in (0..count).step_by(1000) {
            put(&mut db, nth);
        }
        let names = (0..count).map(|nth| Locator::from(name(nth).as_str()));
        let names = names.collect();
        Self { db, session, names }
    }

    fn ack(&mut self, response: &SotwResponse) {
        let (version, nonce) = (response.version.clone(), response.nonce.clone());
        self.request(Some(version), Some(nonce));
    }

    /// Requests all names.
    fn request(&mut self, version: Option<Version>, nonce: Option<Nonce>) {
        let request = SotwRequest {
            type_url: Some(CDS.into()),
            names: self.names.clone().into(),
            version,
            nonce,
            ..SotwRequest::default()
        };
        let handled = self
            .session
            .handle_sotw(&mut self.db, request, Moment::START);
        handled.unwrap();
    }

    /// Polls until there is a response, or nothing left to do. No poll visits
    /// more than a few slices of names.
    fn poll(&mut self) -> Option<SotwResponse> {
        loop {
            let before = self.db.work().entries;
            let response = self.session.poll(&mut self.db, Moment::START);
            let visited = self.db.work().entries - before;
            assert!(visited <= 4 * SLICE as u64, "one poll visited {visited}");
            self.session.check(&mut self.db).unwrap();
            if response.is_some() || !self.session.has_more() {
                return response.and_then(Response::into_sotw);
            }
        }
    }
}

fn name(nth: usize) -> String {
    format!("c{nth}")
}

fn put(db: &mut Database, nth: usize) {
    let resource = Resource::new(Name::new(&name(nth)), "x".into());
    db.apply(vec![Change::Upsert(CDS.into(), Arc::new(resource))])
        .unwrap();
}

#[test]
fn s38_s85_names_that_do_not_exist_are_answered_by_one_set_and_in_slices() {
    let count = 5 * SLICE;
    let mut client = Client::subscribed(count, false);
    let set = client.poll().unwrap();
    assert_eq!(set.resources.len(), count.div_ceil(1000));
    client.ack(&set);
    assert_eq!(client.poll(), None);
    assert!(client.session.is_quiet(&client.db, Moment::START));

    // One that did not exist was not forgotten.
    put(&mut client.db, 7);
    let set = client.poll().unwrap();
    assert_eq!(set.resources.len(), count.div_ceil(1000) + 1);
    client.ack(&set);
    assert_eq!(client.poll(), None);
}

#[test]
fn s61_s85_errors_of_very_many_names_are_told_in_parts() {
    let count = 5 * SLICE;
    let mut client = Client::subscribed(count, true);
    let mut errors = 0;
    while let Some(set) = client.poll() {
        assert_eq!(set.resources.len(), count.div_ceil(1000));
        assert!(set.errors.len() <= 2 * SLICE, "{}", set.errors.len());
        errors += set.errors.len();
        client.ack(&set);
    }
    assert_eq!(errors, count - count.div_ceil(1000));
}

#[test]
fn s85_a_name_that_comes_to_exist_while_names_are_sorted_is_in_the_set() {
    let count = 5 * SLICE;
    let mut client = Client::subscribed(count, false);
    while client.session.poll(&mut client.db, Moment::START).is_none() && client.session.is_busy() {
    }
    assert_eq!(client.session.poll(&mut client.db, Moment::START), None);
    assert!(client.session.has_more(), "names are being sorted");
    for nth in [1, 2, count - 1] {
        put(&mut client.db, nth);
    }
    let mut sets = Vec::new();
    while let Some(set) = client.poll() {
        client.ack(&set);
        sets.push(set.resources.len());
    }
    assert_eq!(sets.last(), Some(&(count.div_ceil(1000) + 3)));
    assert!(sets.len() <= 2, "{sets:?}");
}

#[test]
fn s82_s85_a_client_that_resumes_with_very_many_names_is_served_as_if_it_were_new() {
    let count = 17 * SLICE;
    let mut client = Client::new(count, false);
    client.request(Some(Version::new("of another server")), None);
    let set = client.poll().unwrap();
    assert_eq!(set.resources.len(), count.div_ceil(1000));
    client.ack(&set);
    assert_eq!(client.poll(), None);
}
