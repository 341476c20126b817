//! Scoped routes (52).

use serde_json::{Value, json};
use trunkline_proto::envoy::envoy::extensions::filters::network::http_connection_manager::v3::ScopedRoutes as Message;

use super::with;
use crate::findings::Findings;
use crate::headers::Headers;
use crate::json::message;
use crate::route::{RouteTable, ScopedRoutes};

fn scoped(json: &Value) -> Result<ScopedRoutes, Findings> {
    let of = "envoy.extensions.filters.network.http_connection_manager.v3.ScopedRoutes";
    ScopedRoutes::compile(&message::<Message>(of, json))
}

fn fragment(extractor: &Value) -> Value {
    json!({"header_value_extractor": with(json!({"name": "X-Scope"}), extractor)})
}

fn scope(name: &str, keys: &[&str]) -> Value {
    let fragments: Vec<Value> = keys.iter().map(|key| json!({"string_key": key})).collect();
    json!({
        "name": name,
        "key": {"fragments": fragments},
        "route_configuration": {"name": name},
    })
}

#[test]
fn d52_a_scope_is_found_by_the_fragments_of_its_key() {
    let elements = json!({"element_separator": ";", "element": {"separator": "=", "key": "k"}});
    let second = json!({"element_separator": ";", "index": 1});
    let first = json!({"index": 0});
    for (extractor, value, expected) in [
        (&elements, "a=x;k=one", Some("one")),
        (&elements, "k=two", Some("two")),
        (&elements, "k=two;k=one", Some("two")),
        (&elements, "k", None),
        (&elements, "a; k=one", None),
        (&elements, "k=three", None),
        (&second, "two;one", Some("one")),
        (&second, "one", None),
        (&second, "a; one", None),
        // Without a separator the value is one element.
        (&first, "one", Some("one")),
        (&first, "one;two", None),
    ] {
        let routes = scoped(&json!({
            "name": "s",
            "scope_key_builder": {"fragments": [fragment(extractor)]},
            "scoped_route_configurations_list": {
                "scoped_route_configurations": [scope("one", &["one"]), scope("two", &["two"])],
            },
        }));
        let routes = routes.expect("scopes");
        let headers: Headers = [("x-scope", value), ("x-scope", "one")]
            .into_iter()
            .collect();
        let found = routes.find(&headers).map(RouteTable::name);
        assert_eq!(found, expected, "{extractor} {value}");
        assert!(routes.find(&Headers::new()).is_none());
    }
}

#[test]
fn d52_what_a_scope_cannot_have_is_a_finding() {
    let good = fragment(&json!({"index": 0}));
    let list = |scopes: Value| json!({"scoped_route_configurations": scopes});
    let wrong_table = with(
        scope("s", &["a"]),
        &json!({"route_configuration": {"virtual_hosts": [{"name": "v"}]}}),
    );
    let start = "scoped_route_configurations_list.scoped_route_configurations";
    for (fragments, scopes, expected) in [
        (
            json!([{}]),
            json!([]),
            "scope_key_builder.fragments[0]".to_owned(),
        ),
        (
            json!([good, fragment(&json!({}))]),
            json!([]),
            "scope_key_builder.fragments[1].header_value_extractor".to_owned(),
        ),
        (
            json!([good]),
            json!([scope("s", &["a"]), {"name": "t"}]),
            format!("{start}[1].route_configuration"),
        ),
        (
            json!([good]),
            json!([wrong_table]),
            format!("{start}[0].route_configuration.virtual_hosts[0].domains"),
        ),
    ] {
        let routes = scoped(&json!({
            "scope_key_builder": {"fragments": fragments},
            "scoped_route_configurations_list": list(scopes),
        }));
        let findings = routes.expect_err("a finding");
        assert_eq!(findings.list()[0].path, expected);
    }
    let listed = json!({"scope_key_builder": {"fragments": [good]}, "scoped_rds": {}});
    let findings = scoped(&listed).expect_err("a finding");
    assert_eq!(findings.list()[0].path, "scoped_rds");
}
