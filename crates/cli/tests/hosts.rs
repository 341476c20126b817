//! Virtual hosts over the API: in their route configuration, by themselves, and
//! by the thousand.
#![allow(clippy::unwrap_used)]

mod support;

use std::path::Path;

use prost::Message as _;
use support::{Server, bad, good, run, said};
use trunkline_proto::discovery::{Any, DiscoveryResponse};
use trunkline_proto::envoy::envoy::config::core::v3::{
    AggregatedConfigSource, ConfigSource, config_source,
};
use trunkline_proto::envoy::envoy::config::route::v3::{RouteConfiguration, Vhds, VirtualHost};

const RDS: &str = "type.googleapis.com/envoy.config.route.v3.RouteConfiguration";
const VHDS: &str = "type.googleapis.com/envoy.config.route.v3.VirtualHost";
const PILOT: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../store/tests/fixtures/pilot.json"
);

/// A route configuration with VHDS and these virtual hosts.
fn routes(hosts: &[(&str, &str)]) -> String {
    let hosts = hosts.iter().map(|(name, domains)| {
        let fields = format!("name: {name}, domains: [{domains}]");
        format!("  - {{{fields}}}\n")
    });
    format!(
        "resources:\n- \"@type\": {RDS}\n  name: r\n  vhds: {{config_source: {{ads: {{}}}}}}\n  \
         virtual_hosts:\n{}",
        hosts.collect::<String>()
    )
}

fn alone(name: &str, domains: &str) -> String {
    format!("resources:\n- {{\"@type\": {VHDS}, name: {name}, domains: [{domains}]}}\n")
}

/// The names of the server's resources.
fn apply(server: &Server, text: &str) -> String {
    good(&server.ask_with(&["apply", "-f", "-"], text))
}

#[test]
fn hosts_come_with_their_route_configuration_and_go_with_it() {
    let server = Server::start(&[]);
    let created = apply(&server, &routes(&[("a", "a"), ("b", "b")]));
    assert!(created.contains("rds/r created "), "{created}");
    assert!(created.contains("vhds/r/a created "), "{created}");
    apply(&server, &alone("r/own", "own"));
    let changed = apply(&server, &routes(&[("b", "b"), ("c", "a")]));
    assert!(changed.contains("vhds/r/a deleted "), "{changed}");
    assert!(changed.contains("vhds/r/c created "), "{changed}");
    assert_eq!(server.names("vhds"), ["r/b", "r/c", "r/own"]);
    // The last author counts.
    apply(&server, &alone("r/b", "b"));
    let gone = good(&server.ask(&["delete", "rds", "r"]));
    assert!(gone.contains("vhds/r/c deleted "), "{gone}");
    assert_eq!(server.names("vhds"), ["r/b", "r/own"]);
    assert_eq!(server.names("rds"), [""; 0]);
}

#[test]
fn what_get_shows_of_a_route_configuration_can_be_applied() {
    let server = Server::start(&[]);
    apply(&server, &routes(&[("a", "a")]));
    let yaml = good(&server.ask(&["get", "rds", "r", "-o", "yaml"]));
    assert!(!yaml.contains("virtual_hosts"), "{yaml}");
    let again = server.ask_with(&["apply", "-f", "-"], &yaml);
    assert_eq!(good(&again), "1 unchanged\n");
    let stay = "resources[0]: \"r\" lists no virtual hosts: the one that came with it stays";
    assert!(said(&again).contains(stay), "{}", said(&again));
    let host = good(&server.ask(&["get", "vhds", "r/a", "-o", "yaml"]));
    assert_eq!(apply(&server, &host), "1 unchanged\n");
    // Without vhds, they stay in the route configuration.
    apply(&server, &routes(&[("a", "a")]));
    let inline = routes(&[("a", "a")]).replace("  vhds: {config_source: {ads: {}}}\n", "");
    assert!(apply(&server, &inline).contains("vhds/r/a deleted "));
}

#[test]
fn pilots_sample_is_applied() {
    let server = Server::start(&[]);
    good(&server.ask(&["apply", "-f", PILOT]));
    assert_eq!(server.names("vhds"), ["2001/s1http.none:2001"]);
    let valid = good(&run(&["validate", PILOT]));
    assert_eq!(valid, "2 resources in 1 file are valid\n");
}

