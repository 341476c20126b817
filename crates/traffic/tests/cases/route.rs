//! `route.json`: virtual hosts, matchers, normalisation, redirects, rewrites,
//! weights, scopes.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};

use serde_json::Value;
use trunkline_traffic::connection_manager::{
    Connection, ConnectionManager, NormalisedPath, Routes,
};
use trunkline_traffic::headers::{FormatContext, Headers};
use trunkline_traffic::route::{Action, Context, Forward, NoRoute, RouteMatch};
use trunkline_traffic::{Request, Runtime};

use crate::data::{Recorded, connection_manager, list, text};
use crate::outcome::{Outcome, Upstream};
use crate::sampling;

/// Cases that are not decided here, each with the reason.
const ELSEWHERE: &[(&str, &str, &str)] = &[
    (
        "path matchers",
        "*",
        "the HTTP/1 codec refuses the request line",
    ),
    (
        "connect / upgrade routes",
        "ws",
        "the status is the upstream's: the backend switches protocols",
    ),
];

#[test]
fn routes_are_those_of_envoy() {
    let recorded = Recorded::read(include_str!("../data/route.json"));
    let mut failed = Vec::new();
    let mut passed = 0;
    for (group, case) in recorded.cases() {
        let name = (text(&group["name"]), text(&case["name"]));
        let is_listed = ELSEWHERE.iter().any(|(g, c, _)| (*g, *c) == name);
        let wrong = World::new(&recorded, group, case).difference(case);
        match (wrong, is_listed) {
            (None, false) | (Some(_), true) => passed += 1,
            (None, true) => failed.push(format!("{name:?} is listed, and does not differ")),
            (Some(wrong), false) => failed.push(format!("{name:?}: {wrong}")),
        }
    }
    assert!(
        failed.is_empty(),
        "{} passed\n{}",
        passed,
        failed.join("\n")
    );
    assert_eq!(passed, 389);
}

/// One request and what it meets.
struct World {
    manager: ConnectionManager,
    known: Vec<String>,
    connection: Connection,
    sent: Sent,
}

/// The request as it was sent.
struct Sent {
    method: String,
    authority: String,
    path: String,
    headers: Headers,
}

impl World {
    fn new(recorded: &Recorded, group: &Value, case: &Value) -> Self {
        let manager = ConnectionManager::compile(&connection_manager(group));
        let clusters = list(&recorded.head()["clusters"]).iter();
        let known = clusters.filter(|cluster| {
            let endpoints = list(&cluster["load_assignment"]["endpoints"]);
            !endpoints.is_empty()
        });
        Self {
            manager: manager.unwrap_or_else(|findings| panic!("{findings}")),
            known: known.map(|c| text(&c["name"]).to_owned()).collect(),
            connection: Connection {
                peer: IpAddr::V4(Ipv4Addr::LOCALHOST),
                node_address: IpAddr::V4(Ipv4Addr::new(192, 168, 1, 1)),
                // The fifth group of the file had the fifth port.
                listener_port: 20_004,
                is_tls: false,
            },
            sent: Sent::read(case),
        }
    }

    fn difference(&self, case: &Value) -> Option<String> {
        let out = &case["out"];
        if out["count"].is_object() {
            let times = case["reps"].as_u64().expect("a number of requests");
            let mut random = fastrand::Rng::with_seed(times);
            let mut counts = BTreeMap::new();
            for _ in 0..times * 20 {
                let outcome = self.run(random.u64(..));
                let up = outcome.upstream.first();
                // Outcomes are counted by cluster, or by route where there are several.
                let is_cluster = |name: &str| out["count"][name].is_u64();
                let key = match up {
                    Some(up) if is_cluster(&up.cluster) => up.cluster.clone(),
                    _ => outcome.route,
                };
                *counts.entry(key).or_default() += 1;
            }
            return sampling::differences(&out["count"], &counts);
        }
        let expected = Outcome::recorded(out);
        let ours = self.run(0);
        (ours != expected).then(|| format!("\n  Envoy {expected:?}\n  here  {ours:?}"))
    }

    /// Does what a proxy does up to the choice of an endpoint.
    fn run(&self, random: u64) -> Outcome {
        let mut headers = self.sent.headers.clone();
        self.manager
            .prepare_request(&mut headers, &self.connection, "id");
        let scheme = headers
            .text("x-forwarded-proto")
            .unwrap_or_default()
            .to_owned();
        let port = self.connection.listener_port;
        let authority = self.manager.host().apply(&self.sent.authority, port);
        let path = match self.manager.path().apply(&self.sent.path) {
            NormalisedPath::Path(path) => path,
            NormalisedPath::Refused => return reply(400, "-"),
            NormalisedPath::Redirect(location) => {
                return Outcome {
                    location: Some(location),
                    ..reply(307, "-")
                };
            }
        };
        let request = Request {
            method: &self.sent.method,
            scheme: &scheme,
            authority: &authority,
            path: &path,
            headers: &headers,
        };
        self.route(&request, random)
    }

