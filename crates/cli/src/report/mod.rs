//! Findings as people read them: a line that editors and scripts can parse, and
//! below it the line of the source with a caret.
//!
//! ```text
//! error: clusters.yaml:12:9: resources[0].type: unknown value "EDDS", did you mean "EDS"?
//!    |
//! 12 |   type: EDDS
//!    |         ^^^^
//! ```
//!
//! A line that may hold a secret is not shown.

mod line;
mod secret;
mod width;

use std::cell::RefCell;
use std::collections::HashMap;
use std::path::Path;
use std::rc::Rc;

use trunkline::checked::{Finding, MOST_FINDINGS, Place};
use trunkline_proto::text::TextError;

use self::secret::Secrets;
use crate::color::{Palette, Style};
use crate::output::{count_of, printable};

/// How bad a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Severity {
    Error,
    Warning,
    /// It belongs to the finding above it.
    Note,
}

impl Severity {
    /// Returns the word that begins a finding of this severity.
    fn word(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warning => "warning",
            Self::Note => "note",
        }
    }

    /// Returns the style of the word, and of the carets.
    fn style(self) -> Style {
        match self {
            Self::Error => Style::Bad,
            Self::Warning => Style::Doubtful,
            Self::Note => Style::Aside,
        }
    }
}

/// A place in a file; its line and its column count from one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Spot {
    pub(crate) file: String,
    pub(crate) line: usize,
    pub(crate) column: usize,
}

impl Spot {
    /// Returns the spot of a place; `None` if it has no line.
    fn of(place: &Place) -> Option<Self> {
        (place.line > 0).then(|| Self {
            file: place.file.to_string(),
            line: place.line as usize,
            column: place.column as usize,
        })
    }
}

/// A finding, ready to be shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Message {
    /// All of it in one line, its place included.
    pub(crate) text: String,
    pub(crate) at: Option<Spot>,
    /// A second place that it is about, and what is there.
    pub(crate) related: Option<(Spot, String)>,
}

impl From<&Finding> for Message {
    /// Makes the message of a finding, with its second place if that has a
    /// line.
    fn from(finding: &Finding) -> Self {
        let related = finding.fault.related();
        Self {
            text: finding.to_string(),
            at: Spot::of(&finding.place),
            related: related.and_then(|(place, text)| Some((Spot::of(place)?, text.to_owned()))),
        }
    }
}

impl From<&TextError> for Message {
    /// Makes the message of an error about a text. The error has no place if
    /// its line is zero.
    fn from(error: &TextError) -> Self {
        let at = (error.at.line > 0).then(|| Spot {
            file: error.file.clone(),
            line: error.at.line,
            column: error.at.column,
        });
        Self {
            text: error.to_string(),
            at,
            related: None,
        }
    }
}

/// Shows findings, with the lines of the texts that they are about.
pub(crate) struct Report {
    palette: Palette,
    /// The texts that were given or read, by the names of their files; `None`
    /// for one that cannot be read.
    texts: RefCell<HashMap<String, Option<Rc<Source>>>>,
}

/// The text of a file.
struct Source {
    text: String,
    secrets: Secrets,
}

impl Source {
    /// Makes the source of a file. Returns `None` if the file is not UTF-8.
    fn new(name: &str, bytes: Vec<u8>) -> Option<Self> {
        let text = String::from_utf8(bytes).ok()?;
        let secrets = Secrets::of(name, &text);
        Some(Self { text, secrets })
    }

    /// Returns a line; `None` if there is no such line, or if it may hold a
    /// secret.
    fn line(&self, number: usize) -> Option<&str> {
        let line = self.text.lines().nth(number.checked_sub(1)?)?;
        let is_shown = !self.secrets.may_show_secret(&self.text, number, line);
        is_shown.then_some(line)
    }
}

impl Report {
    /// Makes a report for standard error.
    pub(crate) fn new() -> Self {
        Self::with_palette(Palette::of_stderr())
    }

    /// Makes a report for a log, which has colours of its own.
    pub(crate) fn without_colours() -> Self {
        Self::with_palette(Palette::NONE)
    }

    /// Makes a report that has no texts yet.
    fn with_palette(palette: Palette) -> Self {
        Self {
            palette,
            texts: RefCell::default(),
        }
    }

