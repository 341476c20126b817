//! Chosen values of an encoded `google.protobuf.Struct`, without decoding the
//! rest of it: the metadata of a node may be large, and few of its keys are
//! ever read.
//!
//! Every byte is read once for each level that a path leads through, and only
//! the values found are kept. How deep the rest nests costs nothing.

use bytes::Bytes;
use prost::Message;

use super::glance::fields;
use super::scan;

/// The field of a `Struct` that holds its entries.
const FIELDS: u32 = 1;
/// The fields of an entry.
const KEY: u32 = 1;
const VALUE: u32 = 2;

/// `google.protobuf.Value`, as far as a path can end in it or lead through it.
#[derive(Clone, PartialEq, prost::Message)]
struct Value {
    #[prost(oneof = "Kind", tags = "1, 2, 3, 4, 5, 6")]
    kind: Option<Kind>,
}

#[derive(Clone, PartialEq, prost::Oneof)]
enum Kind {
    #[prost(int32, tag = "1")]
    Null(i32),
    #[prost(double, tag = "2")]
    Number(f64),
    #[prost(string, tag = "3")]
    Text(String),
    #[prost(bool, tag = "4")]
    Bool(bool),
    #[prost(bytes = "bytes", tag = "5")]
    Struct(Bytes),
    #[prost(bytes = "bytes", tag = "6")]
    List(Bytes),
}

/// Reads the values at some paths of an encoded `Struct`. The paths must be
/// sorted; the values are in their order.
///
/// A text is returned as it is, a number and a boolean as they are written in
/// JSON. Anything else, and an unreadable value, is `None`. Of two entries with
/// the same key the last one counts, as everywhere in protobuf.
#[must_use]
pub fn values_at<P: AsRef<[String]>>(raw: &Bytes, paths: &[P]) -> Vec<Option<String>> {
    let mut values = vec![None; paths.len()];
    read_struct(raw, paths, 0, &mut values);
    values
}

/// Reads the values at `paths` in an encoded `Struct` into `values`, which has
/// a place for each path. The first `depth` keys lead to this `Struct` and are
/// the same in all paths; each path has at least one key more. A malformed
/// entry is skipped; a malformed field ends the reading.
fn read_struct<P: AsRef<[String]>>(
    raw: &Bytes,
    paths: &[P],
    depth: usize,
    values: &mut [Option<String>],
) {
    let entries = fields(raw).filter(|(number, _)| *number == FIELDS);
    for (key, value) in entries.filter_map(|(_, entry)| entry_parts(entry)) {
        // The paths are sorted, so those through this key are next to each other.
        let start = paths.partition_point(|path| key_of(path, depth) < key);
        let end = paths.partition_point(|path| key_of(path, depth) <= key);
        if start < end {
            let value = Value::decode(raw.slice_ref(value)).unwrap_or_default();
            read_value(
                value,
                &paths[start..end],
                depth + 1,
                &mut values[start..end],
            );
        }
    }
}

/// Returns the key of a path at a depth. Every path is longer than that,
/// because [`read_value`] does not pass on those that end there.
fn key_of<P: AsRef<[String]>>(path: &P, depth: usize) -> &[u8] {
    path.as_ref().get(depth).map_or(&[], String::as_bytes)
}

/// Returns the key and the encoded value of an entry. A missing one is empty.
/// Returns `None` if the entry is malformed.
fn entry_parts(mut entry: &[u8]) -> Option<(&[u8], &[u8])> {
    let mut key = &entry[..0];
    let mut value = &entry[..0];
    while !entry.is_empty() {
        match scan::take_field(&mut entry)? {
            (KEY, Some(bytes)) => key = bytes,
            (VALUE, Some(bytes)) => value = bytes,
            _ => {}
        }
    }
    Some((key, value))
}

