//! `headers.json`: what is added, removed and changed on the way to the upstream
//! and back.

use std::net::IpAddr;

use serde_json::Value;
use trunkline_proto::envoy::envoy::extensions::filters::network::http_connection_manager::v3::HttpConnectionManager;
use trunkline_traffic::connection_manager::{Connection, ConnectionManager, Routes};
use trunkline_traffic::headers::{FormatContext, Headers};
use trunkline_traffic::route::{Context, RouteMatch};
use trunkline_traffic::{Request, Runtime};

use crate::data::{Recorded, connection_manager, header, list, text};

/// Groups with a setting that is a finding here.
const FINDINGS: &[(&str, &str)] = &[
    ("add_user_agent + service-cluster", "add_user_agent"),
    ("local_reply_config", "local_reply_config"),
];

/// Groups and cases that are not decided here, each with the reason. An empty
/// case means the whole group.
const ELSEWHERE: &[(&str, &str, &str)] = &[
    (
        "suppress_envoy_headers",
        "",
        "a setting of the router filter",
    ),
    (
        "proxy_100_continue",
        "",
        "the codec answers 100, and passes it on",
    ),
];

/// What the codec writes for the body of a message.
const FRAMING: &[&str] = &["content-length", "transfer-encoding", "connection"];

#[test]
fn headers_are_those_of_envoy() {
    let recorded = Recorded::read(include_str!("../data/headers.json"));
    let mut failed = Vec::new();
    let (mut passed, mut elsewhere) = (0, 0);
    for (group, case) in recorded.cases() {
        let name = (text(&group["name"]), text(&case["name"]));
        let message: HttpConnectionManager = connection_manager(group);
        let is_elsewhere = ELSEWHERE
            .iter()
            .any(|(group, case, _)| *group == name.0 && (case.is_empty() || *case == name.1));
        let finding = FINDINGS.iter().find(|(group, _)| *group == name.0);
        if let Some((_, field)) = finding {
            let findings = ConnectionManager::compile(&message).expect_err("a finding");
            assert_eq!(findings.list()[0].path, *field);
        }
        if is_elsewhere || finding.is_some() {
            elsewhere += 1;
            continue;
        }
        match World::new(&message, case).difference(case) {
            None => passed += 1,
            Some(wrong) => failed.push(format!("{name:?}: {wrong}")),
        }
    }
    assert!(failed.is_empty(), "{passed} passed\n{}", failed.join("\n"));
    assert_eq!((passed, elsewhere), (93, 6));
}

struct World {
    manager: ConnectionManager,
    connection: Connection,
}

impl World {
    fn new(message: &HttpConnectionManager, case: &Value) -> Self {
        let manager = ConnectionManager::compile(message);
        // The port of the listener is told where it was written.
        let seen = header(&case["out"]["u"][0]["h"], "x-forwarded-port");
        Self {
            manager: manager.unwrap_or_else(|findings| panic!("{findings}")),
            connection: Connection {
                peer: IpAddr::from([127, 0, 0, 1]),
                node_address: IpAddr::from([192, 168, 7, 7]),
                listener_port: seen.and_then(|port| port.parse().ok()).unwrap_or(20_000),
                is_tls: false,
            },
        }
    }

