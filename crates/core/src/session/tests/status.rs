//! The status of a stream, and what other programs ask of it.

use super::stream::{Stream, env, first_body};
use crate::change::Change;
use crate::database::Database;
use crate::facts::{Facts, RareFacts};
use crate::fixture::put_host;
use crate::kind::{CDS, EDS, RDS, SDS, VHDS};
use crate::message::{DeltaRequest, ErrorDetail, Mode, Node};
use crate::params::ParamsId;
use crate::resource::{Resource, Version};
use crate::session::{BaseSubscriptions, Config, Event, NameState, Refusal};

/// A virtual host with one domain, in a base set.
fn host(name: &str, domain: &str, base_set: &str) -> Change {
    put_host(name, &[domain], None, &[base_set])
}

/// The states of all names of a type, and whether each has a resource.
fn states(stream: &mut Stream, url: &str) -> Vec<(String, NameState, bool)> {
    let names = stream.session.name_statuses(&mut stream.db, &url.into());
    let shown = names.into_iter();
    shown
        .map(|n| (n.name.to_string(), n.state, n.resource.is_some()))
        .collect()
}

/// Whether the client resumed with all that it subscribes to, of the one type
/// of the stream.
fn resumed_complete(stream: &Stream) -> bool {
    stream.session.status().next().unwrap().resumed_complete
}

#[test]
fn s2_the_node_is_that_of_the_first_request() {
    let mut stream = Stream::open();
    assert_eq!(stream.session.node(), None);
    let node = |id: &str| Node {
        id: id.to_owned(),
        ..Node::default()
    };
    let request = |id: &str| DeltaRequest {
        node: Some(node(id)),
        type_url: Some(EDS.into()),
        ..DeltaRequest::default()
    };
    stream.request(request("1"));
    stream.request(request("2"));
    assert_eq!(stream.session.node(), Some(&node("1")));
    let event = stream.session.poll_event();
    assert_eq!(event, Some(Event::NodeChanged { node: node("2") }));
}

#[test]
fn s72_a_type_stays_denied_however_many_other_types_are_refused() {
    let mut config = Config::new(Mode::Delta);
    config.limits.types = 2;
    config.limits.name_bytes = SDS.len();
    let mut stream = Stream::with(config);
    stream.put(SDS, "s", "1");
    stream.put(EDS, "e", "1");
    for nth in 0..3 {
        let long = format!("{SDS}{nth}");
        stream.session.deny(long.as_str().into());
        stream.subscribe(&long, &["s"]);
        assert!(!stream.session.has_type(&long.as_str().into()));
        let reason = Refusal::Types { limit: 2 };
        let refused = Event::Refused {
            type_url: long.as_str().into(),
            reason,
            names: 1,
        };
        assert_eq!(stream.session.poll_event(), Some(refused));
    }
    assert_eq!(
        stream.session.denied,
        [],
        "what is refused is not remembered"
    );
    stream.session.deny(SDS.into());
    stream.session.deny(SDS.into());
    assert_eq!(stream.session.denied, [SDS.into()]);
    stream.subscribe(SDS, &["s"]);
    assert!(stream.session.has_type(&SDS.into()));
    let response = stream.poll().unwrap();
    assert_eq!(response.removed, ["s".into()]);
    stream.ack(response);
    stream.subscribe(EDS, &["e"]);
    assert_eq!(stream.poll().unwrap().resources.len(), 1);
    stream.session.deny(CDS.into());
    assert_eq!(stream.session.denied, [SDS.into()]);
    stream.subscribe(CDS, &[]);
    assert!(!stream.session.has_type(&CDS.into()));
}

#[test]
fn every_response_is_acknowledged_when_the_last_ack_has_come() {
    let mut stream = Stream::open();
    assert!(stream.session.is_acknowledged());
    stream.subscribe(EDS, &["a"]);
    stream.subscribe(SDS, &["a"]);
    let first = stream.poll().unwrap();
    let second = stream.poll().unwrap();
    stream.ack(second);
    assert!(!stream.session.is_acknowledged());
    stream.ack(first);
    assert!(stream.session.is_acknowledged());
}

