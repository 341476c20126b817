//! The rules of all messages, read from the descriptors once.
//!
//! Options are kept encoded by the descriptors, and reading them costs more
//! than applying them, so the table is made on first use (some tens of
//! milliseconds) and shared.

use std::{collections::HashMap, sync::LazyLock};

use prost_reflect::{ExtensionDescriptor, FieldDescriptor, MessageDescriptor, OneofDescriptor};

use super::{construction, rules::Rules};
use crate::descriptor::pool;

/// The rules of one message.
pub(crate) struct MessageRules {
    pub(crate) fields: Vec<(FieldDescriptor, Rules)>,
    pub(crate) oneofs: Vec<OneofDescriptor>,
    /// The check of what Envoy makes of the message.
    pub(crate) construction: Option<construction::Check>,
}

static TABLE: LazyLock<HashMap<String, MessageRules>> = LazyLock::new(|| {
    let options = Options::find();
    let messages = pool().all_messages();
    let entry = |of: MessageDescriptor| {
        let rules = options.as_ref()?.read_message(&of)?;
        Some((of.full_name().to_owned(), rules))
    };
    messages.filter_map(entry).collect()
});

/// Returns the rules of a message; `None` if it has none.
pub(crate) fn rules(message: &MessageDescriptor) -> Option<&'static MessageRules> {
    TABLE.get(message.full_name())
}

/// Returns all messages that have rules, for the tests.
#[cfg(test)]
pub(super) fn all() -> &'static HashMap<String, MessageRules> {
    &TABLE
}

/// The options in which rules are written.
struct Options {
    rules: ExtensionDescriptor,
    required: ExtensionDescriptor,
    disabled: ExtensionDescriptor,
    ignored: ExtensionDescriptor,
}

impl Options {
    /// Finds the extensions in the descriptors. Returns `None` if one is
    /// missing.
    fn find() -> Option<Self> {
        let get = |name: &str| pool().get_extension_by_name(&format!("validate.{name}"));
        Some(Self {
            rules: get("rules")?,
            required: get("required")?,
            disabled: get("disabled")?,
            ignored: get("ignored")?,
        })
    }

    /// Reads the rules of a message. Returns `None` if it has none, or they are
    /// turned off.
    fn read_message(&self, message: &MessageDescriptor) -> Option<MessageRules> {
        let options = message.options();
        let has = |option| options.get_extension(option).as_bool() == Some(true);
        if has(&self.disabled) || has(&self.ignored) {
            return None;
        }

        let fields: Vec<_> = message
            .fields()
            .filter_map(|field| self.read_field(field))
            .collect();
        let oneofs: Vec<_> = message
            .oneofs()
            .filter(|oneof| self.is_required(oneof))
            .collect();
        let construction = construction::find_check(message.full_name());
        let has_rules = !fields.is_empty() || !oneofs.is_empty() || construction.is_some();
        has_rules.then_some(MessageRules {
            fields,
            oneofs,
            construction,
        })
    }

    /// Reads the rules of a field, and returns both. Returns `None` if the
    /// field has no rules.
    fn read_field(&self, field: FieldDescriptor) -> Option<(FieldDescriptor, Rules)> {
        let options = field.options();
        if !options.has_extension(&self.rules) {
            return None;
        }
        let rules = options.get_extension(&self.rules);
        let rules = Rules::read(rules.as_message()?);
        Some((field, rules))
    }

    /// Returns whether one field of a oneof must be set.
    fn is_required(&self, oneof: &OneofDescriptor) -> bool {
        let options = oneof.options();
        options.get_extension(&self.required).as_bool() == Some(true)
    }
}
