//! Files as a set: duplicate names, overlapping variants, dangling references.

use trunkline::checked::Dangling;
use trunkline_store::{Files, Loaded, Options};

use crate::place::{Place, Watched, cluster, clusters, errors, options, said};

fn all_errors(loaded: &Loaded, place: &Place) -> Vec<String> {
    let dir = format!("{}/", place.0.path().display());
    let errors = loaded.errors.iter();
    errors.map(|e| e.to_string().replace(&dir, "")).collect()
}

#[test]
fn a_name_that_is_there_twice_is_an_error_that_names_both_places() {
    let place = Place::new();
    place.write("a.yaml", clusters([("a", 1), ("x", 1)]));
    place.write("b.yaml", clusters([("x", 2)]));
    place.write("c.yaml", clusters([("c", 2), ("c", 2)]));
    assert_eq!(
        all_errors(&place.load(), &place),
        [
            "b.yaml:2:3: resources[0]: cluster \"x\" is there already, at a.yaml:5:3; \
             remove one or rename it",
            "c.yaml:5:3: resources[1]: cluster \"c\" is there already, at c.yaml:2:3; \
             remove one or rename it",
        ]
    );
}

#[test]
fn a_file_counts_once_however_it_is_reached() {
    let place = Place::new();
    place.write("a.yaml", clusters([("a", 1)]));
    let paths = [place.0.path().to_owned(), place.path("a.yaml")];
    let loaded = Files::new(paths, options()).load();
    assert_eq!((loaded.errors.len(), loaded.files), (0, 1));
}

#[tokio::test]
async fn of_two_files_that_contradict_each_other_the_one_that_changed_is_bad() {
    let place = Place::new();
    place.write("a.yaml", clusters([("a", 1)]));
    place.write("b.yaml", clusters([("x", 1)]));
    let mut watched = place.watch();
    watched.next().await;
    place.write("a.yaml", clusters([("a", 2), ("x", 2)]));
    let status = watched.bad().await;
    assert!(errors(&status, &place)[0].starts_with("a.yaml:5:3: "));
    // The other may change: it is the one that is served.
    place.write("b.yaml", clusters([("x", 3)]));
    assert_eq!(said(&watched.next().await), ["+x"]);
    watched.bad().await;
    // When the conflicting file changes, the waiting one is taken.
    place.write("b.yaml", clusters([("b", 1)]));
    assert_eq!(said(&watched.next().await), ["+a", "+b", "+x"]);
    watched.good().await;
}

#[tokio::test]
async fn a_file_in_whose_way_another_stood_is_taken_when_that_one_goes() {
    let place = Place::new();
    place.write("a.yaml", clusters([("a", 1)]));
    let mut watched = place.watch();
    watched.next().await;
    place.write("b.yaml", clusters([("a", 2)]));
    watched.bad().await;
    place.remove("a.yaml");
    assert_eq!(said(&watched.next().await), ["+a"]);
    watched.good().await;
}

fn variant(constraint: &str) -> String {
    format!(
        "- \"@type\": type.googleapis.com/envoy.service.discovery.v3.Resource
  resource_name:
    name: v
    dynamic_parameter_constraints: {constraint}
  resource:
    \"@type\": type.googleapis.com/envoy.config.cluster.v3.Cluster
    name: v
"
    )
}

#[test]
fn variants_of_a_name_exclude_each_other_or_are_refused_with_a_witness() {
    let place = Place::new();
    let prod = variant("{constraint: {key: env, value: prod}}");
    let test = variant("{constraint: {key: env, value: test}}");
    let any = variant("{constraint: {key: env, exists: {}}}");
    place.write("a.yaml", format!("resources:\n{prod}{test}"));
    let loaded = place.load();
    assert_eq!((loaded.errors.len(), loaded.resources.len()), (0, 2));
    place.write("b.yaml", format!("resources:\n{any}"));
    assert_eq!(
        all_errors(&place.load(), &place),
        [
            "b.yaml:7:5: resources[0].resource: a client with env=prod would match two variants \
             of cluster \"v\", this one [env exists] and the one at a.yaml:7:5 [env=prod]; make \
             their constraints exclude each other"
        ]
    );
}

