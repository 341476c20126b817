//! Versions of resources, as they have been since the first release that keeps
//! contents: if one changes, an upgrade sends a fleet everything again.
#![cfg(feature = "server")]
#![allow(clippy::unwrap_used, reason = "all of this is a test")]

use std::io::Cursor;

use trunkline::checked::{Form, decode};
use trunkline::wire::text_options;
use trunkline_proto::text::Format;

const CORPUS: &str = include_str!("data/golden.yaml");

/// The name and the version of every resource of the corpus, in its order.
const VERSIONS: &str = include_str!("data/golden.txt");

#[test]
fn s71_versions_are_what_they_always_were() {
    let form = Form::Text(Format::Yaml);
    let decoded = decode(&"".into(), form, Cursor::new(CORPUS), &text_options()).unwrap();
    assert!(decoded.errors.is_empty(), "{:?}", decoded.errors);
    let items = decoded.document.items.iter();
    let lines = items.map(|item| format!("{} {}\n", item.resource.name, item.resource.version));
    assert_eq!(lines.collect::<String>(), VERSIONS);
}
