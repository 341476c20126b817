//! Settings as people write them, right and wrong.

use std::time::Duration;

use super::*;

fn read(text: &str) -> Result<Settings, String> {
    let raw = Raw::read("s.yaml", text).map_err(|e| e.to_string())?;
    resolve(Some(&raw), &Raw::default()).map_err(|e| e.to_string())
}

#[test]
fn the_example_file_changes_nothing() {
    let text = example_file();
    assert_eq!(read(&text).unwrap(), Settings::new());
    for setting in table::all() {
        let key = setting.key;
        let lines = text.lines().map(|line| line.trim_start_matches("# "));
        let times = lines.filter(|line| line.starts_with(&format!("{key}: ")));
        assert_eq!(times.count(), 1, "{key}");
    }
}

/// The rules of a key of the example, without the comment signs.
fn uncommented(text: &str, key: &str) -> String {
    let (_, rules) = text.split_once(&format!("# {key}:\n")).unwrap();
    let rules = rules.lines().map_while(|line| line.strip_prefix("# "));
    let rules: String = rules.map(|line| line.to_owned() + "\n").collect();
    format!("{key}:\n{rules}")
}

/// Keys that are commented out in the example have to work when they are not.
#[test]
fn keys_without_a_default_are_read() {
    let text = example_file();
    let all: String = text
        .lines()
        .map(
            |line| match line.strip_prefix("# ").filter(|l| l.contains(": FILE")) {
                Some(key) => format!("{key}\n"),
                None => format!("{line}\n"),
            },
        )
        .collect();
    let settings = read(&all).unwrap();
    assert_eq!(settings.tls_key.unwrap().to_str(), Some("FILE"));
    assert_eq!(settings.audit_log.unwrap().to_str(), Some("FILE"));
}

#[test]
fn a_key_that_is_not_known_is_refused_with_its_line_and_a_near_one() {
    assert_eq!(
        read("listen: a:1\nmax_stream: 5\n").unwrap_err(),
        "s.yaml:2:1: unknown key \"max_stream\"; did you mean \"max_streams\"?"
    );
    let far = read("bananas: 5\n").unwrap_err();
    assert!(far.contains("--print-defaults"), "{far}");
}

#[test]
fn values_are_checked_where_they_stand() {
    for (text, said) in [
        (
            "listen: nowhere",
            "s.yaml:1:9: listen: \"nowhere\" is not an address",
        ),
        ("debounce: 5", "s.yaml:1:11: debounce: \"5\" is not a time"),
        (
            "max_streams: -1",
            "s.yaml:1:14: max_streams: \"-1\" is not a number",
        ),
        ("dangling: no", "is not one of warn, error"),
        ("load_endpoints: maybe", "is not true or false"),
        (
            "listen: [a:1, b:2]",
            "s.yaml:1:15: listen: takes one value only",
        ),
        ("listen: {a: 1}", "expected a value"),
        ("- a", "s.yaml:1:1: expected keys and values"),
        ("listen: a:1\nlisten: a:2", "s.yaml:2:1"),
        ("a: [", "s.yaml:1:4: this [ is not closed"),
        ("tls_key: k", "--tls-key needs --tls-cert"),
        ("tls_client_ca: k", "--tls-client-ca needs"),
        ("admin_tls_client_ca: k", "--admin-tls-client-ca needs"),
        ("admin_allow: cn:ops", "--admin-allow needs"),
        ("admin_allow: ops", "is not the name in a certificate"),
        ("audit_required: true", "--audit-required needs"),
        ("health: nowhere", "is not an address"),
    ] {
        let error = read(text).unwrap_err();
        assert!(error.contains(said), "{text}: {error}");
    }
}

#[test]
fn flags_win_over_the_file_and_the_file_over_defaults() {
    let file = Raw::read("s.yaml", "debounce: 7ms\nconfig: [a, b]\nmax_streams: 5\n").unwrap();
    let mut flags = Raw::default();
    flags.set("config", vec!["c".into()]);
    flags.set("debounce", vec!["9ms".into()]);
    let settings = resolve(Some(&file), &flags).unwrap();
    assert_eq!(settings.sending.debounce, Duration::from_millis(9));
    assert_eq!(settings.config, [PathBuf::from("c")]);
    assert_eq!(settings.limits.streams, 5);
    assert_eq!(settings.limits.globs, Settings::new().limits.globs);
    flags.set("listen", vec!["x".into()]);
    let error = resolve(Some(&file), &flags).unwrap_err();
    assert!(error.to_string().starts_with("--listen: \"x\" is not"));
}

#[test]
fn the_defaults_are_those_of_the_library() {
    let mut options = trunkline::Options::default();
    Settings::new().fill(&mut options);
    let library = format!("{:?}", trunkline::Options::default());
    assert_eq!(format!("{options:?}"), library);
}

#[test]
fn every_limit_reaches_the_library() {
    let mut changed = Settings::new();
    let before = format!("{:?}", trunkline::Options::default());
    for (key, value) in [
        ("max_streams", "7"),
        ("max_streams_per_peer", "7"),
        ("max_connections", "7"),
        ("max_connections_per_address", "7"),
        ("send_timeout", "7s"),
        ("max_name_bytes", "7"),
        ("max_subscriptions", "7"),
        ("max_hosts", "7"),
        ("drain_time", "7s"),
        ("max_connection_age", "0s"),
        ("named_only", "lds"),
    ] {
        let setting = table::all().find(|s| s.key == key).unwrap();
        (setting.field)(&mut changed).put(value).unwrap();
        let mut options = trunkline::Options::default();
        changed.fill(&mut options);
        assert_ne!(format!("{options:?}"), before, "{key}");
        changed = Settings::new();
    }
}