    /// Adds a text that is not read from its file: that can be read once only,
    /// or is none.
    pub(crate) fn add_text(&self, name: &str, bytes: &[u8]) {
        let source = Source::new(name, bytes.to_vec()).map(Rc::new);
        self.texts.borrow_mut().insert(name.to_owned(), source);
    }

    /// Forgets all texts: they may have changed.
    pub(crate) fn forget_texts(&self) {
        self.texts.borrow_mut().clear();
    }

    /// Writes a finding, with the line that it is about, and the line of its
    /// second place. Each line ends in a newline.
    pub(crate) fn show(&self, severity: Severity, message: &Message) -> String {
        let mut text = self.headline(severity, &message.text);
        if let Some(spot) = &message.at {
            text.push_str(&self.source_line(severity, spot).unwrap_or_default());
        }

        if let Some((related_spot, related_text)) = &message.related
            && let Some(lines) = self.source_line(Severity::Note, related_spot)
        {
            let Spot { file, line, column } = related_spot;
            let note = format!("{file}:{line}:{column}: {related_text}");
            text.push_str(&self.headline(Severity::Note, &note));
            text.push_str(&lines);
        }
        text
    }

    /// Writes a finding as [`Self::show`] does, but without its severity, and
    /// without a newline at its end.
    pub(crate) fn show_bare(&self, severity: Severity, message: &Message) -> String {
        let shown = self.show(severity, message);
        let word = format!("{}: ", severity.word());
        let bare = shown.strip_prefix(&word).unwrap_or(&shown);
        bare.trim_end().to_owned()
    }

    /// Writes findings one after the other, up to [`MOST_FINDINGS`], and the
    /// number of the others.
    pub(crate) fn list<'a>(
        &self,
        findings: impl IntoIterator<Item = (Severity, &'a Finding)>,
    ) -> String {
        let mut findings = findings.into_iter();
        let reports = findings.by_ref().take(MOST_FINDINGS);
        let reports = reports.map(|(severity, finding)| self.show(severity, &finding.into()));
        let mut text: String = reports.collect();
        match findings.count() {
            0 => {}
            more => text.push_str(&format!("and {more} more\n")),
        }
        text
    }

    /// Writes a finding in one line, after its severity.
    pub(crate) fn headline(&self, severity: Severity, text: &str) -> String {
        let word = self.palette.paint(severity.style(), severity.word());
        format!("{word}: {}\n", printable(text))
    }

    /// Writes the line at a place, with a caret. Returns `None` if the line is
    /// not known, or may hold a secret.
    pub(crate) fn source_line(&self, severity: Severity, spot: &Spot) -> Option<String> {
        let source = self.source(&spot.file)?;
        let text = source.line(spot.line)?;
        let style = severity.style();
        Some(line::show_line(
            text,
            spot.line,
            spot.column,
            style,
            self.palette,
        ))
    }

    /// Returns the text of a file, which is read if it was not given.
    fn source(&self, file: &str) -> Option<Rc<Source>> {
        let mut texts = self.texts.borrow_mut();
        let entry = texts.entry(file.to_owned());
        entry.or_insert_with(|| read_source(file)).clone()
    }
}

/// Returns the number of mistakes. Only [`MOST_FINDINGS`] of each file are
/// kept, so the number may be a lower bound, and the text says so.
pub(crate) fn count_mistakes<'a>(errors: impl IntoIterator<Item = &'a Finding>) -> String {
    let mut by_file: HashMap<&str, usize> = HashMap::new();
    for error in errors {
        *by_file.entry(&error.place.file).or_default() += 1;
    }
    let count = count_of(by_file.values().sum(), "mistake");
    match by_file.values().any(|count| *count >= MOST_FINDINGS) {
        true => format!("{count} or more"),
        false => count,
    }
}

/// Reads the text of a file; `None` if it is no file, cannot be read, or is no
/// text.
fn read_source(file: &str) -> Option<Rc<Source>> {
    let path = Path::new(file);
    // A pipe has been read already.
    let bytes = path.is_file().then(|| std::fs::read(path).ok())??;
    Source::new(file, bytes).map(Rc::new)
}

#[cfg(test)]
mod tests;
