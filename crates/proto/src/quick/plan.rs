//! The tables of the walk: the fields of each message and their rules, without
//! a descriptor.

use std::collections::HashMap;
use std::sync::LazyLock;

use prost_reflect::{
    DynamicMessage, EnumDescriptor, FieldDescriptor, Kind, MessageDescriptor, Syntax,
};

use crate::descriptor::pool;
use crate::facts::references;
use crate::redact;
use crate::validate::{self, Quick, Rules};

/// The plans of all messages.
pub(super) struct Plans {
    by_name: HashMap<String, usize>,
    plans: Vec<Plan>,
}

/// The plan of one message.
pub(super) struct Plan {
    pub(super) special: Special,
    /// Its fields, by number.
    pub(super) fields: Box<[Field]>,
    /// Groups of which one must be set, as bits.
    pub(super) required: u64,
    /// Whether Envoy can build what a body describes, as far as that is
    /// certain.
    pub(super) is_constructible: Option<fn(&[u8]) -> bool>,
    /// Whether a body may hold a secret, by a name in it: then it is left to
    /// the descriptors.
    pub(super) may_be_secret: Option<fn(&[u8]) -> bool>,
    /// Whether the walk leaves it to the descriptors.
    pub(super) odd: bool,
}

/// A message that is more than its fields.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Special {
    No,
    Any,
    Duration,
}

/// One field.
pub(super) struct Field {
    pub(super) number: u32,
    name: Box<str>,
    pub(super) shape: Shape,
    pub(super) kind: FieldKind,
    /// Whether an empty value can be told from an absent one.
    pub(super) presence: bool,
    /// Whether its absence breaks a rule.
    pub(super) needed: bool,
    /// The bit of its group.
    pub(super) oneof: u64,
    pub(super) rules: Option<&'static Rules>,
    /// Whether it names a cluster.
    pub(super) cluster: bool,
    /// Whether the walk leaves it to the descriptors.
    pub(super) odd: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape {
    One,
    List,
    Packed,
    /// With text keys; `kind` is the kind of the values.
    Map,
}

/// The kind of a field's value.
pub(super) enum FieldKind {
    Scalar(Kind),
    Enum(EnumDescriptor),
    /// The index of its plan.
    Message(usize),
}

static ALL: LazyLock<Plans> = LazyLock::new(Plans::new);

/// Returns the plans, which are made on first use, in some tens of
/// milliseconds.
pub(super) fn all() -> &'static Plans {
    &ALL
}

impl Plans {
    /// Makes the plans of all messages that have a descriptor. A plan refers to
    /// others by index, so the indices are assigned first.
    fn new() -> Self {
        let messages: Vec<_> = pool().all_messages().collect();
        let indexed = messages.iter().enumerate();
        let names = indexed.map(|(index, message)| (message.full_name().to_owned(), index));
        let by_name: HashMap<_, _> = names.collect();
        let plans = messages
            .iter()
            .map(|message| Plan::new(message, &by_name))
            .collect();
        Self { by_name, plans }
    }

