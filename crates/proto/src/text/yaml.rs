//! YAML into a tree: positions, anchors, merge keys, and bounds on all of it.
//!
//! The parser yields events, so parsing does not recurse. An alias is expanded by
//! copying its anchor's value; how much may be copied is bounded, which makes a
//! "billion laughs" a typed error. Plain scalars are read by the core schema of
//! YAML 1.2: `on` and `yes` are text.

use std::collections::{HashMap, HashSet};

use saphyr_parser::{Event, Marker, Parser, ScalarStyle, Tag};

use super::{
    Limits,
    error::Problem,
    json::refuse_duplicates,
    tree::{Entry, Node, Position, Value},
};

type Fault = (Position, Problem);

/// Parses every document of a text into a tree. The first mistake ends it, and
/// is returned with its place.
pub(super) fn parse(text: &str, limits: &Limits) -> Result<Vec<Node>, Fault> {
    let mut builder = Builder::new(limits);
    for event in Parser::new_from_str(text) {
        let (event, span) = event.map_err(|e| {
            let at = position(e.marker());
            (at, Problem::Syntax(e.info().to_owned()))
        })?;
        builder.handle_event(event, position(&span.start))?;
    }
    Ok(builder.documents)
}

/// Returns the place of a marker, whose columns count from zero.
fn position(marker: &Marker) -> Position {
    Position {
        line: marker.line(),
        column: marker.col() + 1,
    }
}

/// A collection that is not complete.
enum Open {
    List(Vec<Node>),
    /// Merge keys wait in `merges`, because written entries win over them.
    Map {
        entries: Vec<Entry>,
        key: Option<(Position, String)>,
        merges: Vec<Node>,
    },
}

/// The number of the parser for a value without an anchor.
const NO_ANCHOR: usize = 0;

/// The key whose mappings are merged into the one around it.
const MERGE: &str = "<<";

struct Level {
    at: Position,
    anchor: usize,
    open: Open,
}

struct Builder<'a> {
    limits: &'a Limits,
    /// The collections that are not complete, from the outside in.
    levels: Vec<Level>,
    /// The values that have an anchor, by its number.
    anchors: HashMap<usize, Node>,
    /// Values copied for anchors and aliases.
    expanded: usize,
    documents: Vec<Node>,
}

impl<'a> Builder<'a> {
    /// Makes a builder that has handled no event yet.
    fn new(limits: &'a Limits) -> Self {
        Self {
            limits,
            levels: Vec::new(),
            anchors: HashMap::new(),
            expanded: 0,
            documents: Vec::new(),
        }
    }

    /// Handles one event of the parser, which is at `at`: values are added to
    /// the collection around them, and a collection when it ends.
    fn handle_event(&mut self, event: Event<'_>, at: Position) -> Result<(), Fault> {
        let here = |problem| (at, problem);
        match event {
            Event::Scalar(text, style, anchor, tag) => {
                let value = read_scalar(&text, style, tag.as_deref()).map_err(here)?;
                self.add_value(Node { at, value }, anchor).map_err(here)
            }
            Event::SequenceStart(anchor, _) => {
                let open = Open::List(Vec::new());
                self.open_collection(at, anchor, open).map_err(here)
            }
            Event::MappingStart(anchor, _) => {
                let open = Open::Map {
                    entries: Vec::new(),
                    key: None,
                    merges: Vec::new(),
                };
                self.open_collection(at, anchor, open).map_err(here)
            }
            Event::SequenceEnd | Event::MappingEnd => self.close_collection(at),
            Event::Alias(anchor) => {
                let node = self.expand_alias(anchor).map_err(here)?;
                self.add_value(node, NO_ANCHOR).map_err(here)
            }
            Event::DocumentStart(_) => {
                self.anchors.clear();
                Ok(())
            }
            Event::DocumentEnd | Event::StreamStart | Event::StreamEnd | Event::Nothing => Ok(()),
        }
    }

