//! The rules of one value as a yes or no, for callers with a walk of their own.

use prost_reflect::{DynamicMessage, EnumDescriptor, FieldDescriptor};

use super::rules::{Anys, Count, Enums, Number, Numbers, Rules, Text};
use super::walk::Walk;

/// Applies the rules of single values: each method returns whether a value
/// keeps them. Once one is broken, every further check fails.
#[derive(Default)]
pub(crate) struct Checker(Walk);

impl Checker {
    pub(crate) fn count(&mut self, found: usize, rules: &Count) -> bool {
        self.0.count(found, "", rules);
        self.0.is_clean()
    }

    pub(crate) fn number(&mut self, found: Number, rules: &Numbers) -> bool {
        self.0.number(found, rules);
        self.0.is_clean()
    }

    pub(crate) fn text(&mut self, text: &str, rules: &Text) -> bool {
        self.0.text(text, rules);
        self.0.is_clean()
    }

    pub(crate) fn enumeration(&mut self, number: i32, of: &EnumDescriptor, rules: &Enums) -> bool {
        self.0.enumeration(number, of, rules);
        self.0.is_clean()
    }

    pub(crate) fn any_type(&mut self, url: &str, rules: &Anys) -> bool {
        self.0.any_type(url, rules);
        self.0.is_clean()
    }
}

/// Returns whether a message breaks the rules of one of its fields.
pub(crate) fn breaks(message: &DynamicMessage, field: &FieldDescriptor, rules: &Rules) -> bool {
    let mut walk = Walk::default();
    walk.field(message, field, rules);
    !walk.is_clean()
}
