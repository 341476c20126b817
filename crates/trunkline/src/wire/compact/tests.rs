//! Variants by conditions on parts of a resource.

use trunkline_core::kind;
use trunkline_core::params::Params;
use trunkline_proto::text;

use super::*;
use crate::wire::{Accepted, Intake, text_options};

fn try_text(text: &str) -> Result<Accepted, AcceptError> {
    let read = text::read("f.yaml", text, &text_options());
    assert_eq!(read.errors, [], "{text}");
    assert_eq!(read.resources[0].validate(), []);
    Intake::default().accept_text(&read.resources[0])
}

fn accepted(text: &str) -> Accepted {
    try_text(text).unwrap()
}

fn when(condition: &str) -> String {
    format!("metadata: {{filter_metadata: {{trunkline: {{when: '{condition}'}}}}}}")
}

fn route(prefix: &str, condition: &str) -> String {
    let when = match condition {
        "" => String::new(),
        some => format!(", {}", when(some)),
    };
    format!("{{match: {{prefix: /{prefix}}}, route: {{cluster: {prefix}}}{when}}}")
}

/// A route configuration with one virtual host of these routes.
fn routes(routes: &[(&str, &str)]) -> String {
    let routes: Vec<String> = routes.iter().map(|(p, c)| route(p, c)).collect();
    format!(
        "\"@type\": {}\nname: r\nvirtual_hosts:\n- name: v\n  domains: [d]\n  routes: [{}]\n",
        kind::RDS,
        routes.join(", ")
    )
}

fn wrapped(constraints: &str, inner: &str) -> String {
    format!(
        "\"@type\": type.googleapis.com/envoy.service.discovery.v3.Resource\n\
         resource_name: {{name: r, dynamic_parameter_constraints: {constraints}}}\nresource:\n  {}",
        inner.replace('\n', "\n  ")
    )
}

/// The constraints of each variant, and the clusters that it refers to.
fn variants(accepted: &Accepted) -> Vec<String> {
    let show = |one: &trunkline_core::resource::Resource| {
        let clients = one.constraints.as_ref().map(ToString::to_string);
        let references = one.facts().references.iter();
        let references: Vec<&str> = references.map(|to| to.name.as_str()).collect();
        format!("{}: {}", clients.unwrap_or_default(), references.join(","))
    };
    accepted.variants.iter().map(show).collect()
}

/// The document's example: three environments and three versions, and two
/// routes with a condition each.
#[test]
fn tp2_four_variants_not_nine() {
    let text = routes(&[("prod", "env=prod"), ("v1", "version=v1"), ("all", "")]);
    let accepted = accepted(&text);
    assert_eq!(
        variants(&accepted),
        [
            "env=prod AND version=v1: all,prod,v1",
            "env=prod AND NOT version=v1: all,prod",
            "NOT env=prod AND version=v1: all,v1",
            "NOT env=prod AND NOT version=v1: all",
        ]
    );
    assert_eq!((accepted.written, accepted.clients), (None, None));
    // Each is the resource that an author would have written for those clients.
    for (variant, parts) in accepted.variants.iter().zip([
        &["prod", "v1", "all"][..],
        &["prod", "all"],
        &["v1", "all"],
        &["all"],
    ]) {
        let plain: Vec<_> = parts.iter().map(|part| (*part, "")).collect();
        let plain = self::accepted(&routes(&plain)).variants.remove(0);
        assert_eq!(variant.body, plain.body);
        assert_eq!(variant.version, plain.version);
    }
}

#[test]
fn variants_with_the_same_contents_are_one() {
    // A client with either of the two gets the route, in whichever spelling.
    let text = routes(&[("a", "env=prod OR env=test"), ("b", "env=test OR env=prod")]);
    let expected = [
        "env=prod OR env=test: a,b",
        "NOT env=prod AND NOT env=test: ",
    ];
    assert_eq!(variants(&accepted(&text)), expected);
    // A part inside of one that is not there makes no difference.
    let nested = format!(
        "\"@type\": {}\nname: r\nvirtual_hosts:\n- name: v\n  domains: [d]\n  {}\n  routes: [{}]\n",
        kind::RDS,
        when("env=prod"),
        route("a", "version=v1")
    );
    assert_eq!(
        variants(&accepted(&nested)),
        [
            "env=prod AND version=v1: a",
            "env=prod AND NOT version=v1: ",
            "NOT env=prod: "
        ]
    );
}

