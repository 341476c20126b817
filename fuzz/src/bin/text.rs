//! Files from any bytes: read within limits, and what is read is the same when
//! it is written and read again.
#![no_main]

use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;
use trunkline_fuzz::TYPES;
use trunkline_proto::text::{self, Document, Format, Limits, Node, Options, Unknown, Value};

const LIMITS: Limits = Limits {
    bytes: 1 << 14,
    binary: 1 << 14,
    depth: 32,
    memory: 1 << 20,
    expanded: 1 << 10,
    errors: 8,
};

#[derive(Arbitrary, Debug)]
struct Input<'a> {
    is_json: bool,
    lenient: bool,
    /// A resource of a type that is known, so that not every input has to find one.
    of_type: Option<u8>,
    bytes: &'a [u8],
}

fuzz_target!(|input: Input<'_>| {
    let mut contents = String::from_utf8_lossy(input.bytes).into_owned();
    if let Some(number) = input.of_type {
        let url = TYPES[usize::from(number) % TYPES.len()];
        contents = match input.is_json {
            true => format!("{{\"@type\":\"{url}\",{contents}}}"),
            false => format!("\"@type\": {url}\n{contents}"),
        };
    }
    let format = if input.is_json {
        Format::Json
    } else {
        Format::Yaml
    };
    let unknown = if input.lenient {
        Unknown::Warn
    } else {
        Unknown::Refuse
    };
    let limits = LIMITS;
    let options = Options {
        unknown,
        limits,
        readable: None,
        manifests: input.lenient,
    };
    if let Ok(documents) = text::parse(format, "file", &contents, &limits) {
        // A value costs this much at least, so that there are only so many.
        let values: u64 = documents.iter().map(count).sum();
        assert!(values * 160 <= limits.memory, "{values} values");
    }
    let document = text::read_as(format, "file", &contents, &options);
    for error in document.errors.iter().chain(&document.warnings) {
        let _ = error.to_string();
    }
    for resource in &document.resources {
        let _ = resource.validate();
        if trunkline_proto::conditions::find(&resource.message).is_ok() {
            let _ = trunkline_proto::conditions::keep(&resource.message, &|_| false);
        }
    }
    let all = || (document.resources.iter()).map(|r| (r.type_url.as_str(), &r.message));
    same(&document, Format::Json, &text::to_json(all()));
    same(&document, Format::Yaml, &text::to_yaml(all()));
});

fn same(document: &Document, format: Format, written: &str) {
    let again = text::read_as(format, "again", written, &Options::default());
    assert!(again.errors.is_empty(), "{:?}\n{written}", again.errors);
    let bodies = |of: &Document| -> Vec<_> {
        let resources = of.resources.iter();
        resources
            .map(|r| (r.type_url.clone(), r.body.clone()))
            .collect()
    };
    assert_eq!(bodies(&again), bodies(document), "{written}");
}

/// The values of a tree.
fn count(node: &Node) -> u64 {
    1 + match &node.value {
        Value::List(items) => items.iter().map(count).sum(),
        Value::Map(entries) => entries.iter().map(|entry| count(&entry.node)).sum(),
        _ => 0,
    }
}
