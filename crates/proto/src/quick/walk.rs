//! The walk: ends with `None` at the first part that is not plain.

use super::plan::{Field, Of, Plan, Plans, Shape, Special};
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

    /// Returns the references that were found, sorted, each once.
    pub(super) fn into_references(mut self) -> Vec<(&'static str, String)> {
        self.clusters.sort_unstable();
        self.clusters.dedup();
        let clusters = self.clusters.into_iter();
        clusters
            .map(|name| (types::CLUSTER, name.to_owned()))
            .collect()
    }

    /// Walks an encoded message and the messages inside it, and records the
    /// clusters that they name. `None` if a part is not canonical, breaks a
    /// rule, or is left to the descriptors. Fields have to come in the order of
    /// their numbers, each once, and none that is needed may be missing.
    /// `depth` counts the messages around this one.
    pub(super) fn walk_message(
        &mut self,
        plan: &'static Plan,
        mut left: &'a [u8],
        depth: usize,
    ) -> Plain {
        if plan.odd || depth > DEEPEST {
            return None;
        }
        if plan.is_constructible.is_some_and(|check| !check(left))
            || plan.may_be_secret.is_some_and(|check| check(left))
        {
            return None;
        }
        match plan.special {
            Special::No => {}
            Special::Any => return self.walk_any(left, depth),
            Special::Duration => check_duration(left)?,
        }

        let mut fields = plan.fields.iter();
        // The bits of the oneofs of which a field was seen.
        let mut oneofs = 0;
        while !left.is_empty() {
            let key = take_varint(&mut left)?;
            let number = key >> 3;
            let field = advance_to(&mut fields, number)?;
            let is_second_of_oneof = oneofs & field.oneof != 0;
            if field.odd || is_second_of_oneof {
                return None;
            }
            oneofs |= field.oneof;
            self.walk_field(field, key, &mut left, depth)?;
        }

        let has_oneofs = oneofs & plan.required == plan.required;
        // The fields that are left have numbers after the last one that is set.
        let lacks_field = fields.any(|field| field.needed);
        (has_oneofs && !lacks_field).then_some(())
    }

    /// Walks a field, with all its repetitions, and takes them off `left`. The
    /// first `key` was taken off before. `None` if the key has another wire
    /// type than the field, or if a value is not plain.
    fn walk_field(
        &mut self,
        field: &'static Field,
        key: u64,
        left: &mut &'a [u8],
        depth: usize,
    ) -> Plain {
        let expected_wire_type = match field.shape {
            Shape::Packed | Shape::Map => DELIMITED,
            Shape::One | Shape::List => wire_type(&field.of),
        };
        let found_wire_type = key & 7;
        if found_wire_type != expected_wire_type {
            return None;
        }

        match field.shape {
            Shape::One => self.walk_single(field, left, depth),
            Shape::List => self.walk_list(field, key, left, depth),
            Shape::Packed => self.walk_packed(field, left),
            Shape::Map => self.walk_map(field, key, left, depth),
        }
    }

    /// Walks a field with a single value, and checks its rules. `None` also for
    /// a default value that the canonical form leaves out.
    fn walk_single(&mut self, field: &'static Field, left: &mut &'a [u8], depth: usize) -> Plain {
        let value = take_value(&field.of, left)?;
        if !field.presence && value.is_default() {
            return None;
        }
        self.walk_value(field, value, depth)?;
        match field.rules {
            Some(rules) => self.check_rules(field, value, rules),
            None => Some(()),
        }
    }

    /// Walks the items of a list, each of which has the same `key`; the first
    /// key was taken off `left` before. `None` if a rule of the list or of an
    /// item is broken, or if an item is not plain.
    fn walk_list(
        &mut self,
        field: &'static Field,
        key: u64,
        left: &mut &'a [u8],
        depth: usize,
    ) -> Plain {
        let rules = list_rules(field);
        let item_rules = rules.and_then(|rules| rules.each.as_deref());
        let is_unique = rules.is_some_and(|rules| rules.unique);
        let mut unique_texts = Vec::new();
        let mut count = 0;
        loop {
            let value = take_value(&field.of, left)?;
            count += 1;
            self.walk_value(field, value, depth)?;
            if let Some(rules) = item_rules {
                self.check_rules(field, value, rules)?;
            }
            if is_unique {
                // Values that are no texts are left to the descriptors.
                let Value::Text(text) = value else {
                    return None;
                };
                unique_texts.push(text);
            }
            if !take_key(left, key) {
                break;
            }
        }

        unique_texts.sort_unstable();
        let occurs_twice = unique_texts.windows(2).any(|pair| pair[0] == pair[1]);
        let count_fits = rules.is_none_or(|rules| self.checker.allows_count(count, &rules.items));
        (count_fits && !occurs_twice).then_some(())
    }

    /// Walks a packed list of numbers. `None` if a rule of the list or of an
    /// item is broken, or if the list is empty: the canonical form leaves it
    /// out.
    fn walk_packed(&mut self, field: &'static Field, left: &mut &'a [u8]) -> Plain {
        let mut numbers = take_delimited(left).filter(|numbers| !numbers.is_empty())?;
        let rules = list_rules(field);
        // Numbers that must differ are left to the descriptors.
        if rules.is_some_and(|rules| rules.unique) {
            return None;
        }

        let item_rules = rules.and_then(|rules| rules.each.as_deref());
        let mut count = 0;
        while !numbers.is_empty() {
            let value = take_value(&field.of, &mut numbers)?;
            count += 1;
            if let Some(rules) = item_rules {
                self.check_rules(field, value, rules)?;
            }
        }

        let count_fits = rules.is_none_or(|rules| self.checker.allows_count(count, &rules.items));
        count_fits.then_some(())
    }

    /// Walks the entries of a map, each of which has the same `key`; the first
    /// key was taken off `left` before. `None` if the names of the entries are
    /// not in order, each once, if a rule of the map, of a name or of a value
    /// is broken, or if a value is not plain.
    fn walk_map(
        &mut self,
        field: &'static Field,
        key: u64,
        left: &mut &'a [u8],
        depth: usize,
    ) -> Plain {
        let rules = map_rules(field);
        let name_rules = rules.and_then(|rules| rules.keys.as_deref());
        let value_rules = rules.and_then(|rules| rules.values.as_deref());
        let mut last_name = None;
        let mut count = 0;
        loop {
            let (name, value) = read_map_entry(field, take_delimited(left)?)?;
            count += 1;
            let in_order = last_name.is_none_or(|last| last < name);
            // Annotations for this server are left to the descriptors.
            if !in_order || name == NAMESPACE {
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
            if !take_key(left, key) {
                break;
            }
        }

        let count_fits = rules.is_none_or(|rules| self.checker.allows_count(count, &rules.pairs));
        count_fits.then_some(())
    }

    /// Walks a value that is a message, and records the cluster that a text
    /// names. With any other value there is nothing to do.
    fn walk_value(&mut self, field: &'static Field, value: Value<'a>, depth: usize) -> Plain {
        match (&field.of, value) {
            (Of::Message(plan), Value::Message(bytes)) => {
                self.walk_message(self.plans.get(*plan)?, bytes, depth + 1)
            }
            // A set and empty field does not count, but in a list it does.
            (_, Value::Text("")) if field.cluster => (field.shape == Shape::One).then_some(()),
            (_, Value::Text(name)) if field.cluster => self.record_cluster(name),
            _ => Some(()),
        }
    }

    /// Records the name of a cluster. `None` once there may be too many
    /// references: then the descriptors count them.
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

    /// Checks the rules of a single value of a field. `None` if one is broken,
    /// or is of a rare kind, which is left to the descriptors.
    fn check_rules(&mut self, field: &Field, value: Value<'a>, rules: &'static Rules) -> Plain {
        let Some(check) = &rules.check else {
            return Some(());
        };

        let fits = match (check, value) {
            (Check::Number(rules), Value::Int(v)) => {
                self.checker.allows_number(Number::Int(v), rules)
            }
            (Check::Number(rules), Value::Float(v)) => {
                self.checker.allows_number(Number::Float(v), rules)
            }
            (Check::Number(rules), Value::Message(bytes)) => {
                let number = self.read_number(field, bytes)?;
                self.checker.allows_number(number, rules)
            }
            (Check::Text(_), Value::Text("")) if rules.ignore_empty => true,
            (Check::Text(rules), Value::Text(text)) => self.checker.allows_text(text, rules),
            (Check::Bool(wanted), Value::Bool(found)) => found == *wanted,
            (Check::Enum(rules), Value::Enum(number)) => match &field.of {
                Of::Enum(of) => self.checker.allows_enum(number, of, rules),
                _ => false,
            },
            (Check::Any(rules), Value::Message(any)) => {
                self.checker.allows_any_type(read_any_parts(any)?.0, rules)
            }
            _ => false,
        };
        fits.then_some(())
    }

    /// Reads the number that a message in a field stands for: a duration, or
    /// the number in a wrapper. `None` if it stands for none.
    fn read_number(&self, field: &Field, bytes: &'a [u8]) -> Option<Number> {
        let Of::Message(plan) = field.of else {
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

/// Reads the number in a wrapper such as `UInt32Value`. `None` if the message
/// is no wrapper of a number, or if its number may be a float that is not set.
fn read_wrapped_number(plan: &Plan, mut left: &[u8]) -> Option<Number> {
    let [field] = &*plan.fields else {
        return None;
    };
    if left.is_empty() {
        // The number is zero. Which kind of integer does not matter to that.
        return (wire_type(&field.of) == VARINT).then_some(Number::Int(0));
    }
    take_varint(&mut left)?;
    match take_value(&field.of, &mut left)? {
        Value::Int(v) => Some(Number::Int(v)),
        Value::Float(v) => Some(Number::Float(v)),
        _ => None,
    }
}

/// Advances to the field of a number and returns it. `None` if the fields that
/// are left have no such number, which also finds a field out of order or
/// twice, or if a field that is needed was passed over.
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

/// Takes the next key off `left` if it is `key`, and returns whether it was.
fn take_key(left: &mut &[u8], key: u64) -> bool {
    let mut ahead = *left;
    let is_next = take_varint(&mut ahead) == Some(key);
    if is_next {
        *left = ahead;
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

/// Reads the key, called name here, and the value of an encoded entry of a map.
/// `None` if it is not canonical: exactly these two, in this order.
fn read_map_entry<'a>(field: &'static Field, mut left: &'a [u8]) -> Option<(&'a str, Value<'a>)> {
    const NAME: u64 = key(1, DELIMITED);
    if !take_key(&mut left, NAME) {
        return None;
    }
    let name = std::str::from_utf8(take_delimited(&mut left)?).ok()?;
    if !take_key(&mut left, key(2, wire_type(&field.of))) {
        return None;
    }
    let value = take_value(&field.of, &mut left)?;
    left.is_empty().then_some((name, value))
}

/// Reads the type and the body of an encoded `Any`; one that is not set is
/// empty. `None` if the `Any` is not canonical.
fn read_any_parts(mut left: &[u8]) -> Option<(&str, &[u8])> {
    const TYPE_URL: u64 = key(1, DELIMITED);
    const VALUE: u64 = key(2, DELIMITED);
    let mut url = None;
    let mut body = None;
    while !left.is_empty() {
        match take_varint(&mut left)? {
            TYPE_URL if url.is_none() && body.is_none() => url = Some(take_delimited(&mut left)?),
            VALUE if body.is_none() => body = Some(take_delimited(&mut left)?),
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

/// Reads the seconds and nanoseconds of an encoded `Duration`, zero if they are
/// not set. `None` if it has another field.
fn read_duration(mut left: &[u8]) -> Option<(i64, i32)> {
    const SECONDS: u64 = key(1, VARINT);
    const NANOS: u64 = key(2, VARINT);
    let mut seconds = 0;
    let mut nanos = 0;
    while !left.is_empty() {
        match take_varint(&mut left)? {
            SECONDS => seconds = take_varint(&mut left)? as i64,
            NANOS => nanos = i32::try_from(take_varint(&mut left)? as i64).ok()?,
            _ => return None,
        }
    }
    Some((seconds, nanos))
}
