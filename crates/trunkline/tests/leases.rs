//! Leases, by a clock that the tests move.
#![allow(clippy::unwrap_used, reason = "all of this is a test")]

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::time::{advance, sleep};
use trunkline::checked::{
    Dangling, Document, Edit, Effect, Fault, Guard, Proposal, Removal, ResourceEdit,
};
use trunkline::envoy::config::cluster::v3::Cluster;
use trunkline::{
    Changed, Hooks, LeaseEvent, LeaseState, LeaseTtl, Lifetime, Precondition, ResourceMessage,
    Server, kind,
};

const TTL: Duration = Duration::from_secs(30);

/// Hooks that keep what they are told in words.
#[derive(Clone, Default)]
struct Told(Arc<Mutex<Vec<String>>>);

impl Hooks for Told {
    fn changed(&self, _: u64, origin: &str, changed: &[Changed]) {
        let removed = changed.iter().filter(|changed| changed.to.is_none());
        if removed.count() > 0 {
            self.0.lock().unwrap().push(format!("{origin} removed"));
        }
    }

    fn lease(&self, event: LeaseEvent<'_>) {
        self.0.lock().unwrap().push(match event {
            LeaseEvent::Expired { origin, removed } => {
                format!("{origin} expired: {}", removed.applied.counts.deleted)
            }
            LeaseEvent::Held { origin, .. } => format!("{origin} held"),
            LeaseEvent::Restarted { leases, .. } => format!("{leases} restarted"),
            LeaseEvent::Silence { late, leases } => format!("{late} of {leases} silent"),
            _ => String::new(),
        });
    }
}

impl Told {
    fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().unwrap())
    }
}

fn server() -> (Server, Told) {
    let told = Told::default();
    (Server::builder().hooks(told.clone()).build(), told)
}

fn ttl() -> LeaseTtl {
    LeaseTtl::new(TTL).unwrap()
}

fn cluster(name: &str) -> ResourceMessage {
    ResourceMessage::of(&Cluster {
        name: name.to_owned(),
        ..Cluster::default()
    })
}

/// So many clusters that their removal is held.
fn many() -> Vec<ResourceMessage> {
    (0..12).map(|n| cluster(&format!("c{n}"))).collect()
}

fn count(server: &Server) -> usize {
    server.all(&kind::CDS.into()).len()
}

/// The hash of the removal that is held of the only lease.
fn held_hash(server: &Server) -> Option<String> {
    match &server.leases()[..] {
        [lease] => match &lease.state {
            LeaseState::Held { finding } => finding.fault.held_hash().map(str::to_owned),
            _ => None,
        },
        _ => None,
    }
}

#[tokio::test(start_paused = true)]
async fn resources_go_when_their_lease_is_not_renewed() {
    let (server, told) = server();
    server.set("other", [cluster("stays")]).unwrap();
    server
        .set_leased("pod-7", [cluster("a"), cluster("b")], ttl())
        .unwrap();
    sleep(TTL - Duration::from_secs(1)).await;
    assert_eq!(count(&server), 3);
    sleep(Duration::from_secs(2)).await;
    assert_eq!(count(&server), 1);
    assert!(server.leases().is_empty());
    assert!(!server.renew("pod-7"), "there is nothing to renew");
    assert_eq!(
        told.take(),
        ["lease of pod-7 removed", "pod-7 expired: 2"],
        "the audit log knows why"
    );

    // The task has ended with the last lease; the next one starts another.
    server.set_leased("pod-8", [cluster("c")], ttl()).unwrap();
    sleep(TTL * 2).await;
    assert_eq!(count(&server), 1);
}

#[tokio::test(start_paused = true)]
async fn a_renewal_starts_the_time_anew() {
    let (server, told) = server();
    server.set_leased("pod-7", [cluster("a")], ttl()).unwrap();
    for _ in 0..10 {
        sleep(TTL * 9 / 10).await;
        assert!(server.renew("pod-7"));
    }
    let remaining = LeaseState::Active { remaining: TTL };
    assert_eq!(server.leases()[0].state, remaining);
    assert_eq!(count(&server), 1);
    assert!(told.take().is_empty());
    sleep(TTL * 2).await;
    assert_eq!(count(&server), 0);
}

