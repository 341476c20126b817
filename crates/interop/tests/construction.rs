//! The cases of `crates/proto/tests/data/construction`, judged by a real Envoy:
//! it rejects what our checks reject, and takes what they take.
#![allow(clippy::expect_used, reason = "all of this is tests")]

#[path = "../../proto/tests/cases/mod.rs"]
mod cases;

use std::fmt::Write as _;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use std::{fs, thread};

use cases::Case;
use interop::Envoy;

/// Processes of Envoy at a time.
const JUDGES: usize = 4;
const SOON: Duration = Duration::from_secs(10);

/// Clusters that the cases refer to.
const CLUSTERS: &str = r"  clusters:
  - {name: c, load_assignment: {cluster_name: c}}
  - {name: d, load_assignment: {cluster_name: d}}
";

/// A listener around a route configuration, which follows.
const AROUND_ROUTES: &str = r#"  - name: NAME
    address: {socket_address: {address: 127.0.0.1, port_value: 0}}
    filter_chains:
    - filters:
      - name: manager
        typed_config:
          "@type": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager
          stat_prefix: s
          http_filters: [{name: router, typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.http.router.v3.Router}}]
          route_config:
            validate_clusters: false
"#;

/// Writes a bootstrap with the resources of some cases. Each gets a name of its
/// own.
fn bootstrap_of(cases: &[&Case]) -> String {
    let mut clusters = CLUSTERS.to_owned();
    let mut listeners = "  listeners:\n".to_owned();
    for (index, case) in cases.iter().enumerate() {
        let (type_line, body) = case.text.split_once('\n').expect("a type");
        // The name is in the first line.
        let (_, fields) = body.split_once('\n').unwrap_or((body, ""));
        let name = format!("case{index}");
        let named = format!("name: {name}\n{fields}");
        match type_line {
            line if line.ends_with(".Cluster") => {
                clusters += &format!("  -\n{}", indent(&named, 4));
            }
            line if line.ends_with(".Listener") => {
                listeners += &format!("  -\n{}", indent(&named, 4));
            }
            line if line.ends_with(".RouteConfiguration") => {
                listeners += &AROUND_ROUTES.replace("NAME", &name);
                listeners += &indent(&named, 12);
            }
            other => panic!("{}: a test has no place for {other}", case.name),
        }
    }
    format!("node: {{id: node, cluster: node}}\nstatic_resources:\n{clusters}{listeners}")
}

fn indent(text: &str, by: usize) -> String {
    let lines = text.lines();
    lines.fold(String::new(), |mut indented, line| {
        let _ = writeln!(indented, "{:by$}{line}", "");
        indented
    })
}

/// Judges each case alone, several at a time, and returns those on which Envoy
/// is of another opinion.
fn judge_each(cases: &[&Case]) -> Vec<String> {
    let next = AtomicUsize::new(0);
    let wrong = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for judge in 0..JUDGES {
            let (next, wrong) = (&next, &wrong);
            let name = format!("construction-{judge}");
            let work = move || {
                while let Some(case) = cases.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let verdict = Envoy::judge(&bootstrap_of(&[case]), "judge");
                    if verdict.is_ok() != case.mistake.is_none() {
                        let words = verdict.err().unwrap_or("takes it".into());
                        let mut wrong = wrong.lock().expect("no judge panicked");
                        wrong.push(format!("{}: Envoy {words}", case.name));
                    }
                }
            };
            let thread = thread::Builder::new().name(name);
            thread.spawn_scoped(scope, work).expect("a thread");
        }
    });
    wrong.into_inner().expect("no judge panicked")
}

/// Returns whether a resource is of EDS, which is no part of a bootstrap.
fn is_assignment(case: &&Case) -> bool {
    case.text.contains(".ClusterLoadAssignment\n")
}

#[test]
fn s12_envoy_rejects_what_the_checks_reject_and_nothing_else() {
    let cases = cases::read_all();
    let cases = cases.iter().filter(|case| !is_assignment(case));
    let (bad, good): (Vec<&Case>, Vec<_>) = cases.partition(|case| case.mistake.is_some());
    assert!(!bad.is_empty() && !good.is_empty());

    let mut wrong = judge_each(&bad);
    // All good ones together are one process.
    if let Err(words) = Envoy::judge(&bootstrap_of(&good), "together") {
        wrong.push(format!("all good ones together: {words}"));
        wrong.extend(judge_each(&good));
    }
    assert_eq!(wrong.join("\n"), "");
}

/// A source of endpoints is read by an Envoy that runs.
#[test]
fn s12_envoy_rejects_the_assignments_that_the_checks_reject() {
    let cases = cases::read_all();
    let cases: Vec<&Case> = cases.iter().filter(is_assignment).collect();
    assert!(cases.len() > 1);

    let folder = interop::folder("assignments");
    let mut bootstrap = "node: {id: node, cluster: node}\n\
        admin: {address: {socket_address: {address: 127.0.0.1, port_value: 0}}}\n\
        static_resources:\n  clusters:\n"
        .to_owned();
    for (index, case) in cases.iter().enumerate() {
        let assignment = case
            .text
            .replace("cluster_name: x", &format!("cluster_name: case{index}"));
        let path = folder.join(format!("{index}.yaml"));
        let response = format!("version_info: a\nresources:\n-\n{}", indent(&assignment, 2));
        fs::write(&path, response).expect("a file");
        let _ = writeln!(
            bootstrap,
            "  - {{name: case{index}, type: EDS, eds_cluster_config: \
             {{eds_config: {{path_config_source: {{path: {:?}}}}}}}}}",
            path.display().to_string()
        );
    }
    let envoy = Envoy::spawn(&bootstrap);
    for (index, case) in cases.iter().enumerate() {
        let was_taken = envoy.wait_for("a verdict", SOON, |envoy| {
            let stats = envoy.stats();
            let counts = |stat: &str| stats.get(&format!("cluster.case{index}.{stat}")) > Some(&0);
            match (counts("update_success"), counts("update_rejected")) {
                (false, false) => None,
                (taken, rejected) => Some(taken && !rejected),
            }
        });
        assert_eq!(was_taken, case.mistake.is_none(), "{}", case.name);
    }
}
