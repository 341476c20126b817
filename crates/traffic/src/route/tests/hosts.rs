//! The virtual host of a request, and what it wants of all of them.

use serde_json::{Value, json};

use super::{compile, found, of, request, with};
use crate::headers::Headers;
use crate::request::Request;
use crate::route::{Action, Context, NoRoute};
use crate::runtime::Runtime;

#[test]
fn d34_a_host_is_found_in_any_case_and_of_any_length() {
    let label = "A".repeat(60);
    let long = [&*label; 5].join(".");
    let host = |name: &str, domain: &str| json!({"name": name, "domains": [domain]});
    let table = compile(&json!({"virtual_hosts": [
        host("long", &long),
        host("short", "short.test"),
        host("suffix", "*.SUFFIX"),
        host("longer", "*.longer.suffix"),
        host("prefix", "prefix.*"),
        host("any", "*"),
    ]}));
    let table = table.expect("a table");
    let headers = Headers::new();
    let upper = long.to_ascii_uppercase();
    for (authority, expected) in [
        (&*long, "long"),
        (&*upper, "long"),
        ("SHORT.test", "short"),
        ("a.Suffix", "suffix"),
        ("a.longer.suffix", "longer"),
        (".longer.suffix", "suffix"),
        // The star is at least one character.
        (".suffix", "any"),
        ("Prefix.a", "prefix"),
        ("prefix.", "any"),
        ("", "any"),
    ] {
        let request = Request {
            authority,
            ..request("/", &headers)
        };
        let host = table.find_virtual_host(&request).map(|host| host.name());
        assert_eq!(host, Some(expected), "{authority}");
    }
    let other = table.without_virtual_host("any");
    assert_eq!(other.virtual_hosts().len(), 6, "it was not there on demand");
}

#[test]
fn d34_the_host_may_be_in_a_header_and_its_port_may_not_count() {
    let host = json!({"name": "v", "domains": ["v.test"]});
    let found = |fields: &Value, authority: &str, sent: &[(&'static str, &'static str)]| {
        let table = compile(&with(json!({"virtual_hosts": [host]}), fields)).expect("a table");
        let headers = of(sent);
        let request = Request {
            authority,
            ..request("/", &headers)
        };
        table.find_virtual_host(&request).is_some()
    };
    let header = json!({"vhost_header": "X-Host"});
    let port = json!({"ignore_port_in_host_matching": true});
    assert!(found(&json!({}), "v.test", &[("x-host", "w.test")]));
    assert!(!found(&json!({}), "v.test:80", &[]));
    assert!(found(&port, "v.test:80", &[]));
    assert!(found(&port, "v.test", &[]));
    assert!(found(&header, "w.test", &[("x-host", "v.test")]));
    assert!(!found(&header, "v.test", &[("x-host", "w.test")]));
    assert!(!found(&header, "v.test", &[]));
}

#[test]
fn d35_a_virtual_host_may_want_tls() {
    let find = |requirement: &str, scheme: &str, sent: &[(&'static str, &'static str)]| {
        let host = json!({"name": "v", "domains": ["*"], "require_tls": requirement});
        let table = compile(&json!({"virtual_hosts": [host]})).expect("a table");
        let headers = of(sent);
        let request = Request {
            scheme,
            authority: "v.test:8080",
            ..request("/a?b", &headers)
        };
        let runtime = Runtime::default();
        let context = Context {
            random: 0,
            runtime: &runtime,
            peer: None,
        };
        assert_eq!(table.tls_location(&request), "https://v.test:8080/a?b");
        matches!(table.find(&request, &context), Err(NoRoute::NeedsTls(_)))
    };
    let inside = [("x-envoy-internal", "true")];
    let outside = [("x-envoy-internal", "false")];
    assert!(!find("NONE", "http", &[]));
    assert!(find("ALL", "http", &inside));
    assert!(!find("ALL", "https", &[]));
    assert!(find("EXTERNAL_ONLY", "http", &outside));
    assert!(find("EXTERNAL_ONLY", "http", &[]));
    assert!(!find("EXTERNAL_ONLY", "http", &inside));
    assert!(!find("EXTERNAL_ONLY", "https", &[]));
}

#[test]
fn a_table_says_its_name_and_those_of_its_parts() {
    let table = compile(&json!({"name": "t", "virtual_hosts": [
        {"name": "a", "domains": ["A.test", "*.b"], "routes": [
            {"name": "r", "match": {"prefix": "/"}, "non_forwarding_action": {}},
        ]},
        {"name": "b", "domains": ["*"], "include_request_attempt_count": true},
        {"name": "c", "domains": ["c"], "include_attempt_count_in_response": true},
    ]}));
    let table = table.expect("a table");
    assert_eq!(table.name(), "t");
    let hosts = table.virtual_hosts().iter();
    let said: Vec<_> = hosts
        .map(|host| {
            (
                host.name(),
                host.counts_attempts(),
                host.counts_attempts_in_response(),
            )
        })
        .collect();
    assert_eq!(
        said,
        [("a", false, false), ("b", true, false), ("c", false, true)]
    );
    let host = &table.virtual_hosts()[0];
    assert_eq!(host.domains().collect::<Vec<_>>(), ["a.test", "*.b"]);
    assert_eq!(host.routes()[0].name(), "r");
    assert!(matches!(host.routes()[0].action(), Action::None));
    assert!(found(
        &table,
        &Request {
            authority: "a.test",
            ..request("/", &Headers::new())
        },
        |found, context| {
            found
                .forward(&request("/", &Headers::new()), context)
                .is_none()
                && found.location(&request("/", &Headers::new())).is_none()
        }
    ));
    assert_eq!(table.on_demand(), 0);
}
