//! The walk: ends with `None` at the first part that is not plain.

use super::plan::{Field, Of, Plan, Plans, Shape, Special};
use super::value::{DELIMITED, VARINT, Value, delimited, key, read, varint, wire_type};
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
    /// A walk that has found nothing yet.
    pub(super) fn new(plans: &'static Plans) -> Self {
        Self {
            plans,
            clusters: Vec::new(),
            checker: Checker::default(),
        }
    }

    /// Returns the references that were found, sorted, each once.
    pub(super) fn references(mut self) -> Vec<(&'static str, String)> {
        self.clusters.sort_unstable();
        self.clusters.dedup();
        let clusters = self.clusters.into_iter();
        clusters
            .map(|name| (types::CLUSTER, name.to_owned()))
            .collect()
    }

    /// Walks a message: its fields have to come in the order of their numbers,
    /// each once, and none that is needed may be missing.
    pub(super) fn message(
        &mut self,
        plan: &'static Plan,
        mut left: &'a [u8],
        depth: usize,
    ) -> Plain {
        if plan.odd || depth > DEEPEST {
            return None;
        }
        match plan.special {
            Special::No => {}
            Special::Any => return self.any(left, depth),
            Special::Duration => plain_duration(left)?,
        }
        let mut fields = plan.fields.iter();
        let mut oneofs = 0;
        while !left.is_empty() {
            let key = varint(&mut left)?;
            let field = advance_to(&mut fields, key >> 3)?;
            if field.odd || oneofs & field.oneof != 0 {
                return None;
            }
            oneofs |= field.oneof;
            self.field(field, key, &mut left, depth)?;
        }
        let has_oneofs = oneofs & plan.required == plan.required;
        (has_oneofs && !fields.any(|field| field.needed)).then_some(())
    }

    /// Walks a field, with all its repetitions. Its first `key` was taken off
    /// `left`.
    fn field(
        &mut self,
        field: &'static Field,
        key: u64,
        left: &mut &'a [u8],
        depth: usize,
    ) -> Plain {
        let expected = match field.shape {
            Shape::Packed | Shape::Map => DELIMITED,
            Shape::One | Shape::List => wire_type(&field.of),
        };
        if key & 7 != expected {
            return None;
        }
        match field.shape {
            Shape::One => self.one(field, left, depth),
            Shape::List => self.list(field, key, left, depth),
            Shape::Packed => self.packed(field, left),
            Shape::Map => self.map(field, key, left, depth),
        }
    }

    /// Walks a single value.
    fn one(&mut self, field: &'static Field, left: &mut &'a [u8], depth: usize) -> Plain {
        let value = read(&field.of, left)?;
        if !field.presence && value.is_default() {
            return None;
        }
        self.inside(field, value, depth)?;
        field
            .rules
            .map_or(Some(()), |rules| self.check(field, value, rules))
    }

    /// Walks the items of a list, each of which has the same `key`.
    fn list(
        &mut self,
        field: &'static Field,
        key: u64,
        left: &mut &'a [u8],
        depth: usize,
    ) -> Plain {
        let lists = list_rules(field);
        let mut unique = Vec::new();
        let mut count = 0;
        loop {
            let value = read(&field.of, left)?;
            count += 1;
            self.inside(field, value, depth)?;
            if let Some(lists) = lists {
                if let Some(each) = &lists.each {
                    self.check(field, value, each)?;
                }
                if lists.unique {
                    let Value::Text(text) = value else {
                        return None;
                    };
                    unique.push(text);
                }
            }
            if !take_key(left, key) {
                break;
            }
        }
        unique.sort_unstable();
        let twice = unique.windows(2).any(|pair| pair[0] == pair[1]);
        let counts = lists.is_none_or(|lists| self.checker.count(count, &lists.items));
        (counts && !twice).then_some(())
    }

    /// Walks a packed list of numbers.
    fn packed(&mut self, field: &'static Field, left: &mut &'a [u8]) -> Plain {
        let mut numbers = delimited(left).filter(|numbers| !numbers.is_empty())?;
        let lists = list_rules(field);
        if lists.is_some_and(|lists| lists.unique) {
            return None;
        }
        let mut count = 0;
        while !numbers.is_empty() {
            let value = read(&field.of, &mut numbers)?;
            count += 1;
            if let Some(each) = lists.and_then(|lists| lists.each.as_deref()) {
                self.check(field, value, each)?;
            }
        }
        let counts = lists.is_none_or(|lists| self.checker.count(count, &lists.items));
        counts.then_some(())
    }

    /// Walks the entries of a map, each of which has the same `key`; the names
    /// in them have to be in order, each once.
    fn map(&mut self, field: &'static Field, key: u64, left: &mut &'a [u8], depth: usize) -> Plain {
        let maps = map_rules(field);
        let mut last = None;
        let mut count = 0;
        loop {
            let (name, value) = map_entry(field, delimited(left)?)?;
            count += 1;
            // The annotations for this server are read elsewhere.
            if last.is_some_and(|last| name <= last) || name == NAMESPACE {
                return None;
            }
            last = Some(name);
            self.inside(field, value, depth)?;
            if let Some(keys) = maps.and_then(|maps| maps.keys.as_deref()) {
                self.check(field, Value::Text(name), keys)?;
            }
            if let Some(values) = maps.and_then(|maps| maps.values.as_deref()) {
                self.check(field, value, values)?;
            }
            if !take_key(left, key) {
                break;
            }
        }
        let counts = maps.is_none_or(|maps| self.checker.count(count, &maps.pairs));
        counts.then_some(())
    }

    /// Walks a value that is a message, and records the cluster that a text
    /// names.
    fn inside(&mut self, field: &'static Field, value: Value<'a>, depth: usize) -> Plain {
        match (&field.of, value) {
            (Of::Message(plan), Value::Message(bytes)) => {
                self.message(self.plans.get(*plan)?, bytes, depth + 1)
            }
            // A set and empty field does not count, but in a list it does.
            (_, Value::Text("")) if field.cluster => (field.shape == Shape::One).then_some(()),
            (_, Value::Text(name)) if field.cluster => {
                // Routes of one host mostly lead to one cluster.
                if self.clusters.last() != Some(&name) {
                    self.clusters.push(name);
                }
                (self.clusters.len() < MAX_REFERENCES).then_some(())
            }
            _ => Some(()),
        }
    }

    /// Walks the body of an `Any`, unless its type is not known.
    fn any(&mut self, bytes: &'a [u8], depth: usize) -> Plain {
        let (url, body) = any_parts(bytes)?;
        match self.plans.find(full_name(url)) {
            Some(plan) => self.message(plan, body, depth + 1),
            None => Some(()),
        }
    }

    /// Checks the rules of a single value. A rule of a rare kind is not plain.
    fn check(&mut self, field: &Field, value: Value<'a>, rules: &'static Rules) -> Plain {
        let Some(check) = &rules.check else {
            return Some(());
        };
        let fits = match (check, value) {
            (Check::Number(rules), Value::Int(v)) => self.checker.number(Number::Int(v), rules),
            (Check::Number(rules), Value::Float(v)) => self.checker.number(Number::Float(v), rules),
            (Check::Number(rules), Value::Message(bytes)) => {
                let number = self.number_in(field, bytes)?;
                self.checker.number(number, rules)
            }
            (Check::Text(_), Value::Text("")) if rules.ignore_empty => true,
            (Check::Text(rules), Value::Text(text)) => self.checker.text(text, rules),
            (Check::Bool(wanted), Value::Bool(found)) => found == *wanted,
            (Check::Enum(rules), Value::Enum(number)) => match &field.of {
                Of::Enum(of) => self.checker.enumeration(number, of, rules),
                _ => false,
            },
            (Check::Any(rules), Value::Message(any)) => {
                self.checker.any_type(any_parts(any)?.0, rules)
            }
            _ => false,
        };
        fits.then_some(())
    }

    /// Reads the number that a message stands for: a duration, or the number in
    /// a wrapper.
    fn number_in(&self, field: &Field, bytes: &'a [u8]) -> Option<Number> {
        let Of::Message(plan) = field.of else {
            return None;
        };
        let plan = self.plans.get(plan)?;
        match plan.special {
            Special::Duration => {
                let (seconds, nanos) = duration(bytes)?;
                Some(Number::duration(seconds, nanos))
            }
            Special::No | Special::Any => wrapped_number(plan, bytes),
        }
    }
}

