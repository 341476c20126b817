//! The tables of the walk: the fields of each message and their rules, without
//! a descriptor.

use std::collections::HashMap;
use std::sync::LazyLock;

use prost_reflect::{
    DynamicMessage, EnumDescriptor, FieldDescriptor, Kind, MessageDescriptor, Syntax,
};

use crate::descriptor::pool;
use crate::facts::references;
use crate::validate::{self, Rules};

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
    pub(super) of: Of,
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
    /// With text keys; `of` is the kind of the values.
    Map,
}

/// The kind of a field's value.
pub(super) enum Of {
    Scalar(Kind),
    Enum(EnumDescriptor),
    /// The index of its plan.
    Message(usize),
}

static ALL: LazyLock<Plans> = LazyLock::new(Plans::new);

/// Made on first use, in some tens of milliseconds.
pub(super) fn all() -> &'static Plans {
    &ALL
}

impl Plans {
    fn new() -> Self {
        let messages: Vec<_> = pool().all_messages().collect();
        let by_name: HashMap<_, _> = messages
            .iter()
            .enumerate()
            .map(|(index, of)| (of.full_name().to_owned(), index))
            .collect();
        let plans = messages.iter().map(|of| plan(of, &by_name)).collect();
        Self { by_name, plans }
    }

    pub(super) fn find(&'static self, message: &str) -> Option<&'static Plan> {
        self.plans.get(*self.by_name.get(message)?)
    }

    pub(super) fn get(&'static self, index: usize) -> Option<&'static Plan> {
        self.plans.get(index)
    }
}

impl Plan {
    /// The number of a field.
    pub(super) fn number(&self, field: &str) -> Option<u32> {
        let field = self.fields.iter().find(|f| &*f.name == field)?;
        Some(field.number)
    }
}

fn plan(of: &MessageDescriptor, by_name: &HashMap<String, usize>) -> Plan {
    let name = of.full_name();
    let rules = validate::rules(of);
    let mut fields: Vec<Field> = of
        .fields()
        .map(|field| {
            let own = rules.and_then(|r| r.fields.iter().find(|(f, _)| *f == field));
            self::field(&field, own.map(|(_, rules)| rules), by_name)
        })
        .collect();
    fields.sort_by_key(|field| field.number);
    let oneofs = rules.map(|rules| rules.oneofs.as_slice());
    let required = oneofs.unwrap_or_default().iter();
    let required = required.filter_map(|o| o.fields().next());
    Plan {
        special: match name {
            "google.protobuf.Any" => Special::Any,
            "google.protobuf.Duration" => Special::Duration,
            _ => Special::No,
        },
        fields: fields.into(),
        required: required.fold(0, |bits, field| bits | oneof(&field)),
        odd: of.parent_file().syntax() != Syntax::Proto3
            || of.oneofs().len() > u64::BITS as usize
            || of.is_map_entry()
            || references::is_odd(name),
    }
}

/// The bit of the group that a field is in.
fn oneof(field: &FieldDescriptor) -> u64 {
    let Some(oneof) = field.containing_oneof() else {
        return 0;
    };
    let place = field.parent_message().oneofs().position(|o| o == oneof);
    place.map_or(0, |place| 1u64.checked_shl(place as u32).unwrap_or(0))
}

fn field(
    field: &FieldDescriptor,
    rules: Option<&'static Rules>,
    by_name: &HashMap<String, usize>,
) -> Field {
    let mut odd = field.is_group() || rules.is_some_and(|rules| rules.skip);
    odd |= references::ODD_FIELDS.contains(&field.name());
    let (shape, kind) = match field.kind() {
        Kind::Message(entry) if field.is_map() => {
            odd |= entry.map_entry_key_field().kind() != Kind::String;
            (Shape::Map, entry.map_entry_value_field().kind())
        }
        kind if field.is_list() && field.is_packed() => (Shape::Packed, kind),
        kind if field.is_list() => (Shape::List, kind),
        kind => (Shape::One, kind),
    };
    let of = match kind {
        Kind::Message(of) => match by_name.get(of.full_name()) {
            Some(index) => Of::Message(*index),
            None => {
                odd = true;
                Of::Message(usize::MAX)
            }
        },
        Kind::Enum(of) => Of::Enum(of),
        scalar => Of::Scalar(scalar),
    };
    let parent = field.parent_message();
    Field {
        number: field.number(),
        name: field.name().into(),
        shape,
        of,
        presence: field.supports_presence(),
        // The validator's result for a message in which nothing is set.
        needed: rules.is_some_and(|rules| {
            validate::breaks(&DynamicMessage::new(parent.clone()), field, rules)
        }),
        oneof: oneof(field),
        rules,
        cluster: references::names_cluster(parent.full_name(), field.name()),
        odd,
    }
}
