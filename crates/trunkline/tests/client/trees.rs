//! Trees over sockets: listeners and clusters with everything below them.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

use trunkline::ResourceMessage;
use trunkline::client::tree::{ListenerSnapshot, Lookup, Part, Resolve, Show, SnapshotWatch};
use trunkline::client::{Client, Raw};
use trunkline::envoy::extensions::filters::network::http_connection_manager::v3::http_connection_manager::RouteSpecifier;

use super::PATIENCE;
use super::resources::{
    aggregate, chained, dns_cluster, eds_cluster, endpoints, listener, listener_with, routes,
    two_clusters,
};
use super::server::Serving;

pub(crate) fn client(serving: &Serving) -> Client {
    let builder = Client::builder().server(&serving.address.to_string());
    builder.unwrap().node_id("test").build()
}

pub(crate) fn serve(messages: Vec<ResourceMessage>) -> Serving {
    Serving::start_with(|serving| {
        serving.server.set("test", messages).unwrap();
    })
}

pub(crate) async fn ready<T: Show>(watch: &mut SnapshotWatch<T>) -> T {
    let ready = tokio::time::timeout(PATIENCE, watch.ready()).await;
    ready.expect("a snapshot in time")
}

/// The first snapshot that is shown like this.
pub(crate) async fn until<T: Show>(
    watch: &mut SnapshotWatch<T>,
    text: impl Fn(&T) -> String,
    expected: &str,
) -> T {
    let found = tokio::time::timeout(PATIENCE, async {
        let mut snapshot = watch.ready().await;
        while text(&snapshot) != expected {
            snapshot = watch.changed().await;
        }
        snapshot
    });
    match found.await {
        Ok(snapshot) => snapshot,
        Err(_) => {
            let newest = watch.snapshot().map(|snapshot| text(&snapshot));
            panic!("{expected} does not come; {newest:?}")
        }
    }
}

/// A part and what is below it: `l(r(a(a) b(b)))`, `!` for an error.
pub(crate) fn show(part: &Part<Raw>) -> String {
    let mark = if part.is_failed() { "!" } else { "" };
    let children: Vec<_> = part.children().map(|part| show(&part)).collect();
    match children.is_empty() {
        true => format!("{}{mark}", part.name()),
        false => format!("{}{mark}({})", part.name(), children.join(" ")),
    }
}

pub(crate) fn tree(snapshot: &ListenerSnapshot) -> String {
    show(&snapshot.listener().raw())
}

/// The ports of a cluster's endpoints.
pub(crate) fn ports(snapshot: &ListenerSnapshot, cluster: &str) -> Vec<u32> {
    let cluster = snapshot
        .cluster(cluster)
        .and_then(|of| of.load_assignment());
    let localities = cluster.iter().flat_map(|of| &of.endpoints);
    let endpoints = localities.flat_map(|of| &of.lb_endpoints);
    let text = endpoints.map(|of| format!("{of:?}"));
    let port = |text: String| {
        let (_, rest) = text.split_once("PortValue(")?;
        rest.split(')').next()?.parse().ok()
    };
    text.filter_map(port).collect()
}

#[tokio::test]
async fn c51_a_listener_comes_with_everything_below_it() {
    let serving = serve(two_clusters());
    let client = client(&serving);
    let mut watch = client.listener("l");
    let first = ready(&mut watch).await;
    assert_eq!(tree(&first), "l(r(a(a) b(b)))");
    assert_eq!(ports(&first, "a"), [1]);
    assert!(first.error().is_none());
    assert!(client.warming().is_empty());

    let mut changed = two_clusters();
    changed[4] = ResourceMessage::of(&endpoints("a", &[1, 10]));
    serving.server.set("test", changed).unwrap();
    let shown = |of: &ListenerSnapshot| format!("{:?}", ports(of, "a"));
    let second = until(&mut watch, shown, "[1, 10]").await;
    let same = |name: &str| {
        let (old, new) = (first.cluster(name), second.cluster(name));
        old.unwrap().is_same(&new.unwrap())
    };
    assert!(!same("a"));
    assert!(same("b"), "what did not change is shared");
    assert_eq!(ports(&first, "a"), [1], "a snapshot never changes");
}

#[tokio::test]
async fn c51_filter_chains_and_inline_routes_are_followed() {
    let inline = routes("inline", &[("*", "a")]);
    let with_inline = listener_with("inline", RouteSpecifier::RouteConfig(inline));
    let serving = serve(vec![
        ResourceMessage::of(&chained(listener("chained", "r"))),
        ResourceMessage::of(&chained(with_inline)),
        ResourceMessage::of(&routes("r", &[("*", "a")])),
        ResourceMessage::of(&eds_cluster("a")),
        ResourceMessage::of(&endpoints("a", &[1])),
    ]);
    let client = client(&serving);
    let chained = ready(&mut client.listener("chained")).await;
    assert_eq!(tree(&chained), "chained(r(a(a)))");
    let inline = ready(&mut client.listener("inline")).await;
    assert_eq!(tree(&inline), "inline(a(a))");
    let routes = inline.routes();
    assert_eq!(routes[0].config().unwrap().name, "inline");
    assert!(routes[0].cluster("a").is_some());
    assert_eq!(routes[0].virtual_host("any").unwrap().domains, ["*"]);
}