/// Reads the number in a wrapper such as `UInt32Value`.
fn wrapped_number(plan: &Plan, mut left: &[u8]) -> Option<Number> {
    let [only] = &*plan.fields else {
        return None;
    };
    if left.is_empty() {
        // The number is zero. Which kind of integer does not matter to that.
        return (wire_type(&only.of) == VARINT).then_some(Number::Int(0));
    }
    varint(&mut left)?;
    match read(&only.of, &mut left)? {
        Value::Int(v) => Some(Number::Int(v)),
        Value::Float(v) => Some(Number::Float(v)),
        _ => None,
    }
}

/// Advances to the field of a number. `None` if there is no such field after
/// those before, or if one that is needed was passed over.
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

/// Takes the next key off `left` if it is this one.
fn take_key(left: &mut &[u8], key: u64) -> bool {
    let mut ahead = *left;
    let is_next = varint(&mut ahead) == Some(key);
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

/// Reads the key and the value of an entry of a map, which has nothing else.
fn map_entry<'a>(field: &'static Field, mut left: &'a [u8]) -> Option<(&'a str, Value<'a>)> {
    const NAME: u64 = key(1, DELIMITED);
    if !take_key(&mut left, NAME) {
        return None;
    }
    let name = std::str::from_utf8(delimited(&mut left)?).ok()?;
    if !take_key(&mut left, key(2, wire_type(&field.of))) {
        return None;
    }
    let value = read(&field.of, &mut left)?;
    left.is_empty().then_some((name, value))
}

/// Reads the type and the body of an `Any`. `None` if it is not canonical.
fn any_parts(mut left: &[u8]) -> Option<(&str, &[u8])> {
    const TYPE_URL: u64 = key(1, DELIMITED);
    const VALUE: u64 = key(2, DELIMITED);
    let (mut url, mut body) = (None, None);
    while !left.is_empty() {
        match varint(&mut left)? {
            TYPE_URL if url.is_none() && body.is_none() => url = Some(delimited(&mut left)?),
            VALUE if body.is_none() => body = Some(delimited(&mut left)?),
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

/// Checks that a duration is not negative, and within the bounds of protobuf.
fn plain_duration(bytes: &[u8]) -> Plain {
    let (seconds, nanos) = duration(bytes)?;
    let fits =
        (0..=MAX_SECONDS).contains(&seconds) && (0..NANOS_OF_SECOND).contains(&i128::from(nanos));
    fits.then_some(())
}

/// Reads the seconds and nanoseconds of a `Duration`.
fn duration(mut left: &[u8]) -> Option<(i64, i32)> {
    const SECONDS: u64 = key(1, VARINT);
    const NANOS: u64 = key(2, VARINT);
    let (mut seconds, mut nanos) = (0, 0);
    while !left.is_empty() {
        match varint(&mut left)? {
            SECONDS => seconds = varint(&mut left)? as i64,
            NANOS => nanos = i32::try_from(varint(&mut left)? as i64).ok()?,
            _ => return None,
        }
    }
    Some((seconds, nanos))
}
