//! The walk: ends with `None` at the first part that is not plain.

use super::plan::{Field, FieldKind, Plan, Plans, Shape, Special};
use super::value::{
    DELIMITED, VARINT, Value, key, take_delimited, take_value, take_varint, wire_type,
};
use crate::descriptor::{full_name, types};
use crate::facts::{MAX_REFERENCES, NAMESPACE};
use crate::text::MAX_SECONDS;
use crate::validate::{Check, Checker, Lists, Maps, NANOS_OF_SECOND, Number, Rules};

/// Messages inside each other. Fewer than decoders allow, whatever they count.
const DEEPEST: usize = 40;

/// `Some` while all is plain.
type Plain = Option<()>;

pub(super) struct Walk<'a> {
    plans: &'static Plans,
    /// The names of clusters that were found.
    clusters: Vec<&'a str>,
    checker: Checker,
}

impl<'a> Walk<'a> {
    /// Begins a walk that has found nothing yet.
    pub(super) fn new(plans: &'static Plans) -> Self {
        Self {
            plans,
            clusters: Vec::new(),
            checker: Checker::default(),
        }
    }

    /// Returns the recorded references, sorted and without duplicates.
    pub(super) fn into_references(mut self) -> Vec<(&'static str, String)> {
        self.clusters.sort_unstable();
        self.clusters.dedup();
        let clusters = self.clusters.into_iter();
        clusters
            .map(|name| (types::CLUSTER, name.to_owned()))
            .collect()
    }

    /// Walks an encoded message and the messages inside it, and records the
    /// clusters that they name. Fields must be in the order of their numbers,
    /// each only once, and no needed field may be missing. Returns `None` if a
    /// part is not canonical, breaks a rule, or needs the descriptors. `depth`
    /// is the number of enclosing messages.
    pub(super) fn walk_message(
        &mut self,
        plan: &'static Plan,
        mut unread: &'a [u8],
        depth: usize,
    ) -> Plain {
        if plan.odd || depth > DEEPEST {
            return None;
        }
        if plan.is_constructible.is_some_and(|check| !check(unread))
            || plan.may_be_secret.is_some_and(|check| check(unread))
        {
            return None;
        }
        match plan.special {
            Special::No => {}
            Special::Any => return self.walk_any(unread, depth),
            Special::Duration => check_duration(unread)?,
        }

        let mut fields = plan.fields.iter();
        // The bits of the oneofs that have a field so far.
        let mut oneofs = 0;
        while !unread.is_empty() {
            let key = take_varint(&mut unread)?;
            let number = key >> 3;
            let field = advance_to(&mut fields, number)?;
            let is_second_of_oneof = oneofs & field.oneof != 0;
            if field.odd || is_second_of_oneof {
                return None;
            }
            oneofs |= field.oneof;
            self.walk_field(field, key, &mut unread, depth)?;
        }

        let has_oneofs = oneofs & plan.required == plan.required;
        // The remaining fields have numbers after the last one that is set.
        let lacks_field = fields.any(|field| field.needed);
        (has_oneofs && !lacks_field).then_some(())
    }

    /// Walks a field with all its repetitions, and removes them from `unread`,
    /// which begins after the first `key`. Returns `None` if the wire type is
    /// wrong, or a value is not plain.
    fn walk_field(
        &mut self,
        field: &'static Field,
        key: u64,
        unread: &mut &'a [u8],
        depth: usize,
    ) -> Plain {
        let expected_wire_type = match field.shape {
            Shape::Packed | Shape::Map => DELIMITED,
            Shape::One | Shape::List => wire_type(&field.kind),
        };
        let actual_wire_type = key & 7;
        if actual_wire_type != expected_wire_type {
            return None;
        }

        match field.shape {
            Shape::One => self.walk_single(field, unread, depth),
            Shape::List => self.walk_list(field, key, unread, depth),
            Shape::Packed => self.walk_packed(field, unread),
            Shape::Map => self.walk_map(field, key, unread, depth),
        }
    }