#[tokio::test(start_paused = true)]
async fn a_short_lease_does_not_wait_for_a_long_one() {
    let (server, _) = server();
    let long = LeaseTtl::new(LeaseTtl::LONGEST).unwrap();
    server.set_leased("long", [cluster("a")], long).unwrap();
    sleep(Duration::from_millis(1)).await;
    let short = LeaseTtl::new(LeaseTtl::SHORTEST).unwrap();
    server.set_leased("short", [cluster("b")], short).unwrap();
    sleep(LeaseTtl::SHORTEST + Duration::from_millis(10)).await;
    assert_eq!(count(&server), 1);
}

#[tokio::test(start_paused = true)]
async fn a_large_removal_is_held_until_it_is_confirmed() {
    let (server, told) = server();
    server.set_leased("pod-7", many(), ttl()).unwrap();
    sleep(TTL + Duration::from_secs(1)).await;
    let hash = held_hash(&server).unwrap();
    assert_eq!(count(&server), 12);
    server.confirm("0123456789abcdef");
    // Another change lets it be proposed again, and it is held again.
    server.set("other", [cluster("stays")]).unwrap();
    sleep(TTL * 4).await;
    assert_eq!(count(&server), 13);
    assert_eq!(told.take(), ["pod-7 held"], "it is told once");

    server.confirm(&hash);
    sleep(Duration::from_millis(1)).await;
    assert_eq!(count(&server), 1);
    assert_eq!(told.take(), ["lease of pod-7 removed", "pod-7 expired: 12"]);
}

#[tokio::test(start_paused = true)]
async fn a_held_removal_is_made_once_it_is_small() {
    let (server, _) = server();
    server.set_leased("pod-7", many(), ttl()).unwrap();
    sleep(TTL + Duration::from_secs(1)).await;
    assert!(held_hash(&server).is_some());
    let names = (0..4).map(|n| (kind::CDS.into(), format!("c{n}").as_str().into()));
    server.remove("pod-7", names).unwrap();
    assert_eq!(count(&server), 8);
    sleep(TTL).await;
    assert_eq!(count(&server), 0);
}

