//! Regular expressions that RE2 cannot read.
//!
//! Only plain errors are found, by a scan that knows RE2's groups, classes and
//! quotes. All else is taken: RE2 has escapes, names of classes and limits of
//! its own.

use prost_reflect::DynamicMessage;

use super::read::{Part, all_encoded_texts, report_at, text};
use super::rejected::Rejected;
use crate::validate::walk::Walk;

/// `RegexMatcher.regex`.
pub(super) const REGEX: u32 = 2;

/// The reason why RE2 cannot read an expression.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum RegexFault {
    /// A group without an end.
    #[error("a `(` is not closed; add `)`, or write `\\(` for the character")]
    OpenGroup,
    /// An end without a group.
    #[error("a `)` closes nothing; remove it, or write `\\)` for the character")]
    ClosedGroup,
    /// A class without an end.
    #[error("a `[` is not closed; add `]`, or write `\\[` for the character")]
    OpenClass,
    /// A backslash at the end.
    #[error("a `\\` is at the end; remove it, or write `\\\\` for the character")]
    Backslash,
    /// A repetition of nothing.
    #[error("a `{0}` has nothing to repeat; remove it, or write `\\{0}` for the character")]
    Repetition(char),
    /// Look-ahead or look-behind.
    #[error("RE2 has no look-ahead and no look-behind; write it without")]
    LookAround,
    /// A reference back to a group.
    #[error("RE2 has no references to groups such as `\\1`; write it without")]
    BackReference,
}

/// Reports an expression that RE2 cannot parse.
pub(super) fn check_matcher(walk: &mut Walk, matcher: &DynamicMessage) {
    let regex = text(matcher, "regex");
    if let Some(fault) = find_fault(regex) {
        let found = regex.to_owned();
        let rejected = Rejected::Regex { found, fault };
        report_at(walk, matcher, &[Part::Field("regex")], rejected);
    }
}

/// Returns whether the expression in an encoded matcher has no fault.
pub(super) fn is_plain(matcher: &[u8]) -> bool {
    all_encoded_texts(matcher, REGEX, |regex| find_fault(regex).is_none())
}

/// Finds the first fault of an expression.
pub(crate) fn find_fault(regex: &str) -> Option<RegexFault> {
    Scan { left: regex }.run().err()
}

type Scanned = Result<(), RegexFault>;

struct Scan<'a> {
    left: &'a str,
}

impl Scan<'_> {
    /// Scans the expression up to its first fault.
    fn run(mut self) -> Scanned {
        let mut open_groups = 0_usize;
        // Whether there is no item yet that a `*` or `+` could repeat.
        let mut is_start = true;
        while let Some(character) = self.take() {
            let was_start = std::mem::take(&mut is_start);
            match character {
                '\\' => self.skip_escape()?,
                '[' => self.skip_class()?,
                '(' => {
                    self.reject_look_around()?;
                    open_groups += 1;
                    is_start = true;
                }
                ')' => {
                    open_groups = open_groups.checked_sub(1).ok_or(RegexFault::ClosedGroup)?;
                }
                '|' => is_start = true,
                // A `?` is not checked: after a parenthesis it belongs to the group.
                '*' | '+' if was_start => return Err(RegexFault::Repetition(character)),
                _ => {}
            }
        }

        match open_groups {
            0 => Ok(()),
            _ => Err(RegexFault::OpenGroup),
        }
    }

    /// Takes the next character off.
    fn take(&mut self) -> Option<char> {
        let mut chars = self.left.chars();
        let next = chars.next();
        self.left = chars.as_str();
        next
    }

    /// Skips the characters after a backslash: one, or all up to `\E`.
    fn skip_escape(&mut self) -> Scanned {
        let escaped = self.take().ok_or(RegexFault::Backslash)?;
        match escaped {
            'Q' => {
                let end = self.left.find(r"\E");
                self.left = end.map_or("", |end| &self.left[end + 2..]);
            }
            // A digit with another one after it is the octal number of a character.
            '1'..='9' if !self.left.starts_with(|c: char| c.is_ascii_digit()) => {
                return Err(RegexFault::BackReference);
            }
            _ => {}
        }
        Ok(())
    }

    /// Rejects a group, whose parenthesis was taken, that is a look-around.
    fn reject_look_around(&self) -> Scanned {
        let mut starts = ["?=", "?!", "?<=", "?<!"].iter();
        if starts.any(|start| self.left.starts_with(start)) {
            return Err(RegexFault::LookAround);
        }
        Ok(())
    }

    /// Skips a class, after its bracket. A `]` at the beginning of the class is
    /// one of its characters.
    fn skip_class(&mut self) -> Scanned {
        self.left = self.left.strip_prefix('^').unwrap_or(self.left);
        self.left = self.left.strip_prefix(']').unwrap_or(self.left);
        loop {
            match self.take().ok_or(RegexFault::OpenClass)? {
                ']' => return Ok(()),
                '\\' => {
                    self.take().ok_or(RegexFault::Backslash)?;
                }
                '[' if self.left.starts_with(':') => self.skip_named_class(),
                _ => {}
            }
        }
    }

    /// Skips a class such as `[:alpha:]`, if it has an end.
    fn skip_named_class(&mut self) {
        if let Some(end) = self.left[1..].find(":]") {
            self.left = &self.left[1 + end + 2..];
        }
    }
}