    /// Finds the plan of a message by its full name; `None` if it is not known.
    pub(super) fn find(&'static self, message: &str) -> Option<&'static Plan> {
        self.plans.get(*self.by_name.get(message)?)
    }

    /// Returns the plan at an index, which is that of an [`FieldKind::Message`].
    pub(super) fn get(&'static self, index: usize) -> Option<&'static Plan> {
        self.plans.get(index)
    }
}

impl Plan {
    /// Makes the plan of a message. `by_name` has the indices of all plans.
    fn new(message: &MessageDescriptor, by_name: &HashMap<String, usize>) -> Self {
        let rules = validate::rules(message);
        let fields = message.fields().map(|field| {
            let own_rules =
                rules.and_then(|rules| rules.fields.iter().find(|(ruled, _)| *ruled == field));
            Field::new(&field, own_rules.map(|(_, rules)| rules), by_name)
        });
        let mut fields: Vec<_> = fields.collect();
        fields.sort_by_key(|field| field.number);

        let construction = rules.and_then(|rules| rules.construction);
        let (is_constructible, needs_descriptors) = match construction.map(|check| check.quick) {
            Some(Quick::Bytes(check)) => (Some(check), false),
            Some(Quick::Never) => (None, true),
            Some(Quick::Parts) | None => (None, false),
        };

        let oneofs = rules.map(|rules| rules.oneofs.as_slice());
        let oneofs = oneofs.unwrap_or_default().iter();
        // All fields of a oneof have the same bit, so the first one is enough.
        let first_fields = oneofs.filter_map(|oneof| oneof.fields().next());
        let required = first_fields.fold(0, |bits, field| bits | oneof_bit(&field));

        Self {
            special: match message.full_name() {
                "google.protobuf.Any" => Special::Any,
                "google.protobuf.Duration" => Special::Duration,
                _ => Special::No,
            },
            fields: fields.into(),
            required,
            is_constructible,
            may_be_secret: redact::quick_check(message.full_name()),
            odd: needs_descriptors || is_odd_message(message),
        }
    }

    /// Returns the number of a field by its name; `None` if there is no such
    /// field.
    pub(super) fn number(&self, field: &str) -> Option<u32> {
        let field = self.fields.iter().find(|f| &*f.name == field)?;
        Some(field.number)
    }
}

/// Returns whether the walk leaves a message to the descriptors, because of its
/// syntax, of more oneofs than there are bits, or of references or secrets that
/// only they can find.
fn is_odd_message(message: &MessageDescriptor) -> bool {
    message.parent_file().syntax() != Syntax::Proto3
        || message.oneofs().len() > u64::BITS as usize
        || message.is_map_entry()
        || references::is_odd(message.full_name())
        || redact::is_typed_struct(message.full_name())
}

/// Returns the bit of the oneof that a field is in: the first oneof of its
/// message has the lowest bit. Zero if the field is in none, or if there are
/// more oneofs than bits.
fn oneof_bit(field: &FieldDescriptor) -> u64 {
    let Some(oneof) = field.containing_oneof() else {
        return 0;
    };
    let place = field.parent_message().oneofs().position(|o| o == oneof);
    place.map_or(0, |place| 1u64.checked_shl(place as u32).unwrap_or(0))
}

impl Field {
    /// Makes the plan of a field, with its rules if it has some. `by_name` has
    /// the indices of all plans.
    fn new(
        field: &FieldDescriptor,
        rules: Option<&'static Rules>,
        by_name: &HashMap<String, usize>,
    ) -> Self {
        let (shape, kind) = shape_and_kind(field);
        let value_kind = FieldKind::new(kind, by_name);

        let parent = field.parent_message();
        let empty = DynamicMessage::new(parent.clone());
        Self {
            number: field.number(),
            name: field.name().into(),
            shape,
            presence: field.supports_presence(),
            // The field is needed if an empty message breaks its rules.
            needed: rules.is_some_and(|rules| validate::breaks(&empty, field, rules)),
            oneof: oneof_bit(field),
            rules,
            cluster: references::names_cluster(parent.full_name(), field.name()),
            odd: is_odd_field(field, rules) || value_kind.is_none(),
            kind: value_kind.unwrap_or(FieldKind::Message(usize::MAX)),
        }
    }
}

/// Returns the shape of a field, and the kind of its values; for a map, the
/// kind of the values of its entries.
fn shape_and_kind(field: &FieldDescriptor) -> (Shape, Kind) {
    match field.kind() {
        Kind::Message(entry) if field.is_map() => {
            (Shape::Map, entry.map_entry_value_field().kind())
        }
        kind if field.is_list() && field.is_packed() => (Shape::Packed, kind),
        kind if field.is_list() => (Shape::List, kind),
        kind => (Shape::One, kind),
    }
}

/// Returns whether the walk leaves a field to the descriptors, because of its
/// form, of the messages in it that are not validated, or of references or
/// secrets that only they can find.
fn is_odd_field(field: &FieldDescriptor, rules: Option<&Rules>) -> bool {
    field.is_group()
        || rules.is_some_and(|rules| rules.skip)
        || references::ODD_FIELDS.contains(&field.name())
        || has_odd_keys(field)
        || redact::is_secret_field(field)
}

/// Returns whether a field is a map whose keys are not texts.
fn has_odd_keys(field: &FieldDescriptor) -> bool {
    match field.kind() {
        Kind::Message(entry) if field.is_map() => {
            entry.map_entry_key_field().kind() != Kind::String
        }
        _ => false,
    }
}

impl FieldKind {
    /// Makes the plan of a kind of value; `None` for a message that has no
    /// plan.
    fn new(kind: Kind, by_name: &HashMap<String, usize>) -> Option<Self> {
        match kind {
            Kind::Message(descriptor) => Some(Self::Message(*by_name.get(descriptor.full_name())?)),
            Kind::Enum(descriptor) => Some(Self::Enum(descriptor)),
            scalar => Some(Self::Scalar(scalar)),
        }
    }
}