    fn difference(&self, case: &Value) -> Option<String> {
        let mut authority = case["host"].as_str().unwrap_or("v.test").to_owned();
        let mut path = text(&case["p"]).to_owned();
        if let Some(rest) = path.strip_prefix("http://") {
            let (host, rest) = rest.split_once('/').unwrap_or((rest, ""));
            (authority, path) = (host.to_owned(), format!("/{rest}"));
        }
        let mut headers = Headers::new();
        for pair in list(&case["h"]) {
            match text(&pair[0]).eq_ignore_ascii_case("host") {
                true => authority = text(&pair[1]).to_owned(),
                false => headers.append(text(&pair[0]).to_owned(), text(&pair[1]).to_owned()),
            }
        }
        self.manager
            .prepare_request(&mut headers, &self.connection, "<uuid>");
        let received = headers.clone();
        let request = Request {
            method: case["m"].as_str().unwrap_or("GET"),
            scheme: received.text("x-forwarded-proto").unwrap_or_default(),
            authority: &authority,
            path: &path,
            headers: &received,
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
        let found = match table.find(&request, &context) {
            Ok(found) => found,
            Err(_) => return (case["out"]["r"][0]["s"] != 404).then(|| "no route".to_owned()),
        };
        let upstream = self.upstream(&found, &request, headers);
        let wrong = compare(&case["out"]["u"][0]["h"], &authority, upstream);
        wrong.or_else(|| self.response(&found, &request, case))
    }

    /// The headers of the request as it leaves.
    fn upstream(
        &self,
        found: &RouteMatch<'_>,
        request: &Request<'_>,
        mut headers: Headers,
    ) -> Headers {
        let runtime = Runtime::default();
        let context = Context {
            random: 0,
            runtime: &runtime,
            peer: None,
        };
        let forward = found.forward(request, &context);
        let forwarding = found.forwarding();
        let timeouts = forwarding.map(|forwarding| forwarding.timeouts(request, None, None));
        let expected =
            timeouts.and_then(|timeouts| timeouts.expected(std::time::Duration::ZERO, false));
        if let Some(expected) = expected {
            headers.set(
                "x-envoy-expected-rq-timeout-ms",
                expected.as_millis().to_string(),
            );
        }
        let values = FormatContext {
            request: Some(*request),
            protocol: "HTTP/1.1",
            remote: "127.0.0.1:5000",
            local: "127.0.57.1:20000",
            route: found.route.name(),
            upstream_host: "127.0.57.1:19001",
            ..FormatContext::default()
        };
        found.mutate_request(forward.as_ref(), &mut headers, &values);
        headers
    }

    fn response(
        &self,
        found: &RouteMatch<'_>,
        request: &Request<'_>,
        case: &Value,
    ) -> Option<String> {
        let recorded = &case["out"]["r"][0];
        let status = u16::try_from(recorded["s"].as_u64()?).ok()?;
        let is_upstream = !list(&case["out"]["u"]).is_empty() && status != 503;
        let mut headers = Headers::new();
        if is_upstream {
            headers.append("x-up", "a");
            let lines = header(&case["h"], "x-up-hdr")
                .unwrap_or_default()
                .to_owned();
            for (name, value) in lines.split('|').filter_map(|line| line.split_once(": ")) {
                headers.append(name.to_owned(), value.to_owned());
            }
            self.manager.clean_response(&mut headers);
            headers.set("x-envoy-upstream-service-time", "<ms>");
        }
        let before = headers.clone();
        let runtime = Runtime::default();
        let context = Context {
            random: 0,
            runtime: &runtime,
            peer: None,
        };
        let forward = found.forward(request, &context);
        let details = match is_upstream {
            true => "via_upstream",
            false => "upstream_reset_before_response_started{connection_termination}",
        };
        found.mutate_response(
            forward.as_ref(),
            &mut headers,
            &FormatContext {
                request: Some(*request),
                response: Some(&before),
                status: if is_upstream { status } else { 0 },
                flags: if is_upstream { "" } else { "UC" },
                details,
                upstream_host: "127.0.57.1:19001",
                ..FormatContext::default()
            },
        );
        if !is_upstream {
            headers.append("content-type", "text/plain");
        }
        self.manager
            .finish_response(&mut headers, request.headers, "<date>");
        compare(&recorded["h"], "", headers)
    }
}

/// Compares headers, but for those of framing and `host`.
fn compare(recorded: &Value, authority: &str, ours: Headers) -> Option<String> {
    let theirs: Vec<(String, String)> = list(recorded)
        .iter()
        .map(|pair| (text(&pair[0]).to_owned(), text(&pair[1]).to_owned()))
        .filter(|(name, _)| !FRAMING.contains(&name.as_str()))
        .filter(|(name, value)| name != "host" || value != authority)
        .collect();
    let ours: Vec<(String, String)> = ours
        .iter()
        .map(|line| {
            let utf8 = |bytes| String::from_utf8_lossy(bytes).into_owned();
            let value = utf8(line.value()).replace("192.168.7.7", "<node-ip>");
            (utf8(line.name()), value)
        })
        .filter(|(name, _)| !FRAMING.contains(&name.as_str()) && !name.starts_with("x-up-"))
        .collect();
    (ours != theirs).then(|| format!("\n  Envoy {theirs:?}\n  here  {ours:?}"))
}
