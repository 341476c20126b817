//! The example file: every key with its meaning and its default.

use std::fmt::Write as _;

use super::table::{SECTIONS, Setting};
use super::value::Arity;
use super::{Settings, base, params};

/// The longest line of a comment, in characters.
const WIDTH: usize = 78;

/// Returns the text of a settings file with every key at its default, or in a
/// comment if the key has no default. A server with this file behaves as
/// without.
pub(crate) fn example_file() -> String {
    let mut text = String::from(
        "# Settings of `trunkline serve`: every key and its default. Keys may be left\n\
         # out; a flag of the same name (--max-streams for max_streams) wins over the\n\
         # file. Times are written as 50ms, 5s, 30m or 1h, sizes as 4096, 64KiB or 3MiB.\n",
    );

    // Writing to a `String` cannot fail.
    for section in SECTIONS {
        let _ = writeln!(text);
        write_comment(&mut text, &format!("── {}", section.title));
        for setting in section.settings {
            let _ = writeln!(text);
            write_setting(&mut text, setting);
        }
    }
    text + base::EXAMPLE + params::EXAMPLE
}

/// Writes a setting with its meaning, and with its possible values if they are
/// few. A setting without a default is an empty list or a comment.
fn write_setting(text: &mut String, setting: &Setting) {
    let mut settings = Settings::new();
    let field = (setting.field)(&mut settings);
    let meaning = match (field.arity(), field.choices()) {
        (Arity::One, [_, ..]) => format!("{} ({})", setting.about, field.choices().join(", ")),
        _ => setting.about.to_owned(),
    };
    write_comment(text, &meaning);

    let key = setting.key;
    let _ = match (field.show().first(), field.arity()) {
        (Some(value), _) => writeln!(text, "{key}: {}", quote(value)),
        (None, Arity::Many) => writeln!(text, "{key}: []  # {}...", setting.value),
        (None, _) => writeln!(text, "# {key}: {}", setting.value),
    };
}

/// Quotes a value, if it begins with a character that may mean something to
/// YAML.
fn quote(value: &str) -> String {
    match value.starts_with(|c: char| c.is_ascii_alphanumeric()) {
        true => value.to_owned(),
        false => format!("{value:?}"),
    }
}

/// Writes a comment, with line breaks between words, so that a line has at most
/// [`WIDTH`] characters.
fn write_comment(text: &mut String, words: &str) {
    let mut line = String::from("#");
    for word in words.split(' ') {
        let width = line.chars().count() + 1 + word.chars().count();
        if width > WIDTH {
            let _ = writeln!(text, "{line}");
            line = String::from("#");
        }
        line.push(' ');
        line.push_str(word);
    }
    let _ = writeln!(text, "{line}");
}
