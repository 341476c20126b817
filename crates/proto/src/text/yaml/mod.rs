//! YAML into a tree: positions, anchors, merge keys, and bounds on all of it.
//!
//! The parser yields events, so parsing does not recurse. An alias is expanded by
//! copying its anchor's value; how much may be copied is bounded, which makes a
//! "billion laughs" a typed error, and so is a text that takes too much memory. Which value a scalar is, a [`Schema`] decides;
//! a key is text, as it is written.

mod merge;
mod tokens;

use std::collections::HashMap;

use saphyr_parser::{Event, Marker, Parser, ScanError, Tag};

use super::{
    Limits,
    budget::{Budget, Size},
    error::Problem,
    schema::{Schema, octal_warning},
    slip,
    tree::{Entry, Node, Position, Value},
};

use merge::merge_entries;

type Fault = (Position, Problem);

/// The trees of a text, and what is odd in it.
pub(super) struct Parsed {
    pub(super) documents: Vec<Node>,
    /// Numbers that Envoy takes for octal, as far as the limit of reports
    /// allows.
    pub(super) octals: Vec<Fault>,
    /// The bytes of memory that the trees take.
    pub(super) charged_bytes: u64,
}

/// Parses every document of a text into a tree.
///
/// # Errors
/// The first mistake, with its position.
pub(super) fn parse(text: &str, limits: &Limits, schema: Schema) -> Result<Parsed, Fault> {
    let token_bytes = tokens::estimate_memory(text, limits)?;
    let mut builder = Builder::new(text, limits, schema);
    builder
        .budget
        .charge(token_bytes)
        .map_err(|problem| (Position::START, problem))?;

    for event in Parser::new_from_str(text) {
        let (event, span) = event.map_err(|error| explain(text, &error))?;
        let handled = builder.handle_event(event, position(&span.start));
        handled.map_err(|fault| explain_key(text, fault))?;
    }

    Ok(Parsed {
        documents: builder.documents,
        octals: builder.octals,
        // The memory of the tokens is free again.
        charged_bytes: builder.budget.charged_bytes().saturating_sub(token_bytes),
    })
}

/// Makes the mistake of a text that is no YAML: a slip at its place, or else
/// the words of the parser.
fn explain(text: &str, error: &ScanError) -> Fault {
    let position = position(error.marker());
    match slip::find_slip(text, position) {
        Some((position, slip)) => (position, Problem::Slip(slip)),
        None => (position, Problem::Syntax(error.info().to_owned())),
    }
}

/// Explains a key that is a mapping: the author may have meant a template.
/// Returns other faults unchanged.
fn explain_key(text: &str, (position, problem): Fault) -> Fault {
    match slip::find_template(text, position) {
        Some((position, slip)) if matches!(problem, Problem::BadKey(_)) => {
            (position, Problem::Slip(slip))
        }
        _ => (position, problem),
    }
}

/// Returns the place of a marker, whose columns count from zero.
fn position(marker: &Marker) -> Position {
    Position {
        line: marker.line(),
        column: marker.col() + 1,
    }
}

/// A collection that is not complete.
enum OpenCollection {
    List(Vec<Node>),
    /// Merge keys wait in `merges`, because written entries win over them.
    Map {
        entries: Vec<Entry>,
        key: Option<Key>,
        merges: Vec<Node>,
    },
}

impl OpenCollection {
    /// Begins a mapping, before its first key.
    fn empty_map() -> Self {
        Self::Map {
            entries: Vec::new(),
            key: None,
            merges: Vec::new(),
        }
    }
}

/// A key whose value is not complete.
struct Key {
    at: Position,
    text: String,
    /// Whether the key and its value are left out.
    is_ignored: bool,
}

/// The number of the parser for a value without an anchor.
const NO_ANCHOR: usize = 0;

/// The key whose mappings are merged into the one around it.
const MERGE: &str = "<<";

/// The tag of a key that is left out with its value: Envoy's way to keep
/// anchors apart from what it reads.
const IGNORE: &str = "ignore";

/// The key of a file mode, the one number that is octal by custom.
const MODE: &str = "mode";

/// A collection that is open, with the place where it began and its anchor.
struct Level {
    at: Position,
    anchor: usize,
    open: OpenCollection,
}

struct Builder<'a> {
    limits: &'a Limits,
    schema: Schema,
    /// The collections that are not complete, from the outside in.
    levels: Vec<Level>,
    /// The values that have an anchor, by its number.
    anchors: HashMap<usize, Node>,
    /// The values that the text may still hold.
    budget: Budget<'a>,
    documents: Vec<Node>,
    octals: Vec<Fault>,
}

impl<'a> Builder<'a> {
    /// Makes a builder before the first event.
    fn new(text: &str, limits: &'a Limits, schema: Schema) -> Self {
        Self {
            limits,
            schema,
            levels: Vec::new(),
            anchors: HashMap::new(),
            budget: Budget::of_text(text, limits),
            documents: Vec::new(),
            octals: Vec::new(),
        }
    }