/// Reads a value at which some paths end, and through which the others lead.
/// The first `depth` keys of all paths are the same. Results of an earlier
/// entry with the same key are overwritten.
fn read_value<P: AsRef<[String]>>(
    value: Value,
    paths: &[P],
    depth: usize,
    values: &mut [Option<String>],
) {
    values.fill(None);
    // In sorted order, the paths that end here are before the longer ones.
    let ending_count = paths.partition_point(|path| path.as_ref().len() == depth);
    match value.kind {
        Some(Kind::Struct(inner)) => {
            read_struct(
                &inner,
                &paths[ending_count..],
                depth,
                &mut values[ending_count..],
            );
        }
        kind => values[..ending_count].fill(kind.and_then(scalar_text)),
    }
}

/// Returns the text of a value that can be a parameter: a text, a boolean or a
/// finite number. Returns `None` for other values.
fn scalar_text(kind: Kind) -> Option<String> {
    match kind {
        Kind::Text(text) => Some(text),
        Kind::Bool(value) => Some(value.to_string()),
        Kind::Number(value) if value.is_finite() => Some(value.to_string()),
        Kind::Number(_) | Kind::Null(_) | Kind::Struct(_) | Kind::List(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text;

    fn encoded(json: &str) -> Bytes {
        let text = format!(
            r#"{{"@type": "type.googleapis.com/envoy.config.core.v3.Node", "metadata": {json}}}"#
        );
        let read = text::read("n.json", &text, &text::Options::default());
        assert_eq!(read.errors, []);
        super::super::Node::decode(read.resources[0].body.clone())
            .unwrap()
            .metadata
            .unwrap()
    }

    fn found(raw: &Bytes, paths: &[&str]) -> Vec<Option<String>> {
        let split = |path: &&str| path.split('/').map(str::to_owned).collect::<Vec<_>>();
        values_at(raw, &paths.iter().map(split).collect::<Vec<_>>())
    }

    #[test]
    fn values_are_found_at_their_paths() {
        let raw = encoded(
            r#"{"NS": "shop", "n": 3, "f": 1.5, "b": true, "z": null, "l": ["x"],
                "a": {"b": "deep", "c": {"d": "deeper"}}}"#,
        );
        let some = |text: &str| Some(text.to_owned());
        let paths = [
            "NS", "a", "a/b", "a/c/d", "a/c/x", "b", "b/c", "f", "l", "n", "none", "z",
        ];
        assert_eq!(
            found(&raw, &paths),
            [
                some("shop"),
                None,
                some("deep"),
                some("deeper"),
                None,
                some("true"),
                None,
                some("1.5"),
                None,
                some("3"),
                None,
                None,
            ]
        );
    }

    #[test]
    fn of_two_entries_the_last_one_counts() {
        let mut both = encoded(r#"{"a": {"b": "x", "c": "y"}}"#).to_vec();
        both.extend_from_slice(&encoded(r#"{"a": {"b": "z"}}"#));
        let both = Bytes::from(both);
        assert_eq!(found(&both, &["a/b", "a/c"]), [Some("z".to_owned()), None]);
    }

    #[test]
    fn hostile_bytes_cost_little_and_say_nothing() {
        // Ten thousand structs in each other, each the only entry "a".
        let mut deep = Vec::new();
        for _ in 0..10_000 {
            let mut value = Vec::new();
            prost::encoding::bytes::encode(5, &deep, &mut value);
            let mut entry = Vec::new();
            prost::encoding::string::encode(1, &"a".to_owned(), &mut entry);
            prost::encoding::bytes::encode(2, &value, &mut entry);
            deep.clear();
            prost::encoding::bytes::encode(1, &entry, &mut deep);
        }
        assert_eq!(found(&deep.into(), &["a/a/a", "b"]), [None, None]);
        for broken in [&b"\x0a\x05\x0a\x01a"[..], b"\x0a\xff", b"\xff\xff", b"\x0b"] {
            let raw = Bytes::from_static(broken);
            assert_eq!(found(&raw, &["a"]), [None], "{broken:?}");
        }
    }

    proptest::proptest! {
        #[test]
        fn arbitrary_bytes_never_panic(bytes in proptest::collection::vec(0u8..32, 0..200)) {
            let _ = found(&bytes.into(), &["", "\u{1}", "\u{1}/\u{2}"]);
        }
    }
}
