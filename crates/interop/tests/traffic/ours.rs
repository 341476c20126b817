//! What a proxy on `trunkline-traffic` would do.

use std::net::IpAddr;
use std::time::Duration;

use trunkline_traffic::connection_manager::{
    Connection, ConnectionManager, NormalisedPath, Routes,
};
use trunkline_traffic::headers::{FormatContext, Headers};
use trunkline_traffic::retry::{Exchange, RetryContext, RetryState, Step, remove_directions};
use trunkline_traffic::route::{Action, Context, Forward, Leaving, NoRoute, RouteMatch};
use trunkline_traffic::{Request, Runtime};

use super::backends;
use super::requests::RandomRequest;
use super::seen::{Body, Seen, Upstream};

/// The clusters that routes name, in the order of their backends.
pub(crate) const CLUSTERS: [&str; 3] = ["a", "b", "c"];

fn reply(status: u16, location: Option<String>) -> Seen {
    Seen {
        status,
        location,
        ..Seen::default()
    }
}

/// Takes a request as the connection manager does, and lets something be done
/// with it.
pub(crate) fn received<T>(
    manager: &ConnectionManager,
    sent: &RandomRequest,
    then: impl FnOnce(Result<&Request<'_>, Seen>) -> T,
) -> T {
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
        NormalisedPath::Redirect(path) => return then(Err(reply(307, Some(path)))),
        NormalisedPath::Refused => return then(Err(reply(400, None))),
    };
    then(Ok(&Request {
        method: "GET",
        scheme: "http",
        authority: &sent.host,
        path: &path,
        headers: &headers,
    }))
}

/// Decides on a request.
pub(crate) fn decide(manager: &ConnectionManager, sent: &RandomRequest) -> Seen {
    received(manager, sent, |request| match request {
        Ok(request) => route(manager, request),
        Err(seen) => seen,
    })
}

fn route(manager: &ConnectionManager, request: &Request<'_>) -> Seen {
    let runtime = Runtime::default();
    let context = Context {
        random: 0,
        runtime: &runtime,
        peer: None,
    };
    let Routes::Table(table) = manager.routes() else {
        panic!("a table");
    };
    let found = match table.find(request, &context) {
        Ok(found) => found,
        Err(NoRoute::NeedsTls(_)) => return reply(301, Some(table.tls_location(request))),
        Err(_) => return reply(404, None),
    };
    let mut seen = reply(0, found.location(request));
    let forward = found.forward(request, &context);
    let mut response = Headers::new();
    // Formats of the response see the request as it left, if it did.
    let mut left = None;
    match found.route.action() {
        Action::DirectResponse(direct) => {
            seen.status = direct.status;
            seen.body = Body::Text(String::from_utf8_lossy(&direct.body).into_owned());
        }
        Action::Redirect(redirect) => seen.status = redirect.status(),
        Action::None => panic!("it is not made"),
        Action::Forward(forwarding) => {
            let forward = forward.as_ref().expect("a request that is forwarded");
            let name = forward.cluster.name;
            let known = CLUSTERS.iter().position(|known| Some(*known) == name);
            match known {
                None => seen.status = forwarding.cluster_not_found_status(),
                Some(index) => {
                    let (status, number) = attempts(&found, request, &mut response);
                    seen.status = status;
                    let (leaving, headers) = leave(&found, request, forward, number);
                    let mut upstream = Upstream {
                        address: backends::address(u8::try_from(index + 1).unwrap()).to_string(),
                        path: leaving.path,
                        host: leaving.host,
                        headers: lines(&headers),
                    };
                    left = Some((upstream.host.clone(), upstream.path.clone(), headers));
                    upstream.tidy();
                    seen.body = Body::Upstream(upstream);
                }
            }
        }
    }
    let left = left.as_ref().map(|(host, path, headers)| Request {
        authority: host,
        path,
        headers,
        ..*request
    });
    let values = FormatContext {
        request: Some(left.unwrap_or(*request)),
        protocol: "HTTP/1.1",
        ..FormatContext::default()
    };
    found.mutate_response(forward.as_ref(), &mut response, &values);
    seen.headers = lines(&response);
    seen.headers.retain(|(name, _)| Seen::compares(name));
    seen.headers.sort_by(|a, b| a.0.cmp(&b.0));
    seen
}

fn lines(headers: &Headers) -> Vec<(String, String)> {
    let utf8 = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let lines = headers.iter();
    lines
        .map(|line| (utf8(line.name()), utf8(line.value())))
        .collect()
}

/// Tries a request as often as the policy says. Returns the status of the last
/// response and its number, and leaves its headers.
fn attempts(found: &RouteMatch<'_>, request: &Request<'_>, response: &mut Headers) -> (u16, u32) {
    let forwarding = found.forwarding().expect("a request that is forwarded");
    let retries = RetryState::new(forwarding.retry_policy(), request);
    let timeouts = forwarding.timeouts(request, None, None);
    let now = Duration::ZERO;
    let mut exchange = Exchange::new(retries, timeouts, forwarding.hedges(request), now);
    let plan = request.headers.text("x-plan").unwrap_or("200");
    let context = RetryContext {
        random: 0,
        unix: now,
    };
    loop {
        let (number, _) = exchange.start_attempt(now);
        let (status, headers) = backends::planned(plan, number);
        let headers: Headers = headers.into_iter().collect();
        let step = exchange.handle_response(number, status, &headers, now, &context);
        if step == Step::Respond {
            *response = headers;
            if found.virtual_host.counts_attempts_in_response() {
                response.set("x-envoy-attempt-count", number.to_string());
            }
            return (status, number);
        }
    }
}

/// The request as it leaves.
fn leave(
    found: &RouteMatch<'_>,
    request: &Request<'_>,
    forward: &Forward<'_>,
    number: u32,
) -> (Leaving, Headers) {
    let mut headers = request.headers.clone();
    remove_directions(&mut headers);
    let forwarding = found.forwarding().expect("a request that is forwarded");
    let timeouts = forwarding.timeouts(request, None, None);
    if let Some(expected) = timeouts.expected(Duration::ZERO, forwarding.hedges(request)) {
        let expected = expected.as_millis().to_string();
        headers.set("x-envoy-expected-rq-timeout-ms", expected);
    }
    if found.virtual_host.counts_attempts() {
        headers.set("x-envoy-attempt-count", number.to_string());
    }
    let values = FormatContext {
        request: Some(*request),
        protocol: "HTTP/1.1",
        ..FormatContext::default()
    };
    let leaving = found.leave(forward, request, &mut headers, None, &values);
    (leaving, headers)
}