#[test]
fn constraints_around_a_resource_hold_for_all_its_variants() {
    let text = routes(&[("a", "version=v1"), ("b", "env=prod"), ("c", "env=test")]);
    let accepted = accepted(&wrapped("env=prod", &text));
    assert_eq!(
        variants(&accepted),
        [
            "env=prod AND version=v1: a,b",
            "env=prod AND NOT version=v1: b"
        ]
    );
    assert_eq!(accepted.written, accepted.clients);
    let doubts: Vec<String> = accepted.doubts.iter().map(|(_, d)| d.to_string()).collect();
    assert!(doubts[0].starts_with("the condition \"env=prod\" holds for every client"));
    assert!(doubts[1].starts_with("the condition \"env=test\" holds for no client"));
}

#[test]
fn a_resource_may_be_for_some_clients_as_a_whole() {
    let cluster = |condition: &str| {
        format!(
            "\"@type\": {}\nname: c\nmetadata: {{filter_metadata: {{x: {{k: v}}, \
             trunkline: {{when: {condition}}}}}}}",
            kind::CDS
        )
    };
    let prod = accepted(&cluster("env=prod"));
    assert_eq!(variants(&prod), ["env=prod: "]);
    assert_eq!(prod.clients, prod.variants[0].constraints);
    let plain = cluster("env=prod").replace(", trunkline: {when: env=prod}", "");
    assert_eq!(accepted(&plain).variants[0].body, prod.variants[0].body);
    let never = accepted(&cluster("env=prod AND env=test"));
    assert_eq!((never.variants.len(), never.name.as_str()), (0, "c"));
    assert!(matches!(never.doubts[0].1, Doubt::Never { .. }));
    let always = accepted(&cluster("always"));
    assert_eq!(variants(&always), [": "]);
    assert!(matches!(always.doubts[0].1, Doubt::Always { .. }));
}

#[test]
fn virtual_hosts_have_variants_and_their_route_configuration_has_not() {
    let text = routes(&[("a", "env=prod"), ("b", "")]).replace(
        "virtual_hosts:",
        &format!(
            "vhds: {{config_source: {{ads: {{}}}}}}\nvirtual_hosts:\n\
             - {{name: w, domains: [w], {}}}\n- {{name: x, domains: [x]}}",
            when("version=v1")
        ),
    );
    let hosts = |accepted: &Accepted| -> Vec<String> {
        let hosts = accepted.hosts.iter().map(|host| {
            let (index, one) = (host.index, &host.resource);
            let clients = one.constraints.as_ref().map(ToString::to_string);
            format!("{index} {} [{}]", one.name, clients.unwrap_or_default())
        });
        hosts.collect()
    };
    let plain = accepted(&text);
    assert_eq!(variants(&plain), [": "]);
    let expected = [
        "0 r/w [version=v1]",
        "1 r/x []",
        "2 r/v [env=prod]",
        "2 r/v [NOT env=prod]",
    ];
    assert_eq!(hosts(&plain), expected);
    // Virtual hosts are for the clients of their route configuration.
    let whole = text.replace("name: r\n", &format!("name: r\n{}\n", when("zone=z")));
    let whole = accepted(&whole);
    assert_eq!(variants(&whole), ["zone=z: "]);
    assert_eq!(hosts(&whole)[0], "0 r/w [version=v1 AND zone=z]");
    assert_eq!(hosts(&whole)[1], "1 r/x [zone=z]");
}

#[test]
fn what_is_wrong_is_said_at_its_place() {
    let wrong = |text: &str| {
        let (path, error) = try_text(text).unwrap_err().place();
        (path.to_string(), error.to_string())
    };
    let mark = "metadata.filter_metadata[\"trunkline\"]";
    let (path, error) = wrong(&routes(&[("a", "env=prod AND")]));
    assert_eq!(path, format!("virtual_hosts[0].routes[0].{mark}[\"when\"]"));
    assert!(error.starts_with("the condition \"env=prod AND\": at byte 12: expected a key"));
    let vhds = "vhds: {config_source: {ads: {}}}\nvirtual_hosts:";
    let text = routes(&[("a", "env")]).replace("virtual_hosts:", vhds);
    assert_eq!(wrong(&text).0, path);
    let (path, _) = wrong(&routes(&[("a", "b=1")]).replace("when:", "wen:"));
    assert_eq!(path, format!("virtual_hosts[0].routes[0].{mark}[\"wen\"]"));
}

#[test]
fn a_condition_around_a_resource_is_a_mistake() {
    let text = wrapped("env=prod", &routes(&[("a", "")]));
    let metadata = |key: &str| {
        let around = format!("metadata: {{filter_metadata: {{trunkline: {{{key}: a=1}}}}}}");
        try_text(&text.replace("\nresource:", &format!("\n{around}\nresource:")))
    };
    assert_eq!(metadata("when"), Err(AcceptError::ConditionAround));
    assert!(metadata("other").is_ok());
}