#[test]
fn a_domain_that_another_host_has_is_refused_with_both_places() {
    let server = Server::start(&[]);
    let both = routes(&[("a", "x"), ("b", "X")]);
    let error = bad(&server.ask_with(&["apply", "-f", "-"], &both), 1);
    let expected = "standard input:7:5: resources[0].virtual_hosts[1]: virtual hosts \"r/b\", \
                    this one, and \"r/a\", at 6:5, both have the domain \"x\"; take it out of one";
    assert!(error.contains(expected), "{error}");
    apply(&server, &alone("r/a", "x"));
    for flags in [
        &["apply", "-f", "-"][..],
        &["apply", "-f", "-", "--dry-run"],
    ] {
        let error = bad(&server.ask_with(flags, &alone("r/b", "w, x")), 1);
        let expected = "standard input:2:3: resources[0]: virtual hosts \"r/b\", this one, and \
                        \"r/a\", at origin api, both have the domain \"x\"";
        assert!(error.contains(expected), "{error}");
    }
    let error = bad(&server.ask_with(&["apply", "-f", "-"], &alone("v", "v")), 1);
    assert!(
        error.contains("name it <route configuration>/<name>"),
        "{error}"
    );
    let error = bad(
        &server.ask_with(&["apply", "-f", "-"], &routes(&[("c", "c"), ("c", "d")])),
        1,
    );
    assert!(
        error.contains("virtual host \"r/c\" is there already, at 6:5"),
        "{error}"
    );
    assert_eq!(server.names("vhds"), ["r/a"]);
}

fn host(name: String, domain: String) -> VirtualHost {
    VirtualHost {
        name,
        domains: vec![domain],
        ..VirtualHost::default()
    }
}

fn write(path: &Path, resources: Vec<Any>) -> String {
    let response = DiscoveryResponse {
        resources,
        ..DiscoveryResponse::default()
    };
    std::fs::write(path, response.encode_to_vec()).unwrap();
    path.to_str().unwrap().to_owned()
}

/// A binary file of a route configuration with these.
fn inside(path: &Path, hosts: Vec<VirtualHost>) -> String {
    let ads = config_source::ConfigSourceSpecifier::Ads(AggregatedConfigSource {});
    let source = ConfigSource {
        config_source_specifier: Some(ads),
        ..ConfigSource::default()
    };
    let route = RouteConfiguration {
        name: "r".into(),
        virtual_hosts: hosts,
        vhds: Some(Vhds {
            config_source: Some(source),
        }),
        ..RouteConfiguration::default()
    };
    let value = route.encode_to_vec().into();
    let type_url = RDS.to_owned();
    write(path, vec![Any { type_url, value }])
}

#[test]
fn many_hosts_are_applied_in_parts_and_replaced_as_a_whole() {
    const MANY: usize = 10_500;
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("many.pb");
    let server = Server::start(&[]);
    let all = |name: &str, domain: &str| -> Vec<VirtualHost> {
        let one = |n: usize| host(format!("{name}{n:05}"), format!("{domain}{n:05}"));
        (0..MANY).map(one).collect()
    };
    let file = inside(&path, all("v", "d"));
    let said = good(&server.ask(&["apply", "-f", &file]));
    assert_eq!(
        said,
        "10501 resources: 10501 created, 0 changed, 0 deleted, 0 unchanged (revision 1)\n"
    );
    apply(&server, &alone("r/own", "own"));
    // Fewer, and the domains of the last part go to hosts of the first.
    let mut fewer = all("v", "d");
    fewer.truncate(MANY - 100);
    fewer[0].domains.push(format!("d{:05}", MANY - 1));
    fewer[1].domains.push(format!("d{:05}", MANY - 101));
    fewer[MANY - 101].domains = vec!["other".into()];
    let file = inside(&path, fewer);
    let said = good(&server.ask(&["apply", "-f", &file]));
    assert!(said.starts_with("10401 resources: "), "{said}");
    let left = server.names("vhds");
    assert_eq!(left.len(), MANY - 100 + 1);
    assert!(left.contains(&"r/own".to_owned()));
    // All of them under other names.
    let file = inside(&path, all("w", "d"));
    good(&server.ask(&["apply", "-f", &file, "--yes"]));
    let left = server.names("vhds");
    assert_eq!(left.len(), MANY + 1);
    assert_eq!((left[0].as_str(), left[1].as_str()), ("r/own", "r/w00000"));
    // A change in parts can be rehearsed.
    let same = good(&server.ask(&["apply", "-f", &file, "--dry-run"]));
    assert!(same.contains("0 deleted, 10501 unchanged"), "{same}");
    let file = inside(&path, all("v", "d"));
    let other = good(&server.ask(&["apply", "-f", &file, "--dry-run", "--yes"]));
    assert!(
        other.contains("10500 created, 0 changed, 10500 deleted"),
        "{other}"
    );
    assert_eq!(server.names("vhds"), left);
}

