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

/// Parses every document of a text.
pub(super) fn parse(text: &str, limits: &Limits) -> Result<Vec<Node>, Fault> {
    let mut builder = Builder::new(limits);
    for event in Parser::new_from_str(text) {
        let (event, span) = event.map_err(|e| {
            let at = position(e.marker());
            (at, Problem::Syntax(e.info().to_owned()))
        })?;
        builder.event(event, position(&span.start))?;
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
    fn new(limits: &'a Limits) -> Self {
        Self {
            limits,
            levels: Vec::new(),
            anchors: HashMap::new(),
            expanded: 0,
            documents: Vec::new(),
        }
    }

    /// Takes one event of the parser, which is at `at`.
    fn event(&mut self, event: Event<'_>, at: Position) -> Result<(), Fault> {
        let here = |problem| (at, problem);
        match event {
            Event::Scalar(text, style, anchor, tag) => {
                let value = scalar(&text, style, tag.as_deref()).map_err(here)?;
                self.complete(Node { at, value }, anchor).map_err(here)
            }
            Event::SequenceStart(anchor, _) => {
                let open = Open::List(Vec::new());
                self.open(at, anchor, open).map_err(here)
            }
            Event::MappingStart(anchor, _) => {
                let open = Open::Map {
                    entries: Vec::new(),
                    key: None,
                    merges: Vec::new(),
                };
                self.open(at, anchor, open).map_err(here)
            }
            Event::SequenceEnd | Event::MappingEnd => self.close(at),
            Event::Alias(anchor) => {
                let node = self.expand(anchor).map_err(here)?;
                self.complete(node, NO_ANCHOR).map_err(here)
            }
            Event::DocumentStart(_) => {
                self.anchors.clear();
                Ok(())
            }
            Event::DocumentEnd | Event::StreamStart | Event::StreamEnd | Event::Nothing => Ok(()),
        }
    }

    /// Begins a collection.
    fn open(&mut self, at: Position, anchor: usize, open: Open) -> Result<(), Problem> {
        let max = self.limits.depth;
        if self.levels.len() >= max {
            return Err(Problem::TooDeep { max });
        }
        self.levels.push(Level { at, anchor, open });
        Ok(())
    }

    /// Ends the innermost collection, and adds it to the one around it.
    fn close(&mut self, end: Position) -> Result<(), Fault> {
        let Some(Level { at, anchor, open }) = self.levels.pop() else {
            let problem = Problem::Syntax("a collection ends that never began".into());
            return Err((end, problem));
        };
        let value = match open {
            Open::List(list) => Value::List(list),
            Open::Map {
                entries, merges, ..
            } => Value::Map(merged(entries, merges)?),
        };
        self.complete(Node { at, value }, anchor)
            .map_err(|problem| (at, problem))
    }

    /// Copies the value of an alias, within the limits.
    fn expand(&mut self, anchor: usize) -> Result<Node, Problem> {
        let node = self.anchors.get(&anchor).ok_or(Problem::UnknownAnchor)?;
        let (count, depth) = measure(node);
        self.expanded = count_copy(self.expanded, count, self.limits)?;
        let max = self.limits.depth;
        if self.levels.len() + depth > max {
            return Err(Problem::TooDeep { max });
        }
        Ok(node.clone())
    }

    /// Adds a complete value to the innermost collection, as an item, a key or
    /// the value of a key, or to the documents. A value with an anchor is kept
    /// for its aliases.
    fn complete(&mut self, node: Node, anchor: usize) -> Result<(), Problem> {
        if anchor != NO_ANCHOR {
            let (count, _) = measure(&node);
            self.expanded = count_copy(self.expanded, count, self.limits)?;
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
                None => *key = Some((node.at, key_text(node)?)),
                Some((_, key)) if key == MERGE => merges.push(node),
                Some((at, key)) => entries.push(Entry { at, key, node }),
            },
        }
        Ok(())
    }
}

/// Counts a copy of `count` values before it is made. `expanded` is the number
/// of values copied so far; returns the new number.
fn count_copy(expanded: usize, count: usize, limits: &Limits) -> Result<usize, Problem> {
    let (expanded, max) = (expanded + count, limits.expanded);
    if expanded > max {
        return Err(Problem::TooManyAliases { max });
    }
    Ok(expanded)
}

