//! Virtual hosts on demand, as real Envoy is served them: whatever was
//! requested before and whatever changes, every host is routed as the whole
//! route configuration would route it.
//!
//! A virtual host answers with a text of its own, so a test sees which one a
//! host belongs to.

mod bad;
mod beside;
mod burst;
mod cap;
mod guide;
mod law;
mod reconnect;
mod replies;
mod routes;
mod shadow;
mod streams;
mod variants;

use std::net::SocketAddr;
use std::time::Duration;

use interop::bootstrap::ADS;
use interop::{Entry, Envoy, Serving, assert_no_init_fetch_timeout, http};
use trunkline::status::{Clients as _, TypeState};
use trunkline::{Event, kind};

use crate::site::Site;
use crate::texts::{ON_DEMAND, listener_of, other, rds};
use crate::way::DELTA;

const SOON: Duration = Duration::from_secs(10);

/// The source that is [`ADS`], said otherwise: for Envoy it is another.
const OTHER_ADS: &str = "{ads: {}, resource_api_version: V3, initial_fetch_timeout: 20s}";

/// A virtual host under the route configuration `r1`.
fn vhost(name: &str, domains: &[&str], says: &str) -> String {
    vhost_of("r1", name, domains, says)
}

fn vhost_of(route: &str, name: &str, domains: &[&str], says: &str) -> String {
    let answer = format!("direct_response: {{status: 200, body: {{inline_string: {says:?}}}}}");
    vhost_with(route, name, domains, &answer)
}

/// A virtual host with one route, by what that does.
fn vhost_with(route: &str, name: &str, domains: &[&str], action: &str) -> String {
    let name = format!("{route}/{name}");
    other(
        "envoy.config.route.v3.VirtualHost",
        &format!(
            r#"name: {name:?}, domains: {domains:?}, routes: [{{match: {{prefix: ""}}, {action}}}]"#
        ),
    )
}

/// A route configuration that leaves all its hosts to VHDS.
fn on_demand(name: &str, source: &str) -> String {
    on_demand_with(name, &format!("vhds: {{config_source: {source}}}"))
}

fn on_demand_with(name: &str, fields: &str) -> String {
    other(
        "envoy.config.route.v3.RouteConfiguration",
        &format!("name: {name:?}, {fields}"),
    )
}

/// A listener whose requests wait for their hosts.
fn listener(name: &str, route: &str) -> String {
    listener_of(name, &rds(route, ADS), ON_DEMAND)
}

/// What a host is answered with: the text, or the status of a failure. A
/// request that hangs is an error.
fn says(at: SocketAddr, host: &str) -> String {
    read(host, http::get_as(at, host, "/"))
}

fn read(host: &str, answer: std::io::Result<http::Response>) -> String {
    let answer = answer.unwrap_or_else(|error| panic!("{host}: {error}"));
    match answer.status {
        200 => answer.body,
        status => status.to_string(),
    }
}

/// Asks for many hosts at once, and gives their answers in the same order.
fn say_together<T: AsRef<str>>(at: SocketAddr, hosts: &[T]) -> Vec<String> {
    let hosts = hosts.iter().map(AsRef::as_ref);
    let asked: Vec<_> = hosts
        .map(|host| (host, http::ask_as(at, host, "/").expect("a connection")))
        .collect();
    let answers = asked.into_iter();
    answers
        .map(|(host, asked)| read(host, asked.answer()))
        .collect()
}

/// A bootstrap by which Envoy sends its node once, instead of in every request:
/// a node is sixty kilobytes, and not many of those pass while the server's
/// bytes are held up.
fn short_requests(bootstrap: &str) -> String {
    let place = "    transport_api_version: V3\n    grpc_services";
    let short = place.replace('\n', "\n    set_node_on_first_message_only: true\n");
    let with = bootstrap.replace(place, &short);
    assert_ne!(with, bootstrap);
    with
}

/// An Envoy with a listener `http` on the route configuration `r1`.
struct World {
    site: Site,
    serving: Serving,
    envoy: Envoy,
    http: SocketAddr,
}

impl World {
    fn new(hosts: &[String]) -> Self {
        let site = Site::new(&[
            ("http.yaml", &[listener("http", "r1"), on_demand("r1", ADS)]),
            ("hosts.yaml", hosts),
        ]);
        let serving = site.serve();
        Self::over(site, serving)
    }

    fn over(site: Site, serving: Serving) -> Self {
        let envoy = Envoy::start(&DELTA.bootstrap(serving.port));
        Self::with(site, serving, envoy)
    }

    fn with(site: Site, serving: Serving, envoy: Envoy) -> Self {
        let http = envoy.listener("http").expect("the listener");
        Self {
            site,
            serving,
            envoy,
            http,
        }
    }

    /// Stops the server, and starts another in its place.
    fn restarted<T>(self, meanwhile: impl FnOnce(&Site, SocketAddr) -> T) -> (Self, T) {
        let Self {
            site,
            serving,
            envoy,
            http,
        } = self;
        let port = serving.port;
        serving.stop();
        let made = meanwhile(&site, http);
        let serving = site.serve_on(port);
        let world = Self {
            site,
            serving,
            envoy,
            http,
        };
        (world, made)
    }

    fn says(&self, host: &str) -> String {
        says(self.http, host)
    }

    /// Changes the hosts.
    fn put(&self, hosts: &[String]) {
        self.site.write("hosts.yaml", hosts);
    }

    /// Waits until a host is answered like this.
    fn wait(&self, host: &str, expected: &str) {
        self.wait_at(self.http, host, expected);
    }

    fn wait_at(&self, at: SocketAddr, host: &str, expected: &str) {
        let what = format!("{host} to say {expected}");
        self.envoy
            .wait_for(&what, SOON, |_| (says(at, host) == expected).then_some(()));
    }

    /// How many requests for hosts came, acknowledgements aside.
    fn asked(&self) -> usize {
        self.serving.journal.asked(kind::VHDS)
    }

    /// The names that were sent since a place, and those that were removed.
    fn sent(&self, since: usize) -> (Vec<String>, Vec<String>) {
        let all = self.serving.journal.sent(since, kind::VHDS);
        let brought = all.iter().flat_map(|sent| sent.names());
        let removed = all.iter().flat_map(|sent| &sent.removed);
        let (mut brought, mut removed): (Vec<_>, Vec<_>) = (
            brought.map(str::to_owned).collect(),
            removed.map(ToString::to_string).collect(),
        );
        brought.sort();
        removed.sort();
        (brought, removed)
    }

    /// How hosts stand on the only stream.
    fn status(&self) -> TypeState {
        let clients = self.serving.server.clients();
        let [client] = &clients[..] else {
            panic!("one client in {clients:?}");
        };
        let of_hosts = |t: &&TypeState| t.type_url.as_str() == kind::VHDS;
        client.types.iter().find(of_hosts).expect("hosts").clone()
    }

    /// Envoy took everything, and never waited in vain.
    fn is_sound(&self) {
        let refused = |entry: &Entry| matches!(entry, Entry::Event(Event::Nacked { .. }));
        assert_eq!(self.serving.journal.count(refused), 0, "rejections");
        let mut rejected = self.envoy.stats();
        rejected.retain(|name, count| name.ends_with("update_rejected") && *count > 0);
        assert!(rejected.is_empty(), "{rejected:?}");
        assert_no_init_fetch_timeout(&self.envoy);
    }
}