#[test]
fn an_explosion_is_refused_with_what_makes_it() {
    let conditions: Vec<String> = (0..20).map(|n| format!("k{n}=1")).collect();
    let parts: Vec<_> = conditions.iter().map(|c| ("a", c.as_str())).collect();
    let (path, error) = try_text(&routes(&parts)).unwrap_err().place();
    assert!(
        path.to_string().starts_with("virtual_hosts[0].routes[7]."),
        "{path}"
    );
    assert_eq!(
        error.to_string(),
        "8 conditions make more than 128 cases (k0=1; k1=1; k2=1; k3=1; k4=1; k5=1; k6=1; k7=1): \
         use fewer, or make them exclude each other"
    );
    // As many as there are values of one key are no explosion.
    let conditions: Vec<String> = (0..MOST_CASES - 1).map(|n| format!("k={n}")).collect();
    let parts: Vec<_> = conditions
        .iter()
        .map(|c| (c.as_str(), c.as_str()))
        .collect();
    let made = accepted(&routes(&parts));
    assert_eq!(made.variants.len(), MOST_CASES);
}

#[test]
fn what_leaves_too_little_is_refused_with_the_clients() {
    let listener = |part: &str| {
        format!(
            "\"@type\": {}\nname: l\ndefault_filter_chain:\n  {part}\n  filters:\n  - name: m\n    \
             typed_config:\n      \"@type\": type.googleapis.com/envoy.extensions.filters.network.\
             http_connection_manager.v3.HttpConnectionManager\n      stat_prefix: s\n      \
             route_config: {{{part}}}\n",
            kind::LDS,
        )
    };
    let part = when("env=prod");
    let error = try_text(&listener(&part).replacen(&part, "name: d", 1)).unwrap_err();
    assert_eq!(
        error.to_string(),
        "for clients with NOT env=prod too little is left of it: \
         default_filter_chain.filters[0].typed_config: one of rds, route_config, scoped_routes \
         is required; set one"
    );
    // The same where all of it is left out.
    let made = accepted(&listener(&part));
    assert_eq!(variants(&made), ["env=prod: ", "NOT env=prod: "]);
    let [with, without] = &made.variants[..] else {
        panic!("{made:?}");
    };
    assert!(with.body.as_ref().unwrap().len() > without.body.as_ref().unwrap().len());
}

/// A client gets the parts whose conditions it meets, and each variant once.
#[test]
fn every_client_gets_the_parts_whose_conditions_it_fulfils() {
    let texts = [
        "env=a",
        "NOT env=a",
        "env exists",
        "env=a OR env=b",
        "env=a AND version=1",
        "NOT (env=b OR version=1)",
        "version=1",
        "(env=a AND version=2) OR (env=b AND NOT version exists)",
        "zone exists AND NOT env=a",
    ];
    let values = |key: &'static str, values: [&'static str; 3]| {
        let some = values.map(|value| Some((key, value)));
        [None].into_iter().chain(some)
    };
    let mut clients = Vec::new();
    for env in values("env", ["a", "b", "c"]) {
        for version in values("version", ["1", "2", "3"]) {
            for zone in [None, Some(("zone", "z"))] {
                let all = [env, version, zone].into_iter().flatten();
                clients.push(Params::new(all).unwrap());
            }
        }
    }
    for (place, one) in texts.iter().enumerate() {
        for (more, two) in texts.iter().enumerate().skip(place) {
            let three = texts[(place + 2 * more) % texts.len()];
            let parts = [("one", *one), ("two", *two), ("three", three)];
            let made = accepted(&routes(&parts));
            for client in &clients {
                let matches = |text: &str| text.parse::<Constraints>().unwrap().matches(client);
                let mut expected: Vec<&str> = parts
                    .iter()
                    .filter(|(_, condition)| matches(condition))
                    .map(|(part, _)| *part)
                    .collect();
                expected.sort_unstable();
                let all = made.variants.iter();
                let mut got = all.filter(|variant| {
                    let clients = variant.constraints.as_ref();
                    clients.is_none_or(|clients| clients.matches(client))
                });
                let variant = got.next().unwrap();
                let references = variant.facts().references.iter();
                let references: Vec<&str> = references.map(|to| to.name.as_str()).collect();
                assert_eq!(references, expected, "{client} {parts:?}");
                assert_eq!(got.count(), 0, "{client} {parts:?}");
            }
            // No variant differs from another by its constraints only.
            let mut bodies: Vec<_> = made.variants.iter().map(|one| &one.body).collect();
            bodies.sort();
            bodies.dedup();
            assert_eq!(bodies.len(), made.variants.len(), "{parts:?}");
        }
    }
}
