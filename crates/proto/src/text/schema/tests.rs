//! The two schemas: what is odd about Envoy's, and that the other one is left
//! alone.

use super::super::*;

fn yaml(text: &str) -> Document {
    read("f.yaml", text, &Options::default())
}

fn good(text: &str) -> Vec<Resource> {
    let read = yaml(text);
    assert_eq!(read.errors, [], "{text}");
    read.resources
}

/// A port with a leading zero is octal for Envoy, and so it is read; the author
/// is told, except about a file mode.
#[test]
fn an_octal_number_is_read_as_envoy_does_and_warned_about() {
    let text = "\
\"@type\": x/envoy.config.core.v3.Address
socket_address: {address: 127.0.0.1, port_value: 010000}
";
    let octal = yaml(text);
    assert_eq!(octal.errors, []);
    let [warning] = &octal.warnings[..] else {
        panic!("one warning expected: {:#?}", octal.warnings);
    };
    assert_eq!(
        warning.to_string(),
        "f.yaml:2:50: 010000 is octal for Envoy and read as 4096; \
         write 4096, or leave out the zeros if another number is meant"
    );
    let json = to_node(&octal.resources[0].message, None).to_json();
    assert!(json.contains("\"port_value\": 4096"), "{json}");

    for same in ["00", "05", "\"010\"", "08", "0x10"] {
        let same = yaml(&text.replace("010000", same));
        assert_eq!((same.errors, same.warnings), (vec![], vec![]));
    }
    let mode = yaml("\"@type\": x/envoy.config.core.v3.Pipe\nmode: 0600\n");
    assert_eq!((mode.errors, mode.warnings), (vec![], vec![]));
}

/// Envoy takes a plain `1.5` in metadata for a text, so that YAML needs a tag
/// for the number.
#[test]
fn numbers_of_metadata_survive_in_yaml() {
    let values = "[1.5, -0.0, 5000000000, 3, -2147483648, 1e30]";
    let text = format!(
        r#"{{"@type": "x/envoy.config.core.v3.Metadata", "filter_metadata": {{"a": {{"b": {values}}}}}}}"#
    );
    let first = read("a.json", &text, &Options::default());
    assert_eq!(first.errors, []);
    let resource = &first.resources[0];
    let as_yaml = to_yaml([(resource.type_url.as_str(), &resource.message)]);
    assert!(as_yaml.contains("- !!float 1.5\n"), "{as_yaml}");
    assert!(as_yaml.contains("- 3\n"), "{as_yaml}");
    assert_eq!(good(&as_yaml)[0].body, resource.body, "{as_yaml}");
}

#[test]
fn a_key_is_its_text_and_may_be_ignored() {
    let text = "\
\"@type\": x/envoy.config.core.v3.Metadata
!ignore shared: &shared {on: 1}
filter_metadata: {010: *shared, no: {~: 2}}
";
    let json = to_node(&good(text)[0].message, None).to_json();
    for key in ["\"010\"", "\"on\"", "\"no\"", "\"null\""] {
        assert!(json.contains(key), "{key} in {json}");
    }
    assert!(!json.contains("shared"), "{json}");
}

/// Files of this program keep the core schema of YAML 1.2.
#[test]
fn a_text_without_resources_is_read_by_the_core_schema() {
    let text = "a: no\nb: 010\nc: 1.5\nd: true\n";
    let documents = parse(Format::Yaml, "s.yaml", text, &Limits::default()).unwrap();
    let value = |key| documents[0].get(key).unwrap().node.value.clone();
    assert_eq!(value("a"), Value::String("no".into()));
    assert_eq!(value("b"), Value::Number("010".into()));
    assert_eq!(value("c"), Value::Number("1.5".into()));
    assert_eq!(value("d"), Value::Bool(true));
}
