//! What cannot be compiled, and the path of each finding.

use serde_json::{Value, json};
use trunkline_proto::acceptance::Problem;

use super::{compile, with};
use crate::findings::Findings;
use crate::route::Action;

/// The paths of the findings of a route configuration, without that of the first
/// route.
fn route_findings(route: &Value) -> Vec<String> {
    let host = json!({"name": "v", "domains": ["*"], "routes": [route]});
    let findings = compile(&json!({"virtual_hosts": [host]})).expect_err("a finding");
    let paths = findings.list().iter().map(|found| {
        let path = found.path.strip_prefix("virtual_hosts[0].routes[0]");
        path.unwrap_or(&found.path)
            .trim_start_matches('.')
            .to_owned()
    });
    paths.collect()
}

#[test]
fn what_a_match_cannot_have_is_a_finding() {
    let regex = json!({"regex": "("});
    for (fields, expected) in [
        (json!({"tls_context": {}}), "match.tls_context"),
        (
            json!({"dynamic_metadata": [{"filter": "f", "path": [{"key": "k"}], "value": {"present_match": true}}]}),
            "match.dynamic_metadata",
        ),
        (
            json!({"filter_state": [{"key": "k", "string_match": {"exact": "a"}}]}),
            "match.filter_state",
        ),
        (
            json!({"runtime_fraction": {}}),
            "match.runtime_fraction.default_value",
        ),
        (
            json!({"runtime_fraction": {"default_value": {"denominator": 7}}}),
            "match.runtime_fraction.default_value.denominator",
        ),
        (
            json!({"headers": [{"name": "a"}, {}]}),
            "match.headers[1].name",
        ),
        (
            json!({"headers": [{"name": "a", "safe_regex_match": regex}]}),
            "match.headers[0].safe_regex_match.regex",
        ),
        (
            json!({"headers": [{"name": "a", "string_match": {}}]}),
            "match.headers[0].string_match",
        ),
        (
            json!({"headers": [{"name": "a", "string_match": {"safe_regex": regex}}]}),
            "match.headers[0].string_match.safe_regex.regex",
        ),
        (
            json!({"headers": [{"name": "a", "string_match": {"custom": {"name": "x"}}}]}),
            "match.headers[0].string_match.custom",
        ),
        (
            json!({"query_parameters": [{"name": "a", "string_match": {}}]}),
            "match.query_parameters[0].string_match",
        ),
        (
            json!({"cookies": [{"name": "a"}]}),
            "match.cookies[0].string_match",
        ),
        (
            json!({"cookies": [{"name": "a", "string_match": {}}]}),
            "match.cookies[0].string_match",
        ),
    ] {
        let criteria = with(json!({"prefix": "/"}), &fields);
        let route = json!({"match": criteria, "route": {"cluster": "c"}});
        assert_eq!(route_findings(&route), [expected], "{fields}");
    }
    let template = |text: &str| {
        json!({"name": "t", "typed_config": {
            "@type": "type.googleapis.com/envoy.extensions.path.match.uri_template.v3.UriTemplateMatchConfig",
            "path_template": text,
        }})
    };
    for (criteria, expected) in [
        (json!({}), "match"),
        (json!({"safe_regex": regex}), "match.safe_regex.regex"),
        (
            json!({"path_separated_prefix": "/a/"}),
            "match.path_separated_prefix",
        ),
        (
            json!({"path_separated_prefix": "/a?"}),
            "match.path_separated_prefix",
        ),
        (
            json!({"path_separated_prefix": "/a#b"}),
            "match.path_separated_prefix",
        ),
        (
            json!({"path_match_policy": {"name": "t"}}),
            "match.path_match_policy",
        ),
        (
            json!({"path_match_policy": template("a")}),
            "match.path_match_policy.typed_config",
        ),
    ] {
        let route = json!({"match": criteria, "route": {"cluster": "c"}});
        assert_eq!(route_findings(&route), [expected], "{criteria}");
    }
    assert_eq!(
        route_findings(&json!({"route": {"cluster": "c"}})),
        ["match"]
    );
}

