//! Tests of lists of fields.

use bytes::Bytes;

use super::*;
use crate::acceptance::{Findings, Policy};
use crate::descriptor::types;

fn unsupported(fields: &SupportedFields, type_url: &str, body: &[u8]) -> Vec<String> {
    let policy = Policy::grpc();
    let mut findings = Findings::new(&policy);
    fields.scan(type_url, body, &mut findings);
    findings.finish(None, type_url).unwrap().unsupported
}

#[test]
fn the_list_of_grpc_can_be_read() {
    assert!(SupportedFields::parse(GRPC).is_ok());
}

#[test]
fn a_list_says_what_is_wrong_with_it() {
    let error = |list: &str| SupportedFields::parse(list).unwrap_err().to_string();
    assert_eq!(error("a.B"), "there is no message a.B");
    let cluster = "envoy.config.cluster.v3.Cluster";
    assert_eq!(
        error(&format!("{cluster}\n  name nome")),
        format!("{cluster} has no field nome")
    );
    assert_eq!(
        error("  name"),
        "\"name\" is a field without a message; the first line must name a message"
    );
}

#[test]
fn c57_a_field_that_the_descriptors_do_not_know_is_reported_by_number() {
    let fields = SupportedFields::grpc();
    let body = b"\x0a\x01c\xf2\xbe\x04\x01x\xf2\xbe\x04\x01y";
    assert_eq!(unsupported(&fields, types::CLUSTER, body), ["[9198]"]);
}

#[test]
fn c57_a_list_can_be_extended() {
    // connect_timeout: {seconds: 1}
    let body = b"\x0a\x01c\x22\x02\x08\x01";
    let cluster = "envoy.config.cluster.v3.Cluster";
    let own = SupportedFields::grpc_and(&format!("{cluster}\n connect_timeout")).unwrap();
    assert_eq!(
        unsupported(&SupportedFields::grpc(), types::CLUSTER, body),
        ["connect_timeout"]
    );
    assert!(unsupported(&own, types::CLUSTER, body).is_empty());
}

#[test]
fn c57_any_bytes_can_be_searched() {
    let fields = SupportedFields::grpc();
    for body in [&b"\xff"[..], b"\x0a\xff", b"\x1a\x02\x0a\x7f", b"\x00"] {
        let body = Bytes::copy_from_slice(body);
        let _ = unsupported(&fields, types::CLUSTER, &body);
    }
}