#[tokio::test(start_paused = true)]
async fn a_writer_that_comes_back_renews_a_lease_that_is_held() {
    let (server, _) = server();
    server.set_leased("pod-7", many(), ttl()).unwrap();
    sleep(TTL + Duration::from_secs(1)).await;
    let hash = held_hash(&server).unwrap();
    assert!(server.renew("pod-7"));
    // A confirmation that comes too late is for a change that nobody proposes.
    server.confirm(&hash);
    sleep(TTL / 2).await;
    assert_eq!(count(&server), 12);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_was_stopped_takes_nobody_for_dead() {
    let (server, told) = server();
    server.set_leased("pod-7", [cluster("a")], ttl()).unwrap();
    sleep(TTL / 2).await;
    advance(TTL * 100).await;
    sleep(Duration::from_millis(1)).await;
    assert_eq!(count(&server), 1);
    assert_eq!(told.take(), ["1 restarted"]);
    assert!(server.renew("pod-7"));
    sleep(TTL * 2).await;
    assert_eq!(count(&server), 0, "from now on the time counts");
}

#[tokio::test(start_paused = true)]
async fn a_write_without_a_lease_makes_an_origin_permanent() {
    let (server, _) = server();
    server.set_leased("pod-7", [cluster("a")], ttl()).unwrap();
    // A removal says nothing about the rest.
    let removed = [(kind::CDS.into(), "no-such".into())];
    assert!(server.remove("pod-7", removed).unwrap().warnings.is_empty());
    assert_eq!(server.leases().len(), 1);

    let accepted = server.put("pod-7", [cluster("b")]).unwrap();
    let faults: Vec<&Fault> = accepted.warnings.iter().map(|w| &w.fault).collect();
    assert!(
        matches!(faults[..], [Fault::LeaseEnded { .. }]),
        "{faults:?}"
    );
    sleep(TTL * 2).await;
    assert_eq!(count(&server), 2);
    let again = server.put("pod-7", [cluster("c")]).unwrap();
    assert!(again.warnings.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_change_that_is_not_made_leaves_the_lease() {
    let (server, _) = server();
    server.set("other", [cluster("taken")]).unwrap();
    server.set_leased("pod-7", [cluster("a")], ttl()).unwrap();
    sleep(TTL / 2).await;
    let longer = LeaseTtl::new(TTL * 10).unwrap();
    let taken = server.set_leased("pod-7", [cluster("taken")], longer);
    assert!(taken.is_err());
    assert!(server.put("pod-7", [cluster("taken")]).is_err());
    let rehearsed = server.settle_for(
        "test",
        Proposal {
            origin: "pod-7",
            edits: vec![Edit::Resources(ResourceEdit {
                removals: vec![Removal {
                    type_url: kind::CDS.into(),
                    name: "a".into(),
                    variant: None,
                }],
                ..ResourceEdit::of_document(Document::empty(&"".into()))
            })],
            dangling: Dangling::Warn,
            is_complete: true,
            effect: Effect::Rehearsed,
            guard: Guard::On,
        },
        &Precondition::default(),
        Lifetime::Permanent,
    );
    assert!(rehearsed.unwrap().rejections.is_empty());

    let [lease] = &server.leases()[..] else {
        panic!("{:?}", server.leases());
    };
    assert_eq!(lease.ttl, ttl());
    let remaining = TTL / 2;
    assert_eq!(lease.state, LeaseState::Active { remaining });
    // Where there was no lease, a change that is not made gives none.
    assert!(server.set_leased("pod-8", [cluster("a")], ttl()).is_err());
    assert_eq!(server.leases().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_lease_can_be_ended() {
    let (server, told) = server();
    assert!(server.end_lease("me", "pod-7", Guard::On).is_none());
    server.set_leased("pod-7", many(), ttl()).unwrap();
    let held = server.end_lease("me", "pod-7", Guard::On).unwrap();
    assert_eq!(held.rejections.len(), 1);
    assert_eq!(count(&server), 12);
    assert!(held_hash(&server).is_some());
    let ended = server.end_lease("me", "pod-7", Guard::Off).unwrap();
    assert_eq!(ended.applied.unwrap().counts.deleted, 12);
    assert!(server.leases().is_empty());
    assert_eq!(told.take(), ["me removed"], "nothing has expired");
}

#[tokio::test(start_paused = true)]
async fn leases_are_bounded() {
    let (server, _) = server();
    let mut granted = 0;
    let refused = loop {
        let origin = format!("pod-{granted}");
        match server.set_leased(&origin, [], ttl()) {
            Ok(_) => granted += 1,
            Err(refused) => break refused,
        }
        assert!(granted <= 10_000);
    };
    let fault = &refused.findings[0].fault;
    assert!(matches!(fault, Fault::TooManyLeases { max } if *max == granted));
    let again = server.set_leased("pod-0", [cluster("a")], ttl());
    assert!(again.is_ok(), "a lease that is there can be renewed");
    assert_eq!(server.leases().len(), granted);
}

#[test]
fn without_a_runtime_nothing_is_leased() {
    let (server, _) = server();
    let refused = server.set_leased("pod-7", [cluster("a")], ttl());
    assert!(matches!(
        refused.unwrap_err().findings[0].fault,
        Fault::NoRuntime
    ));
    assert_eq!(count(&server), 0);
}

#[tokio::test(start_paused = true)]
async fn the_task_does_not_keep_the_server() {
    let (server, told) = server();
    server.set_leased("pod-7", [cluster("a")], ttl()).unwrap();
    sleep(Duration::from_millis(1)).await;
    let kept = Arc::downgrade(&told.0);
    drop((server, told));
    // Wakes of streams are short.
    sleep(TTL).await;
    assert!(kept.upgrade().is_none());
}

#[tokio::test(start_paused = true)]
async fn writers_that_are_silent_together_are_cut_off_and_not_dead() {
    let (server, told) = server();
    let origins: Vec<String> = (0..12).map(|n| format!("pod-{n}")).collect();
    for origin in &origins {
        server.set_leased(origin, [cluster(origin)], ttl()).unwrap();
        sleep(Duration::from_millis(100)).await;
    }
    sleep(TTL * 3).await;
    assert_eq!(count(&server), 12);
    assert_eq!(told.take(), ["12 of 12 silent"], "it is told once");
    // One that is known to be dead can be ended.
    assert!(server.end_lease("test", "pod-11", Guard::On).is_some());
    assert_eq!(count(&server), 11);

    // When most are back, the others are dead.
    for origin in &origins[..5] {
        assert!(server.renew(origin));
    }
    sleep(TTL / 3).await;
    assert_eq!(count(&server), 11);
    for origin in &origins[..6] {
        assert!(server.renew(origin));
    }
    sleep(TTL / 3).await;
    assert_eq!(count(&server), 6);
    assert_eq!(server.leases().len(), 6);
    // Of a few, all may die.
    sleep(TTL * 2).await;
    assert_eq!(count(&server), 0);
}
