//! A body that is not accepted, with every reason.

use std::fmt;

use super::place::clip;
use super::problem::Problem;

/// The most bytes of a rejection as a text, which becomes a part of a NACK.
pub const MAX_TEXT: usize = 4096;

/// Why a body is rejected: all reasons, not the first only (C26).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rejection {
    /// The name of the resource; `None` if it could not be read, so that no
    /// watcher is concerned (C27).
    pub name: Option<String>,
    /// The type of the resource.
    pub type_url: String,
    /// The reasons, at most [`MAX_FINDINGS`](super::MAX_FINDINGS).
    pub reasons: Vec<Reason>,
    /// The number of reasons beyond these.
    pub omitted: usize,
}

/// One reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reason {
    /// The place in the body, such as `eds_cluster_config.service_name`; empty
    /// for the whole body.
    pub path: String,
    /// What is wrong there.
    pub problem: Problem,
}

impl std::error::Error for Rejection {}

impl fmt::Display for Reason {
    /// Writes the problem, after its path if it has one.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.path.is_empty() {
            true => self.problem.fmt(f),
            false => write!(f, "{}: {}", self.path, self.problem),
        }
    }
}

impl fmt::Display for Rejection {
    /// Writes the reasons, without the name, in at most [`MAX_TEXT`] bytes.
    /// Then writes the number of omitted reasons.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut remaining_bytes = MAX_TEXT;
        let mut omitted = self.omitted;
        for (index, reason) in self.reasons.iter().enumerate() {
            let mut text = reason.to_string();
            if index > 0 {
                text.insert_str(0, "; ");
            }

            // The number of omitted reasons has to fit too.
            if remaining_bytes < text.len() + MAX_COUNT {
                let is_first = index == 0;
                if is_first {
                    f.write_str(clip(&text, remaining_bytes - MAX_COUNT))?;
                }
                omitted += self.reasons.len() - index - usize::from(is_first);
                break;
            }

            remaining_bytes -= text.len();
            f.write_str(&text)?;
        }

        match omitted {
            0 => Ok(()),
            count => write!(f, "; and {count} more"),
        }
    }
}

const MAX_COUNT: usize = "; and 18446744073709551615 more".len();

#[cfg(test)]
mod tests {
    use super::*;

    fn rejection(problems: impl IntoIterator<Item = String>, omitted: usize) -> Rejection {
        let reason = |text| Reason {
            path: "a".to_owned(),
            problem: Problem::Other(text),
        };
        Rejection {
            name: None,
            type_url: String::new(),
            reasons: problems.into_iter().map(reason).collect(),
            omitted,
        }
    }

    #[test]
    fn c26_a_rejection_tells_all_reasons() {
        let two = rejection(["x".to_owned(), "y".to_owned()], 0);
        assert_eq!(two.to_string(), "a: x; a: y");
        let more = rejection(["x".to_owned()], 7);
        assert_eq!(more.to_string(), "a: x; and 7 more");
    }

    #[test]
    fn a_rejection_has_a_bounded_text() {
        let long = rejection((0..100).map(|_| "x".repeat(1000)), 3).to_string();
        assert!(long.len() <= MAX_TEXT, "{}", long.len());
        assert!(long.ends_with("; and 99 more"), "{long}");
        let one = rejection(["ü".repeat(10_000)], 0).to_string();
        assert!(one.len() <= MAX_TEXT && one.len() > MAX_TEXT - 50);
    }
}
