//! Virtual hosts on demand (53), and what cannot be compiled.

#![expect(clippy::expect_used, reason = "tests")]

use trunkline_proto::envoy::envoy::config::route::v3::{
    Route, RouteAction, RouteConfiguration, RouteMatch, VirtualHost, route::Action,
    route_action::ClusterSpecifier, route_match::PathSpecifier,
};
use trunkline_traffic::Request;
use trunkline_traffic::headers::Headers;
use trunkline_traffic::route::RouteTable;

fn host(name: &str, domains: &[&str]) -> VirtualHost {
    VirtualHost {
        name: name.to_owned(),
        domains: domains.iter().map(ToString::to_string).collect(),
        routes: vec![Route {
            r#match: Some(RouteMatch {
                path_specifier: Some(PathSpecifier::Prefix("/".to_owned())),
                ..RouteMatch::default()
            }),
            action: Some(Action::Route(RouteAction {
                cluster_specifier: Some(ClusterSpecifier::Cluster(name.to_owned())),
                ..RouteAction::default()
            })),
            ..Route::default()
        }],
        ..VirtualHost::default()
    }
}

fn found<'t>(table: &'t RouteTable, authority: &str) -> Option<&'t str> {
    let headers = Headers::new();
    let request = Request {
        method: "GET",
        scheme: "http",
        authority,
        path: "/",
        headers: &headers,
    };
    table.find_virtual_host(&request).map(|host| host.name())
}

fn table(hosts: Vec<VirtualHost>) -> RouteTable {
    let message = RouteConfiguration {
        virtual_hosts: hosts,
        ..RouteConfiguration::default()
    };
    RouteTable::compile(&message).expect("a table")
}

#[test]
fn d53_hosts_come_and_go_and_older_tables_stay() {
    let empty = table(vec![host("base", &["base.test"])]);
    let one = empty.with_virtual_host("r/a.test", &host("a", &["a.test", "*.a.test"]));
    let one = one.expect("a host more");
    assert_eq!(found(&empty, "a.test"), None);
    assert_eq!(found(&one, "A.test"), Some("a"));
    assert_eq!(found(&one, "x.a.test"), Some("a"));
    assert_eq!(found(&one, "base.test"), Some("base"));

    let changed = one.with_virtual_host("r/a.test", &host("a2", &["a.test"]));
    let changed = changed.expect("another host of the name");
    assert_eq!(found(&changed, "a.test"), Some("a2"));
    assert_eq!(found(&changed, "x.a.test"), None);
    assert_eq!(changed.on_demand(), 1);

    let gone = changed.without_virtual_host("r/a.test");
    assert_eq!(found(&gone, "a.test"), None);
    assert_eq!(
        found(&one, "x.a.test"),
        Some("a"),
        "a table in use does not change"
    );
}

#[test]
fn d34_a_domain_of_two_virtual_hosts_is_a_finding() {
    let first = table(vec![host("a", &["a.test"])]);
    let findings = first
        .with_virtual_host("r/b", &host("b", &["b.test", "A.TEST"]))
        .expect_err("a domain twice");
    assert_eq!(
        findings.to_string(),
        "domains[1]: the domain \"a.test\" is that of the virtual host \"a\" too; remove one"
    );
}

#[test]
fn what_cannot_be_compiled_is_a_finding_with_its_path() {
    let mut wrong = host("a", &["a.test"]);
    wrong.routes[0].r#match = Some(RouteMatch {
        path_specifier: Some(PathSpecifier::PathSeparatedPrefix("/a/".to_owned())),
        ..RouteMatch::default()
    });
    wrong.routes.push(Route::default());
    let message = RouteConfiguration {
        virtual_hosts: vec![wrong],
        ..RouteConfiguration::default()
    };
    let findings = RouteTable::compile(&message).expect_err("two findings");
    let paths: Vec<_> = findings.list().iter().map(|found| &*found.path).collect();
    assert_eq!(
        paths,
        [
            "virtual_hosts[0].routes[0].match.path_separated_prefix",
            "virtual_hosts[0].routes[1].match",
        ]
    );
}