#[tokio::test]
async fn a_variant_goes_without_the_others() {
    let place = Place::new();
    let prod = variant("{constraint: {key: env, value: prod}}");
    let test = variant("{constraint: {key: env, value: test}}");
    place.write("a.yaml", format!("resources:\n{prod}"));
    place.write("b.yaml", format!("resources:\n{test}"));
    let mut watched = place.watch();
    watched.next().await;
    assert_eq!(watched.held.len(), 2);
    place.remove("a.yaml");
    watched.next().await;
    let left: Vec<_> = watched.held.keys().map(|(_, c)| c.as_str()).collect();
    assert_eq!(left, ["env=test"]);
}

const ROUTES: &str = "resources:
- \"@type\": type.googleapis.com/envoy.config.route.v3.RouteConfiguration
  name: r
  virtual_hosts:
  - name: v
    domains: ['*']
    routes:
    - match: {prefix: /}
      route: {cluster: c}
";

const LISTENER: &str = "resources:
- \"@type\": type.googleapis.com/envoy.config.listener.v3.Listener
  name: l
  address: {socket_address: {address: 127.0.0.1, port_value: 1}}
  filter_chains:
  - filters:
    - name: hcm
      typed_config:
        \"@type\": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager
        stat_prefix: s
        rds: {route_config_name: r, config_source: {ads: {}}}
";

const EDS_CLUSTER: &str = "resources:
- \"@type\": type.googleapis.com/envoy.config.cluster.v3.Cluster
  name: c
  type: EDS
  eds_cluster_config: {eds_config: {ads: {}}}
";

fn warnings(place: &Place) -> Vec<String> {
    let loaded = place.load();
    assert!(loaded.errors.is_empty(), "{:?}", loaded.errors);
    let dir = format!("{}/", place.0.path().display());
    let warnings = loaded.warnings.iter();
    warnings.map(|w| w.to_string().replace(&dir, "")).collect()
}

#[test]
fn a_reference_that_leads_nowhere_is_a_warning() {
    let place = Place::new();
    place.write("l.yaml", LISTENER);
    assert_eq!(
        warnings(&place),
        ["l.yaml:11:34: \
             resources[0].filter_chains[0].filters[0].typed_config.rds.route_config_name: refers to \
             route configuration \"r\", which is not there; add it or correct the name"]
    );
    place.write("r.yaml", ROUTES);
    assert_eq!(
        warnings(&place),
        [
            "r.yaml:9:24: resources[0].virtual_hosts[0].routes[0].route.cluster: refers to cluster \
             \"c\", which is not there; add it or correct the name"
        ]
    );
    place.write("c.yaml", EDS_CLUSTER);
    let missing_endpoints = "c.yaml:3:9: resources[0].name: refers to endpoints \"c\", which is not \
                             there; add it or correct the name";
    assert_eq!(warnings(&place), [missing_endpoints]);
    let other = "resources:\n- {\"@type\": \
                 type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment, \
                 cluster_name: other}\n";
    place.write("e.yaml", other);
    assert_eq!(warnings(&place).len(), 1);
}

fn strict() -> Options {
    Options {
        dangling: Dangling::Refuse,
        ..options()
    }
}

#[tokio::test]
async fn a_reference_that_leads_nowhere_may_be_an_error() {
    let place = Place::new();
    place.write("r.yaml", ROUTES);
    let mut watched = Watched::new([place.0.path()], strict());
    let status = watched.bad().await;
    assert!(!status.loaded);
    place.write("c.yaml", clusters([("c", 1)]));
    let update = watched.next().await;
    assert_eq!(said(&update), ["+c", "+r"]);
    // The file that removes a needed resource is at fault, by an edit or by
    // removal.
    place.write("c.yaml", clusters([("d", 1)]));
    let status = watched.bad().await;
    assert_eq!(
        errors(&status, &place),
        [
            "c.yaml: no longer has cluster \"c\", to which route configuration \"r\", at \
             r.yaml:2:3, refers; take the reference away first"
        ]
    );
    place.remove("c.yaml");
    let gone = |status: &trunkline_store::FilesStatus| {
        status.bad().count() == 1 && status.resources() == 2
    };
    watched.status(gone).await;
    place.remove("r.yaml");
    assert_eq!(said(&watched.next().await), ["-c", "-r"]);
    watched.good().await;
}

#[test]
fn envoys_rules_are_checked_at_their_places() {
    let place = Place::new();
    let text = format!("resources:\n{}  connect_timeout: 0s\n", cluster("a", 1));
    place.write("a.yaml", text);
    let errors = all_errors(&place.load(), &place);
    assert_eq!(errors.len(), 1, "{errors:?}");
    assert!(
        errors[0].starts_with("a.yaml:5:3: resources[0].connect_timeout: "),
        "{errors:?}"
    );
}
