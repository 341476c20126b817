//! Whether output has colours, and which: the one place that decides it.
//!
//! The flag `--color` wins. Without it a stream has colours if it is a terminal,
//! unless the environment says otherwise: `NO_COLOR`, `CLICOLOR_FORCE`, or a
//! `TERM` that is dumb.

use std::io::IsTerminal;
use std::sync::OnceLock;

use clap::ValueEnum;

/// When output has colours.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum When {
    /// On a terminal, unless the environment says otherwise.
    #[default]
    Auto,
    /// Also in files and pipes.
    Always,
    /// Nowhere.
    Never,
}

/// The value of `--color`.
static WHEN: OnceLock<When> = OnceLock::new();

/// Sets the value of `--color`, once, before anything is written.
pub(crate) fn set(setting: When) {
    // It fails only if it was set before.
    let _ = WHEN.set(setting);
}

/// The colours of a stream, or none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Palette {
    is_on: bool,
}

/// What a text is, which decides its colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Style {
    /// A mistake, or a client that rejects something.
    Bad,
    /// A warning, or a client that has yet to answer.
    Doubtful,
    /// A client that has accepted all.
    Good,
    /// A note, and the frame of a source line.
    Aside,
}

impl Style {
    /// Returns the parameters of the escape sequence.
    fn code(self) -> &'static str {
        match self {
            Self::Bad => "1;31",
            Self::Doubtful => "1;33",
            Self::Good => "32",
            Self::Aside => "1;34",
        }
    }
}

impl Palette {
    /// A palette without colours.
    pub(crate) const NONE: Self = Self { is_on: false };
    /// A palette with colours.
    #[cfg(test)]
    pub(crate) const ALL: Self = Self { is_on: true };

    /// Returns the palette of standard error.
    pub(crate) fn of_stderr() -> Self {
        Self::of_stream(&std::io::stderr())
    }

    /// Returns the palette of standard output.
    pub(crate) fn of_stdout() -> Self {
        Self::of_stream(&std::io::stdout())
    }

    /// Returns the palette of a stream: with colours if `--color` or the
    /// environment says so, and else if it is a terminal.
    fn of_stream(stream: &impl IsTerminal) -> Self {
        let setting = WHEN.get().copied().unwrap_or_default();
        let variable = |name: &str| std::env::var(name).unwrap_or_default();
        Self {
            is_on: has_colors(setting, stream.is_terminal(), &variable),
        }
    }

    /// Returns whether there are colours.
    pub(crate) fn is_on(self) -> bool {
        self.is_on
    }

    /// Returns a text in the colour of a style.
    pub(crate) fn paint(self, style: Style, text: &str) -> String {
        match self.is_on && !text.is_empty() {
            true => format!("\x1b[{}m{text}\x1b[0m", style.code()),
            false => text.to_owned(),
        }
    }
}

/// Returns whether output to a stream has colours. `variable` returns the value
/// of a variable of the environment, which is empty if the variable is not set.
fn has_colors(setting: When, is_terminal: bool, variable: &dyn Fn(&str) -> String) -> bool {
    match setting {
        When::Always => true,
        When::Never => false,
        When::Auto if !variable("NO_COLOR").is_empty() => false,
        When::Auto if !["", "0"].contains(&variable("CLICOLOR_FORCE").as_str()) => true,
        When::Auto => is_terminal && variable("TERM") != "dumb",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_flag_wins_over_the_environment_and_that_over_the_terminal() {
        let auto = |is_terminal, set: &[(&str, &str)]| {
            let variable = |name: &str| {
                let found = set.iter().find(|(key, _)| *key == name);
                found.map_or(String::new(), |(_, value)| (*value).to_owned())
            };
            has_colors(When::Auto, is_terminal, &variable)
        };
        assert!(auto(true, &[("TERM", "xterm")]));
        assert!(!auto(false, &[("TERM", "xterm")]));
        assert!(!auto(true, &[("TERM", "dumb")]));
        assert!(!auto(true, &[("NO_COLOR", "1")]));
        assert!(auto(true, &[("NO_COLOR", "")]));
        assert!(auto(false, &[("CLICOLOR_FORCE", "1")]));
        assert!(!auto(false, &[("CLICOLOR_FORCE", "0")]));
        assert!(!auto(true, &[("CLICOLOR_FORCE", "1"), ("NO_COLOR", "1")]));

        let no_color = |_: &str| "1".to_owned();
        assert!(has_colors(When::Always, false, &no_color));
        assert!(!has_colors(When::Never, true, &|_| String::new()));
    }

    #[test]
    fn a_text_is_painted_only_with_colours() {
        assert_eq!(Palette::NONE.paint(Style::Bad, "a"), "a");
        assert_eq!(Palette::ALL.paint(Style::Bad, "a"), "\x1b[1;31ma\x1b[0m");
        assert_eq!(Palette::ALL.paint(Style::Bad, ""), "");
    }
}
