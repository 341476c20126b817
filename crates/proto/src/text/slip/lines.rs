//! The line at which a parser gave up, and the lines around it.

use super::{super::tree::Position, Slip};

/// A line of a text.
#[derive(Clone, Copy)]
struct Line<'a> {
    number: usize,
    text: &'a str,
}

/// The lines up to the one after the parser's error, without those that are
/// blank or only a comment.
pub(super) struct Lines<'a> {
    /// The place of the error.
    position: Position,
    /// The line of the error; `None` if the error is at the end of the text.
    line: Option<Line<'a>>,
    /// The lines before that of the error, in their order.
    earlier_lines: Vec<Line<'a>>,
    /// The first line after that of the error.
    next_line: Option<Line<'a>>,
}

impl<'a> Lines<'a> {
    /// Splits a text into lines around the position where its parser failed.
    /// Lines without contents are left out, except the one of the position.
    pub(super) fn new(text: &'a str, position: Position) -> Self {
        let numbered = (1..).zip(text.lines());
        let mut lines = numbered
            .map(|(number, text)| Line { number, text })
            .filter(|line| line.number == position.line || line.has_contents());
        let mut earlier_lines = Vec::new();
        let mut line = None;
        let mut next_line = None;

        for candidate in lines.by_ref() {
            match candidate.number.cmp(&position.line) {
                std::cmp::Ordering::Less => earlier_lines.push(candidate),
                std::cmp::Ordering::Equal => line = Some(candidate),
                std::cmp::Ordering::Greater => {
                    next_line = Some(candidate);
                    break;
                }
            }
        }

        let line = line.filter(Line::has_contents);
        Self {
            position,
            line,
            earlier_lines,
            next_line,
        }
    }

    /// Finds a tab in the indentation of the line, or of the next line: an
    /// error in a text that continues there is at the beginning of the text.
    pub(super) fn find_tab(&self) -> Option<Position> {
        let line = self.line?;
        let lines = [Some(line), self.next_line];
        lines.into_iter().flatten().find_map(|line| {
            let indent = line.text.len() - line.text.trim_start_matches([' ', '\t', '-']).len();
            let tab = line.text[..indent].find('\t')?;
            Some(line.position(tab))
        })
    }

    /// Returns whether the line has a text at the place of the error.
    pub(super) fn has_text_at_error(&self, text: &str) -> bool {
        let remainder = self.line.map(|line| line.split_at(self.position.column).1);
        remainder.is_some_and(|remainder| remainder.starts_with(text))
    }

    /// Finds a template before the error, a tab after a key, or a character at
    /// the error that no value begins with. Returns `None` if there is none.
    pub(super) fn find_bad_token(&self) -> Option<(Position, Slip)> {
        let line = self.line?;
        let (prefix, remainder) = line.split_at(self.position.column);
        let word = remainder
            .split([' ', '\t', ',', ']', '}'])
            .next()
            .unwrap_or("");

        let template = prefix.find("{{").filter(|_| !prefix.contains(['"', '\'']));
        if let Some(start) = template {
            return Some((line.position(start), Slip::Template));
        }

        if is_after_key(prefix) && prefix.ends_with('\t') {
            return Some((self.position, Slip::TabAfterColon));
        }

        let slip = match remainder.chars().next()? {
            '*' if word == "*" || word.starts_with("*.") => Slip::Alias(word.to_owned()),
            '*' => Slip::Alias("*…".to_owned()),
            '@' if word.ends_with(':') => Slip::Key(word.trim_end_matches(':').to_owned()),
            character @ ('@' | '`' | '%') => Slip::Reserved(character),
            '-' if is_after_key(prefix) => Slip::ListAfterKey,
            _ => return None,
        };
        Some((self.position, slip))
    }

    /// Finds a key without a space after its colon, in the line or the one
    /// before; or else a second key in the line.
    pub(super) fn find_bad_colon(&self) -> Option<(Position, Slip)> {
        let lines = [self.line, self.earlier_lines.last().copied()];
        let missing_space = lines.into_iter().flatten().find_map(|line| {
            let (start, key) = line.key_without_space()?;
            Some((line.position(start), Slip::ColonSpace(key)))
        });
        missing_space.or_else(|| {
            let line = self.line?;
            let (prefix, remainder) = line.split_at(self.position.column);
            let is_second = remainder.starts_with(':') && prefix.contains(": ");
            is_second.then_some((self.position, Slip::SecondKey))
        })
    }