    /// Walks a field with a single value, and checks its rules. Returns `None`
    /// if a rule is broken, or the value is a default that the canonical form
    /// leaves out.
    fn walk_single(&mut self, field: &'static Field, unread: &mut &'a [u8], depth: usize) -> Plain {
        let value = take_value(&field.kind, unread)?;
        if !field.presence && value.is_default() {
            return None;
        }
        self.walk_value(field, value, depth)?;
        match field.rules {
            Some(rules) => self.check_rules(field, value, rules),
            None => Some(()),
        }
    }

    /// Walks the items of a list, each of which has the same `key`. The first
    /// key was removed from `unread` before. Returns `None` if a rule of the list
    /// or of an item is broken, or an item is not plain.
    fn walk_list(
        &mut self,
        field: &'static Field,
        key: u64,
        unread: &mut &'a [u8],
        depth: usize,
    ) -> Plain {
        let rules = list_rules(field);
        let item_rules = rules.and_then(|rules| rules.items.as_deref());
        let is_unique = rules.is_some_and(|rules| rules.unique);
        let mut unique_texts = Vec::new();
        let mut count = 0;
        loop {
            let value = take_value(&field.kind, unread)?;
            count += 1;
            self.walk_value(field, value, depth)?;
            if let Some(rules) = item_rules {
                self.check_rules(field, value, rules)?;
            }
            if is_unique {
                // Only texts are compared here; the descriptors decide on other
                // values.
                let Value::Text(text) = value else {
                    return None;
                };
                unique_texts.push(text);
            }
            if !take_key(unread, key) {
                break;
            }
        }

        unique_texts.sort_unstable();
        let occurs_twice = unique_texts.windows(2).any(|pair| pair[0] == pair[1]);
        let count_fits = rules.is_none_or(|rules| self.checker.allows_count(count, &rules.count));
        (count_fits && !occurs_twice).then_some(())
    }

    /// Walks a packed list of numbers. Returns `None` if a rule of the list or
    /// of an item is broken, or the list is empty, which the canonical form
    /// leaves out.
    fn walk_packed(&mut self, field: &'static Field, unread: &mut &'a [u8]) -> Plain {
        let mut numbers = take_delimited(unread).filter(|numbers| !numbers.is_empty())?;
        let rules = list_rules(field);
        // The descriptors decide whether numbers differ.
        if rules.is_some_and(|rules| rules.unique) {
            return None;
        }

        let item_rules = rules.and_then(|rules| rules.items.as_deref());
        let mut count = 0;
        while !numbers.is_empty() {
            let value = take_value(&field.kind, &mut numbers)?;
            count += 1;
            if let Some(rules) = item_rules {
                self.check_rules(field, value, rules)?;
            }
        }

        let count_fits = rules.is_none_or(|rules| self.checker.allows_count(count, &rules.count));
        count_fits.then_some(())
    }

    /// Walks the entries of a map, each of which has the same `key`. The first
    /// key was removed from `unread` before. Returns `None` if the names are not
    /// in ascending order, a rule of the map, of a name or of a value is
    /// broken, or a value is not plain.
    fn walk_map(
        &mut self,
        field: &'static Field,
        key: u64,
        unread: &mut &'a [u8],
        depth: usize,
    ) -> Plain {
        let rules = map_rules(field);
        let name_rules = rules.and_then(|rules| rules.keys.as_deref());
        let value_rules = rules.and_then(|rules| rules.values.as_deref());
        let mut last_name = None;
        let mut count = 0;
        loop {
            let (name, value) = read_map_entry(field, take_delimited(unread)?)?;
            count += 1;
            let is_ascending = last_name.is_none_or(|previous| previous < name);
            // The descriptors read the annotations for this server.
            if !is_ascending || name == NAMESPACE {
                return None;
            }
            last_name = Some(name);

            self.walk_value(field, value, depth)?;
            if let Some(rules) = name_rules {
                self.check_rules(field, Value::Text(name), rules)?;
            }
            if let Some(rules) = value_rules {
                self.check_rules(field, value, rules)?;
            }
            if !take_key(unread, key) {
                break;
            }
        }

        let count_fits = rules.is_none_or(|rules| self.checker.allows_count(count, &rules.pairs));
        count_fits.then_some(())
    }

