//! Mistakes in a bootstrap or in a config source, with their places.

use std::fmt;

use trunkline_proto::text::{Position, TextError};

use super::problem::Problem;

/// All mistakes of a bootstrap or of a config source; at least one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigError {
    /// The mistakes, in the order of their places.
    pub mistakes: Vec<Mistake>,
}

impl std::error::Error for ConfigError {}

impl fmt::Display for ConfigError {
    /// Writes a line for each mistake.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, mistake) in self.mistakes.iter().enumerate() {
            let line_end = if index == 0 { "" } else { "\n" };
            write!(f, "{line_end}{mistake}")?;
        }
        Ok(())
    }
}

impl From<Mistake> for ConfigError {
    fn from(mistake: Mistake) -> Self {
        let mistakes = vec![mistake];
        Self { mistakes }
    }
}

/// A mistake, or a warning: who wrote the configuration is to change it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mistake {
    /// The file and the place in it; `None` if the mistake is in no text.
    pub place: Option<Place>,
    /// The field, such as `dynamic_resources.ads_config.grpc_services[0]`.
    pub path: String,
    /// The mistake, and the remedy.
    pub problem: Problem,
}

/// A place in a text.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// The file, or the variable that holds the text.
    pub file: String,
    /// Line and column; line zero is the text as a whole.
    pub at: Position,
}

impl Mistake {
    /// Returns the mistake of a text as a whole, which has no line.
    pub(super) fn about_file(file: &str, problem: Problem) -> Self {
        Self {
            place: Some(Place {
                file: file.to_owned(),
                at: Position::default(),
            }),
            path: String::new(),
            problem,
        }
    }
}

impl From<TextError> for Mistake {
    fn from(error: TextError) -> Self {
        Self {
            place: Some(Place {
                file: error.file,
                at: error.at,
            }),
            path: error.path,
            problem: Problem::Text(error.problem),
        }
    }
}

impl fmt::Display for Mistake {
    /// Writes `file:line:column: path: problem; remedy`. A mistake without a
    /// place, a line or a path leaves that part out.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(Place { file, at }) = &self.place {
            match at.line {
                0 => write!(f, "{file}: ")?,
                _ => write!(f, "{file}:{at}: ")?,
            }
        }
        if !self.path.is_empty() {
            write!(f, "{}: ", self.path)?;
        }
        write!(f, "{}", self.problem)
    }
}