    /// Handles one event of the parser, which is at `position`. A value is
    /// added to the collection around it, and a collection when it ends.
    fn handle_event(&mut self, event: Event<'_>, position: Position) -> Result<(), Fault> {
        let located = |problem| (position, problem);
        match event {
            Event::Scalar(text, style, anchor, tag) => {
                self.budget.charge_scalar().map_err(located)?;
                let tag = tag.as_deref();
                let scalar = self.schema.read_scalar(&text, style, tag);
                let value = scalar.map_err(located)?;
                if anchor == NO_ANCHOR && self.awaits_key() {
                    self.open_key(position, &text, &value, tag);
                    return Ok(());
                }

                self.note_octal(position, &text, &value);
                let node = Node {
                    at: position,
                    value,
                };
                self.add_value(node, anchor).map_err(located)
            }
            Event::Alias(anchor) => {
                let node = self.expand_alias(anchor).map_err(located)?;
                self.add_value(node, NO_ANCHOR).map_err(located)
            }

            Event::SequenceStart(anchor, _) => {
                let list = OpenCollection::List(Vec::new());
                let opened = self.open_collection(position, anchor, list);
                opened.map_err(located)
            }
            Event::MappingStart(anchor, _) => {
                let opened = self.open_collection(position, anchor, OpenCollection::empty_map());
                opened.map_err(located)
            }
            Event::SequenceEnd | Event::MappingEnd => self.close_collection(position),

            Event::DocumentStart(_) => {
                self.anchors.clear();
                Ok(())
            }
            Event::DocumentEnd | Event::StreamStart | Event::StreamEnd | Event::Nothing => Ok(()),
        }
    }

    /// Returns whether the next value is the key of a mapping.
    fn awaits_key(&self) -> bool {
        let innermost = self.levels.last().map(|level| &level.open);
        matches!(innermost, Some(OpenCollection::Map { key: None, .. }))
    }

    /// Stores a scalar as the key of the innermost mapping, with its spelling
    /// in the text, such as `yes` and `010`. A null key is the text `null`.
    fn open_key(&mut self, position: Position, text: &str, value: &Value, tag: Option<&Tag>) {
        let text = match value {
            Value::Null => "null",
            _ => text,
        };
        if let Some(OpenCollection::Map { key, .. }) =
            self.levels.last_mut().map(|level| &mut level.open)
        {
            *key = Some(Key {
                at: position,
                text: text.to_owned(),
                is_ignored: tag.is_some_and(|tag| tag.handle == "!" && tag.suffix == IGNORE),
            });
        }
    }

    /// Notes a number that Envoy reads as octal, which its author hardly meant.
    fn note_octal(&mut self, position: Position, text: &str, value: &Value) {
        let innermost = self.levels.last().map(|level| &level.open);
        let is_mode = matches!(innermost, Some(OpenCollection::Map { key: Some(key), .. }) if key.text == MODE);
        if self.schema != Schema::Envoy || is_mode || self.octals.len() >= self.limits.errors {
            return;
        }
        let note = octal_warning(text, value).map(|problem| (position, problem));
        self.octals.extend(note);
    }

    /// Begins a collection.
    ///
    /// # Errors
    /// The collection has one level too many, or exceeds the memory limit.
    fn open_collection(
        &mut self,
        position: Position,
        anchor: usize,
        open: OpenCollection,
    ) -> Result<(), Problem> {
        let max = self.limits.depth;
        if self.levels.len() >= max {
            return Err(Problem::TooDeep { max });
        }
        self.budget.charge_collection()?;
        self.levels.push(Level {
            at: position,
            anchor,
            open,
        });
        Ok(())
    }

    /// Ends the innermost collection, resolves its merge keys, and adds it to
    /// the collection around it.
    fn close_collection(&mut self, end: Position) -> Result<(), Fault> {
        let Some(Level {
            at: position,
            anchor,
            open,
        }) = self.levels.pop()
        else {
            let problem = Problem::Syntax("a collection ends that never began".into());
            return Err((end, problem));
        };

        let value = match open {
            OpenCollection::List(list) => Value::List(list),
            OpenCollection::Map {
                entries, merges, ..
            } => Value::Map(merge_entries(entries, merges)?),
        };
        let node = Node {
            at: position,
            value,
        };
        let added = self.add_value(node, anchor);
        added.map_err(|problem| (position, problem))
    }

    /// Returns a copy of the value that an alias refers to.
    ///
    /// # Errors
    /// The anchor is unknown, or the copy exceeds a limit.
    fn expand_alias(&mut self, anchor: usize) -> Result<Node, Problem> {
        let node = self.anchors.get(&anchor).ok_or(Problem::UnknownAnchor)?;
        let size = Size::measure(node);
        self.budget.charge_copy(&size)?;

        let max = self.limits.depth;
        if self.levels.len() + size.levels > max {
            return Err(Problem::TooDeep { max });
        }
        Ok(node.clone())
    }

    /// Adds a complete value to the innermost collection, as an item, a key or
    /// the value of a key; or else to the documents. A value with an anchor is
    /// stored for its aliases.
    fn add_value(&mut self, node: Node, anchor: usize) -> Result<(), Problem> {
        if anchor != NO_ANCHOR {
            self.budget.charge_copy(&Size::measure(&node))?;
            self.anchors.insert(anchor, node.clone());
        }

        match self.levels.last_mut().map(|level| &mut level.open) {
            None => self.documents.push(node),
            Some(OpenCollection::List(list)) => list.push(node),
            Some(OpenCollection::Map {
                entries,
                key,
                merges,
            }) => match key.take() {
                None => {
                    *key = Some(Key {
                        at: node.at,
                        text: read_key(node)?,
                        is_ignored: false,
                    });
                }
                Some(key) if key.is_ignored => {}
                Some(key) if key.text == MERGE => merges.push(node),
                Some(Key {
                    at: position,
                    text: key,
                    ..
                }) => entries.push(Entry {
                    at: position,
                    key,
                    node,
                }),
            },
        }
        Ok(())
    }
}

/// Reads a value as the text of a key: an alias, or the value of an anchor. A
/// collection and null are no keys, which is a mistake.
fn read_key(node: Node) -> Result<String, Problem> {
    match node.value {
        Value::String(text) | Value::Number(text) => Ok(text),
        Value::Bool(value) => Ok(value.to_string()),
        _ => Err(Problem::BadKey(node.describe())),
    }
}
