//! The walk: ends with `None` at the first part that is not plain.

use super::plan::{Field, Of, Plan, Plans, Shape, Special};
use super::value::{LEN, Value, delimited, read, varint, wire_type};
use crate::descriptor::{full_name, types};
use crate::facts::{MAX_REFERENCES, NAMESPACE};
use crate::validate::{Check, Checker, Number, Rules};

/// Messages inside each other. Fewer than decoders allow, whatever they count.
const DEEPEST: usize = 40;

/// `Some` while all is plain.
type Plain = Option<()>;

pub(super) struct Walk<'a> {
    plans: &'static Plans,
    clusters: Vec<&'a str>,
    checker: Checker,
}

impl<'a> Walk<'a> {
    pub(super) fn new(plans: &'static Plans) -> Self {
        Self {
            plans,
            clusters: Vec::new(),
            checker: Checker::default(),
        }
    }

    /// The references that were found, sorted, each once.
    pub(super) fn references(mut self) -> Vec<(&'static str, String)> {
        self.clusters.sort_unstable();
        self.clusters.dedup();
        let clusters = self.clusters.into_iter();
        clusters
            .map(|name| (types::CLUSTER, name.to_owned()))
            .collect()
    }

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
            // In the order of their numbers, each once.
            let field = loop {
                let field = fields.next()?;
                match u64::from(field.number) == key >> 3 {
                    true => break field,
                    false if field.needed => return None,
                    false => {}
                }
            };
            if field.odd || oneofs & field.oneof != 0 {
                return None;
            }
            oneofs |= field.oneof;
            self.field(field, key, &mut left, depth)?;
        }
        let whole = oneofs & plan.required == plan.required;
        (whole && !fields.any(|field| field.needed)).then_some(())
    }

    fn field(
        &mut self,
        field: &'static Field,
        key: u64,
        left: &mut &'a [u8],
        depth: usize,
    ) -> Plain {
        let delimited = matches!(field.shape, Shape::Packed | Shape::Map);
        let expected = if delimited { LEN } else { wire_type(&field.of) };
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

    fn list(
        &mut self,
        field: &'static Field,
        key: u64,
        left: &mut &'a [u8],
        depth: usize,
    ) -> Plain {
        let lists = match field.rules.map(|rules| &rules.check) {
            Some(Some(Check::List(lists))) => Some(lists),
            _ => None,
        };
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
            let mut ahead = *left;
            if varint(&mut ahead) != Some(key) {
                break;
            }
            *left = ahead;
        }
        unique.sort_unstable();
        let twice = unique.windows(2).any(|pair| pair[0] == pair[1]);
        let counts = lists.is_none_or(|lists| self.checker.count(count, &lists.items));
        (counts && !twice).then_some(())
    }

    /// Packed numbers.
    fn packed(&mut self, field: &'static Field, left: &mut &'a [u8]) -> Plain {
        let mut numbers = delimited(left).filter(|numbers| !numbers.is_empty())?;
        let lists = match field.rules.map(|rules| &rules.check) {
            Some(Some(Check::List(lists))) => Some(lists),
            _ => None,
        };
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

    fn map(&mut self, field: &'static Field, key: u64, left: &mut &'a [u8], depth: usize) -> Plain {
        let maps = match field.rules.map(|rules| &rules.check) {
            Some(Some(Check::Map(maps))) => Some(maps),
            _ => None,
        };
        let value_key = 2 << 3 | wire_type(&field.of);
        let mut last = None;
        let mut count = 0;
        loop {
            let mut entry = delimited(left)?;
            count += 1;
            if varint(&mut entry)? != (1 << 3 | LEN) {
                return None;
            }
            let name = std::str::from_utf8(delimited(&mut entry)?).ok()?;
            if last.is_some_and(|last| name <= last) || varint(&mut entry)? != value_key {
                return None;
            }
            // The annotations for this server are read elsewhere.
            if name == NAMESPACE {
                return None;
            }
            last = Some(name);
            let value = read(&field.of, &mut entry).filter(|_| entry.is_empty())?;
            self.inside(field, value, depth)?;
            if let Some(keys) = maps.and_then(|maps| maps.keys.as_deref()) {
                self.check(field, Value::Text(name), keys)?;
            }
            if let Some(values) = maps.and_then(|maps| maps.values.as_deref()) {
                self.check(field, value, values)?;
            }
            let mut ahead = *left;
            if varint(&mut ahead) != Some(key) {
                break;
            }
            *left = ahead;
        }
        let counts = maps.is_none_or(|maps| self.checker.count(count, &maps.pairs));
        counts.then_some(())
    }

    /// A message inside, and the cluster that a text names.
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

    /// An `Any` of an unknown type is not walked.
    fn any(&mut self, bytes: &'a [u8], depth: usize) -> Plain {
        let (url, body) = any_parts(bytes)?;
        match self.plans.find(full_name(url)) {
            Some(plan) => self.message(plan, body, depth + 1),
            None => Some(()),
        }
    }

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
            // Rare.
            _ => false,
        };
        fits.then_some(())
    }

    /// The number that a message stands for: a duration, or one in a wrapper.
    fn number_in(&self, field: &Field, bytes: &'a [u8]) -> Option<Number> {
        let Of::Message(plan) = field.of else {
            return None;
        };
        let plan = self.plans.get(plan)?;
        if plan.special == Special::Duration {
            let (seconds, nanos) = duration(bytes)?;
            let nanos = i128::from(seconds) * 1_000_000_000 + i128::from(nanos);
            return Some(Number::Duration(nanos));
        }
        let [only] = &*plan.fields else {
            return None;
        };
        let mut left = bytes;
        let value = match left.is_empty() {
            // Which kind of number does not matter to zero.
            true if wire_type(&only.of) == 0 => Value::Int(0),
            true => return None,
            false => {
                varint(&mut left)?;
                read(&only.of, &mut left)?
            }
        };
        match value {
            Value::Int(v) => Some(Number::Int(v)),
            Value::Float(v) => Some(Number::Float(v)),
            _ => None,
        }
    }
}

/// The type and the body of an `Any`.
fn any_parts(mut left: &[u8]) -> Option<(&str, &[u8])> {
    let (mut url, mut body) = (None, None);
    while !left.is_empty() {
        match varint(&mut left)? {
            0x0a if url.is_none() && body.is_none() => url = Some(delimited(&mut left)?),
            0x12 if body.is_none() => body = Some(delimited(&mut left)?),
            _ => return None,
        }
    }
    let empty = |part: Option<&[u8]>| part.is_some_and(<[u8]>::is_empty);
    if empty(url) || empty(body) {
        return None;
    }
    let url = std::str::from_utf8(url.unwrap_or_default()).ok()?;
    Some((url, body.unwrap_or_default()))
}

/// A duration that is not negative, and within the bounds of protobuf.
fn plain_duration(bytes: &[u8]) -> Plain {
    const MAX_SECONDS: i64 = 315_576_000_000;
    let (seconds, nanos) = duration(bytes)?;
    let fits = (0..=MAX_SECONDS).contains(&seconds) && (0..1_000_000_000).contains(&nanos);
    fits.then_some(())
}

fn duration(mut left: &[u8]) -> Option<(i64, i32)> {
    let (mut seconds, mut nanos) = (0, 0);
    while !left.is_empty() {
        match varint(&mut left)? {
            0x08 => seconds = varint(&mut left)? as i64,
            0x10 => nanos = i32::try_from(varint(&mut left)? as i64).ok()?,
            _ => return None,
        }
    }
    Some((seconds, nanos))
}