    /// Begins a collection; one level too many is a mistake.
    fn open_collection(&mut self, at: Position, anchor: usize, open: Open) -> Result<(), Problem> {
        let max = self.limits.depth;
        if self.levels.len() >= max {
            return Err(Problem::TooDeep { max });
        }
        self.levels.push(Level { at, anchor, open });
        Ok(())
    }

    /// Ends the innermost collection, and adds it to the one around it. Merge
    /// keys of a mapping are resolved then.
    fn close_collection(&mut self, end: Position) -> Result<(), Fault> {
        let Some(Level { at, anchor, open }) = self.levels.pop() else {
            let problem = Problem::Syntax("a collection ends that never began".into());
            return Err((end, problem));
        };

        let value = match open {
            Open::List(list) => Value::List(list),
            Open::Map {
                entries, merges, ..
            } => Value::Map(merge_entries(entries, merges)?),
        };
        self.add_value(Node { at, value }, anchor)
            .map_err(|problem| (at, problem))
    }

    /// Returns a copy of the value that an alias stands for. One that passes
    /// the limits of copies or of levels is a mistake.
    fn expand_alias(&mut self, anchor: usize) -> Result<Node, Problem> {
        let node = self.anchors.get(&anchor).ok_or(Problem::UnknownAnchor)?;
        let size = measure(node);
        self.expanded = count_copy(self.expanded, size.values, self.limits)?;

        let max = self.limits.depth;
        if self.levels.len() + size.levels > max {
            return Err(Problem::TooDeep { max });
        }
        Ok(node.clone())
    }

    /// Adds a complete value to the innermost collection, as an item, a key or
    /// the value of a key, or to the documents. A value with an anchor is kept
    /// for its aliases.
    fn add_value(&mut self, node: Node, anchor: usize) -> Result<(), Problem> {
        if anchor != NO_ANCHOR {
            let size = measure(&node);
            self.expanded = count_copy(self.expanded, size.values, self.limits)?;
            self.anchors.insert(anchor, node.clone());
        }

        match self.levels.last_mut().map(|level| &mut level.open) {
            None => self.documents.push(node),
            Some(Open::List(list)) => list.push(node),
            Some(Open::Map {
                entries,
                key,
                merges,
            }) => match key.take() {
                None => *key = Some((node.at, read_key(node)?)),
                Some((_, key)) if key == MERGE => merges.push(node),
                Some((at, key)) => entries.push(Entry { at, key, node }),
            },
        }
        Ok(())
    }
}

/// Counts a copy of `count` values before it is made. `expanded` is the number
/// of values copied so far; returns the new number, or a mistake if it passes
/// the limit.
fn count_copy(expanded: usize, count: usize, limits: &Limits) -> Result<usize, Problem> {
    let (expanded, max) = (expanded + count, limits.expanded);
    if expanded > max {
        return Err(Problem::TooManyAliases { max });
    }
    Ok(expanded)
}

/// Reads a value as the text of a key. A collection and null are no keys, which
/// is a mistake.
fn read_key(node: Node) -> Result<String, Problem> {
    match node.value {
        Value::String(text) | Value::Number(text) => Ok(text),
        Value::Bool(value) => Ok(value.to_string()),
        _ => Err(Problem::BadKey(node.describe())),
    }
}

/// Adds the entries of merge keys to the written ones. Written entries win, and
/// then those of an earlier mapping. Two written entries with one key are a
/// mistake, and so is a merge key whose value is neither a mapping nor a list
/// of mappings.
fn merge_entries(mut entries: Vec<Entry>, merges: Vec<Node>) -> Result<Vec<Entry>, Fault> {
    refuse_duplicates(&entries)?;
    for merge in merges {
        let at = merge.at;
        let sources = match merge.value {
            Value::List(list) => list,
            value => vec![Node { value, ..merge }],
        };
        for source in sources {
            let Value::Map(merged) = source.value else {
                return Err((at, Problem::BadMerge));
            };
            let known: HashSet<_> = entries.iter().map(|e| e.key.clone()).collect();
            entries.extend(merged.into_iter().filter(|e| !known.contains(&e.key)));
        }
    }
    Ok(entries)
}