    /// Walks a message, or records the cluster that a text names. Does nothing
    /// for other values.
    fn walk_value(&mut self, field: &'static Field, value: Value<'a>, depth: usize) -> Plain {
        match (&field.kind, value) {
            (FieldKind::Message(plan), Value::Message(bytes)) => {
                self.walk_message(self.plans.get(*plan)?, bytes, depth + 1)
            }
            // An empty name is no reference in a single field; in a list the
            // descriptors decide.
            (_, Value::Text("")) if field.cluster => (field.shape == Shape::One).then_some(()),
            (_, Value::Text(name)) if field.cluster => self.record_cluster(name),
            _ => Some(()),
        }
    }

    /// Records the name of a cluster. Returns `None` if there may be too many
    /// references, so that the descriptors have to count them.
    fn record_cluster(&mut self, name: &'a str) -> Plain {
        // Routes of one host mostly lead to one cluster.
        if self.clusters.last() != Some(&name) {
            self.clusters.push(name);
        }
        (self.clusters.len() < MAX_REFERENCES).then_some(())
    }

    /// Walks the body of an encoded `Any`. A body of an unknown type is
    /// canonical and valid whatever it holds.
    fn walk_any(&mut self, bytes: &'a [u8], depth: usize) -> Plain {
        let (url, body) = read_any_parts(bytes)?;
        match self.plans.find(full_name(url)) {
            Some(plan) => self.walk_message(plan, body, depth + 1),
            None => Some(()),
        }
    }

    /// Checks the rules of a single value of a field. Returns `None` if one is
    /// broken, or needs the descriptors because its kind is rare.
    fn check_rules(&mut self, field: &Field, value: Value<'a>, rules: &'static Rules) -> Plain {
        let Some(check) = &rules.check else {
            return Some(());
        };

        let fits = match (check, value) {
            (Check::Number(rules), Value::Int(value)) => {
                self.checker.allows_number(Number::Int(value), rules)
            }
            (Check::Number(rules), Value::Float(value)) => {
                self.checker.allows_number(Number::Float(value), rules)
            }
            (Check::Number(rules), Value::Message(bytes)) => {
                let number = self.read_number(field, bytes)?;
                self.checker.allows_number(number, rules)
            }
            (Check::Text(_), Value::Text("")) if rules.ignore_empty => true,
            (Check::Text(rules), Value::Text(text)) => self.checker.allows_text(text, rules),
            (Check::Bool(required), Value::Bool(value)) => value == *required,
            (Check::Enum(rules), Value::Enum(number)) => match &field.kind {
                FieldKind::Enum(descriptor) => self.checker.allows_enum(number, descriptor, rules),
                _ => false,
            },
            (Check::Any(rules), Value::Message(any)) => {
                self.checker.allows_any_type(read_any_parts(any)?.0, rules)
            }
            _ => false,
        };
        fits.then_some(())
    }

    /// Reads the number that a message in a field means: a duration, or the
    /// number in a wrapper. Returns `None` for other messages.
    fn read_number(&self, field: &Field, bytes: &'a [u8]) -> Option<Number> {
        let FieldKind::Message(plan) = field.kind else {
            return None;
        };
        let plan = self.plans.get(plan)?;
        match plan.special {
            Special::Duration => {
                let (seconds, nanos) = read_duration(bytes)?;
                Some(Number::duration(seconds, nanos))
            }
            Special::No | Special::Any => read_wrapped_number(plan, bytes),
        }
    }
}

/// Reads the number in a wrapper such as `UInt32Value`. Returns `None` if the
/// message is not such a wrapper, or is the empty wrapper of a float.
fn read_wrapped_number(plan: &Plan, mut unread: &[u8]) -> Option<Number> {
    let [field] = &*plan.fields else {
        return None;
    };
    if unread.is_empty() {
        // An empty wrapper means zero, which is the same for all integers.
        return (wire_type(&field.kind) == VARINT).then_some(Number::Int(0));
    }
    take_varint(&mut unread)?;
    match take_value(&field.kind, &mut unread)? {
        Value::Int(value) => Some(Number::Int(value)),
        Value::Float(value) => Some(Number::Float(value)),
        _ => None,
    }
}