#[tokio::test]
async fn c52_only_the_clusters_of_the_matching_virtual_host_are_asked_for() {
    let serving = serve(two_clusters());
    let client = client(&serving);
    let mut watch = client.listener_for_host("l", "b.com");
    let snapshot = ready(&mut watch).await;
    assert_eq!(tree(&snapshot), "l(r(b(b)))");
    assert!(snapshot.cluster("a").is_none());
    let asked: Vec<_> = client.dump().into_iter().map(|held| held.name).collect();
    assert!(!asked.iter().any(|name| name.as_str() == "a"), "{asked:?}");

    // No virtual host is an error of the whole (C53).
    let snapshot = ready(&mut client.listener_for_host("l", "c.com")).await;
    assert_eq!(
        snapshot.error().unwrap().to_string(),
        "no virtual host matches c.com"
    );
}

#[tokio::test]
async fn c53_a_missing_cluster_holds_nothing_back() {
    let mut messages = two_clusters();
    messages.push(ResourceMessage::of(&listener("front", "wide")));
    let hosts = [("a.com", "a"), ("b.com", "missing")];
    messages.push(ResourceMessage::of(&routes("wide", &hosts)));
    let serving = serve(messages);
    let client = client(&serving);
    let snapshot = ready(&mut client.listener("front")).await;
    assert_eq!(tree(&snapshot), "front(wide(a(a) missing!))");
    assert!(snapshot.error().is_none(), "it is an error of a part");

    let snapshot = ready(&mut client.listener("nobody")).await;
    assert!(snapshot.error().is_some());
    assert_eq!(tree(&snapshot), "nobody!");
}

#[tokio::test]
async fn c54_a_cluster_is_part_of_snapshots_as_long_as_its_subscription() {
    let mut messages = two_clusters();
    messages.push(ResourceMessage::of(&eds_cluster("c")));
    messages.push(ResourceMessage::of(&endpoints("c", &[3])));
    let serving = serve(messages);
    let client = client(&serving);
    let mut watch = client.listener("l");
    assert!(ready(&mut watch).await.cluster("c").is_none());
    let shown = |of: &ListenerSnapshot| format!("{:?}", ports(of, "c"));
    let subscription = watch.subscribe_cluster("c");
    let snapshot = until(&mut watch, shown, "[3]").await;
    assert_eq!(snapshot.subscribed().count(), 1);
    drop(subscription);
    until(&mut watch, shown, "[]").await;
    assert!(!client.dump().iter().any(|held| held.name.as_str() == "c"));
}

#[tokio::test]
async fn c54_the_leaves_of_an_aggregate_cluster_are_in_the_order_of_priority() {
    let serving = serve(vec![
        ResourceMessage::of(&aggregate("top", &["z", "inner", "missing"])),
        ResourceMessage::of(&aggregate("inner", &["m", "z", "b"])),
        ResourceMessage::of(&eds_cluster("z")),
        ResourceMessage::of(&eds_cluster("m")),
        ResourceMessage::of(&eds_cluster("b")),
        ResourceMessage::of(&endpoints("z", &[1])),
        ResourceMessage::of(&endpoints("m", &[1])),
        ResourceMessage::of(&endpoints("b", &[1])),
        ResourceMessage::of(&aggregate("loop", &["loop"])),
    ]);
    let client = client(&serving);
    let snapshot = ready(&mut client.cluster("top")).await;
    let leaves: Vec<_> = snapshot
        .leaves()
        .iter()
        .map(|of| of.name().to_owned())
        .collect();
    assert_eq!(leaves, ["z", "m", "b"]);
    let snapshot = ready(&mut client.cluster("loop")).await;
    assert!(snapshot.is_failed());
}

/// A resolver that counts, and has another address each time.
#[derive(Default)]
struct Counting(Mutex<BTreeMap<String, u8>>);

impl Resolve for Counting {
    fn resolve(&self, target: &str) -> Lookup {
        let mut counts = self.0.lock().unwrap();
        let count = counts.entry(target.to_owned()).or_default();
        *count += 1;
        let address = SocketAddr::from(([10, 0, 0, *count], 80));
        Box::pin(async move { Ok(vec![address]) })
    }
}

#[tokio::test]
async fn c55_hosts_are_resolved_again_on_request() {
    let serving = serve(vec![ResourceMessage::of(&dns_cluster(
        "d",
        "d.example.com",
    ))]);
    let resolver = Arc::new(Counting::default());
    let builder = Client::builder()
        .server(&serving.address.to_string())
        .unwrap();
    let client = builder
        .resolver(Arc::clone(&resolver) as Arc<dyn Resolve>)
        .build();
    let mut watch = client.cluster("d");
    let addresses = |of: &Part<_>| format!("{:?}", of.hosts().next().unwrap().addresses());
    let expected = |last| format!("Some([10.0.0.{last}:80])");
    until(&mut watch, addresses, &expected(1)).await;
    client.resolve_again();
    until(&mut watch, addresses, &expected(2)).await;
}

