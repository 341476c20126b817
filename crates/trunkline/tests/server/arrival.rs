//! The arrival of a change at clients.

use trunkline::{Arrival, ArrivalState, Awaited, ClientArrival, kind};

use crate::support::{Delta, Fixture, PATIENCE, bodies, fixture, put};

/// A stream that has the resource `a`, as it is.
async fn stream_with(fixture: &Fixture, name: &str) -> Delta {
    let mut stream = Delta::open(fixture).await;
    stream.ask(&[name]).await;
    let response = stream.next().await;
    stream.accept(&response).await;
    stream
}

/// Begins to await the newest change.
fn arrival(fixture: &Fixture) -> Arrival {
    let revision = fixture.server.revision();
    let arrival = fixture.server.arrival(revision, Awaited::default());
    arrival.unwrap()
}

/// Looks until all have answered.
async fn complete(arrival: &mut Arrival) -> Vec<ClientArrival> {
    let look = async {
        while !arrival.look() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(PATIENCE, look).await.expect("in time");
    arrival.clients()
}

/// Waits until an arrival knows whom it awaits, and says of which states they
/// are.
async fn states(arrival: &mut Arrival) -> Vec<ArrivalState> {
    let look = async {
        while !arrival.look() && arrival.clients().is_empty() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(PATIENCE, look).await.expect("in time");
    let clients = arrival.clients();
    clients.iter().map(|client| client.state).collect()
}

#[tokio::test]
async fn a_change_is_awaited_from_the_clients_that_it_concerns_and_no_later_ones() {
    let fixture = fixture(vec![put("a", b"1"), put("b", b"1")]).await;
    let mut concerned = stream_with(&fixture, "a").await;
    let mut other = stream_with(&fixture, "b").await;
    fixture.server.apply(vec![put("b", b"2")]).unwrap();
    other.next().await;

    fixture.server.apply(vec![put("a", b"2")]).unwrap();
    let mut arrival = arrival(&fixture);
    assert_eq!(states(&mut arrival).await, [ArrivalState::Awaited]);
    let late = stream_with(&fixture, "a").await;
    let response = concerned.next().await;
    assert_eq!(bodies(&response), [("a", &b"2"[..])]);
    assert!(!arrival.look());
    let clients = arrival.clients();
    let [client] = &clients[..] else {
        panic!("one client: {clients:?}");
    };
    let outstanding = &client.outstanding[0];
    assert_eq!(outstanding.type_url, kind::EDS.into());
    assert_eq!(outstanding.names, ["a".into()]);
    assert!(outstanding.unanswered.is_some());

    concerned.accept(&response).await;
    let clients = complete(&mut arrival).await;
    assert_eq!(clients.len(), 1);
    assert_eq!(clients[0].state, ArrivalState::Answered);
    assert!(clients[0].outstanding.is_empty());
    drop((other, late));
}

#[tokio::test]
async fn a_client_that_disconnects_is_said_and_not_awaited_any_more() {
    let mut fixture = fixture(vec![put("a", b"1")]).await;
    let mut stream = stream_with(&fixture, "a").await;
    fixture.server.apply(vec![put("a", b"2")]).unwrap();
    let mut arrival = arrival(&fixture);
    assert_eq!(states(&mut arrival).await, [ArrivalState::Awaited]);
    stream.next().await;
    drop(stream);
    fixture.closed.recv().await.unwrap();
    let clients = complete(&mut arrival).await;
    assert_eq!(clients[0].state, ArrivalState::Disconnected);
}

#[tokio::test]
async fn all_clients_are_awaited_on_demand_and_no_revision_of_the_future() {
    let fixture = fixture(vec![put("a", b"1")]).await;
    let mut silent = Delta::open(&fixture).await;
    silent.ask(&["a"]).await;
    let response = silent.next().await;
    let revision = fixture.server.revision();
    let awaited = |all_clients| Awaited {
        all_clients,
        removals: true,
    };
    let mut concerned = fixture.server.arrival(revision, awaited(false)).unwrap();
    assert!(complete(&mut concerned).await.is_empty());
    let mut all = fixture.server.arrival(revision, awaited(true)).unwrap();
    assert_eq!(states(&mut all).await, [ArrivalState::Awaited]);
    silent.accept(&response).await;
    assert_eq!(complete(&mut all).await.len(), 1);
    let future = fixture.server.arrival(revision + 1, Awaited::default());
    assert!(future.is_none());
}
