//! `retry.json`: retry conditions, vetoes, timeouts, hedging, local replies.
//!
//! A script says what the upstream does with each attempt, and time is a
//! number, so that timeouts of half a second take no time.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use trunkline_proto::envoy::envoy::config::cluster::v3::Cluster;
use trunkline_proto::envoy::envoy::extensions::filters::network::http_connection_manager::v3::HttpConnectionManager;
use trunkline_traffic::balance::{Balancer, HostSets, PickContext, Policy};
use trunkline_traffic::connection_manager::{Connection, ConnectionManager, Routes};
use trunkline_traffic::headers::Headers;
use trunkline_traffic::retry::{Exchange, Reply, Reset, RetryContext, RetryState, Step};
use trunkline_traffic::route::{Context, Forwarding};
use trunkline_traffic::{Request, Runtime};

use crate::data::{Recorded, connection_manager, header, list, message, text};
use crate::sampling;

/// Groups that are not decided here, each with the reason.
const ELSEWHERE: &[(&str, &str)] = &[(
    "internal redirect",
    "internal redirects are not supported, and such a route is a finding",
)];

#[test]
fn attempts_are_those_of_envoy() {
    let recorded = Recorded::read(include_str!("../data/retry.json"));
    let mut failed = Vec::new();
    let (mut passed, mut elsewhere) = (0, 0);
    for (group, case) in recorded.cases() {
        let name = (text(&group["name"]), text(&case["name"]));
        if ELSEWHERE.iter().any(|(group, _)| *group == name.0) {
            let compiled = ConnectionManager::compile(&connection_manager(group));
            assert!(compiled.is_err(), "{name:?} has a finding");
            elsewhere += 1;
            continue;
        }
        match World::new(&recorded, group).difference(case) {
            None => passed += 1,
            Some(wrong) => failed.push(format!("{name:?}: {wrong}")),
        }
    }
    assert!(failed.is_empty(), "{passed} passed\n{}", failed.join("\n"));
    assert_eq!((passed, elsewhere), (69, 2));
}

struct World {
    manager: ConnectionManager,
    message: HttpConnectionManager,
    clusters: Vec<Cluster>,
}

/// What became of a request.
#[derive(Debug, Default, PartialEq, Eq)]
struct Outcome {
    status: u64,
    body: Option<String>,
    grpc_status: Option<String>,
    /// `x-envoy-expected-rq-timeout-ms` of each attempt, and its number where it
    /// is sent.
    attempts: Vec<(Option<String>, Option<String>)>,
    is_exhausted: bool,
}

impl Outcome {
    fn recorded(out: &Value) -> Self {
        let response = &out["r"][0];
        let attempts = list(&out["u"]).iter();
        let owned = |headers, name| header(headers, name).map(str::to_owned);
        let attempts = attempts.map(|seen| {
            let expected = owned(&seen["h"], "x-envoy-expected-rq-timeout-ms");
            (expected, owned(&seen["h"], "x-envoy-attempt-count"))
        });
        let body = text(&response["b"]);
        let is_local = !body.is_empty() && !body.starts_with("up=") && body != "partial";
        Self {
            status: response["s"].as_u64().expect("a status"),
            body: is_local.then(|| body.to_owned()),
            grpc_status: owned(&response["h"], "grpc-status").filter(|_| body.is_empty()),
            attempts: attempts.collect(),
            is_exhausted: text(&out["log"][0]).split('|').nth(1) == Some("URX"),
        }
    }
}

impl World {
    fn new(recorded: &Recorded, group: &Value) -> Self {
        let hcm: HttpConnectionManager = connection_manager(group);
        let clusters = list(&recorded.head()["clusters"]).iter();
        let read = |json| message::<Cluster>("envoy.config.cluster.v3.Cluster", json);
        Self {
            manager: ConnectionManager::compile(&hcm).expect("a manager"),
            message: hcm,
            clusters: clusters.map(read).collect(),
        }
    }

    fn balancer(&self, name: &str) -> Balancer {
        let mut clusters = self.clusters.iter();
        let cluster = clusters
            .find(|cluster| cluster.name == name)
            .expect("a cluster");
        let assignment = cluster.load_assignment.clone().unwrap_or_default();
        let hosts = HostSets::read(&assignment, Duration::ZERO).expect("endpoints");
        let policy = Arc::new(Policy::compile(cluster).expect("a policy"));
        Balancer::new(policy, &hosts, None, 0, Duration::ZERO)
    }

