//! Random requests.

use fastrand::Rng;

use super::words::{NAMES, host, once_in, one, path};

const VALUES: &[&str] = &["1", "22", "abc", "Abc", "b,c", "-3", ""];

const PLANS: &[&str] = &[
    "200",
    "503,200",
    "503,502,200",
    "500,409,504,200",
    "200g14,200",
    "503r,200",
    "418,200",
];

/// What a client inside the mesh may say to the router.
const DIRECTIONS: &[(&str, &str)] = &[
    ("x-envoy-upstream-rq-timeout-ms", "9000"),
    ("x-envoy-upstream-rq-timeout-ms", "x"),
    ("x-envoy-upstream-rq-per-try-timeout-ms", "4000"),
    ("x-envoy-upstream-rq-timeout-alt-response", "1"),
    ("x-envoy-upstream-stream-duration-ms", "8000"),
    ("x-envoy-retry-grpc-on", "unavailable"),
    ("x-envoy-retriable-status-codes", "418,503"),
    ("x-envoy-retriable-header-names", "grpc-status"),
    ("x-envoy-hedge-on-per-try-timeout", "true"),
    ("x-envoy-hedge-on-per-try-timeout", "false"),
    ("x-envoy-upstream-alt-stat-name", "alt"),
    ("x-envoy-attempt-count", "7"),
    ("x-envoy-decorator-operation", "op"),
    ("x-envoy-original-path", "/before"),
    ("x-envoy-ip-tags", "t"),
];

/// Headers of which there may be two lines.
const TWICE: &[&str] = &[
    "accept",
    "accept-encoding",
    "authorization",
    "cache-control",
    "content-type",
    "grpc-timeout",
    "origin",
    "pragma",
    "user-agent",
    "via",
    "x-client-trace-id",
    "x-envoy-external-address",
    "x-forwarded-host",
    "x-forwarded-port",
    "x-forwarded-client-cert",
    "forwarded",
    "accept-language",
    "cookie",
];

/// A request.
#[derive(Debug)]
pub(crate) struct RandomRequest {
    pub(crate) host: String,
    pub(crate) path: String,
    pub(crate) headers: Vec<(String, String)>,
}

/// A request for random routes.
pub(crate) fn request(random: &mut Rng) -> RandomRequest {
    let mut host = match random.u8(..4) {
        0 => format!("z-{}", host(random)),
        1 => format!("z.{}", host(random)),
        _ => host(random),
    };
    if once_in(random, 4) {
        host.push_str(one(random, &[":80", ":443", ":8080"]));
    }
    let query = one(random, &["", "", "?k=1", "?q=x&k=1", "?k", "?K=1"]);
    let path = format!("{}{query}", path(random, 4));
    let mut headers: Vec<(String, String)> = (0..random.usize(..4))
        .map(|_| {
            let name = one(random, NAMES).to_owned();
            (name, one(random, VALUES).to_owned())
        })
        .collect();
    let mut add = |name: &str, value: String| headers.push((name.to_owned(), value));
    add("x-rand", random.u32(..200).to_string());
    if random.bool() {
        add(
            "x-cluster",
            one(random, &["a", "b", "c", "nope"]).to_owned(),
        );
    }
    if random.bool() {
        add("x-plan", one(random, PLANS).to_owned());
    }
    if once_in(random, 3) {
        add("x-m-1", "sent".to_owned());
    }
    // Some come from inside the mesh, and may say how they are tried again.
    if once_in(random, 4) {
        add(
            "x-forwarded-for",
            one(random, &["10.1.1.1", "9.9.9.9", "10.1.1.1,9.9.9.9"]).to_owned(),
        );
    }
    if once_in(random, 4) {
        add(
            "x-envoy-retry-on",
            one(random, &["5xx", "retriable-4xx", "gateway-error"]).to_owned(),
        );
        add("x-envoy-max-retries", random.u8(..3).to_string());
    }
    for (name, value) in DIRECTIONS {
        if once_in(random, 12) {
            add(name, (*value).to_owned());
        }
    }
    if once_in(random, 6) {
        let name = one(random, TWICE);
        add(name, "first".to_owned());
        add(name, "second".to_owned());
    }
    RandomRequest {
        host,
        path,
        headers,
    }
}

/// A request whose hash chooses an endpoint of a cluster.
pub(crate) fn keyed(random: &mut Rng, cluster: &str) -> RandomRequest {
    let mut headers = vec![
        ("x-c".to_owned(), cluster.to_owned()),
        ("x-key".to_owned(), format!("key-{}", random.u32(..))),
    ];
    if random.bool() {
        headers.push(("x-a".to_owned(), one(random, VALUES).to_owned()));
    }
    if once_in(random, 4) {
        headers.push(("x-a".to_owned(), one(random, VALUES).to_owned()));
    }
    if random.bool() {
        headers.push(("cookie".to_owned(), format!("x=y; k={}", random.u8(..))));
    }
    let query = one(random, &["", "?q=1", "?q=22&q=3", "?r=1&q=4"]);
    RandomRequest {
        host: "lb.test".to_owned(),
        path: format!("/{query}"),
        headers,
    }
}

/// A request for an endpoint of a cluster, whichever.
pub(crate) fn plain(cluster: &str) -> RandomRequest {
    RandomRequest {
        host: "lb.test".to_owned(),
        path: "/".to_owned(),
        headers: vec![("x-c".to_owned(), cluster.to_owned())],
    }
}
