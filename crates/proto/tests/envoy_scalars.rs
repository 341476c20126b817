//! Scalars are read as Envoy 1.40 reads them: every row of
//! `data/envoy-1.40-scalars.txt`, which a test with a real Envoy keeps true.

use trunkline_proto::text::{Document, Format, Options, read_as, to_node};

const ROWS: &str = include_str!("data/envoy-1.40-scalars.txt");

/// Reads an extension whose configuration has one field.
fn read(format: Format, message: &str, field: &str, value: &str) -> Document {
    let name = "type.googleapis.com/envoy.config.core.v3.TypedExtensionConfig";
    let text = match format {
        Format::Yaml => format!(
            "\"@type\": {name}\nname: e\ntyped_config:\n  \
             \"@type\": type.googleapis.com/{message}\n  {field}: {value}\n"
        ),
        Format::Json => format!(
            r#"{{"@type": "{name}", "name": "e", "typed_config":
               {{"@type": "type.googleapis.com/{message}", "{field}": {value}}}}}"#
        ),
    };
    read_as(format, "f", &text, &Options::default())
}

/// Writes what was read, so that values without digits compare too. `None` if
/// it was refused.
fn print(read: &Document) -> Option<String> {
    let [resource] = read.resources.as_slice() else {
        assert!(!read.errors.is_empty(), "a refusal says why");
        return None;
    };
    Some(to_node(&resource.message, None).to_json())
}

#[test]
fn every_scalar_is_what_it_is_for_envoy() {
    let mut wrong = Vec::new();
    let mut count = 0;
    let mut section = (Format::Yaml, "", "");
    for line in ROWS.lines() {
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        if let Some(head) = line.strip_prefix("== ") {
            let [format, message, field] = head.split(' ').collect::<Vec<_>>()[..] else {
                panic!("a format, a message and a field: {line}");
            };
            let format = if format == "json" {
                Format::Json
            } else {
                Format::Yaml
            };
            section = (format, message, field);
            continue;
        }
        let (spelling, expected) = line.rsplit_once(" => ").expect("a spelling and a value");
        let spelling = if spelling == "(nothing)" {
            ""
        } else {
            spelling
        };
        let (format, message, field) = section;

        let found = print(&read(format, message, field, spelling));
        let expected = match expected {
            "refused" => None,
            "unset" => print(&read(Format::Json, message, field, "null")),
            value => print(&read(Format::Json, message, field, value)),
        };
        assert_eq!(expected.is_none(), line.ends_with("refused"), "{line}");
        if found != expected {
            wrong.push(format!("{section:?} {line}: here {found:?}"));
        }
        count += 1;
    }
    assert_eq!(wrong, Vec::<String>::new());
    assert!(count > 1_800, "the table is there: {count}");
}