    fn difference(&self, case: &Value) -> Option<String> {
        let out = &case["out"];
        let balancer = &mut None;
        if out["count"].is_object() {
            let mut counts = BTreeMap::new();
            for _ in 0..case["reps"].as_u64().expect("a number") {
                let (outcome, _) = self.run(case, balancer);
                let key = match outcome.status {
                    200 => "a".to_owned(),
                    status => status.to_string(),
                };
                *counts.entry(key).or_default() += 1;
            }
            return sampling::differences(&out["count"], &counts);
        }
        let expected = Outcome::recorded(out);
        let (mut ours, endpoints) = self.run(case, balancer);
        // What is left of a timeout was not recorded.
        for (ours, theirs) in ours.attempts.iter_mut().zip(&expected.attempts) {
            if theirs.0.as_deref() == Some("<left>") && ours.0.is_some() {
                ours.0.clone_from(&theirs.0);
            }
        }
        if text(&case["name"]) == "503,200" && endpoints.len() == 2 && is_two(case) {
            assert_ne!(endpoints[0], endpoints[1], "d44: another endpoint is tried");
        }
        (ours != expected).then(|| format!("\n  Envoy {expected:?}\n  here  {ours:?}"))
    }

    fn run(&self, case: &Value, kept: &mut Option<Balancer>) -> (Outcome, Vec<String>) {
        let mut headers: Headers = list(&case["h"])
            .iter()
            .map(|pair| (text(&pair[0]).to_owned(), text(&pair[1]).to_owned()))
            .collect();
        let loopback = std::net::Ipv4Addr::LOCALHOST.into();
        self.manager.prepare_request(
            &mut headers,
            &Connection {
                peer: loopback,
                node_address: loopback,
                listener_port: 20_000,
                is_tls: false,
            },
            "id",
        );
        let request = Request {
            method: case["m"].as_str().unwrap_or("GET"),
            scheme: "http",
            authority: "v.test",
            path: text(&case["p"]),
            headers: &headers,
        };
        let runtime = Runtime::default();
        let context = Context {
            random: 0,
            runtime: &runtime,
            peer: None,
        };
        let Routes::Table(table) = self.manager.routes() else {
            panic!("a table");
        };
        let found = table.find(&request, &context).expect("a route");
        let forwarding = found.forwarding().expect("a cluster");
        let forward = found.forward(&request, &context).expect("a cluster");
        let name = forward.cluster.name.expect("a name");
        let common = self.message.common_http_protocol_options.as_ref();
        let stream = common.and_then(|common| common.max_stream_duration.as_ref());
        let stream = stream.map(|given| {
            let nanos = u32::try_from(given.nanos).expect("a part of a second");
            Duration::new(given.seconds.unsigned_abs(), nanos)
        });
        let mut script = Script {
            request,
            case,
            balancer: kept.get_or_insert_with(|| self.balancer(name)),
            counts: found.virtual_host.name() == "v" && self.counts_attempts(),
            outcome: Outcome::default(),
            endpoints: Vec::new(),
        };
        script.play(forwarding, stream);
        (script.outcome, script.endpoints)
    }

    fn counts_attempts(&self) -> bool {
        use trunkline_proto::envoy::envoy::extensions::filters::network::http_connection_manager::v3::http_connection_manager::RouteSpecifier;
        match &self.message.route_specifier {
            Some(RouteSpecifier::RouteConfig(routes)) => {
                routes.virtual_hosts[0].include_request_attempt_count
            }
            _ => false,
        }
    }
}

/// Whether the upstream of a case has two endpoints that are both alive.
fn is_two(case: &Value) -> bool {
    list(&case["out"]["u"])
        .iter()
        .any(|seen| text(&seen["up"]) == "b")
}

/// A request and the script of its upstream.
struct Script<'c> {
    request: Request<'c>,
    case: &'c Value,
    balancer: &'c mut Balancer,
    counts: bool,
    outcome: Outcome,
    endpoints: Vec<String>,
}

/// What an upstream does with an attempt.
#[derive(Debug, Clone, Copy)]
enum Act {
    Respond(u16),
    Reset(Reset),
}

const CONTEXT: RetryContext = RetryContext {
    random: 0,
    unix: Duration::ZERO,
};

