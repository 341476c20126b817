//! YAML into a tree: positions, anchors, merge keys, and bounds on all of it.
//!
//! The parser yields events, so nothing here recurses. An alias is expanded by
//! copying its anchor's value; how much may be copied is bounded, which makes a
//! "billion laughs" a typed error. Plain scalars are read by the core schema of
//! YAML 1.2: `on` and `yes` are text.

use std::collections::HashMap;

use saphyr_parser::{Event, Marker, Parser, ScalarStyle, Tag};

use super::{
    Limits,
    error::Problem,
    tree::{Entry, Node, Position, Value},
};

type Fault = (Position, Problem);

/// Every document of the text.
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

struct Level {
    at: Position,
    anchor: usize,
    open: Open,
}

struct Builder<'a> {
    limits: &'a Limits,
    levels: Vec<Level>,
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
                self.complete(node, 0).map_err(here)
            }
            Event::DocumentStart(_) => {
                self.anchors.clear();
                Ok(())
            }
            Event::DocumentEnd | Event::StreamStart | Event::StreamEnd | Event::Nothing => Ok(()),
        }
    }

    fn open(&mut self, at: Position, anchor: usize, open: Open) -> Result<(), Problem> {
        let max = self.limits.depth;
        if self.levels.len() >= max {
            return Err(Problem::TooDeep { max });
        }
        self.levels.push(Level { at, anchor, open });
        Ok(())
    }

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

    fn expand(&mut self, anchor: usize) -> Result<Node, Problem> {
        let node = self.anchors.get(&anchor).ok_or(Problem::UnknownAnchor)?;
        let (count, depth) = measure(node);
        self.expanded = spend(self.expanded, count, self.limits)?;
        if self.levels.len() + depth > self.limits.depth {
            let max = self.limits.depth;
            return Err(Problem::TooDeep { max });
        }
        Ok(node.clone())
    }

    /// Adds a complete value to the collection that is open.
    fn complete(&mut self, node: Node, anchor: usize) -> Result<(), Problem> {
        if anchor != 0 {
            let (count, _) = measure(&node);
            self.expanded = spend(self.expanded, count, self.limits)?;
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
                Some((_, key)) if key == "<<" => merges.push(node),
                Some((at, key)) => entries.push(Entry { at, key, node }),
            },
        }
        Ok(())
    }
}

/// A copy counts before it is made.
fn spend(spent: usize, count: usize, limits: &Limits) -> Result<usize, Problem> {
    let (spent, max) = (spent + count, limits.expanded);
    if spent > max {
        return Err(Problem::TooManyAliases { max });
    }
    Ok(spent)
}

fn key_text(node: Node) -> Result<String, Problem> {
    match node.value {
        Value::String(text) | Value::Number(text) => Ok(text),
        Value::Bool(value) => Ok(value.to_string()),
        _ => Err(Problem::BadKey(node.describe())),
    }
}

/// Adds merged entries to the written ones, and refuses equal keys.
fn merged(mut entries: Vec<Entry>, merges: Vec<Node>) -> Result<Vec<Entry>, Fault> {
    super::json::refuse_duplicates(&entries)?;
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
            let known: std::collections::HashSet<_> =
                entries.iter().map(|e| e.key.clone()).collect();
            entries.extend(more.into_iter().filter(|e| !known.contains(&e.key)));
        }
    }
    Ok(entries)
}

/// The number of values in a tree, and its depth. Depth is already bounded.
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

fn scalar(text: &str, style: ScalarStyle, tag: Option<&Tag>) -> Result<Value, Problem> {
    match tag {
        Some(tag) if tag.is_yaml_core_schema() && tag.suffix == "str" => {
            Ok(Value::String(text.to_owned()))
        }
        Some(tag) if !(tag.is_yaml_core_schema() || tag.handle == "!" && tag.suffix.is_empty()) => {
            Err(Problem::UnknownTag(tag.to_string()))
        }
        _ if style == ScalarStyle::Plain => Ok(plain(text)),
        _ => Ok(Value::String(text.to_owned())),
    }
}

/// The core schema of YAML 1.2.
fn plain(text: &str) -> Value {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return Value::Null,
        "true" | "True" | "TRUE" => return Value::Bool(true),
        "false" | "False" | "FALSE" => return Value::Bool(false),
        ".nan" | ".NaN" | ".NAN" => return Value::Number("NaN".into()),
        ".inf" | ".Inf" | ".INF" | "+.inf" | "+.Inf" | "+.INF" => {
            return Value::Number("Infinity".into());
        }
        "-.inf" | "-.Inf" | "-.INF" => return Value::Number("-Infinity".into()),
        _ => {}
    }
    let radix = |digits: &str, radix| u64::from_str_radix(digits, radix).ok();
    let based = match text.split_at_checked(2) {
        Some(("0x", digits)) => radix(digits, 16),
        Some(("0o", digits)) => radix(digits, 8),
        _ => None,
    };
    if let Some(number) = based {
        return Value::Number(number.to_string());
    }
    if is_number(text) {
        let text = text.strip_prefix('+').unwrap_or(text);
        return Value::Number(text.to_owned());
    }
    Value::String(text.to_owned())
}

/// `[-+]? ( [0-9]+ ( \. [0-9]* )? | \. [0-9]+ ) ( [eE] [-+]? [0-9]+ )?`
fn is_number(text: &str) -> bool {
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