#[test]
fn of_a_change_in_parts_nothing_is_applied_if_one_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("many.pb");
    let server = Server::start(&[]);
    let one = |n: usize| {
        // Of two hosts in different parts, one takes the other's domain.
        let domain = if n == 9_000 { 4_000 } else { n };
        let value = host(format!("r/v{n}"), format!("d{domain}")).encode_to_vec();
        Any {
            type_url: VHDS.to_owned(),
            value: value.into(),
        }
    };
    let file = write(&path, (0..10_500).map(one).collect());
    let error = bad(&server.ask(&["apply", "-f", &file]), 1);
    let place = format!(
        "{file}: resources[9000]: virtual hosts \"r/v9000\", this one, and \"r/v4000\", at \
         resources[4000], both have the domain \"d4000\""
    );
    assert!(error.contains(&place), "{error}");
    assert!(error.contains("nothing was changed"), "{error}");
    assert_eq!(server.names("vhds"), [""; 0]);

    let mut twice: Vec<Any> = (10_000..20_500).map(|n| one(n + 1)).collect();
    twice.push(one(11_000));
    let file = write(&path, twice);
    let error = bad(&server.ask(&["apply", "-f", &file]), 1);
    let place = format!(
        "{file}: resources[10500]: virtual host \"r/v11000\" is there already, at resources[999]"
    );
    assert!(error.contains(&place), "{error}");
    assert_eq!(server.names("vhds"), [""; 0], "nothing was applied");
}

#[test]
fn a_large_text_is_applied_in_parts_with_its_places() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("many.json");
    let server = Server::start(&[]);
    let lines = |bad: usize| -> String {
        let hosts = (0..10_500).map(|n| {
            let domain = if n == bad { 3 } else { n };
            let pad = "x".repeat(60);
            format!("{{\"name\": \"v{n}\", \"domains\": [\"d{domain}\", \"{pad}{n}\"]}}")
        });
        let hosts = hosts.collect::<Vec<_>>().join(",\n");
        format!(
            "{{\"@type\": \"{RDS}\", \"name\": \"r\", \"vhds\": {{\"config_source\": {{\"ads\": \
             {{}}}}}}, \"virtual_hosts\": [\n{hosts}]}}"
        )
    };
    std::fs::write(&path, lines(10_000)).unwrap();
    let file = path.to_str().unwrap();
    let error = bad(&server.ask(&["apply", "-f", file]), 1);
    let place = format!("{file}:10002:1: resources[0].virtual_hosts[10000]: virtual hosts");
    assert!(error.contains(&place), "{error}");
    std::fs::write(&path, lines(usize::MAX)).unwrap();
    let said = good(&server.ask(&["apply", "-f", file]));
    assert!(said.starts_with("10501 resources: "), "{said}");
    assert_eq!(server.names("vhds").len(), 10_500);
    // One of them with a condition has two variants, and then one again.
    let when = |condition: &str| {
        let host = "{\"name\": \"v9000\", ";
        let metadata = format!("{{\"filter_metadata\": {{\"trunkline\": {{{condition}}}}}}}");
        let route = "\"match\": {\"prefix\": \"/\"}, \"redirect\": {}";
        let routes = format!("\"routes\": [{{{route}, \"metadata\": {metadata}}}]");
        lines(usize::MAX).replace(host, &format!("{host}{routes}, "))
    };
    for (condition, variants) in [("\"when\": \"a=1\"", 2), ("", 1)] {
        std::fs::write(&path, when(condition)).unwrap();
        good(&server.ask(&["apply", "-f", file]));
        let all = server.names("vhds");
        let own = all.iter().filter(|name| *name == "r/v9000");
        assert_eq!((own.count(), all.len()), (variants, 10_499 + variants));
    }
    std::fs::write(&path, when("\"wen\": \"a=1\"")).unwrap();
    let error = bad(&server.ask(&["apply", "-f", file]), 1);
    let place = format!("{file}:9002:1: resources[0].virtual_hosts[9000]");
    assert!(
        error.contains(&place) && error.contains("did you mean \"when\"?"),
        "{error}"
    );
}

#[test]
fn a_small_binary_file_is_one_change() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("few.pb");
    let server = Server::start(&[]);
    let file = inside(
        &path,
        vec![
            host("a".into(), "a".into()),
            host("b".into(), String::new()),
        ],
    );
    let created = good(&server.ask(&["apply", "-f", &file]));
    assert!(created.contains("vhds/r/a created "), "{created}");
    std::fs::write(&path, b"\x12\x05abc").unwrap();
    let error = bad(&server.ask(&["apply", "-f", &file]), 1);
    assert!(
        error.contains("is not a binary DiscoveryResponse"),
        "{error}"
    );
}
