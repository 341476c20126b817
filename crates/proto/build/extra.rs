//! Two messages that Envoy reads everywhere and `envoy-types` does not ship:
//! `TypedStruct`, under its new and its old name. Two fields each.

use protox::prost_reflect::prost_types::{
    DescriptorProto, FieldDescriptorProto, FileDescriptorProto,
    field_descriptor_proto::{Label, Type},
};

use super::compile::Files;

/// Adds them, unless a later `envoy-types` has them.
pub(crate) fn add(files: &mut Files) {
    for package in ["xds.type.v3", "udpa.type.v1"] {
        let name = format!("{}/typed_struct.proto", package.replace('.', "/"));
        files
            .entry(name.clone())
            .or_insert_with(|| typed_struct(name, package));
    }
}

fn typed_struct(name: String, package: &str) -> FileDescriptorProto {
    let mut url = field("type_url", 1, Type::String);
    url.json_name = Some("typeUrl".into());
    let mut value = field("value", 2, Type::Message);
    value.type_name = Some(".google.protobuf.Struct".into());
    let message = DescriptorProto {
        name: Some("TypedStruct".into()),
        field: vec![url, value],
        ..Default::default()
    };
    FileDescriptorProto {
        name: Some(name),
        package: Some(package.into()),
        dependency: vec!["google/protobuf/struct.proto".into()],
        message_type: vec![message],
        syntax: Some("proto3".into()),
        ..Default::default()
    }
}

fn field(name: &str, number: i32, kind: Type) -> FieldDescriptorProto {
    FieldDescriptorProto {
        name: Some(name.into()),
        number: Some(number),
        label: Some(Label::Optional.into()),
        r#type: Some(kind.into()),
        ..Default::default()
    }
}
