//! Texts that configure traffic, and requests that meet them: expressions,
//! templates, formats, headers, times.
#![no_main]

use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;
use trunkline_proto::envoy::envoy::config::route::v3::{
    QueryParameterMatcher, Route, RouteAction, RouteConfiguration, RouteMatch, VirtualHost,
    query_parameter_matcher::QueryParameterMatchSpecifier, route::Action,
    route_action::ClusterSpecifier, route_match::PathSpecifier,
};
use trunkline_proto::envoy::envoy::r#type::matcher::v3::{
    RegexMatchAndSubstitute, RegexMatcher, StringMatcher, string_matcher::MatchPattern,
};
use trunkline_traffic::headers::{Format, FormatContext, Headers};
use trunkline_traffic::retry::{RetryPolicy, RetryState, grpc_timeout};
use trunkline_traffic::route::{Context, RouteTable};
use trunkline_traffic::{Request, Runtime};

#[derive(Arbitrary, Debug)]
struct Input<'a> {
    path: Path<'a>,
    rewrite: Option<(&'a str, &'a str)>,
    parameter: (&'a str, &'a str),
    domains: Vec<&'a str>,
    format: &'a str,
    host: &'a str,
    asked: &'a str,
    headers: Vec<(&'a str, &'a [u8])>,
    random: u64,
}

#[derive(Arbitrary, Debug)]
enum Path<'a> {
    Prefix(&'a str),
    Whole(&'a str),
    Separated(&'a str),
    Expression(&'a str),
}

fn expression(text: &str) -> RegexMatcher {
    RegexMatcher {
        regex: text.to_owned(),
        ..RegexMatcher::default()
    }
}

impl Path<'_> {
    fn specifier(&self) -> PathSpecifier {
        match self {
            Self::Prefix(text) => PathSpecifier::Prefix((*text).to_owned()),
            Self::Whole(text) => PathSpecifier::Path((*text).to_owned()),
            Self::Separated(text) => PathSpecifier::PathSeparatedPrefix((*text).to_owned()),
            Self::Expression(text) => PathSpecifier::SafeRegex(expression(text)),
        }
    }
}

fuzz_target!(|input: Input<'_>| {
    let headers: Headers = input
        .headers
        .iter()
        .map(|(name, value)| (name.to_string(), value.to_vec()))
        .collect();
    let request = Request {
        method: "GET",
        scheme: "http",
        authority: input.host,
        path: input.asked,
        headers: &headers,
    };
    let context = FormatContext {
        request: Some(request),
        remote: input.host,
        ..FormatContext::default()
    };
    if let Ok(format) = Format::new(input.format) {
        let _ = format.write(&context, "-");
    }
    let _ = grpc_timeout(input.format);
    let policy = RetryPolicy::default();
    let _ = RetryState::new(&policy, &request);
    route(&input, &request);
});

fn route(input: &Input<'_>, request: &Request<'_>) {
    let rewrite = input.rewrite.map(|(regex, by)| RegexMatchAndSubstitute {
        pattern: Some(expression(regex)),
        substitution: by.to_owned(),
    });
    let (name, regex) = input.parameter;
    let matcher = StringMatcher {
        match_pattern: Some(MatchPattern::SafeRegex(expression(regex))),
        ..StringMatcher::default()
    };
    let parameter = QueryParameterMatcher {
        name: name.to_owned(),
        query_parameter_match_specifier: Some(QueryParameterMatchSpecifier::StringMatch(matcher)),
    };
    let route = |parameters| Route {
        r#match: Some(RouteMatch {
            path_specifier: Some(input.path.specifier()),
            query_parameters: parameters,
            ..RouteMatch::default()
        }),
        action: Some(Action::Route(RouteAction {
            cluster_specifier: Some(ClusterSpecifier::Cluster("c".to_owned())),
            regex_rewrite: rewrite.clone(),
            ..RouteAction::default()
        })),
        ..Route::default()
    };
    let message = RouteConfiguration {
        virtual_hosts: vec![VirtualHost {
            name: "v".to_owned(),
            domains: input.domains.iter().map(ToString::to_string).collect(),
            routes: vec![route(vec![parameter]), route(Vec::new())],
            ..VirtualHost::default()
        }],
        ..RouteConfiguration::default()
    };
    let Ok(table) = RouteTable::compile(&message) else {
        return;
    };
    let runtime = Runtime::default();
    let context = Context {
        random: input.random,
        runtime: &runtime,
        peer: None,
    };
    let Ok(found) = table.find(request, &context) else {
        return;
    };
    // What says why routes do not match agrees with what finds the first.
    let tests = table.explain(found.virtual_host, request, &context);
    assert!(tests[found.index].is_ok());
    assert!(tests[..found.index].iter().all(Result::is_err));
    let forward = found.forward(request, &context).expect("a route forwards");
    if let Some(path) = forward.path {
        assert!(!path.is_empty(), "a rewrite to nothing is none");
    }
}