/// The rules of a key of the example, without the comment signs.
fn rules_of(text: &str, key: &str) -> String {
    let (_, rules) = text.split_once(&format!("# {key}:\n")).unwrap();
    let rules = rules.lines().map_while(|line| line.strip_prefix("# "));
    let rules: String = rules.map(|line| line.to_owned() + "\n").collect();
    format!("{key}:\n{rules}")
}

/// Rules that are commented out in the example have to work when they are not.
#[test]
fn the_example_of_base_sets_is_read() {
    let text = example_file();
    let settings = read(&rules_of(&text, "base_sets")).unwrap();
    let [rule] = &settings.rules.base_sets[..] else {
        panic!("one rule: {settings:?}")
    };
    assert_eq!(
        rule.node.to_string(),
        "cluster=edge-*, locality.zone=eu-1a|eu-1b, metadata.NAMESPACE=*"
    );
    let sets: Vec<String> = rule.sets.iter().map(ToString::to_string).collect();
    assert_eq!(sets, ["{metadata.NAMESPACE}", "common"]);
    assert_eq!(rule.hosts().len(), 1);
    let mut options = trunkline::Options::default();
    settings.fill(&mut options);
    assert_eq!(options.base_sets, settings.rules.base_sets);
}

#[test]
fn the_example_of_parameters_is_read() {
    let text = example_file();
    let both = rules_of(&text, "parameters") + &uncommented(&text, "resource_errors");
    let settings = read(&both).unwrap();
    let rules = settings.rules.params.rules();
    let shown: Vec<_> = rules.iter().map(|rule| rule.node.to_string()).collect();
    assert_eq!(shown, ["every node", "cluster=edge-*", "listener=*:18001"]);
    assert_eq!(rules[0].set.len(), 2);
    let errors = &settings.rules.resource_errors;
    assert_eq!(errors[0].to_string(), "metadata.UNDERSTANDS_ERRORS=true");
    let mut options = trunkline::Options::default();
    settings.fill(&mut options);
    assert_eq!(options.params, settings.rules.params);
    assert_eq!(options.resource_errors.len(), 1);
}

#[test]
fn a_mistake_in_a_rule_is_told_where_it_stands() {
    for (text, said) in [
        (
            "base_sets: x",
            "s.yaml:1:12: base_sets: expected a list of rules",
        ),
        (
            "base_sets: [x]",
            "s.yaml:1:13: base_sets[0]: expected keys and values",
        ),
        (
            "base_sets: [{set: [a]}]",
            "base_sets[0]: unknown key \"set\"; did you mean \"sets\"?",
        ),
        ("base_sets: [{node: {}}]", "base_sets[0]: gives nothing"),
        (
            "base_sets:\n- node: {zone: a}\n  sets: [a]",
            "s.yaml:2:10: base_sets[0].node: unknown key \"zone\"",
        ),
        (
            "base_sets:\n- node: {locality: {zne: a}}\n  sets: [a]",
            "s.yaml:2:21: base_sets[0].node.locality.zne: a node has no field",
        ),
        (
            "base_sets:\n- node: {metadata: {a..b: x}}\n  sets: [a]",
            "is no path into metadata",
        ),
        (
            "base_sets:\n- sets: [a, \"{nme}\"]",
            "s.yaml:2:13: base_sets[0].sets: a node has no field \"nme\"",
        ),
        (
            "base_sets: [{sets: [\"{id\"]}]",
            "has a brace without a partner",
        ),
        (
            "base_sets: [{sets: [[a]]}]",
            "expected a text, or a list of texts",
        ),
        (
            "base_sets: [{hosts: [a.com]}]",
            "write <route configuration>/<host>",
        ),
        (
            "base_sets: []\n---\nbase_sets: []",
            "s.yaml:3:1: the key \"base_sets\" occurs twice",
        ),
        ("base_set: []", "did you mean \"base_sets\"?"),
        (
            "parameters: [{node: {cluster: a}}]",
            "s.yaml:1:14: parameters[0]: sets nothing",
        ),
        (
            "parameters:\n- set: {env: \"{metadta.ENV}\"}",
            "s.yaml:2:14: parameters[0].set.env: a node has no field \"metadta.ENV\"",
        ),
        ("parameters: [{sett: {}}]", "did you mean \"set\"?"),
        ("resource_errors: [{nodes: {}}]", "did you mean \"node\"?"),
    ] {
        let error = read(text).unwrap_err();
        assert!(error.contains(said), "{text}: {error}");
    }
}

#[test]
fn the_settings_of_the_guide_are_read() {
    let text = include_str!("../../../../examples/on-demand/settings.yaml");
    let settings = read(text).unwrap();
    assert_eq!(
        settings.rules.base_sets[0].node.to_string(),
        "metadata.NAMESPACE=*"
    );
    assert_eq!(settings.config.len(), 1);
    let text = include_str!("../../../../examples/variants/settings.yaml");
    let settings = read(text).unwrap();
    let rules = settings.rules.params.rules();
    let keys = rules[0].set.iter().map(|(key, _)| key.as_str());
    assert_eq!(keys.collect::<Vec<_>>(), ["env", "version"]);
}
