//! Settings as they are written: texts by key, with their places.

use std::collections::{BTreeMap, BTreeSet};

use trunkline_proto::text::{self, Entry, Format, Node, Position, Value, nearest};

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
    /// Parses the text of a settings file, of at most [`LONGEST_FILE`] bytes.
    /// `file` is its name in errors. Rules are parsed completely; values are
    /// kept as texts, for [`resolve`](super::resolve()).
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
            raw.add_document(document)?;
        }
        Ok(raw)
    }

    /// Sets the values of a flag, in place of those that it had. They have no
    /// place in a file.
    pub(crate) fn set(&mut self, key: &'static str, values: Vec<String>) {
        let position = Position::default();
        let values = values.into_iter().map(|value| (value, position));
        self.values.insert(key, Values(values.collect()));
    }

    /// Adds the values and rules of a document of the file.
    ///
    /// # Errors
    /// A key is unknown or occurs twice in the file, or has a value of the
    /// wrong form.
    fn add_document(&mut self, document: Node) -> Result<(), SettingsError> {
        let entries = match document.value {
            // A file with only comments is a document without a value.
            Value::Null => return Ok(()),
            Value::Map(entries) => entries,
            _ => return Err(self.error(document.at, "expected keys and values")),
        };

        for entry in entries {
            match RULES.into_iter().find(|key| *key == entry.key) {
                Some(key) => self.add_rules(key, entry)?,
                None => self.add_values(entry)?,
            }
        }
        Ok(())
    }

    /// Adds the values of an entry.
    ///
    /// # Errors
    /// The key is not that of a setting, or occurs twice.
    fn add_values(&mut self, entry: Entry) -> Result<(), SettingsError> {
        let setting = table::all().find(|setting| setting.key == entry.key);
        let Some(setting) = setting else {
            return Err(self.unknown_key(entry.at, &entry.key));
        };
        let values = self.read_values(setting.key, entry.node)?;
        let previous_values = self.values.insert(setting.key, values);
        match previous_values.is_none() {
            true => Ok(()),
            false => Err(self.repeated_key(entry.at, setting.key)),
        }
    }

    /// Adds the rules of an entry.
    ///
    /// # Errors
    /// The key occurs twice, or a rule is bad.
    fn add_rules(&mut self, key: &'static str, entry: Entry) -> Result<(), SettingsError> {
        let is_new = self.seen_rules.insert(key);
        if !is_new {
            return Err(self.repeated_key(entry.at, key));
        }
        match key {
            base::KEY => self.rules.base_sets = base::read(self, entry.node)?,
            params::KEY => self.rules.params = params::read(self, entry.node)?,
            _ => self.rules.resource_errors = params::read_error_rules(self, entry.node)?,
        }
        Ok(())
    }

    /// Makes the error of a key that occurs twice.
    fn repeated_key(&self, position: Position, key: &str) -> SettingsError {
        self.error(position, format!("the key {key:?} occurs twice; keep one"))
    }

    /// Makes the error of an unknown key, with a similar key, or else with the
    /// command that lists all.
    fn unknown_key(&self, position: Position, key: &str) -> SettingsError {
        let keys = table::all().map(|setting| setting.key).chain(RULES);
        let hint = match nearest(key, keys.map(str::to_owned)) {
            Some(similar_key) => format!("did you mean {similar_key:?}?"),
            None => "`trunkline settings --print-defaults` shows all".to_owned(),
        };
        self.error(position, format!("unknown key {key:?}; {hint}"))
    }

    /// Reads the values of a key: one, a list, or none. A key without values
    /// has its default.
    fn read_values(&self, key: &str, node: Node) -> Result<Values, SettingsError> {
        let position = node.at;
        match node.value {
            Value::Null => Ok(Values::default()),
            Value::List(list) => {
                let values = list.into_iter().map(|node| self.read_scalar(key, node));
                Ok(Values(values.collect::<Result<_, _>>()?))
            }
            value => Ok(Values(vec![self.read_scalar(
                key,
                Node {
                    at: position,
                    value,
                },
            )?])),
        }
    }

    /// Reads one value as the text that a flag would have, with its position.
    fn read_scalar(&self, key: &str, node: Node) -> Result<(String, Position), SettingsError> {
        let text = match node.value {
            Value::Bool(value) => value.to_string(),
            Value::Number(text) | Value::Float(text) | Value::String(text) => text,
            Value::Null | Value::List(_) | Value::Map(_) => {
                let message = format!("{key}: expected a value, or a list of values");
                return Err(self.error(node.at, message));
            }
        };
        Ok((text, node.at))
    }

    /// Makes an error at a place of the file; `what` is the mistake.
    pub(super) fn error(&self, at: Position, what: impl Into<String>) -> SettingsError {
        SettingsError::File {
            file: self.file.clone().unwrap_or_default(),
            at,
            what: what.into(),
        }
    }
}
