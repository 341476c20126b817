//! The usual slips that make a text unreadable, each at the place where it was
//! made.
//!
//! A parser notices many of them late: an unclosed quote at the next quote, or
//! at the end of the file. So the text is looked at again, from the place at
//! which the parser gave up: by its tokens ([`marks`]), then by its lines
//! ([`lines`]).

mod lines;
mod marks;
#[cfg(test)]
mod tests;

use super::tree::Position;
use lines::Lines;
use marks::Marks;

/// A slip, with its remedy. Values are not quoted: they may be secrets.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Slip {
    /// A tab that indents.
    #[error("a tab cannot indent YAML; use spaces")]
    Tab,
    /// A tab after the colon of a key.
    #[error("a tab after the colon of a key; write a space")]
    TabAfterColon,
    /// No space after the colon of a key.
    #[error("a space is missing after the colon of {0:?}; write `{0}: ` before its value")]
    ColonSpace(String),
    /// A line that should be a key with a value.
    #[error("{0:?} has no colon; write a key as `{0}:`, and a list item as `- {0}`")]
    NoColon(String),
    /// A value that looks like a key with a value.
    #[error(
        "a second key on one line; put it on the next line, indented, or, if it is a text with \
         a colon in it, put the text in quotes"
    )]
    SecondKey,
    /// A list on the line of its key.
    #[error("a list cannot begin on the line of its key; put its items on the lines below")]
    ListAfterKey,
    /// A quote that is not closed.
    #[error("this quote is not closed; add the closing {0}")]
    Quote(char),
    /// Text behind a closing quote.
    #[error(
        "the text goes on after its closing quote; put all of it in the quotes, with {} for a \
         quote inside", inner_quote(*.0)
    )]
    AfterQuote(char),
    /// A `[` or `{` that is not closed.
    #[error("this {0} is not closed; add the {close}", close = closing(*.0))]
    Bracket(char),
    /// A `[` or `{` that is closed by the other kind of bracket.
    #[error("this {open} is closed by {close}, at {at}; write {}", closing(*.open))]
    WrongBracket {
        /// The opening bracket.
        open: char,
        /// The closing one.
        close: char,
        /// The place of the closing one.
        at: Position,
    },
    /// A closing bracket too many.
    #[error("this {0} closes nothing; take it out")]
    ClosesNothing(char),
    /// No comma between two values.
    #[error("a comma is missing before this")]
    NoComma,
    /// A comma before the end of a list or a mapping of JSON.
    #[error("a comma before the closing {0}; JSON has none there, take it out")]
    LastComma(char),
    /// A comment in JSON.
    #[error("JSON has no comments; take it out, or name the file .yaml, where # begins a comment")]
    Comment,
    /// A key of JSON without quotes.
    #[error("a key of JSON is in quotes; write \"{0}\"")]
    KeyWithoutQuotes(String),
    /// A text that YAML takes for an alias.
    #[error("YAML takes {0} for an alias; if it is a text, put it in quotes: \"{0}\"")]
    Alias(String),
    /// A key that begins with a character that YAML reserves.
    #[error("a key that begins with @ has to be in quotes: \"{0}\"")]
    Key(String),
    /// A text that begins with a character that YAML reserves.
    #[error("a text that begins with {0} has to be in quotes")]
    Reserved(char),
    /// A line that is indented below a value.
    #[error(
        "indented deeper than the line above, whose key has a value already; align the two, or \
         take that value out"
    )]
    BelowValue,
    /// A line that is indented like no line around it.
    #[error(
        "indented by {}, which fits no line above; indent it by {}",
        spaces(*.found), join_with_or(.expected)
    )]
    Indentation {
        /// Its spaces.
        found: usize,
        /// The spaces of lines with which it may be aligned.
        expected: Vec<usize>,
    },
    /// A template that was not filled in.
    #[error("`{{{{` begins a template that was not filled in; render it first")]
    Template,
}

/// Finds the slip that makes a YAML text unreadable at a position. Returns
/// `None` if it is not one of the usual ones.
pub(super) fn find_slip(text: &str, position: Position) -> Option<(Position, Slip)> {
    let lines = Lines::new(text, position);
    let tab = lines.find_tab().map(|position| (position, Slip::Tab));
    let bracket_or_quote = || Marks::read(text, position).slip();
    tab.or_else(|| lines.find_bad_token())
        .or_else(bracket_or_quote)
        .or_else(|| lines.find_bad_colon())
        .or_else(|| lines.find_bad_indentation())
        .or_else(|| lines.find_missing_colon())
}

/// Finds a template around a mapping, by its second brace, which is at the
/// position. Returns `None` if there is no template.
pub(super) fn find_template(text: &str, position: Position) -> Option<(Position, Slip)> {
    let position = Position {
        column: position.column.checked_sub(1)?,
        ..position
    };
    let is_template = Lines::new(text, position).has_text_at_error("{{");
    is_template.then_some((position, Slip::Template))
}

/// Returns the bracket that closes another.
pub(super) fn closing(open: char) -> char {
    match open {
        '[' => ']',
        _ => '}',
    }
}

/// Returns how a quote is written between quotes of its kind.
fn inner_quote(quote: char) -> &'static str {
    match quote {
        '\'' => "''",
        _ => "\\\"",
    }
}

/// Writes a number of spaces.
fn spaces(count: usize) -> String {
    match count {
        1 => "1 space".to_owned(),
        _ => format!("{count} spaces"),
    }
}

/// Joins numbers in a sentence: `0, 2 or 4`.
fn join_with_or(numbers: &[usize]) -> String {
    let texts: Vec<String> = numbers.iter().map(ToString::to_string).collect();
    match texts.split_last() {
        Some((last, [])) => last.clone(),
        Some((last, first_texts)) => format!("{} or {last}", first_texts.join(", ")),
        None => String::new(),
    }
}
