//! S71: the same contents give the same bytes in every process.
//!
//! Hash maps take a new seed in each process, so one process proves nothing:
//! the test runs itself twenty times.

use std::{env, process::Command};

use bytes::Bytes;
use prost_reflect::DynamicMessage;
use trunkline_proto::{
    canonical::{CanonicalError, canonicalize},
    descriptor::{self, types},
    prost_reflect, text,
};

const CHILD: &str = "TRUNKLINE_CANONICAL_CHILD";

/// Maps of several keys, in the resource, inside an `Any`, and inside an `Any`
/// inside that.
const FIXTURE: &str = r#"
resources:
- "@type": type.googleapis.com/envoy.config.cluster.v3.Cluster
  name: c1
  connect_timeout: 0.25s
  metadata:
    filter_metadata:
      one: {z: 1, y: {q: 1, p: 2, o: 3, n: 4}, x: [1, 2, {c: 1, b: 2, a: 3}], w: 4, v: 5}
      two: {k1: a, k2: b, k3: c, k4: d, k5: e, k6: f}
      three: {}
      four: {}
  typed_extension_protocol_options:
    envoy.extensions.upstreams.http.v3.HttpProtocolOptions:
      "@type": type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions
      explicit_http_config: {http2_protocol_options: {}}
      http_filters:
      - name: f
        typed_config:
          "@type": type.googleapis.com/xds.type.v3.TypedStruct
          type_url: a/b
          value: {e: 5, d: {f: 1, g: 2, h: 3}, c: 3, b: 2, a: 1}
    b: {"@type": type.googleapis.com/google.protobuf.Struct, value: {z: 1, y: 2, x: 3}}
    a: {"@type": type.googleapis.com/google.protobuf.Struct, value: {m: 1, l: 2, k: 3}}
"#;

fn fixture() -> Bytes {
    let read = text::read("fixture.yaml", FIXTURE, &text::Options::default());
    assert_eq!(read.errors, []);
    read.resources[0].body.clone()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

#[test]
fn s71_twenty_processes_give_the_same_bytes() {
    if env::var_os(CHILD).is_some() {
        println!("bytes={}", hex(&fixture()));
        return;
    }
    let ours = hex(&fixture());
    let name = "s71_twenty_processes_give_the_same_bytes";
    for _ in 0..20 {
        let output = Command::new(env::current_exe().unwrap())
            .args(["--exact", name, "--nocapture"])
            .env(CHILD, "1")
            .output()
            .unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        let theirs = text.split("bytes=").nth(1).and_then(|t| t.lines().next());
        assert_eq!(theirs, Some(ours.as_str()));
    }
}

/// The test above would pass for an encoder that is stable by luck; this one
/// shows that the usual encoder is not.
#[test]
fn the_usual_encoding_differs_from_run_to_run() {
    use prost_reflect::prost::Message;

    let of = descriptor::message(types::CLUSTER).unwrap();
    let body = fixture();
    let usual = || {
        DynamicMessage::decode(of.clone(), body.clone())
            .unwrap()
            .encode_to_vec()
    };
    let first = usual();
    assert!((0..50).any(|_| usual() != first));
}

#[test]
fn canonical_bytes_are_a_fixed_point_and_the_same_message() {
    let of = descriptor::message(types::CLUSTER).unwrap();
    let body = fixture();
    let message = DynamicMessage::decode(of.clone(), body.clone()).unwrap();
    for _ in 0..20 {
        // Another order of entries each time: the maps of a fresh message.
        use prost_reflect::prost::Message;
        let shuffled = Bytes::from(message.clone().encode_to_vec());
        assert_eq!(canonicalize(types::CLUSTER, &shuffled).unwrap(), body);
    }
    assert!(DynamicMessage::decode(of, body).unwrap() == message);
}

#[test]
fn s70_what_is_not_known_is_kept_in_a_stable_place() {
    let known = Bytes::from_static(b"\x0a\x01a");
    // Field 1000 before and after the name, and field 2000 between them.
    let first = b"\xc2\x3e\x01x\x0a\x01a\x82\x7d\x01z\xc2\x3e\x01y";
    let second = b"\x82\x7d\x01z\xc2\x3e\x01x\xc2\x3e\x01y\x0a\x01a";
    let url = types::VIRTUAL_HOST;
    let one = canonicalize(url, &Bytes::from_static(first)).unwrap();
    let two = canonicalize(url, &Bytes::from_static(second)).unwrap();
    assert_eq!(one, two);
    assert_eq!(
        one.as_ref(),
        b"\x0a\x01a\xc2\x3e\x01x\xc2\x3e\x01y\x82\x7d\x01z"
    );
    assert_eq!(canonicalize("not.known.Here", &known).unwrap(), known);
}

#[test]
fn bytes_of_another_type_are_a_typed_error() {
    let bad = Bytes::from_static(b"\x0a\xff");
    let error = canonicalize(types::CLUSTER, &bad).unwrap_err();
    assert!(matches!(error, CanonicalError::Malformed { .. }));
}
