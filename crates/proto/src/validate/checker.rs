//! The rules of one value as a yes or no, for callers with a walk of their own.

use prost_reflect::{DynamicMessage, EnumDescriptor, FieldDescriptor};

use super::rules::{Anys, Count, Enums, Number, Numbers, Rules, Text};
use super::walk::Walk;

/// Applies the rules of single values. Once a rule is broken, every further
/// answer is false: the caller gives up at the first.
#[derive(Default)]
pub(crate) struct Checker(Walk);

impl Checker {
    /// Returns whether the rules allow a number of items.
    pub(crate) fn allows_count(&mut self, found: usize, rules: &Count) -> bool {
        self.0.check_count(found, "", rules);
        self.0.is_clean()
    }

    /// Returns whether the rules allow a number.
    pub(crate) fn allows_number(&mut self, found: Number, rules: &Numbers) -> bool {
        self.0.check_number(found, rules);
        self.0.is_clean()
    }

    /// Returns whether the rules allow a text.
    pub(crate) fn allows_text(&mut self, text: &str, rules: &Text) -> bool {
        self.0.check_text(text, rules);
        self.0.is_clean()
    }

    /// Returns whether the rules allow a number of an enum.
    pub(crate) fn allows_enum(
        &mut self,
        number: i32,
        enum_descriptor: &EnumDescriptor,
        rules: &Enums,
    ) -> bool {
        self.0.check_enum(number, enum_descriptor, rules);
        self.0.is_clean()
    }

    /// Returns whether the rules allow the type of an `Any`.
    pub(crate) fn allows_any_type(&mut self, url: &str, rules: &Anys) -> bool {
        self.0.check_any_type(url, rules);
        self.0.is_clean()
    }
}

/// Returns whether a message breaks the rules of one of its fields.
pub(crate) fn breaks(message: &DynamicMessage, field: &FieldDescriptor, rules: &Rules) -> bool {
    let mut walk = Walk::default();
    walk.check_field(message, field, rules);
    !walk.is_clean()
}
