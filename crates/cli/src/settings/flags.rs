//! The flags of `serve`: one for each row of the table.

use clap::builder::PossibleValuesParser;
use clap::{Arg, ArgAction, ArgMatches, Args, Command, Error, FromArgMatches};

use super::Settings;
use super::raw::Raw;
use super::table::{self, Setting};
use super::value::Arity;

/// Settings that were given as flags.
#[derive(Debug, Default)]
pub(crate) struct Flags(pub(crate) Raw);

/// Flags of every command, so not of this one.
const GLOBAL: [&str; 2] = ["log_format", "log_level"];

/// Returns the flag of a key, without its dashes: `max-streams` for
/// `max_streams`.
pub(super) fn flag_name(key: &str) -> String {
    key.replace('_', "-")
}

/// Returns the settings that are flags of `serve` itself, each after the title
/// of its section.
fn serve_settings() -> impl Iterator<Item = (&'static str, &'static Setting)> {
    let settings = table::SECTIONS.iter().flat_map(|section| {
        let settings = section.settings.iter();
        settings.map(|setting| (section.title, setting))
    });
    settings.filter(|(_, setting)| !GLOBAL.contains(&setting.key))
}

/// Makes the flag of a setting, with its default in the help. Clap must not
/// know the default, since the value of a flag that is not given would override
/// the file. The heading is the section's title up to a colon.
fn make_arg(section: &'static str, setting: &'static Setting) -> Arg {
    let mut defaults = Settings::new();
    let field = (setting.field)(&mut defaults);
    let default = field.show();
    let help = match default.first() {
        Some(value) => format!("{} [default: {value}]", setting.about),
        None => setting.about.to_owned(),
    };
    let heading = section.split(':').next().unwrap_or(section);

    let arg = Arg::new(setting.key)
        .long(flag_name(setting.key))
        .value_name(setting.value)
        .help(help)
        .help_heading(heading);
    let arg = match field.choices() {
        [] => arg,
        choices => arg.value_parser(PossibleValuesParser::new(choices)),
    };
    match field.arity() {
        Arity::One => arg,
        Arity::Many => arg.action(ArgAction::Append),
        Arity::Switch => arg
            .num_args(0..=1)
            .require_equals(true)
            .default_missing_value("true"),
    }
}

impl Args for Flags {
    fn augment_args(command: Command) -> Command {
        serve_settings().fold(command, |command, (section, setting)| {
            command.arg(make_arg(section, setting))
        })
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for Flags {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        let mut flags = Self::default();
        flags.update_from_arg_matches(matches)?;
        Ok(flags)
    }

    /// Takes the values of each flag that is given. The other flags have no
    /// values.
    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        for (_, setting) in serve_settings() {
            if let Some(values) = matches.get_many::<String>(setting.key) {
                self.0.set(setting.key, values.cloned().collect());
            }
        }
        Ok(())
    }
}