/// Advances to the field with a number and returns it. Returns `None` if the
/// remaining fields do not have it, as for a field out of order or twice, or if
/// a needed field was skipped.
fn advance_to(
    fields: &mut std::slice::Iter<'static, Field>,
    number: u64,
) -> Option<&'static Field> {
    loop {
        let field = fields.next()?;
        if u64::from(field.number) == number {
            return Some(field);
        }
        if field.needed {
            return None;
        }
    }
}

/// Removes the next key from `unread` if it equals `key`. Returns whether it
/// does.
fn take_key(unread: &mut &[u8], key: u64) -> bool {
    let mut after_key = *unread;
    let is_next = take_varint(&mut after_key) == Some(key);
    if is_next {
        *unread = after_key;
    }
    is_next
}

/// Returns the rules on a field that is a list, if it has some.
fn list_rules(field: &'static Field) -> Option<&'static Lists> {
    match &field.rules?.check {
        Some(Check::List(lists)) => Some(lists),
        _ => None,
    }
}

/// Returns the rules on a field that is a map, if it has some.
fn map_rules(field: &'static Field) -> Option<&'static Maps> {
    match &field.rules?.check {
        Some(Check::Map(maps)) => Some(maps),
        _ => None,
    }
}

/// Reads the name, which is the key, and the value of an encoded entry of a
/// map. Returns `None` if the entry does not have exactly these two in this
/// order.
fn read_map_entry<'a>(field: &'static Field, mut unread: &'a [u8]) -> Option<(&'a str, Value<'a>)> {
    const NAME: u64 = key(1, DELIMITED);
    if !take_key(&mut unread, NAME) {
        return None;
    }
    let name = std::str::from_utf8(take_delimited(&mut unread)?).ok()?;
    if !take_key(&mut unread, key(2, wire_type(&field.kind))) {
        return None;
    }
    let value = take_value(&field.kind, &mut unread)?;
    unread.is_empty().then_some((name, value))
}

/// Reads the type and the body of an encoded `Any`. A missing one is empty.
/// Returns `None` if the `Any` is not canonical.
fn read_any_parts(mut unread: &[u8]) -> Option<(&str, &[u8])> {
    const TYPE_URL: u64 = key(1, DELIMITED);
    const VALUE: u64 = key(2, DELIMITED);
    let mut url = None;
    let mut body = None;
    while !unread.is_empty() {
        match take_varint(&mut unread)? {
            TYPE_URL if url.is_none() && body.is_none() => url = Some(take_delimited(&mut unread)?),
            VALUE if body.is_none() => body = Some(take_delimited(&mut unread)?),
            _ => return None,
        }
    }

    let is_default = |part: Option<&[u8]>| part.is_some_and(<[u8]>::is_empty);
    if is_default(url) || is_default(body) {
        return None;
    }
    let url = std::str::from_utf8(url.unwrap_or_default()).ok()?;
    Some((url, body.unwrap_or_default()))
}

/// Checks that a duration is not negative, and within the bounds of protobuf. A
/// negative one is left to the descriptors.
fn check_duration(bytes: &[u8]) -> Plain {
    let (seconds, nanos) = read_duration(bytes)?;
    let seconds_fit = (0..=MAX_SECONDS).contains(&seconds);
    let nanos_fit = (0..NANOS_OF_SECOND).contains(&i128::from(nanos));
    (seconds_fit && nanos_fit).then_some(())
}

/// Reads the seconds and nanoseconds of an encoded `Duration`. A missing one is
/// zero. Returns `None` if there is another field.
fn read_duration(mut unread: &[u8]) -> Option<(i64, i32)> {
    const SECONDS: u64 = key(1, VARINT);
    const NANOS: u64 = key(2, VARINT);
    let mut seconds = 0;
    let mut nanos = 0;
    while !unread.is_empty() {
        match take_varint(&mut unread)? {
            SECONDS => seconds = take_varint(&mut unread)? as i64,
            NANOS => nanos = i32::try_from(take_varint(&mut unread)? as i64).ok()?,
            _ => return None,
        }
    }
    Some((seconds, nanos))
}