/// A resolver that finds an address at first and when it is asked for the fourth
/// time, and fails in between.
#[derive(Default)]
struct Failing(AtomicU32);

impl Resolve for Failing {
    fn resolve(&self, _: &str) -> Lookup {
        let found = match self.0.fetch_add(1, Ordering::Relaxed) + 1 {
            count @ 2..=3 => Err(std::io::Error::other(format!("failure {count}"))),
            _ => Ok(vec![SocketAddr::from(([10, 0, 0, 1], 80))]),
        };
        Box::pin(async move { found })
    }
}

#[tokio::test]
async fn c55_addresses_stay_however_often_they_cannot_be_found_again() {
    let serving = serve(vec![ResourceMessage::of(&dns_cluster(
        "d",
        "d.example.com",
    ))]);
    let builder = Client::builder()
        .server(&serving.address.to_string())
        .unwrap();
    let client = builder.resolver(Arc::new(Failing::default())).build();
    let mut watch = client.cluster("d");
    let shown = |of: &Part<_>| {
        let host = of.hosts().next().unwrap();
        let error = host.error().map(|error| error.message.to_string());
        format!("{:?} {error:?}", host.addresses())
    };
    let found = "Some([10.0.0.1:80])";
    until(&mut watch, shown, &format!("{found} None")).await;
    for failure in ["failure 2", "failure 3"] {
        client.resolve_again();
        let error = format!("Some({:?})", format!("d.example.com:80: {failure}"));
        until(&mut watch, shown, &format!("{found} {error}")).await;
    }
    client.resolve_again();
    until(&mut watch, shown, &format!("{found} None")).await;
}

#[tokio::test]
async fn e3_a_changed_cluster_is_shown_when_its_endpoints_are_known() {
    let serving = serve(two_clusters());
    let client = client(&serving);
    let mut watch = client.cluster("a");
    let shown = |of: &Part<_>| show(&of.raw());
    until(&mut watch, shown, "a(a)").await;
    let mut cluster = eds_cluster("a");
    cluster.eds_cluster_config.as_mut().unwrap().service_name = "new".into();
    let messages = vec![
        ResourceMessage::of(&cluster),
        ResourceMessage::of(&endpoints("new", &[5])),
    ];
    serving.server.set("test", messages).unwrap();
    // Never without endpoints: from the old ones straight to the new.
    let next = tokio::time::timeout(PATIENCE, watch.changed())
        .await
        .unwrap();
    assert_eq!(shown(&next), "a(new)");
}

#[tokio::test]
async fn dropping_the_last_watch_unsubscribes_from_everything() {
    let serving = serve(two_clusters());
    let client = client(&serving);
    let mut watch = client.listener("l");
    let other = client.cluster("a");
    ready(&mut watch).await;
    drop(watch);
    let mut names: Vec<_> = client.dump().into_iter().map(|held| held.name).collect();
    names.dedup();
    assert_eq!(names, ["a".into()], "another watch has this one");
    drop(other);
    assert!(client.dump().is_empty());
}

/// The listener, with routes to one cluster of this number, and its endpoints.
fn moved(number: u32) -> Vec<ResourceMessage> {
    let name = format!("c{number}");
    vec![
        ResourceMessage::of(&listener("l", "r")),
        ResourceMessage::of(&routes("r", &[("*", &name)])),
        ResourceMessage::of(&eds_cluster(&name)),
        ResourceMessage::of(&endpoints(&name, &[number])),
    ]
}

/// The number of the cluster that routes go to, which has to be usable.
fn destination(snapshot: &ListenerSnapshot) -> u32 {
    assert!(snapshot.error().is_none(), "{:?}", snapshot.error());
    let routes = snapshot.routes();
    let clusters: Vec<_> = routes[0].clusters().collect();
    assert_eq!(clusters.len(), 1, "a route without its cluster");
    let ports = ports(snapshot, clusters[0].name());
    assert_eq!(ports.len(), 1, "{} has no endpoints", clusters[0].name());
    assert_eq!(clusters[0].name(), format!("c{}", ports[0]), "torn");
    ports[0]
}

#[tokio::test]
async fn c51_c54_e18_no_snapshot_of_a_move_is_torn_or_older() {
    const MOVES: u32 = 20;
    for is_sotw in [false, true] {
        let serving = serve(moved(1));
        let mut builder = Client::builder()
            .server(&serving.address.to_string())
            .unwrap();
        if is_sotw {
            builder = builder.state_of_the_world();
        }
        let client = builder.build();
        let mut watch = client.listener("l");
        let mut seen = destination(&ready(&mut watch).await);
        for number in 2..=MOVES {
            // Some moves are made before the one before is seen.
            serving.server.set("test", moved(number)).unwrap();
            while number % 3 != 0 && seen != number {
                let next = tokio::time::timeout(PATIENCE, watch.changed()).await;
                let now = destination(&next.expect("a snapshot in time"));
                assert!(now >= seen, "{now} after {seen}");
                seen = now;
            }
        }
        assert_eq!(seen, MOVES);
    }
}
