//! More types than those that are built in: descriptors from a file, as `protoc`
//! writes them.

#[cfg(test)]
mod tests;

use bytes::Bytes;
use prost::Message;
use prost_reflect::{
    DescriptorPool, EnumDescriptor, MessageDescriptor,
    prost_types::{
        DescriptorProto, EnumDescriptorProto, FieldDescriptorProto, FileDescriptorSet,
        field_descriptor_proto::{Label, Type},
    },
};

use super::{POOL, built_in};

/// A set of descriptors that cannot be used, and the remedy.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ExtendError {
    /// The bytes are no set of descriptors.
    #[error(
        "{file}: is not a FileDescriptorSet: {reason}; write it by `protoc --include_imports \
         --descriptor_set_out={file}`"
    )]
    NotASet {
        /// The file.
        file: String,
        /// The decoder's error.
        reason: String,
    },
    /// A type is not the one that is known already.
    #[error(
        "{file}: contradicts what is known of {name}: {difference}; compile it with the same API \
         of Envoy, or give the type another package"
    )]
    Contradiction {
        /// The file.
        file: String,
        /// The full name of the message or enum.
        name: String,
        /// The difference.
        difference: String,
    },
    /// A type of the set refers to one that is missing, or is there twice.
    #[error("{file}: {reason}; is it written by `protoc --include_imports`?")]
    Unresolved {
        /// The file.
        file: String,
        /// The mistake.
        reason: String,
    },
    /// The descriptors are in use, and can no longer change.
    #[error("descriptors can be added only before any is used")]
    TooLate,
}

/// A file with an encoded `FileDescriptorSet`.
#[derive(Debug, Clone)]
pub struct DescriptorFile {
    /// Its name, for errors.
    pub name: String,
    /// Its contents.
    pub bytes: Bytes,
}

/// Adds the types of files to those that this process knows. That is possible
/// once, before the first use of any. Files of descriptors that are built in are
/// passed over, if they do not contradict the built-in ones.
///
/// # Errors
/// A file is no set of descriptors, or contradicts what is known. Then nothing
/// is added.
pub fn extend(files: &[DescriptorFile]) -> Result<(), ExtendError> {
    if files.is_empty() {
        return Ok(());
    }
    let pool = build_extended_pool(files)?;
    POOL.set(pool).map_err(|_| ExtendError::TooLate)
}

/// Makes a pool of the built-in types and those of the files.
///
/// # Errors
/// A file is not a set of descriptors, contradicts a known type, or refers to a
/// type that is missing.
pub(super) fn build_extended_pool(files: &[DescriptorFile]) -> Result<DescriptorPool, ExtendError> {
    let mut pool = built_in();
    for DescriptorFile { name, bytes } in files {
        let file_name = || name.clone();
        let set = FileDescriptorSet::decode(bytes.clone());
        let set = set.map_err(|error| ExtendError::NotASet {
            file: file_name(),
            reason: error.to_string(),
        })?;

        if set.file.is_empty() {
            let (file, reason) = (file_name(), "it is empty".to_owned());
            return Err(ExtendError::NotASet { file, reason });
        }

        if let Some((type_name, difference)) = find_contradiction(&pool, &set) {
            return Err(ExtendError::Contradiction {
                file: file_name(),
                name: type_name,
                difference,
            });
        }

        pool.decode_file_descriptor_set(bytes.clone())
            .map_err(|error| ExtendError::Unresolved {
                file: file_name(),
                reason: error.to_string(),
            })?;
    }
    Ok(pool)
}

/// A difference, with the name of the type that has it.
type Difference = (String, String);

/// Finds a type of the set that has another definition in the pool. Returns its
/// name and the difference; `None` if the pool agrees.
fn find_contradiction(pool: &DescriptorPool, set: &FileDescriptorSet) -> Option<Difference> {
    set.file.iter().find_map(|file| {
        let package = file.package();
        let messages = file.message_type.iter();
        let message_differences = messages.map(|message| compare_message(pool, package, message));
        let enums = file.enum_type.iter();
        let enum_differences = enums.map(|enum_proto| compare_enum(pool, package, enum_proto));
        message_differences.chain(enum_differences).flatten().next()
    })
}

/// Compares a message, and the types declared inside it, with those of the
/// pool. Returns the first difference.
fn compare_message(
    pool: &DescriptorPool,
    scope: &str,
    message: &DescriptorProto,
) -> Option<Difference> {
    let name = join(scope, message.name());
    let existing = pool.get_message_by_name(&name);
    let first_difference = |existing| {
        let mut fields = message.field.iter();
        fields.find_map(|field| compare_field(&existing, field))
    };
    if let Some(difference) = existing.and_then(first_difference) {
        return Some((name, difference));
    }

    let messages = message.nested_type.iter();
    let message_differences = messages.map(|inner| compare_message(pool, &name, inner));
    let enums = message.enum_type.iter();
    let enum_differences = enums.map(|enum_proto| compare_enum(pool, &name, enum_proto));
    message_differences.chain(enum_differences).flatten().next()
}

/// Compares a field with that of the same number, or else of the same name, of
/// a known message. Returns `None` if they are equal, or the message has no
/// such field: the set may be from another version of the API.
fn compare_field(message: &MessageDescriptor, field: &FieldDescriptorProto) -> Option<String> {
    let number = u32::try_from(field.number()).ok();
    let numbered_field = number.and_then(|number| message.get_field(number));
    let existing = numbered_field.or_else(|| message.get_field_by_name(field.name()))?;
    let existing = existing.field_descriptor_proto();
    let key = |field: &FieldDescriptorProto| {
        let (name, type_name) = (field.name().to_owned(), field.type_name().to_owned());
        (
            field.number(),
            name,
            field.label(),
            field.r#type(),
            type_name,
        )
    };

    (key(existing) != key(field)).then(|| {
        format!(
            "it has {}, and not {}",
            show_field(existing),
            show_field(field)
        )
    })
}

/// Formats a field, such as `string name = 1`.
fn show_field(field: &FieldDescriptorProto) -> String {
    let type_name = match field.r#type() {
        Type::Message | Type::Enum => field.type_name().trim_start_matches('.').to_owned(),
        scalar => {
            let name = scalar.as_str_name().trim_start_matches("TYPE_");
            name.to_ascii_lowercase()
        }
    };
    let label = match field.label() {
        Label::Repeated => "repeated ",
        _ => "",
    };
    format!("`{label}{type_name} {} = {}`", field.name(), field.number())
}

/// Compares the values of an enum with those of the pool. Returns the first
/// difference.
fn compare_enum(
    pool: &DescriptorPool,
    scope: &str,
    enum_proto: &EnumDescriptorProto,
) -> Option<Difference> {
    let name = join(scope, enum_proto.name());
    let existing: EnumDescriptor = pool.get_enum_by_name(&name)?;
    enum_proto.value.iter().find_map(|value| {
        let counterpart = existing.get_value_by_name(value.name())?;
        let (old_number, new_number) = (counterpart.number(), value.number());
        let difference = || format!("{} is {old_number}, and not {new_number}", value.name());
        (old_number != new_number).then(|| (name.clone(), difference()))
    })
}

/// Makes the full name of a type in a package or a message.
fn join(scope: &str, name: &str) -> String {
    match scope.is_empty() {
        true => name.to_owned(),
        false => format!("{scope}.{name}"),
    }
}
