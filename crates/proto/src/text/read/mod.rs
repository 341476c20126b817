//! From a tree to a message: the JSON mapping of protobuf, field by field.
//!
//! The walk follows the descriptor and the tree together, so that every mistake
//! has a place and a path. It does not stop at the first mistake: a wrong field
//! is left out and reported, and its neighbours are read. `None` from a step
//! means that the reason has been reported.

mod any;
mod message;
mod number;
mod scalar;
mod wellknown;

pub(super) use any::{TYPE, VALUE, opaque_body};
pub(super) use wellknown::has_own_form;

use super::{
    Options, Unknown, budget,
    error::{Problem, TextError},
    tree::{Node, Position},
};
use prost_reflect::DynamicMessage;

use crate::{
    canonical,
    path::{Path, Step},
    redact,
};

/// One walk.
pub(super) struct Walk<'a> {
    pub(super) file: &'a str,
    pub(super) options: &'a Options,
    pub(super) path: Path,
    pub(super) errors: Vec<TextError>,
    pub(super) warnings: Vec<TextError>,
    /// The number of all mistakes, also those beyond the limit of reports.
    pub(super) total: usize,
    /// The bytes of memory that the text takes, its trees and its messages.
    charged_bytes: u64,
}

impl<'a> Walk<'a> {
    /// Starts a walk without mistakes. `charged_bytes` is the memory of the trees
    /// that it walks.
    pub(super) fn new(file: &'a str, options: &'a Options, charged_bytes: u64) -> Self {
        Self {
            file,
            options,
            path: Path::default(),
            errors: Vec::new(),
            warnings: Vec::new(),
            total: 0,
            charged_bytes,
        }
    }

    /// Counts the memory of a message or a resource before it is made. Returns
    /// `None` beyond the limit; only the first one is reported, at `position`.
    pub(super) fn charge(&mut self, position: Position, cost: u64) -> Option<()> {
        let limits = &self.options.limits;
        let was_too_heavy = self.charged_bytes > limits.memory;
        match budget::charge(&mut self.charged_bytes, cost, limits) {
            Ok(()) => Some(()),
            Err(_) if was_too_heavy => {
                self.total += 1;
                None
            }
            Err(problem) => self.report(position, problem),
        }
    }

    /// Reads a part of the message that is one step further in, so that its
    /// mistakes have the right path.
    pub(super) fn walk_at<T>(&mut self, step: Step, walk: impl FnOnce(&mut Self) -> T) -> T {
        self.path.push(step);
        let value = walk(self);
        self.path.pop();
        value
    }

    /// Encodes a message canonically. Returns `None` if it nests too deep,
    /// which is reported at `position`.
    pub(super) fn encode(
        &mut self,
        message: &DynamicMessage,
        position: Position,
    ) -> Option<Vec<u8>> {
        match canonical::encode(message) {
            Ok(bytes) => Some(bytes),
            Err(error) => self.report(position, Problem::Encoding(error.to_string())),
        }
    }

    /// Makes a mistake at a position of the text, with the path of the walk.
    /// The mistake does not quote a secret.
    fn error_at(&self, position: Position, problem: Problem) -> TextError {
        let problem = match redact::is_secret_path(&self.path) {
            true => problem.without_quotes(),
            false => problem,
        };
        TextError {
            file: self.file.to_owned(),
            at: position,
            path: self.path.to_string(),
            problem,
        }
    }

    /// Reports a mistake; beyond the limit of reports, it is only counted.
    /// Always `None`, for the caller to return.
    pub(super) fn report<T>(&mut self, position: Position, problem: Problem) -> Option<T> {
        self.total += 1;
        if self.errors.len() < self.options.limits.errors {
            self.errors.push(self.error_at(position, problem));
        }
        None
    }

    /// Adds a warning; beyond the limit of reports, it is dropped.
    pub(super) fn warn(&mut self, position: Position, problem: Problem) {
        if self.warnings.len() < self.options.limits.errors {
            self.warnings.push(self.error_at(position, problem));
        }
    }

    /// Returns whether a report of an unknown field would be dropped. Then its
    /// words need not be found, and there may be a million of them.
    fn drops_unknown(&self) -> bool {
        let max = self.options.limits.errors;
        match self.options.unknown {
            Unknown::Refuse => self.errors.len() >= max,
            Unknown::Warn => self.warnings.len() >= max,
        }
    }

    /// Reports an unknown field as a mistake or as a warning, as the options
    /// say.
    fn report_unknown(&mut self, position: Position, problem: Problem) {
        match self.options.unknown {
            Unknown::Refuse => drop(self.report::<()>(position, problem)),
            Unknown::Warn => self.warn(position, problem),
        }
    }

    /// Reports a value of the wrong kind. The value is quoted, unless its field
    /// is a secret. Returns `None` for the caller to return.
    pub(super) fn report_wrong_kind<T>(
        &mut self,
        node: &Node,
        expected: impl Into<String>,
    ) -> Option<T> {
        let expected = expected.into();
        let found = match redact::is_secret_path(&self.path) {
            true => node.kind().to_owned(),
            false => node.describe(),
        };
        self.report(node.at, Problem::WrongKind { expected, found })
    }
}