/// Returns the text of a key; a collection and null are no keys.
fn key_text(node: Node) -> Result<String, Problem> {
    match node.value {
        Value::String(text) | Value::Number(text) => Ok(text),
        Value::Bool(value) => Ok(value.to_string()),
        _ => Err(Problem::BadKey(node.describe())),
    }
}

/// Adds the entries of merge keys to the written ones. Written entries win, and
/// then those of an earlier mapping. Two written entries with one key are a
/// mistake.
fn merged(mut entries: Vec<Entry>, merges: Vec<Node>) -> Result<Vec<Entry>, Fault> {
    refuse_duplicates(&entries)?;
    for merge in merges {
        let at = merge.at;
        let sources = match merge.value {
            Value::List(list) => list,
            value => vec![Node { value, ..merge }],
        };
        for source in sources {
            let Value::Map(more) = source.value else {
                return Err((at, Problem::BadMerge));
            };
            let known: HashSet<_> = entries.iter().map(|e| e.key.clone()).collect();
            entries.extend(more.into_iter().filter(|e| !known.contains(&e.key)));
        }
    }
    Ok(entries)
}

/// Counts the values in a tree, and its levels. Recursion is bounded, because
/// the levels are.
fn measure(node: &Node) -> (usize, usize) {
    let add = |(count, depth): (usize, usize), node: &Node| {
        let (c, d) = measure(node);
        (count + c, depth.max(d + 1))
    };
    match &node.value {
        Value::List(list) => list.iter().fold((1, 1), add),
        Value::Map(map) => map.iter().map(|e| &e.node).fold((1, 1), add),
        _ => (1, 0),
    }
}

/// Reads a scalar. One in quotes, or with the tag `!!str`, is text whatever it
/// looks like; other tags of the core schema are not heeded, and tags of other
/// schemas are refused.
fn scalar(text: &str, style: ScalarStyle, tag: Option<&Tag>) -> Result<Value, Problem> {
    let is_bare = |tag: &Tag| tag.handle == "!" && tag.suffix.is_empty();
    match tag {
        Some(tag) if tag.is_yaml_core_schema() && tag.suffix == "str" => {
            Ok(Value::String(text.to_owned()))
        }
        Some(tag) if !tag.is_yaml_core_schema() && !is_bare(tag) => {
            Err(Problem::UnknownTag(tag.to_string()))
        }
        _ if style == ScalarStyle::Plain => Ok(plain(text)),
        _ => Ok(Value::String(text.to_owned())),
    }
}

/// Reads a scalar without quotes by the core schema of YAML 1.2.
fn plain(text: &str) -> Value {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => Value::Null,
        "true" | "True" | "TRUE" => Value::Bool(true),
        "false" | "False" | "FALSE" => Value::Bool(false),
        _ => match plain_number(text) {
            Some(number) => Value::Number(number),
            None => Value::String(text.to_owned()),
        },
    }
}

/// Returns a number of the core schema as [`Value::Number`] has it: in decimal,
/// without a plus, or by its name in JSON. `None` if the text is none.
fn plain_number(text: &str) -> Option<String> {
    let number = match text {
        ".nan" | ".NaN" | ".NAN" => "NaN",
        ".inf" | ".Inf" | ".INF" | "+.inf" | "+.Inf" | "+.INF" => "Infinity",
        "-.inf" | "-.Inf" | "-.INF" => "-Infinity",
        _ if is_decimal(text) => text.strip_prefix('+').unwrap_or(text),
        _ => {
            let (digits, radix) = match text.split_at_checked(2)? {
                ("0x", digits) => (digits, 16),
                ("0o", digits) => (digits, 8),
                _ => return None,
            };
            let number = u64::from_str_radix(digits, radix).ok()?;
            return Some(number.to_string());
        }
    };
    Some(number.to_owned())
}

/// Whether a text matches
/// `[-+]? ( [0-9]+ ( \. [0-9]* )? | \. [0-9]+ ) ( [eE] [-+]? [0-9]+ )?`
fn is_decimal(text: &str) -> bool {
    let digits = |s: &str| s.bytes().all(|b| b.is_ascii_digit());
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    let (mantissa, exponent) = match unsigned.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (unsigned, None),
    };
    let exponent_ok = exponent.is_none_or(|e| {
        let e = e.strip_prefix(['-', '+']).unwrap_or(e);
        !e.is_empty() && digits(e)
    });
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    exponent_ok && digits(whole) && digits(fraction) && !(whole.is_empty() && fraction.is_empty())
}