#[test]
fn a_broken_invariant_is_reported_with_its_type() {
    let mut stream = Stream::open();
    stream.subscribe(EDS, &["a"]);
    stream.subscribe(SDS, &["a"]);
    assert_eq!(stream.session.check(&mut stream.db), Ok(()));
    let type_stream = stream.session.type_stream_mut(SDS).unwrap();
    type_stream.last_error = Some(ErrorDetail {
        code: 3,
        message: "no".into(),
    });
    let fault = stream.session.check(&mut stream.db).unwrap_err();
    assert!(fault.starts_with(SDS), "{fault}");
}

#[test]
fn s16_the_wildcard_counts_as_one_subscription() {
    let mut stream = Stream::open();
    stream.subscribe(CDS, &["*", "c"]);
    stream.subscribe(EDS, &["e"]);
    stream.subscribe(VHDS, &["*", "r/a.com", "r/b.com"]);
    let counted = stream
        .session
        .status()
        .map(|s| (s.subscriptions, s.wildcard));
    let counted: Vec<_> = counted.collect();
    assert_eq!(counted, [(2, true), (1, false), (3, true)]);
}

#[test]
fn base_subscriptions_can_be_set_before_the_first_host_is_requested() {
    let mut stream = Stream::open();
    let hosts = vec![
        host("r/a", "a.com", "ns1"),
        host("r/b", "b.com", "ns2"),
        host("r/c", "c.com", "ns2"),
        host("q/d", "d.com", "ns1"),
    ];
    stream.db.apply(hosts).unwrap();
    stream.session.set_base_subscriptions(BaseSubscriptions {
        sets: vec!["ns1".into()],
        hosts: vec!["r/b.com".into()],
    });
    stream.subscribe(VHDS, &["r/x.com"]);
    let sent = stream.poll().unwrap();
    let names: Vec<_> = sent
        .resources
        .iter()
        .map(|r| r.resource.name.as_str())
        .collect();
    assert_eq!(
        (names, sent.removed),
        (vec!["r/a", "r/b"], vec!["r/x.com".into()])
    );
}

#[test]
fn s72_who_may_not_see_virtual_hosts_hears_of_no_base_subscription() {
    let mut stream = Stream::open();
    stream.db.apply(vec![host("r/a", "a.com", "ns1")]).unwrap();
    stream.session.deny(VHDS.into());
    stream.session.set_base_subscriptions(BaseSubscriptions {
        sets: vec!["ns1".into()],
        hosts: Vec::new(),
    });
    stream.subscribe(VHDS, &["r/x.com"]);
    stream.settle();
    let rare = RareFacts {
        vhds_version: Some(Version::of_body(b"vhds")),
        ..RareFacts::default()
    };
    let facts = Facts {
        rare: rare.boxed(),
        ..Facts::default()
    };
    let route = Resource {
        facts: Some(Box::new(facts)),
        ..Resource::new("r".into(), "1".into())
    };
    let route = Change::Upsert(RDS.into(), route.into());
    stream.db.apply(vec![route]).unwrap();
    stream.subscribe(RDS, &["r"]);
    let routes = stream.poll().unwrap();
    assert_eq!(routes.resources.len(), 1);
    let hosts = stream.poll().unwrap();
    assert!(hosts.resources.is_empty());
    assert!(!hosts.removed.contains(&"r/a.com".into()));
    stream.ack(hosts);
    stream.settle();
    assert_eq!(stream.session.unbounded_hosts(), 1);
}

#[test]
fn tp2_types_may_have_parameters_of_their_own() {
    let mut stream = Stream::with_variants("x", &[EDS, SDS]);
    for url in [EDS, SDS] {
        stream.subscribe(url, &["a"]);
        let sent = stream.poll().unwrap();
        assert_eq!(first_body(&sent), Some(&b"x"[..]));
        stream.ack(sent);
    }
    let of_types = vec![(SDS.into(), env("z"))];
    stream
        .session
        .set_all_params(&mut stream.db, env("y"), of_types);
    for body in [b"y", b"z"] {
        let sent = stream.poll().unwrap();
        assert_eq!(first_body(&sent), Some(&body[..]));
        stream.ack(sent);
    }
    let of = |stream: &Stream, url: &str| {
        let id: ParamsId = stream.session.params_of_type(&url.into());
        stream.db.params(id).clone()
    };
    assert_eq!(of(&stream, EDS), env("y"));
    assert_eq!(of(&stream, SDS), env("z"));
    assert_eq!(of(&stream, CDS), env("y"), "one that is not subscribed to");
}

