//! Types that are not built in, and those that are.

use prost::Message as _;
use prost_reflect::prost_types::{
    DescriptorProto, FieldDescriptorProto, FileDescriptorProto, FileDescriptorSet,
    field_descriptor_proto::{Label, Type},
};

use super::super::{ENCODED, pool};
use super::{DescriptorFile, ExtendError, build_extended_pool, extend};

fn field(name: &str, number: i32, of: Type, type_name: Option<&str>) -> FieldDescriptorProto {
    FieldDescriptorProto {
        name: Some(name.into()),
        number: Some(number),
        label: Some(Label::Optional.into()),
        r#type: Some(of.into()),
        type_name: type_name.map(Into::into),
        ..Default::default()
    }
}

/// A set with one file of one message.
fn set(package: &str, message: &str, field: FieldDescriptorProto) -> DescriptorFile {
    let file = FileDescriptorProto {
        name: Some(format!("{}/x.proto", package.replace('.', "/"))),
        package: Some(package.into()),
        dependency: vec!["envoy/config/core/v3/address.proto".into()],
        message_type: vec![DescriptorProto {
            name: Some(message.into()),
            field: vec![field],
            ..Default::default()
        }],
        syntax: Some("proto3".into()),
        ..Default::default()
    };
    let set = FileDescriptorSet { file: vec![file] };
    DescriptorFile {
        name: "x.bin".into(),
        bytes: set.encode_to_vec().into(),
    }
}

fn error(file: DescriptorFile) -> String {
    build_extended_pool(&[file]).unwrap_err().to_string()
}

#[test]
fn types_are_added_to_the_built_in_ones() {
    let address = Some(".envoy.config.core.v3.Address");
    let filter = set("my", "Filter", field("where", 1, Type::Message, address));
    // Twice is once.
    let all = build_extended_pool(&[filter.clone(), filter]).unwrap();
    assert_eq!(all.all_messages().len(), pool().all_messages().len() + 1);
    let filter = all.get_message_by_name("my.Filter").unwrap();
    let kind = filter.get_field_by_name("where").unwrap().kind();
    assert_eq!(kind.as_message().unwrap().name(), "Address");
}

#[test]
fn the_built_in_set_changes_nothing() {
    let bytes = ENCODED.into();
    let name = "envoy.bin".to_owned();
    let all = build_extended_pool(&[DescriptorFile { name, bytes }]).unwrap();
    assert_eq!(all.all_messages().len(), pool().all_messages().len());
}

#[test]
fn a_bad_file_is_refused_with_its_name() {
    let garbage = DescriptorFile {
        name: "x.bin".into(),
        bytes: "resources: []".into(),
    };
    let said = error(garbage);
    assert!(
        said.starts_with("x.bin: is not a FileDescriptorSet: "),
        "{said}"
    );
    let empty = DescriptorFile {
        name: "x.bin".into(),
        bytes: "".into(),
    };
    assert_eq!(
        error(empty),
        "x.bin: is not a FileDescriptorSet: it is empty; write it by `protoc --include_imports \
         --descriptor_set_out=x.bin`"
    );

    let missing = set(
        "my",
        "Filter",
        field("a", 1, Type::Message, Some(".my.Missing")),
    );
    let said = error(missing);
    assert!(said.starts_with("x.bin: "), "{said}");
    assert!(
        said.ends_with("; is it written by `protoc --include_imports`?"),
        "{said}"
    );

    let other = set(
        "envoy.config.cluster.v3",
        "Cluster",
        field("title", 1, Type::Int32, None),
    );
    assert_eq!(
        error(other),
        "x.bin: contradicts what is known of envoy.config.cluster.v3.Cluster: it has \
         `string name = 1`, and not `int32 title = 1`; compile it with the same API of Envoy, or \
         give the type another package"
    );
}

#[test]
fn descriptors_in_use_do_not_change() {
    let _ = pool();
    let filter = set("my", "Filter", field("a", 1, Type::String, None));
    assert_eq!(extend(&[filter]), Err(ExtendError::TooLate));
    assert_eq!(extend(&[]), Ok(()));
}
