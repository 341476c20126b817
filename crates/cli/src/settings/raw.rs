//! Settings as they are written: texts by key, with their places.

use std::collections::{BTreeMap, BTreeSet};

use trunkline_proto::text::{self, Format, Node, Position, Value, nearest};

use super::resolve::SettingsError;
use super::{Rules, base, params, table};

/// Texts by key.
#[derive(Debug, Default)]
pub(crate) struct Raw {
    /// The file, if it is one.
    pub(super) file: Option<String>,
    pub(super) values: BTreeMap<&'static str, Values>,
    /// Settings that are rules.
    pub(super) rules: Rules,
    /// The keys of rules that were read.
    seen_rules: BTreeSet<&'static str>,
}

/// The longest settings file, in bytes.
const LONGEST_FILE: usize = 1 << 20;

/// The keys of rules.
const RULES: [&str; 3] = [base::KEY, params::KEY, params::ERRORS];

/// The values of one key, each with its place in the file.
#[derive(Debug, Default)]
pub(super) struct Values(pub(super) Vec<(String, Position)>);

impl Raw {
    /// Reads the text of a settings file; `file` is its name in errors. Rules are
    /// parsed, values are not.
    pub(crate) fn read(file: &str, text: &str) -> Result<Self, SettingsError> {
        let limits = text::Limits {
            bytes: LONGEST_FILE,
            ..text::Limits::default()
        };
        let documents = text::parse(Format::of(file), file, text, &limits)?;
        let mut raw = Self {
            file: Some(file.to_owned()),
            ..Self::default()
        };
        for document in documents {
            raw.document(document)?;
        }
        Ok(raw)
    }

    /// Sets the values of a flag.
    pub(crate) fn set(&mut self, key: &'static str, values: Vec<String>) {
        let at = Position::default();
        let values = values.into_iter().map(|value| (value, at));
        self.values.insert(key, Values(values.collect()));
    }

    /// Takes in a document of the file. A key may occur once in the whole file.
    fn document(&mut self, document: Node) -> Result<(), SettingsError> {
        let entries = match document.value {
            // All lines may be comments.
            Value::Null => return Ok(()),
            Value::Map(entries) => entries,
            _ => return Err(self.error(document.at, "expected keys and values")),
        };
        for entry in entries {
            if let Some(key) = RULES.into_iter().find(|key| *key == entry.key) {
                if !self.seen_rules.insert(key) {
                    return Err(self.twice(entry.at, key));
                }
                self.rules(key, entry.node)?;
                continue;
            }
            let known = table::all().find(|setting| setting.key == entry.key);
            let Some(setting) = known else {
                return Err(self.unknown(entry.at, &entry.key));
            };
            let values = self.values(setting.key, entry.node)?;
            if self.values.insert(setting.key, values).is_some() {
                return Err(self.twice(entry.at, setting.key));
            }
        }
        Ok(())
    }

    /// Reads the rules of a key, which is one of [`RULES`].
    fn rules(&mut self, key: &str, node: Node) -> Result<(), SettingsError> {
        match key {
            base::KEY => self.rules.base_sets = base::read(self, node)?,
            params::KEY => self.rules.params = params::read(self, node)?,
            _ => self.rules.resource_errors = params::errors(self, node)?,
        }
        Ok(())
    }

    /// Makes the error of a key that occurs twice.
    fn twice(&self, at: Position, key: &str) -> SettingsError {
        self.error(at, format!("the key {key:?} occurs twice; keep one"))
    }

    /// Makes the error of an unknown key, with a similar one if there is one.
    fn unknown(&self, at: Position, key: &str) -> SettingsError {
        let known = table::all().map(|setting| setting.key).chain(RULES);
        let near = nearest(key, known.map(str::to_owned));
        let hint = match near {
            Some(near) => format!("did you mean {near:?}?"),
            None => "`trunkline settings --print-defaults` shows all".to_owned(),
        };
        self.error(at, format!("unknown key {key:?}; {hint}"))
    }

    /// Reads the values of a key: one, a list, or none.
    fn values(&self, key: &str, node: Node) -> Result<Values, SettingsError> {
        let at = node.at;
        match node.value {
            // Without a value, the default.
            Value::Null => Ok(Values::default()),
            Value::List(list) => {
                let one = |node| self.scalar(key, node);
                list.into_iter()
                    .map(one)
                    .collect::<Result<_, _>>()
                    .map(Values)
            }
            value => Ok(Values(vec![self.scalar(key, Node { at, value })?])),
        }
    }

    /// Reads one value as the text that a flag would have, with its place.
    fn scalar(&self, key: &str, node: Node) -> Result<(String, Position), SettingsError> {
        let text = match node.value {
            Value::Bool(value) => value.to_string(),
            Value::Number(text) | Value::String(text) => text,
            Value::Null | Value::List(_) | Value::Map(_) => {
                let what = format!("{key}: expected a value, or a list of values");
                return Err(self.error(node.at, what));
            }
        };
        Ok((text, node.at))
    }

    /// Makes an error at a place of the file.
    pub(super) fn error(&self, at: Position, what: impl Into<String>) -> SettingsError {
        SettingsError::File {
            file: self.file.clone().unwrap_or_default(),
            at,
            what: what.into(),
        }
    }
}
