//! The checks of a client, rule by rule, on the cases of `data/acceptance`.
#![allow(clippy::expect_used, reason = "all of this is tests")]

mod acceptance_cases;

use acceptance_cases::{Case, read};
use trunkline_proto::acceptance::{
    Accepted, HttpFilter, Policy, Rejection, Unsupported, Usage, accept,
};
use trunkline_proto::text::{self, Options};

/// The policy of a case: a bootstrap with one certificate provider, and what the
/// case says.
fn policy_of(case: &Case) -> Policy {
    let mut policy = Policy::grpc();
    policy.certificate_providers.insert("default".to_owned());
    for word in &case.policy {
        match word.as_str() {
            "strict" => policy.unsupported = Unsupported::Strict,
            "trusted" => policy.trusts_server = true,
            "static" => {
                policy.cluster_types.insert("STATIC".to_owned());
            }
            "own_policy" => {
                policy.lb_policies.insert("myorg.Own".to_owned());
            }
            "own_filter" => {
                let filter = HttpFilter::new(Usage::Both);
                policy.http_filters.insert("myorg.Own", filter);
            }
            other => panic!("{}: {other} is no policy", case.name),
        }
    }
    policy
}

/// Accepts the resource of a case.
fn accept_case(case: &Case) -> Result<Accepted, Rejection> {
    let read = text::read("f.yaml", &case.text, &Options::default());
    assert_eq!(read.errors, [], "{} can be read", case.name);
    let [resource] = &read.resources[..] else {
        panic!("{} is one resource", case.name);
    };
    accept(&resource.type_url, &resource.body, &policy_of(case))
}

/// Checks that each case of a rule has its findings and no others.
fn check(rule: &str, count: usize) {
    let cases = read(rule);
    let mut wrong = Vec::new();
    for case in &cases {
        let result = accept_case(case);
        let is_accepted = result.is_ok();
        let found: Vec<String> = match result {
            Ok(accepted) => {
                let report = accepted.report;
                let ignored = report.ignored.iter().map(|it| format!("ignored: {it}"));
                let unsupported = report.unsupported.iter();
                let unsupported = unsupported.map(|path| format!("unsupported: {path}"));
                ignored.chain(unsupported).collect()
            }
            Err(rejection) => rejection.reasons.iter().map(ToString::to_string).collect(),
        };
        if (is_accepted, &found) != (case.is_accepted, &case.findings) {
            let verdict = if is_accepted { "accept" } else { "reject" };
            let found = found.join("\n# ");
            wrong.push(format!("# {verdict}: {}\n# {found}", case.name));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_eq!(cases.len(), count, "the cases of {rule}");
}

#[test]
fn c13_a_cluster_with_an_xdstp_name_names_its_endpoints() {
    check("c13", 3);
}

#[test]
fn c14_self_and_ads_are_the_same() {
    check("c14", 7);
}

#[test]
fn c56_endpoints_are_checked() {
    check("c56", 26);
}

#[test]
fn c57_fields_are_ignored_and_values_rejected() {
    check("c57", 41);
}

#[test]
fn c58_routes_are_checked() {
    check("c58", 41);
}

#[test]
fn c59_filters_are_checked() {
    check("c59", 30);
}

#[test]
fn c60_transport_sockets_are_checked() {
    check("c60", 30);
}

#[test]
fn c61_listeners_of_servers_are_checked() {
    check("c61", 23);
}
