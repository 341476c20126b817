//! The pool is whole, and no name in it was taken for another.

use std::collections::BTreeSet;

use prost_reflect::{FileDescriptor, Kind, MessageDescriptor};

use super::*;

#[test]
fn every_file_and_message_is_there() {
    let pool = pool();
    assert_eq!(
        pool.all_messages().len(),
        1601,
        "another envoy-types? then say so here"
    );
    assert!(pool.files().len() >= 507);
    for url in types::ALL {
        assert!(message(url).is_some(), "{url}");
    }
    assert!(message(types::RESOURCE).is_some());
    assert!(message("type.googleapis.com/envoy.config.bootstrap.v3.Bootstrap").is_some());
    assert!(message("xds.type.v3.TypedStruct").is_some());
    assert!(message("no.such.Message").is_none());
}

/// The messages that `message` can hold, directly or not.
fn reach(message: MessageDescriptor, seen: &mut BTreeSet<String>) {
    if !seen.insert(message.full_name().to_owned()) {
        return;
    }
    for field in message.fields() {
        if let Kind::Message(inner) = field.kind() {
            reach(inner, seen);
        }
    }
}

#[test]
fn what_resources_can_hold_is_defined() {
    let mut seen = BTreeSet::new();
    reach(
        message("envoy.config.bootstrap.v3.Bootstrap").unwrap(),
        &mut seen,
    );
    for url in types::ALL {
        reach(message(url).unwrap(), &mut seen);
    }
    assert!(seen.len() > 300, "{}", seen.len());
    assert!(seen.iter().all(|name| message(name).is_some()));
}

/// A file, its imports, and their public imports.
fn visible(file: &FileDescriptor) -> BTreeSet<String> {
    fn add(file: &FileDescriptor, names: &mut BTreeSet<String>) {
        if names.insert(file.name().to_owned()) {
            file.public_dependencies().for_each(|f| add(&f, names));
        }
    }
    let mut names = BTreeSet::from([file.name().to_owned()]);
    file.dependencies().for_each(|f| add(&f, &mut names));
    names
}

/// The trap that `build/scope.rs` is about: a relative name that resolves to a
/// type of a file that is not even imported.
#[test]
fn every_type_that_a_field_names_is_imported() {
    for message in pool().all_messages() {
        let visible = visible(&message.parent_file());
        for field in message.fields() {
            let file = match field.kind() {
                Kind::Message(m) => m.parent_file(),
                Kind::Enum(e) => e.parent_file(),
                _ => continue,
            };
            assert!(visible.contains(file.name()), "{}", field.full_name());
        }
    }
}

#[test]
fn options_are_kept() {
    let message = message(types::VIRTUAL_HOST).unwrap();
    let field = message.get_field_by_name("domains").unwrap();
    let rules = pool().get_extension_by_name("validate.rules").unwrap();
    assert!(field.options().has_extension(&rules));
}
