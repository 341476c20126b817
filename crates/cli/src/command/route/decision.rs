//! What becomes of a request, as texts.

use std::borrow::Cow;

use trunkline_traffic::Runtime;
use trunkline_traffic::route::{
    Action, Context, Forward, NoRoute, RouteMatch, RouteTable, VirtualHost,
};

use super::request::RequestSpec;

/// What becomes of a request. An absent field does not apply.
#[derive(Debug, Default)]
pub(super) struct Decision {
    virtual_host: Option<String>,
    route: Option<String>,
    cluster: Option<String>,
    status: Option<String>,
    location: Option<String>,
    path: Option<String>,
    host: Option<String>,
    mirrors: Option<String>,
    note: Option<String>,
    /// Routes that were looked at before and do not match: index, name, reason.
    pub(super) passed_over: Vec<(usize, String, String)>,
}

/// The names of the fields of a decision, which expectations may name too.
pub(super) const FIELDS: &[&str] = &[
    "virtual host",
    "route",
    "cluster",
    "status",
    "location",
    "path",
    "host",
    "mirrors",
    "note",
];

impl Decision {
    /// Returns the name and the value of each field that applies, in the order
    /// of [`FIELDS`].
    pub(super) fn fields(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let values = [
            &self.virtual_host,
            &self.route,
            &self.cluster,
            &self.status,
            &self.location,
            &self.path,
            &self.host,
            &self.mirrors,
            &self.note,
        ];
        let pairs = FIELDS.iter().zip(values);
        pairs.filter_map(|(name, value)| Some((*name, value.as_deref()?)))
    }

    /// Adds where a request is forwarded to. `no_cluster_status` is the status of
    /// the response if the request names no cluster.
    fn add_forward(&mut self, forward: Forward<'_>, no_cluster_status: String) {
        match forward.cluster.name {
            Some(name) => self.cluster = Some(name.to_owned()),
            None => {
                self.status = Some(no_cluster_status);
                self.note = Some("the request names no cluster".to_owned());
            }
        }
        self.path = forward.path;
        self.host = forward.host.map(Cow::into_owned);
        let mirrors: Vec<&str> = forward
            .mirrors
            .iter()
            .map(|mirror| mirror.cluster)
            .collect();
        self.mirrors = (!mirrors.is_empty()).then(|| mirrors.join(", "));
    }

    /// Returns the value of a field; empty if it does not apply.
    pub(super) fn field(&self, name: &str) -> &str {
        let mut fields = self.fields();
        fields
            .find(|(field, _)| *field == name)
            .map_or("", |(_, value)| value)
    }
}

/// Routes a request, and describes the outcome with the routes that did not
/// match.
pub(super) fn decide_route(
    table: &RouteTable,
    request_spec: &RequestSpec,
    random: u64,
) -> Decision {
    let runtime = Runtime::default();
    let context = Context {
        random,
        runtime: &runtime,
        peer: None,
    };
    let request = request_spec.request();

    match table.find(&request, &context) {
        Ok(route_match) => {
            let mut decision = describe_match(&route_match, request_spec, &context);
            decision.passed_over =
                routes_passed_over(table, route_match.virtual_host, request_spec, &context);
            decision.passed_over.truncate(route_match.index);
            decision
        }
        Err(no_route) => describe_no_route(table, no_route, request_spec, &context),
    }
}

/// Describes the response to a request that no route matches, or that has to
/// come by TLS.
fn describe_no_route(
    table: &RouteTable,
    no_route: NoRoute<'_>,
    request_spec: &RequestSpec,
    context: &Context<'_>,
) -> Decision {
    match no_route {
        NoRoute::Host => Decision {
            status: Some("404".to_owned()),
            note: Some("no virtual host has this host".to_owned()),
            ..Decision::default()
        },
        NoRoute::Route(host) => Decision {
            virtual_host: Some(host.name().to_owned()),
            status: Some("404".to_owned()),
            note: Some("no route of the virtual host matches".to_owned()),
            passed_over: routes_passed_over(table, host, request_spec, context),
            ..Decision::default()
        },
        NoRoute::NeedsTls(host) => Decision {
            virtual_host: Some(host.name().to_owned()),
            status: Some("301".to_owned()),
            location: Some(table.tls_location(&request_spec.request())),
            note: Some("the virtual host requires TLS".to_owned()),
            ..Decision::default()
        },
    }
}

/// Describes the decision of a route that matches.
fn describe_match(
    route_match: &RouteMatch<'_>,
    request_spec: &RequestSpec,
    context: &Context<'_>,
) -> Decision {
    let request = request_spec.request();
    let mut decision = Decision {
        virtual_host: Some(route_match.virtual_host.name().to_owned()),
        route: Some(label(route_match.index, route_match.route.name())),
        ..Decision::default()
    };

    match route_match.route.action() {
        Action::Redirect(redirect) => {
            decision.status = Some(redirect.status().to_string());
            decision.location = route_match.location(&request);
        }
        Action::DirectResponse(direct) => decision.status = Some(direct.status.to_string()),
        Action::None => {
            decision.status = Some("503".to_owned());
            decision.note = Some("the route does not forward".to_owned());
        }
        Action::Forward(forwarding) => {
            if let Some(forward) = route_match.forward(&request, context) {
                let no_cluster_status = forwarding.cluster_not_found_status().to_string();
                decision.add_forward(forward, no_cluster_status);
            }
        }
    }
    decision
}

/// Returns the name of a route, or its place if it has none.
fn label(index: usize, name: &str) -> String {
    match name {
        "" => format!("[{index}]"),
        name => name.to_owned(),
    }
}

/// Returns the routes of a virtual host that do not match, each with its index,
/// its label and the reason.
fn routes_passed_over(
    table: &RouteTable,
    host: &VirtualHost,
    request_spec: &RequestSpec,
    context: &Context<'_>,
) -> Vec<(usize, String, String)> {
    let tests = table.explain(host, &request_spec.request(), context);
    let routes = host.routes().iter().zip(tests).enumerate();
    routes
        .filter_map(|(index, (route, test))| {
            let reason = test.err()?.to_string();
            Some((index, label(index, route.name()), reason))
        })
        .collect()
}