#[test]
fn what_an_action_cannot_have_is_a_finding() {
    let regex = json!({"pattern": {"regex": "("}});
    let extension = json!({"name": "x"});
    for (fields, expected) in [
        (json!({"early_data_policy": extension}), "early_data_policy"),
        (
            json!({"internal_redirect_policy": {}}),
            "internal_redirect_policy",
        ),
        (
            json!({"retry_policy": {"retry_priority": extension}}),
            "retry_policy.retry_priority",
        ),
        (json!({"path_rewrite": "%PATH%"}), "path_rewrite"),
        (
            json!({"prefix_rewrite": "/", "regex_rewrite": {"pattern": {"regex": "a"}}}),
            "",
        ),
        (
            json!({"regex_rewrite": regex}),
            "regex_rewrite.pattern.regex",
        ),
        (
            json!({"path_rewrite_policy": extension}),
            "path_rewrite_policy",
        ),
        (json!({"host_rewrite": "%PATH%"}), "host_rewrite"),
        (
            json!({"host_rewrite_path_regex": regex}),
            "host_rewrite_path_regex.pattern.regex",
        ),
        (json!({"hash_policy": [{}]}), "hash_policy[0]"),
        (
            json!({"hash_policy": [{"filter_state": {"key": "k"}}]}),
            "hash_policy[0].filter_state",
        ),
        (
            json!({"hash_policy": [{"header": {"header_name": "a", "regex_rewrite": regex}}]}),
            "hash_policy[0].header.regex_rewrite.pattern.regex",
        ),
        (
            json!({"request_mirror_policies": [{"cluster": "m", "runtime_fraction": {}}]}),
            "request_mirror_policies[0].runtime_fraction.default_value",
        ),
    ] {
        let action = with(json!({"cluster": "c"}), &fields);
        let route = json!({"match": {"prefix": "/"}, "route": action});
        let expected = format!("route.{expected}");
        assert_eq!(
            route_findings(&route),
            [expected.trim_end_matches('.')],
            "{fields}"
        );
    }
    let entry = |fields: Value| json!({"weighted_clusters": {"clusters": [fields]}});
    let big = u32::MAX;
    for (action, expected) in [
        (json!({}), ""),
        (
            json!({"cluster_specifier_plugin": "p"}),
            "cluster_specifier_plugin",
        ),
        (
            json!({"inline_cluster_specifier_plugin": {"extension": extension}}),
            "inline_cluster_specifier_plugin",
        ),
        (entry(json!({"name": "c"})), "weighted_clusters"),
        (
            json!({"weighted_clusters": {"clusters": [{"name": "a", "weight": big}, {"name": "b", "weight": 1}]}}),
            "weighted_clusters",
        ),
        (
            json!({"weighted_clusters": {"runtime_key_prefix": "k", "clusters": [{"name": "a", "weight": big}]}}),
            "weighted_clusters.runtime_key_prefix",
        ),
    ] {
        let route = json!({"match": {"prefix": "/"}, "route": action});
        let expected = format!("route.{expected}");
        assert_eq!(
            route_findings(&route),
            [expected.trim_end_matches('.')],
            "{action}"
        );
    }
    for (fields, problem) in [
        (json!({}), Problem::Missing.to_string()),
        (
            json!({"name": "a", "cluster_header": "b"}),
            "cluster_header".to_owned(),
        ),
    ] {
        let weighted =
            json!({"clusters": [with(json!({"weight": 1}), &fields), {"name": "b", "weight": 1}]});
        let route = json!({"match": {"prefix": "/"}, "route": {"weighted_clusters": weighted}});
        let host = json!({"name": "v", "domains": ["*"], "routes": [route]});
        let findings = compile(&json!({"virtual_hosts": [host]})).expect_err("a finding");
        let found = &findings.list()[0];
        assert!(
            found.path.ends_with("weighted_clusters.clusters[0].name"),
            "{found}"
        );
        assert!(found.problem.to_string().contains(&problem), "{found}");
    }
}

