//! The short way agrees with the long way, and takes plain bodies.

use bytes::Bytes;
use proptest::prelude::*;
use prost::Message;
use prost_reflect::{DynamicMessage, FieldDescriptor, Kind, MapKey, MessageDescriptor, Value};

use super::*;
use crate::{canonical, descriptor, facts, text, validate};

/// Whether the short way was taken; asserts that it agrees with the long one.
fn agree(type_url: &str, body: &[u8]) -> bool {
    let Some(found) = look(type_url, body) else {
        return false;
    };
    let of = descriptor::message(type_url).unwrap();
    let message = DynamicMessage::decode(of, body).unwrap();
    assert_eq!(canonical::encode(&message).unwrap(), body);
    assert_eq!(validate::validate(&message), []);
    assert_eq!(facts::of_message(&message).unwrap(), found);
    true
}

/// Pseudo-random numbers, the same for the same seed.
struct Dice(u64);

impl Dice {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (self.0 >> 33) as usize % n
    }

    fn of<T: Copy>(&mut self, list: &[T]) -> T {
        list[self.below(list.len())]
    }
}

/// A random message of a type, most of them with a mistake.
fn made(of: MessageDescriptor, dice: &mut Dice, depth: usize) -> DynamicMessage {
    let mut message = DynamicMessage::new(of.clone());
    match of.full_name() {
        "google.protobuf.Any" => {
            let inner = dice.of(&[
                "envoy.config.route.v3.Decorator",
                "google.protobuf.Struct",
                "envoy.extensions.clusters.aggregate.v3.ClusterConfig",
            ]);
            let body = made(descriptor::message(inner).unwrap(), dice, depth + 1);
            let body = canonical::encode(&body).unwrap();
            message.set_field_by_number(1, Value::String(format!("t/{inner}")));
            message.set_field_by_number(2, Value::Bytes(body.into()));
            return message;
        }
        "google.protobuf.Value" if depth > 6 => return message,
        _ => {}
    }
    for field in of.fields() {
        let rare = if depth > 5 { 40 } else { 6 };
        // Required fields are mostly there.
        let named = [
            "name", "domains", "match", "route", "cluster", "prefix", "header", "key",
        ];
        if dice.below(rare) == 0 || (named.contains(&field.name()) && dice.below(8) > 0) {
            let value = value(&field, dice, depth);
            message.set_field(&field, value);
        }
    }
    message
}

fn value(field: &FieldDescriptor, dice: &mut Dice, depth: usize) -> Value {
    match field.kind() {
        Kind::Message(entry) if field.is_map() => {
            let of = entry.map_entry_value_field();
            let keys = ["", "a", "b", "x-y", facts::NAMESPACE, facts::BASE_SETS];
            let count = 1 + dice.below(3);
            let pairs = (0..count).map(|_| {
                let key = MapKey::String(dice.of(&keys).to_owned());
                (key, single(&of, dice, depth))
            });
            match entry.map_entry_key_field().kind() {
                Kind::String => Value::Map(pairs.collect()),
                _ => Value::Map(Default::default()),
            }
        }
        _ if field.is_list() => {
            let count = 1 + dice.below(3);
            Value::List((0..count).map(|_| single(field, dice, depth)).collect())
        }
        _ => single(field, dice, depth),
    }
}