    fn route(&self, request: &Request<'_>, random: u64) -> Outcome {
        let runtime = Runtime::default();
        let context = Context {
            random,
            runtime: &runtime,
            peer: Some(self.connection.peer),
        };
        let table = match self.manager.routes() {
            Routes::Table(table) => Some(table),
            Routes::Scoped(scoped) => scoped.find(request.headers),
            Routes::Named(_) => None,
        };
        let found = table.map_or(Err(NoRoute::Host), |table| table.find(request, &context));
        let found = match found {
            Ok(found) => found,
            Err(NoRoute::NeedsTls(_)) => {
                let location = table.map(|table| table.tls_location(request));
                return Outcome {
                    location,
                    ..reply(301, "-")
                };
            }
            Err(NoRoute::Host | NoRoute::Route(_)) => return local(request, 404, "-", None),
        };
        let route = found.route.name();
        match found.route.action() {
            Action::Redirect(redirect) => Outcome {
                location: found.location(request),
                ..reply(redirect.status(), route)
            },
            Action::DirectResponse(direct) => {
                let body = String::from_utf8_lossy(&direct.body).into_owned();
                let mut headers = Headers::new();
                found.mutate_response(None, &mut headers, &FormatContext::default());
                Outcome {
                    location: headers.text("location").map(str::to_owned),
                    ..local(request, direct.status, route, Some(body))
                }
            }
            Action::None => local(request, 503, route, None),
            Action::Forward(_) => self.forward(&found, request, &context),
        }
    }

    fn forward(
        &self,
        found: &RouteMatch<'_>,
        request: &Request<'_>,
        context: &Context<'_>,
    ) -> Outcome {
        let route = found.route.name();
        let forwarding = found.forwarding().expect("a request that is forwarded");
        let forward = found.forward(request, context).expect("the same");
        let is_known = |name: &str| self.known.iter().any(|known| known == name);
        let cluster = match forward.cluster.name {
            Some("empty") => {
                let body = Some("no healthy upstream".to_owned());
                return local(request, 503, route, body);
            }
            Some(name) if is_known(name) => name,
            _ => return local(request, forwarding.cluster_not_found_status(), route, None),
        };
        if let Some(upgrade) = request.headers.text("upgrade") {
            let by_route = forwarding.allows_upgrade(upgrade);
            if !by_route.unwrap_or_else(|| self.manager.allows_upgrade(upgrade)) {
                return reply(403, route);
            }
        }
        let mut upstream = vec![upstream(found, &forward, request, cluster)];
        upstream.extend(forward.mirrors.iter().map(|mirror| Upstream {
            cluster: mirror.cluster.to_owned(),
            path: request.path.to_owned(),
            host: mirror.host.clone(),
            ..Upstream::default()
        }));
        upstream.sort();
        Outcome {
            upstream,
            ..reply(200, route)
        }
    }
}

/// The request as it arrives at the backend.
fn upstream(
    found: &RouteMatch<'_>,
    forward: &Forward<'_>,
    request: &Request<'_>,
    cluster: &str,
) -> Upstream {
    let mut headers = request.headers.clone();
    let endpoint = (cluster == "dns").then_some("localhost");
    let values = FormatContext {
        request: Some(*request),
        ..FormatContext::default()
    };
    let leaving = found.leave(forward, request, &mut headers, endpoint, &values);
    let owned = |name| headers.text(name).map(str::to_owned);
    Upstream {
        cluster: cluster.to_owned(),
        path: leaving.path,
        host: leaving.host,
        original_path: owned("x-envoy-original-path"),
        original_host: owned("x-envoy-original-host"),
        forwarded_host: owned("x-forwarded-host"),
    }
}

fn reply(status: u16, route: &str) -> Outcome {
    Outcome {
        status: status.into(),
        route: route.to_owned(),
        ..Outcome::default()
    }
}

/// A reply of the proxy itself, which is another one for gRPC.
fn local(request: &Request<'_>, status: u16, route: &str, body: Option<String>) -> Outcome {
    let body = body.filter(|body| !body.is_empty() && request.method != "HEAD");
    if !request.is_grpc() {
        return Outcome {
            body,
            ..reply(status, route)
        };
    }
    let code = match status {
        404 => 12,
        503 => 14,
        _ => 2,
    };
    Outcome {
        grpc_status: Some(code.to_string()),
        ..reply(200, route)
    }
}

impl Sent {
    fn read(case: &Value) -> Self {
        let mut sent = Self {
            method: case["m"].as_str().unwrap_or("GET").to_owned(),
            authority: case["host"].as_str().unwrap_or("v.test").to_owned(),
            path: text(&case["p"]).to_owned(),
            headers: Headers::new(),
        };
        for pair in list(&case["h"]) {
            let (name, value) = (text(&pair[0]).to_owned(), text(&pair[1]).to_owned());
            match name.eq_ignore_ascii_case("host") {
                true => sent.authority = value,
                false => sent.headers.append(name, value),
            }
        }
        if let Some(raw) = case["raw"]
            .as_str()
            .filter(|raw| raw.starts_with("CONNECT"))
        {
            sent.method = "CONNECT".to_owned();
            sent.path = String::new();
            sent.authority = raw.split(' ').nth(1).unwrap_or_default().to_owned();
        }
        sent
    }
}