impl Script<'_> {
    fn play(&mut self, forwarding: &Forwarding, stream: Option<Duration>) {
        let timeouts = forwarding.timeouts(&self.request, None, stream);
        let state = RetryState::new(forwarding.retry_policy(), &self.request);
        let hedges = forwarding.hedges(&self.request);
        let mut exchange = Exchange::new(state, timeouts, hedges, Duration::ZERO);
        let mut events: Vec<(Duration, u32, Act)> = Vec::new();
        let mut next = Some(Duration::ZERO);
        for _ in 0..1_000 {
            let deadline = exchange.next_deadline();
            let event = events.iter().map(|(at, ..)| *at).min();
            let now = [next, event, deadline].into_iter().flatten().min();
            let now = now.expect("something happens");
            let step = if next == Some(now) {
                next = None;
                let host = self.pick(forwarding);
                let Some(host) = host else {
                    return self.reply(Reply::NoHealthyUpstream);
                };
                let (number, expected) = exchange.start_attempt(now);
                let is_dead = is_dead(&host);
                self.endpoints.push(host);
                match is_dead {
                    true => exchange.handle_reset(number, Reset::ConnectFailure, now, &CONTEXT),
                    false => {
                        self.see(number, expected);
                        events.extend(
                            self.act(number)
                                .map(|(after, act)| (now + after, number, act)),
                        );
                        Step::Wait
                    }
                }
            } else if event == Some(now) {
                let index = events
                    .iter()
                    .position(|(at, ..)| *at == now)
                    .expect("an event");
                let (_, number, act) = events.remove(index);
                match act {
                    Act::Reset(reset) => exchange.handle_reset(number, reset, now, &CONTEXT),
                    Act::Respond(status) => {
                        self.outcome.status = status.into();
                        let headers = self.response_headers();
                        exchange.handle_response(number, status, &headers, now, &CONTEXT)
                    }
                }
            } else {
                let step = exchange.handle_timeout(now, &CONTEXT);
                if step != Step::Wait && !hedges {
                    events.clear();
                }
                step
            };
            self.outcome.is_exhausted = exchange.is_exhausted();
            match step {
                Step::Wait => {}
                Step::Attempt { at } => next = Some(at.max(now + Duration::from_micros(1))),
                Step::Respond => return,
                Step::Reply(reply) => return self.reply(reply),
            }
        }
        panic!("the request does not end");
    }

    /// Chooses an endpoint, another one than before if the policy says so.
    fn pick(&mut self, forwarding: &Forwarding) -> Option<String> {
        let most = forwarding.retry_policy().host_attempts().unwrap_or(0);
        let mut attempt = 0;
        loop {
            let host = self.balancer.pick(&PickContext::default(), &mut || 0)?;
            let host = host.address().to_owned();
            if attempt == most || !self.endpoints.contains(&host) {
                return Some(host);
            }
            attempt += 1;
        }
    }

    fn see(&mut self, number: u32, expected: Option<Duration>) {
        let expected = expected.map(|expected| expected.as_millis().to_string());
        let number = self.counts.then(|| number.to_string());
        self.outcome.attempts.push((expected, number));
    }

    /// What the script says of an attempt, and after which time.
    fn act(&self, number: u32) -> Option<(Duration, Act)> {
        let acts = header(&self.case["h"], "x-up-act").unwrap_or("200");
        let acts: Vec<&str> = acts.split(',').collect();
        let index = (number as usize - 1).min(acts.len() - 1);
        let sent = Reset::ConnectionTermination { was_sent: true };
        let soon = Duration::from_millis(1);
        match acts[index].split_once('+') {
            Some((after, status)) => {
                let after = Duration::from_millis(after.parse().expect("a time"));
                Some((after, Act::Respond(status.parse().expect("a status"))))
            }
            None => match acts[index] {
                "hang" => None,
                "close" | "reset" => Some((soon, Act::Reset(sent))),
                "partial" => Some((soon, Act::Respond(200))),
                status => Some((soon, Act::Respond(status.parse().expect("a status")))),
            },
        }
    }

    fn response_headers(&self) -> Headers {
        let lines = header(&self.case["h"], "x-up-hdr").unwrap_or_default();
        let lines = lines.split('|').filter_map(|line| line.split_once(": "));
        lines
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect()
    }

    fn reply(&mut self, reply: Reply) {
        let is_grpc = self.request.is_grpc();
        let has_body = !is_grpc && self.request.method != "HEAD" && !reply.body().is_empty();
        self.outcome.status = match is_grpc {
            true => 200,
            false => reply.status().into(),
        };
        self.outcome.body = has_body.then(|| reply.body());
        self.outcome.grpc_status = is_grpc.then(|| reply.grpc_status().to_string());
    }
}

/// Nothing listens at some ports.
fn is_dead(address: &str) -> bool {
    !address.ends_with(":19001") && !address.ends_with(":19002")
}