#[test]
fn what_other_actions_cannot_have_is_a_finding() {
    let regex = json!({"pattern": {"regex": "("}});
    for (action, expected) in [
        (json!({}), &[""][..]),
        (json!({"filter_action": {}}), &["filter_action"]),
        (
            json!({"redirect": {"response_code": 9}}),
            &["redirect.response_code"],
        ),
        (
            json!({"redirect": {"port_redirect": 65_536}}),
            &["redirect.port_redirect"],
        ),
        (
            json!({"redirect": {"regex_rewrite": regex}}),
            &["redirect.regex_rewrite.pattern.regex"],
        ),
        (
            json!({"redirect": {"path_rewrite": "%PATH%"}}),
            &["redirect.path_rewrite"],
        ),
        (
            json!({"direct_response": {"status": 199}}),
            &["direct_response.status"],
        ),
        (
            json!({"direct_response": {"status": 600}}),
            &["direct_response.status"],
        ),
        (
            json!({"direct_response": {"status": 65_736}}),
            &["direct_response.status"],
        ),
        (
            json!({"direct_response": {"status": 200, "body": {"filename": "f"}}}),
            &["direct_response.body"],
        ),
        (
            json!({"direct_response": {"status": 200, "body_format": {"text_format": "a"}}}),
            &["direct_response.body_format"],
        ),
        (
            json!({"direct_response": {"status": 200, "body": {"inline_string": "a".repeat(4097)}}}),
            &["direct_response.body"],
        ),
    ] {
        let route = with(json!({"match": {"prefix": "/"}}), &action);
        assert_eq!(route_findings(&route), expected, "{action}");
    }
    let direct = |fields: &Value, body: &Value| {
        let direct = json!({"status": 599, "body": body});
        let route = json!({"match": {"prefix": "/"}, "direct_response": direct});
        let host = json!({"name": "v", "domains": ["*"], "routes": [route]});
        let table = compile(&with(json!({"virtual_hosts": [host]}), fields))?;
        match table.virtual_hosts()[0].routes()[0].action() {
            Action::DirectResponse(direct) => Ok::<_, Findings>(direct.body.len()),
            other => panic!("{other:?}"),
        }
    };
    let largest = json!({"inline_string": "a".repeat(4096)});
    assert_eq!(direct(&json!({}), &largest), Ok(4096));
    assert_eq!(direct(&json!({}), &json!({"inline_bytes": "AAAA"})), Ok(3));
    assert_eq!(direct(&json!({}), &json!({})), Ok(0));
    let smaller = json!({"max_direct_response_body_size_bytes": 4095});
    assert!(direct(&smaller, &largest).is_err());
}

#[test]
fn what_a_virtual_host_or_a_table_cannot_have_is_a_finding() {
    let header = |name: &str, value: &str| json!([{"header": {"key": name, "value": value}}]);
    for (fields, expected) in [
        (json!({"domains": []}), "domains"),
        (json!({"domains": ["*", "*"]}), "domains[1]"),
        (json!({"matcher": {}}), "matcher"),
        (json!({"require_tls": 9}), "require_tls"),
        (
            json!({"retry_policy": {"retry_priority": {"name": "x"}}}),
            "retry_policy.retry_priority",
        ),
        (
            json!({"request_headers_to_add": [{}]}),
            "request_headers_to_add[0].header",
        ),
        (
            json!({"request_headers_to_add": header(":path", "a")}),
            "request_headers_to_add[0].header",
        ),
        (
            json!({"request_headers_to_add": header("Host", "a")}),
            "request_headers_to_add[0].header",
        ),
        (
            json!({"response_headers_to_add": header("a", "%X%")}),
            "response_headers_to_add[0].header.value",
        ),
        (
            json!({"request_headers_to_remove": ["a", "host"]}),
            "request_headers_to_remove[1]",
        ),
        (
            json!({"response_headers_to_remove": [":status"]}),
            "response_headers_to_remove[0]",
        ),
    ] {
        let host = with(json!({"name": "v", "domains": ["*"]}), &fields);
        let findings = compile(&json!({"virtual_hosts": [host]})).expect_err("a finding");
        let paths: Vec<_> = findings
            .list()
            .iter()
            .map(|found| found.path.clone())
            .collect();
        assert_eq!(paths, [format!("virtual_hosts[0].{expected}")], "{fields}");
    }
    for (fields, expected) in [
        (
            json!({"internal_only_headers": ["a"]}),
            "internal_only_headers",
        ),
        (
            json!({"request_mirror_policies": [{"cluster": "m", "runtime_fraction": {}}]}),
            "request_mirror_policies[0].runtime_fraction.default_value",
        ),
    ] {
        let findings = compile(&fields).expect_err("a finding");
        assert_eq!(findings.list()[0].path, expected, "{fields}");
    }
}