/// The size of a tree.
struct Size {
    values: usize,
    /// Collections inside each other; zero for a scalar.
    levels: usize,
}

/// Measures a tree. Recursion is bounded, because the levels are.
fn measure(node: &Node) -> Size {
    let empty = Size {
        values: 1,
        levels: 1,
    };
    let add = |size: Size, node: &Node| {
        let inner = measure(node);
        Size {
            values: size.values + inner.values,
            levels: size.levels.max(inner.levels + 1),
        }
    };
    match &node.value {
        Value::List(list) => list.iter().fold(empty, add),
        Value::Map(map) => map.iter().map(|entry| &entry.node).fold(empty, add),
        _ => Size {
            values: 1,
            levels: 0,
        },
    }
}

/// Reads a scalar. One in quotes, or with the tag `!!str`, is text whatever it
/// looks like; other tags of the core schema are not heeded, and tags of other
/// schemas are refused.
fn read_scalar(text: &str, style: ScalarStyle, tag: Option<&Tag>) -> Result<Value, Problem> {
    let mut is_text = style != ScalarStyle::Plain;
    if let Some(tag) = tag {
        let is_core = tag.is_yaml_core_schema();
        // A single `!`.
        let is_bare = tag.handle == "!" && tag.suffix.is_empty();
        if !is_core && !is_bare {
            return Err(Problem::UnknownTag(tag.to_string()));
        }
        is_text |= is_core && tag.suffix == "str";
    }

    match is_text {
        true => Ok(Value::String(text.to_owned())),
        false => Ok(read_plain(text)),
    }
}

/// Reads a scalar without quotes by the core schema of YAML 1.2: null, a
/// boolean, a number, or else a text.
fn read_plain(text: &str) -> Value {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => Value::Null,
        "true" | "True" | "TRUE" => Value::Bool(true),
        "false" | "False" | "FALSE" => Value::Bool(false),
        _ => match read_plain_number(text) {
            Some(number) => Value::Number(number),
            None => Value::String(text.to_owned()),
        },
    }
}

/// Returns a number of the core schema as [`Value::Number`] has it: in decimal,
/// without a plus, or by its name in JSON. `None` if the text is none.
fn read_plain_number(text: &str) -> Option<String> {
    let number = match text {
        ".nan" | ".NaN" | ".NAN" => "NaN",
        ".inf" | ".Inf" | ".INF" | "+.inf" | "+.Inf" | "+.INF" => "Infinity",
        "-.inf" | "-.Inf" | "-.INF" => "-Infinity",
        _ if is_decimal(text) => text.strip_prefix('+').unwrap_or(text),
        _ => return read_prefixed_number(text).map(|number| number.to_string()),
    };
    Some(number.to_owned())
}

/// Reads a whole number with the prefix `0x` or `0o`. `None` if the text is no
/// such number, or if the number does not fit 64 bits.
fn read_prefixed_number(text: &str) -> Option<u64> {
    let (digits, radix) = match text.split_at_checked(2)? {
        ("0x", digits) => (digits, 16),
        ("0o", digits) => (digits, 8),
        _ => return None,
    };
    u64::from_str_radix(digits, radix).ok()
}

/// Returns whether a text is a decimal number, which matches
/// `[-+]? ( [0-9]+ ( \. [0-9]* )? | \. [0-9]+ ) ( [eE] [-+]? [0-9]+ )?`
fn is_decimal(text: &str) -> bool {
    let is_digits = |text: &str| text.bytes().all(|b| b.is_ascii_digit());
    let is_exponent = |text: &str| {
        let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
        !unsigned.is_empty() && is_digits(unsigned)
    };

    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    let mantissa = match unsigned.split_once(['e', 'E']) {
        Some((_, exponent)) if !is_exponent(exponent) => return false,
        Some((mantissa, _)) => mantissa,
        None => unsigned,
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let has_digit = !whole.is_empty() || !fraction.is_empty();
    has_digit && is_digits(whole) && is_digits(fraction)
}
