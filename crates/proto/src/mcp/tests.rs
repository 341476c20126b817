//! Both directions against bytes that Python's protobuf wrote, and `mcp.proto`
//! against the messages here.

use bytes::Bytes;
use prost::Message as _;
use prost_reflect::{DescriptorPool, DynamicMessage, ReflectMessage as _};
use protox::file::{File, FileResolver, GoogleFileResolver};

use super::*;
use crate::discovery::{Any, DecodeError, Inbound as _, Limits, Status};

/// Written by Python's protobuf, deterministically.
const REQUEST: &str = "0a160a0570696c6f74120d0a03656e76120663616e6172791229697374696f2f6e6574776f\
    726b696e672f7631616c706861332f7669727475616c73657276696365731a0c0a066e732f666f6f1202763022013\
    22a0e0803120a6e732f62617a3a206e6f3001";
const RESOURCES: &str = "0a037379731201631a4d0a2b0a066e732f62617212080880dea0cb0510071a02763122080\
    a036170701201782a090a046e6f7465120179121e0a17747970652e676f6f676c65617069732e636f6d2f742e5412\
    030a017a22066e732f666f6f2a01333001";

fn bytes(hex: &str) -> Bytes {
    let digits: Vec<_> = hex.chars().filter_map(|c| c.to_digit(16)).collect();
    let pairs = digits.chunks(2).map(|pair| (pair[0] * 16 + pair[1]) as u8);
    pairs.collect()
}

fn request() -> RequestResources {
    RequestResources {
        sink_node: Some(SinkNode {
            id: "pilot".into(),
            annotations: [("env".into(), "canary".into())].into(),
        }),
        collection: "istio/networking/v1alpha3/virtualservices".into(),
        initial_resource_versions: [("ns/foo".into(), "v0".into())].into(),
        response_nonce: "2".into(),
        error_detail: Some(Status {
            code: 3,
            message: "ns/baz: no".into(),
            details: vec![],
        }),
        incremental: true,
    }
}

fn resource() -> Resource {
    Resource {
        metadata: Some(Metadata {
            name: "ns/bar".into(),
            create_time: Some(Timestamp {
                seconds: 1_500_000_000,
                nanos: 7,
            }),
            version: "v1".into(),
            labels: [("app".into(), "x".into())].into(),
            annotations: [("note".into(), "y".into())].into(),
        }),
        body: Some(Any {
            type_url: "type.googleapis.com/t.T".into(),
            value: Bytes::from_static(b"\x0a\x01z"),
        }),
    }
}

fn resources() -> Resources {
    Resources {
        system_version_info: "sys".into(),
        collection: "c".into(),
        resources: vec![resource().encode_to_vec().into()],
        removed_resources: vec!["ns/foo".into()],
        nonce: "3".into(),
        incremental: true,
    }
}

#[test]
fn messages_are_written_as_another_implementation_writes_them() {
    assert_eq!(request().encode_to_vec(), bytes(REQUEST));
    assert_eq!(resources().encode_to_vec(), bytes(RESOURCES));
}

#[test]
fn messages_are_read_and_resources_share_the_received_bytes() {
    let limits = Limits::default();
    let read = RequestResources::decode_checked(bytes(REQUEST), &limits).unwrap();
    assert_eq!(read.message, request());
    let received = bytes(RESOURCES);
    let range = received.as_ptr_range();
    let read = Resources::decode_checked(received.clone(), &limits).unwrap();
    assert_eq!(read.message, resources());
    let raw = &read.message.resources[0];
    assert!(range.contains(&raw.as_ptr()));
    let read = Resource::decode_checked(raw.clone(), &limits).unwrap();
    assert_eq!(read.message, resource());
}

#[test]
fn limits_are_met_before_a_message_is_decoded() {
    let limits = Limits {
        name_bytes: 5,
        ..Limits::default()
    };
    let error = Resources::decode_checked(bytes(RESOURCES), &limits).unwrap_err();
    let DecodeError::TextTooLong { field, len, .. } = error else {
        panic!("{error:?}");
    };
    assert_eq!((field, len), ("name", 6));
    let limits = Limits {
        entries: 3,
        ..Limits::default()
    };
    let error = RequestResources::decode_checked(bytes(REQUEST), &limits).unwrap_err();
    assert!(matches!(error, DecodeError::TooMany { .. }), "{error:?}");
}

/// Finds `mcp.proto` and what it imports.
struct Files;

impl FileResolver for Files {
    fn open_file(&self, name: &str) -> Result<File, protox::Error> {
        let status = "syntax = \"proto3\"; package google.rpc;
            import \"google/protobuf/any.proto\";
            message Status {
              int32 code = 1; string message = 2; repeated google.protobuf.Any details = 3;
            }";
        match name {
            "mcp.proto" => File::from_source(name, PROTO),
            "google/rpc/status.proto" => File::from_source(name, status),
            _ => GoogleFileResolver::new().open_file(name),
        }
    }
}

#[test]
fn the_definition_for_other_languages_is_of_the_same_messages() {
    let mut compiler = protox::Compiler::with_file_resolver(Files);
    compiler
        .include_imports(true)
        .open_file("mcp.proto")
        .unwrap();
    let pool = DescriptorPool::from_file_descriptor_set(compiler.file_descriptor_set()).unwrap();
    for (name, wire) in [("RequestResources", REQUEST), ("Resources", RESOURCES)] {
        let name = format!("istio.mcp.v1alpha1.{name}");
        let message = pool.get_message_by_name(&name).unwrap();
        let read = DynamicMessage::decode(message, bytes(wire)).unwrap();
        assert_eq!(read.unknown_fields().count(), 0);
        // Every field that is declared is set, with the type of its value.
        assert_eq!(read.fields().count(), read.descriptor().fields().count());
        assert_eq!(read.encode_to_vec(), bytes(wire));
    }
    let methods = pool.services().flat_map(|service| {
        let methods: Vec<_> = service.methods().collect();
        methods.into_iter().map(move |method| {
            let messages = [method.input(), method.output()].map(|m| m.name().to_owned());
            (
                format!("/{}/{}", service.full_name(), method.name()),
                messages,
            )
        })
    });
    let both = ["RequestResources", "Resources"].map(str::to_owned);
    let [asked, sent] = both.clone();
    let expected = [
        (SOURCE_METHOD.to_owned(), both),
        (SINK_METHOD.to_owned(), [sent, asked]),
    ];
    assert_eq!(methods.collect::<Vec<_>>(), expected);
}