    /// Finds an indentation that fits none of the lines before.
    pub(super) fn find_bad_indentation(&self) -> Option<(Position, Slip)> {
        let line = self.line?;
        let previous = *self.earlier_lines.last()?;
        let indent = line.indent();
        let position = line.position(indent);
        if indent > previous.contents_start() && previous.has_value() {
            return Some((position, Slip::BelowValue));
        }

        let mut expected = Vec::new();
        for previous in self.earlier_lines.iter().rev() {
            let last_column = expected.last().copied().unwrap_or(usize::MAX);
            for column in [previous.contents_start(), previous.indent()] {
                if column < last_column && expected.last() != Some(&column) {
                    expected.push(column);
                }
            }
            if previous.indent() == 0 {
                break;
            }
        }

        expected.reverse();
        let fits = expected.contains(&indent) || expected.is_empty();
        (!fits).then_some((
            position,
            Slip::Indentation {
                found: indent,
                expected,
            },
        ))
    }

    /// Finds a line that is neither a key nor an item: the one before the
    /// error, or the last one.
    pub(super) fn find_missing_colon(&self) -> Option<(Position, Slip)> {
        let previous = *self.earlier_lines.last()?;
        let text = previous.text[previous.contents_start()..].trim_end();
        // Only the name of a field counts: a line of a private key or a
        // certificate must not be quoted.
        let is_word = text
            .chars()
            .all(|character| character.is_ascii_lowercase() || character == '_');
        let is_item = previous.contents_start() > previous.indent();
        let position = previous.position(previous.contents_start());
        (is_word && !is_item && !text.is_empty())
            .then(|| (position, Slip::NoColon(text.to_owned())))
    }
}

/// Returns whether a text ends in the colon of a key, with space after it.
fn is_after_key(prefix: &str) -> bool {
    prefix.trim_end().ends_with(':')
}

impl<'a> Line<'a> {
    /// Returns whether the line is neither blank nor only a comment.
    fn has_contents(&self) -> bool {
        let text = self.text.trim_start();
        !text.is_empty() && !text.starts_with('#')
    }

    /// Returns the place of a byte of the line.
    fn position(&self, byte: usize) -> Position {
        let prefix = self.text.get(..byte).unwrap_or(self.text);
        Position {
            line: self.number,
            column: prefix.chars().count() + 1,
        }
    }

    /// Splits the line before a column.
    fn split_at(&self, column: usize) -> (&'a str, &'a str) {
        let mut starts = self.text.char_indices().map(|(start, _)| start);
        let start = starts.nth(column.saturating_sub(1));
        self.text.split_at(start.unwrap_or(self.text.len()))
    }

    /// Returns the number of spaces that the line begins with.
    fn indent(&self) -> usize {
        self.text.len() - self.text.trim_start_matches(' ').len()
    }

    /// Returns the byte at which the contents of the line begin, behind the
    /// dashes of items.
    fn contents_start(&self) -> usize {
        let mut remainder = self.text.trim_start_matches(' ');
        while let Some(item) = remainder.strip_prefix("- ") {
            remainder = item.trim_start_matches(' ');
        }
        self.text.len() - remainder.len()
    }

    /// Returns whether the line has a key with a value that is complete.
    fn has_value(&self) -> bool {
        let Some((_, value)) = self.text.split_once(": ") else {
            return false;
        };
        let value = value.split(" #").next().unwrap_or_default().trim();
        !value.is_empty() && !value.starts_with(['|', '>', '[', '{', '&', '#'])
    }

    /// Returns the key at the beginning of the line, and the byte of its colon,
    /// if there is no space after the colon. Returns `None` for other lines.
    fn key_without_space(&self) -> Option<(usize, String)> {
        let start = self.contents_start();
        let remainder = &self.text[start..];
        let (key, len) = match remainder.chars().next()? {
            quote @ ('"' | '\'') => {
                let key = remainder[1..].split(quote).next()?;
                (key, key.len() + 2)
            }
            c if c.is_ascii_alphabetic() || c == '_' => {
                let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
                let key = &remainder[..remainder.find(|c| !is_part(c))?];
                (key, key.len())
            }
            _ => return None,
        };
        let value = remainder.get(len..)?.strip_prefix(':')?;
        let begins_at_once = value.chars().next().is_some_and(|c| !c.is_whitespace());
        (begins_at_once && !value.starts_with("//")).then(|| (start + len, key.to_owned()))
    }
}
