//! Bodies inside bodies, as deep as their sender likes: every walk stops at a
//! stated depth, with a typed error, and no stack overflows.

use bytes::Bytes;
use prost::Message;
use prost_reflect::{DynamicMessage, MessageDescriptor, Value};
use trunkline_proto::{
    canonical::{self, CanonicalError, MAX_DEPTH},
    descriptor,
    facts::{self, FactsError},
    prost_reflect, text,
    validate::{self, Broken},
};

const ANY: &str = "type.googleapis.com/google.protobuf.Any";

/// An `Any` in an `Any`, `levels` times.
fn nested(of: &MessageDescriptor, levels: usize) -> Bytes {
    let mut body = Vec::new();
    for _ in 0..levels {
        let mut any = DynamicMessage::new(of.clone());
        any.set_field_by_name("type_url", Value::String(ANY.into()));
        any.set_field_by_name("value", Value::Bytes(body.into()));
        body = any.encode_to_vec();
    }
    body.into()
}

#[test]
fn every_walk_stops() {
    let body = nested(&descriptor::message(ANY).unwrap(), 20_000);
    let canonical = canonical::canonicalize(ANY, &body);
    assert_eq!(canonical, Err(CanonicalError::TooDeep));
    assert_eq!(facts::of(ANY, &body), Err(FactsError::TooDeep));
    let violations = validate::validate_bytes(ANY, &body).unwrap();
    assert_eq!(violations[0].broken, Broken::TooDeep(MAX_DEPTH));

    // Text leaves the rest as base64, and reads back.
    let message = DynamicMessage::decode(descriptor::message(ANY).unwrap(), body).unwrap();
    let json = text::to_node(&message, None).to_json();
    assert!(json.matches("@type").count() <= MAX_DEPTH + 2);
}

#[test]
fn what_is_not_too_deep_passes() {
    let body = nested(&descriptor::message(ANY).unwrap(), MAX_DEPTH - 1);
    assert_eq!(canonical::canonicalize(ANY, &body).unwrap(), body);
    assert!(facts::of(ANY, &body).is_ok());
    assert_eq!(validate::validate_bytes(ANY, &body).unwrap(), []);
}

/// A message of 100 levels is where `prost` stops.
#[test]
fn a_body_alone_nests_to_a_hundred_levels() {
    let url = "google.protobuf.ListValue";
    let deep = |levels: usize| {
        let mut body: Vec<u8> = Vec::new();
        for level in 0..levels {
            // ListValue.values is field 1, Value.list_value is field 6.
            let key = if level % 2 == 0 { 0x32 } else { 0x0a };
            let mut outer = vec![key];
            prost::encoding::encode_varint(body.len() as u64, &mut outer);
            outer.extend(body);
            body = outer;
        }
        Bytes::from(body)
    };
    assert!(canonical::canonicalize(url, &deep(98)).is_ok());
    let error = canonical::canonicalize(url, &deep(2_000)).unwrap_err();
    assert!(matches!(error, CanonicalError::Malformed { .. }));
    assert!(matches!(
        facts::of(url, &deep(2_000)),
        Err(FactsError::Malformed { .. })
    ));
}
