//! `trunkline route`: what it prints, and tables of expectations.
#![allow(clippy::unwrap_used)]

mod support;

use support::{bad, good, run};

const ROUTES: &str = r#"resources:
- "@type": type.googleapis.com/envoy.config.route.v3.RouteConfiguration
  name: web
  virtual_hosts:
  - name: www
    domains: [www.example.com, "*.shop.example.com"]
    routes:
    - {name: old, match: {path: /old}, redirect: {path_redirect: /new, response_code: FOUND}}
    - name: canary
      match: {prefix: /, headers: [{name: x-canary, string_match: {exact: "1"}}]}
      route: {cluster: canary, prefix_rewrite: /c/, host_rewrite_literal: canary.internal}
    - name: split
      match: {prefix: /split}
      route: {weighted_clusters: {clusters: [{name: a, weight: 30}, {name: b, weight: 70}]}}
    - {match: {prefix: /api}, route: {cluster: api}}
  - {name: safe, domains: [safe.example.com], require_tls: ALL}
"#;

/// Writes files, and returns their directory and their paths.
fn files(texts: &[(&str, &str)]) -> (tempfile::TempDir, Vec<String>) {
    let dir = tempfile::tempdir().unwrap();
    let paths = texts.iter().map(|(name, text)| {
        let path = dir.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    });
    let paths = paths.collect();
    (dir, paths)
}

#[test]
fn a_request_is_told_its_route_and_why_not_others() {
    let (_dir, paths) = files(&[("routes.yaml", ROUTES)]);
    // arguments, what is printed
    let cases: &[(&[&str], &str)] = &[
        (
            &["GET", "http://www.example.com/old?q=1"],
            "virtual host  www\n\
             route         old\n\
             status        302\n\
             location      http://www.example.com/new?q=1\n",
        ),
        (
            &["GET", "http://x.shop.example.com/a", "-H", "X-Canary: 1"],
            "virtual host  www\n\
             route         canary\n\
             cluster       canary\n\
             path          /c/a\n\
             host          canary.internal\n\
             not route 0   old: the path does not match\n",
        ),
        (
            &["GET", "http://www.example.com/split", "--random", "30"],
            "virtual host  www\n\
             route         split\n\
             cluster       b\n\
             not route 0   old: the path does not match\n\
             not route 1   canary: the header \"x-canary\" does not match\n",
        ),
        (
            &["GET", "http://www.example.com/none"],
            "virtual host  www\n\
             status        404\n\
             note          no route of the virtual host matches\n\
             not route 0   old: the path does not match\n\
             not route 1   canary: the header \"x-canary\" does not match\n\
             not route 2   split: the path does not match\n\
             not route 3   [3]: the path does not match\n",
        ),
        (
            &["GET", "http://safe.example.com/x"],
            "virtual host  safe\n\
             status        301\n\
             location      https://safe.example.com/x\n\
             note          the virtual host requires TLS\n",
        ),
        (
            &["GET", "http://other.test/"],
            "status        404\n\
             note          no virtual host has this host\n",
        ),
    ];
    for (args, expected) in cases {
        let mut all = vec!["route", "--config", &paths[0]];
        all.extend(*args);
        assert_eq!(good(&run(&all)), *expected, "{args:?}");
    }
}

#[test]
fn expectations_are_compared_and_differences_exit_with_1() {
    let good_table = "\
- request: GET http://www.example.com/api/x
  virtual host: www
  cluster: api
- request: GET http://www.example.com/
  headers: [x-canary: 1]
  cluster: canary
";
    let bad_table = "\
- {request: GET http://www.example.com/api, cluster: canary}
- {request: GET http://www.example.com/old, status: 302}
";
    let (_dir, paths) = files(&[
        ("routes.yaml", ROUTES),
        ("good.yaml", good_table),
        ("bad.yaml", bad_table),
    ]);
    let args = |table: usize| ["route", "--config", &paths[0], "--expect", &paths[table]];
    assert_eq!(good(&run(&args(1))), "2 requests routed as expected\n");
    let said = bad(&run(&args(2)), 1);
    let difference = "bad.yaml:1: GET http://www.example.com/api: \
                      cluster is \"api\", expected \"canary\"\n";
    assert!(said.contains(difference), "{said}");
    assert!(said.contains("1 of 2 requests routed otherwise"), "{said}");
}

#[test]
fn what_cannot_be_decided_is_told_with_its_field() {
    let internal = ROUTES.replace(
        "route: {cluster: api}",
        "route: {cluster: api, internal_redirect_policy: {}}",
    );
    let (_dir, paths) = files(&[("routes.yaml", &internal)]);
    let output = run(&[
        "route",
        "--config",
        &paths[0],
        "GET",
        "http://www.example.com/",
    ]);
    let said = bad(&output, 1);
    let finding = "web: virtual_hosts[0].routes[3].route.internal_redirect_policy: \
                   is set and not supported; remove it";
    assert!(said.contains(finding), "{said}");
}

const VARIANTS: &str = r#"resources:
- "@type": type.googleapis.com/envoy.service.discovery.v3.Resource
  resource_name: {name: web, dynamic_parameter_constraints: "env=prod"}
  resource:
    "@type": type.googleapis.com/envoy.config.route.v3.RouteConfiguration
    name: web
    virtual_hosts: [{name: v, domains: ["*"], routes: [{match: {prefix: /}, route: {cluster: prod}}]}]
- "@type": type.googleapis.com/envoy.service.discovery.v3.Resource
  resource_name: {name: web, dynamic_parameter_constraints: "NOT env=prod"}
  resource:
    "@type": type.googleapis.com/envoy.config.route.v3.RouteConfiguration
    name: web
    virtual_hosts: [{name: v, domains: ["*"], routes: [{match: {prefix: /}, route: {cluster: other}}]}]
"#;

const NODE: &str = r#"node:
  id: sidecar-7
  dynamic_parameters:
    "type.googleapis.com/envoy.config.route.v3.RouteConfiguration": {params: {env: prod}}
"#;

#[test]
fn of_variants_a_client_gets_one() {
    let (_dir, paths) = files(&[
        ("routes.yaml", VARIANTS),
        ("node.yaml", NODE),
        ("none.yaml", "node: {id: m}\n"),
    ]);
    let routed = |flags: &[&str]| {
        let mut all = vec!["route", "--config", &paths[0], "GET", "http://a.test/"];
        all.extend(flags);
        run(&all)
    };
    // flags, the cluster
    let cases: &[(&[&str], &str)] = &[
        (&["--node", &paths[1]], "prod"),
        (&["--node", &paths[2]], "other"),
        (&["--params", "env=prod"], "prod"),
        (&["--params", "env=qa"], "other"),
        (&["--routes", "web (variant 1)"], "prod"),
    ];
    for (flags, cluster) in cases {
        let said = good(&routed(flags));
        let line = format!("cluster       {cluster}\n");
        assert!(said.contains(&line), "{flags:?}: {said}");
    }
    let said = bad(&routed(&[]), 2);
    assert!(said.contains("web (variant 1), web (variant 2)"), "{said}");
    let said = bad(&routed(&["--node", "no.yaml"]), 2);
    assert!(said.contains("--node no.yaml"), "{said}");
}