fn single(field: &FieldDescriptor, dice: &mut Dice, depth: usize) -> Value {
    let numbers = [0, 1, 1, 3, 100, 200, 599, 70_000, i64::from(u32::MAX), -1];
    let number = dice.of(&numbers);
    match field.kind() {
        Kind::Message(of) => Value::Message(made(of, dice, depth + 1)),
        Kind::Enum(of) => {
            let values: Vec<i32> = of.values().map(|v| v.number()).collect();
            Value::EnumNumber(if dice.below(9) == 0 {
                77
            } else {
                dice.of(&values)
            })
        }
        Kind::String => Value::String(dice.of(&["a", "b.com", "/", "x-y", "", "a\n"]).to_owned()),
        Kind::Bytes => Value::Bytes(Bytes::from_static(dice.of(&[b"", b"\xff"]))),
        Kind::Bool => Value::Bool(number != 0),
        Kind::Int32 | Kind::Sint32 | Kind::Sfixed32 => Value::I32(number as i32),
        Kind::Int64 | Kind::Sint64 | Kind::Sfixed64 => Value::I64(number),
        Kind::Uint32 | Kind::Fixed32 => Value::U32(number as u32),
        Kind::Uint64 | Kind::Fixed64 => Value::U64(number as u64),
        Kind::Float => Value::F32(dice.of(&[0.0, -0.0, 1.5, f32::NAN])),
        Kind::Double => Value::F64(dice.of(&[0.0, -0.0, 1.5, f64::INFINITY])),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn what_it_says_of_any_message_is_so(seed in any::<u64>(), flip in any::<u64>()) {
        let mut dice = Dice(seed);
        let url = dice.of(types::ALL);
        let message = made(descriptor::message(url).unwrap(), &mut dice, 0);
        agree(url, &canonical::encode(&message).unwrap());
        // With maps in any order, and defaults where the encoder leaves them.
        let mut bytes = message.encode_to_vec();
        agree(url, &bytes);
        if !bytes.is_empty() {
            let mut dice = Dice(flip);
            for _ in 0..1 + dice.below(3) {
                let at = dice.below(bytes.len());
                bytes[at] = dice.of(&[0, 1, 2, 0x0a, 0x12, 0x7f, 0x80, 0xff]);
                agree(url, &bytes);
            }
            bytes.truncate(dice.below(bytes.len()));
            agree(url, &bytes);
        }
    }
}

#[test]
fn of_many_random_hosts_it_knows_some_and_leaves_others() {
    let mut known = 0;
    for seed in 0..2000 {
        let of = descriptor::message(types::VIRTUAL_HOST).unwrap();
        let message = made(of, &mut Dice(seed), 4);
        let plain = validate::validate(&message).is_empty();
        let taken = agree(types::VIRTUAL_HOST, &canonical::encode(&message).unwrap());
        known += usize::from(taken);
        assert!(plain || !taken);
    }
    assert!((20..1500).contains(&known), "{known}");
}

const PLAIN: &str = r#"
resources:
- "@type": type.googleapis.com/envoy.config.route.v3.VirtualHost
  name: r/v
  domains: [a.com, "*.b.com", "a.com:80"]
  require_tls: ALL
  routes:
  - match: {prefix: /, headers: [{name: x, string_match: {safe_regex: {regex: ".*"}}}]}
    route:
      weighted_clusters: {clusters: [{name: b, weight: 3}, {name: a, weight: 1}]}
      timeout: 1.5s
      retry_policy: {retry_on: 5xx, num_retries: 3, retriable_status_codes: [503, 504]}
    typed_per_filter_config:
      b: {"@type": type.googleapis.com/google.protobuf.Struct, value: {k: [1, x, null, {}]}}
      a: {"@type": type.googleapis.com/envoy.extensions.filters.http.cors.v3.CorsPolicy}
      c: {"@type": type.googleapis.com/not.known.Type, value: AAA=}
  - match: {path: /x}
    direct_response: {status: 404}
  - match: {prefix: /c}
    route: {cluster: c, request_mirror_policies: [{cluster: m}]}
- "@type": type.googleapis.com/envoy.config.route.v3.RouteConfiguration
  name: r
  virtual_hosts: [{name: v, domains: [d], routes: [{match: {prefix: /}, route: {cluster: c}}]}]
  vhds: {config_source: {ads: {}, initial_fetch_timeout: 0.05s}}
  ignore_port_in_host_matching: true
- "@type": type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment
  cluster_name: c
  endpoints:
  - lb_endpoints: [{endpoint: {address: {socket_address: {address: 1.1.1.1, port_value: 1}}}}]
"#;

#[test]
fn plain_bodies_are_taken_the_short_way() {
    let read = text::read("f.yaml", PLAIN, &text::Options::default());
    assert_eq!(read.errors, []);
    for resource in &read.resources {
        assert_eq!(resource.validate(), []);
        assert!(agree(&resource.type_url, &resource.body), "{resource:?}");
    }
    let host = look(types::VIRTUAL_HOST, &read.resources[0].body).unwrap();
    let names: Vec<_> = host
        .references
        .iter()
        .map(|(_, name)| name.as_str())
        .collect();
    assert_eq!(names, ["a", "b", "c", "m"]);
}

/// The numbers of fields that are written in the code by hand.
#[test]
fn fields_have_the_numbers_that_envoy_gave_them() {
    for (url, field, number) in [
        (types::VIRTUAL_HOST, "domains", DOMAINS),
        (
            types::ROUTE_CONFIGURATION,
            "ignore_port_in_host_matching",
            IGNORE_PORT,
        ),
    ] {
        let of = descriptor::message(url).unwrap();
        assert_eq!(of.get_field_by_name(field).unwrap().number(), number);
    }
}

/// For each of these, the long way has an error or a change.
#[test]
fn what_is_not_plain_is_left() {
    for (bytes, why) in [
        (&b"\x0a\x01v\x12\x01d\x0a\x01v"[..], "out of order"),
        (b"\x0a\x01v\x12\x01d\x28\x00", "a default that is written"),
        (
            b"\x0a\x81\x00v\x12\x01d",
            "a length in more bytes than it takes",
        ),
        (b"\x0a\x01v\x12\x01d\xa0\x3f\x01", "an unknown field"),
        (b"\x0a\x01\xff\x12\x01d", "no UTF-8"),
        (b"\x0a\x01v\x12\x01\x0a", "a domain with a line break"),
        (b"\x0a\x01v\x12\x01d\x20\x4d", "an enum that is not defined"),
        (b"\x0a\x01v\x12\x05d", "cut off"),
        (b"\x12\x01d", "no name"),
        (b"\x0a\x01v\x12\x01d\x1a\x00", "a route without anything"),
    ] {
        assert_eq!(look(types::VIRTUAL_HOST, bytes), None, "{why}");
    }
    assert!(agree(types::VIRTUAL_HOST, b"\x0a\x01v\x12\x01d\x20\x01"));
    let base = "{\"@type\": x/envoy.config.route.v3.VirtualHost, name: v, domains: [d], \
                metadata: {filter_metadata: {trunkline: {base_sets: [a]}}}}";
    let read = text::read("f.yaml", base, &text::Options::default());
    assert_eq!(look(types::VIRTUAL_HOST, &read.resources[0].body), None);
    assert_eq!(look("not.known.Type", b""), None);
}
