//! Random routes and random requests, put to a real Envoy and to
//! `trunkline-traffic`: both give the same status, body and location.
//!
//! One Envoy has all routes of a seed. `TRAFFIC_REQUESTS` says how many requests
//! are put to it, some hundred without it.
#![allow(clippy::unwrap_used, clippy::expect_used)]

#[path = "traffic/client.rs"]
mod client;
#[path = "traffic/random.rs"]
mod random;

use std::net::IpAddr;

use client::Connection as Client;
use interop::Envoy;
use prost::Message;
use random::{RandomRequest, manager, requests};
use serde_json::{Value, json};
use trunkline_proto::envoy::envoy::extensions::filters::network::http_connection_manager::v3::HttpConnectionManager;
use trunkline_proto::text::{Format, Options, read_message};
use trunkline_traffic::connection_manager::{
    Connection, ConnectionManager, NormalisedPath, Routes,
};
use trunkline_traffic::headers::Headers;
use trunkline_traffic::route::{Action, Context, NoRoute};
use trunkline_traffic::{Request, Runtime};

/// What a client sees of a response.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Seen {
    status: u16,
    location: Option<String>,
    body: String,
}

#[test]
fn random_requests_are_routed_as_by_envoy() {
    let count = std::env::var("TRAFFIC_REQUESTS").ok();
    let count: usize = count.and_then(|count| count.parse().ok()).unwrap_or(400);
    let seeds = count.div_ceil(500);
    for seed in 0..seeds as u64 {
        compare(seed, count / seeds);
    }
}

fn compare(seed: u64, count: usize) {
    let mut random = fastrand::Rng::with_seed(seed);
    let json = manager(&mut random);
    let ours = ConnectionManager::compile(&typed(&json)).unwrap();
    let envoy = Envoy::start(&bootstrap(&json));
    let listener = envoy.listener("traffic").expect("a listener");
    let mut client = Client::new(listener);
    let mut differences = Vec::new();
    for request in requests(&mut random, count) {
        let theirs = client.send(&request);
        let here = decide(&ours, &request);
        if theirs != here {
            differences.push(format!("{request:?}\n  Envoy {theirs:?}\n  here  {here:?}"));
        }
    }
    let wrong = differences.len();
    differences.truncate(5);
    let shown = differences.join("\n");
    assert_eq!(
        wrong, 0,
        "of {count} with the seed {seed}:\n{shown}\nroutes: {json}"
    );
}

fn typed(json: &Value) -> HttpConnectionManager {
    let of = "envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager";
    let text = json.to_string();
    let read = read_message(
        of,
        Format::Json,
        "manager",
        &text,
        None,
        &Options::default(),
    );
    HttpConnectionManager::decode(&*read.unwrap().message.encode_to_vec()).unwrap()
}

/// A bootstrap with one listener and nothing else.
fn bootstrap(manager: &Value) -> String {
    let mut config = manager.clone();
    config["@type"] = "type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager".into();
    let any_port = json!({"socket_address": {"address": "127.0.0.1", "port_value": 0}});
    json!({
        "admin": {"address": any_port},
        "static_resources": {"listeners": [{
            "name": "traffic",
            "address": any_port,
            "filter_chains": [{"filters": [{
                "name": "envoy.filters.network.http_connection_manager",
                "typed_config": config,
            }]}],
        }]},
    })
    .to_string()
}

/// Decides as a proxy on this crate would.
fn decide(manager: &ConnectionManager, sent: &RandomRequest) -> Seen {
    let seen = |status, location, body| Seen {
        status,
        location,
        body,
    };
    let mut headers: Headers = sent.headers.iter().cloned().collect();
    let loopback = IpAddr::from([127, 0, 0, 1]);
    let connection = Connection {
        peer: loopback,
        node_address: loopback,
        listener_port: 1,
        is_tls: false,
    };
    manager.prepare_request(&mut headers, &connection, "id");
    let path = match manager.path().apply(&sent.path) {
        NormalisedPath::Path(path) => path,
        NormalisedPath::Redirect(path) => return seen(307, Some(path), String::new()),
        NormalisedPath::Refused => return seen(400, None, String::new()),
    };
    let request = Request {
        method: "GET",
        scheme: "http",
        authority: &sent.host,
        path: &path,
        headers: &headers,
    };
    let runtime = Runtime::default();
    let context = Context {
        random: 0,
        runtime: &runtime,
        peer: None,
    };
    let Routes::Table(table) = manager.routes() else {
        panic!("a table");
    };
    match table.find(&request, &context) {
        Err(NoRoute::NeedsTls(_)) => seen(301, Some(table.tls_location(&request)), String::new()),
        Err(_) => seen(404, None, String::new()),
        Ok(found) => match found.route.action() {
            Action::DirectResponse(direct) => {
                let body = String::from_utf8_lossy(&direct.body).into_owned();
                seen(direct.status, found.location(&request), body)
            }
            Action::Redirect(redirect) => {
                seen(redirect.status(), found.location(&request), String::new())
            }
            other => panic!("{other:?} is not made"),
        },
    }
}