#[test]
fn s16_a_name_that_is_said_not_to_exist_was_sent_until_the_ack() {
    let mut stream = Stream::open();
    stream
        .db
        .apply(vec![host("r/web", "a.com", "ns1")])
        .unwrap();
    stream.subscribe(VHDS, &["r/a.com", "r/none.com"]);
    let sent = stream.poll().unwrap();
    let state = |name: &str, state, has| (name.to_owned(), state, has);
    assert_eq!(
        states(&mut stream, VHDS),
        [
            state("r/a.com", NameState::Requested, false),
            state("r/none.com", NameState::Sent, false),
            state("r/web", NameState::Sent, true),
        ]
    );
    stream.ack(sent);
    assert_eq!(
        states(&mut stream, VHDS),
        [
            state("r/none.com", NameState::Absent, false),
            state("r/web", NameState::Accepted, true),
        ]
    );
}

#[test]
fn s17_a_name_of_which_a_client_may_have_taken_a_rejected_resource_is_not_certain() {
    let mut stream = Stream::open();
    for name in ["a", "b"] {
        stream.put(EDS, name, "1");
    }
    stream.subscribe(EDS, &["a", "b"]);
    stream.settle();
    stream.put_all(&[(EDS, "a", "2", &[]), (EDS, "b", "2", &[])]);
    let sent = stream.poll().unwrap();
    stream.nack(sent);
    let status = stream
        .session
        .name_status(&mut stream.db, &EDS.into(), &"a".into())
        .unwrap();
    assert_eq!(status.state, NameState::Requested);
    assert_eq!(status.resource.unwrap().body.as_deref(), Some(&b"1"[..]));
    let held = stream.session.held_resources(&mut stream.db, &EDS.into());
    assert_eq!(held.len(), 0);
}

#[test]
fn s72_hosts_that_a_client_can_invent_are_counted() {
    let mut stream = Stream::open();
    stream
        .db
        .apply(vec![host("r/web", "a.com", "ns1")])
        .unwrap();
    stream.subscribe(VHDS, &["r/a.com", "r/x.com", "r/y.com"]);
    assert_eq!(stream.session.unbounded_hosts(), 2);
    assert_eq!(stream.session.status().next().unwrap().subscriptions, 3);
}

#[test]
fn s16_a_client_has_resumed_with_everything_once_no_name_waits() {
    let mut stream = Stream::open();
    stream.put(EDS, "a", "1");
    stream.resume(EDS, &["a"], &[("a", "1")]);
    assert_eq!(stream.poll(), None);
    assert!(resumed_complete(&stream));
    let mut stream = Stream::open();
    stream.put(CDS, "c", "1");
    stream.resume(CDS, &["c"], &[("c", "1")]);
    assert!(!resumed_complete(&stream), "the cluster is not evaluated");
    assert_eq!(stream.poll(), None);
    assert!(resumed_complete(&stream));
    let removal = Change::Remove(CDS.into(), "c".into());
    stream.db.apply(vec![removal]).unwrap();
    assert_eq!(stream.poll(), None);
    assert!(
        !resumed_complete(&stream),
        "the removal of the cluster waits"
    );
    let mut stream = Stream::over(Database::cache(), Config::new(Mode::Delta));
    stream.put(EDS, "a", "1");
    stream.resume(EDS, &["a", "b"], &[("a", "1")]);
    assert_eq!(stream.poll(), None);
    assert!(!resumed_complete(&stream), "the client waits for b");
    let mut stream = Stream::open();
    stream.put(RDS, "r", "1");
    stream.resume(RDS, &["r"], &[("r", "0")]);
    let sent = stream.poll().unwrap();
    stream.ack(sent);
    assert!(!resumed_complete(&stream), "something had to be sent");
}
