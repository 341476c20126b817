//! A tree as YAML in block style.

use super::{
    super::tree::{Node, Value},
    json::put_string,
};

/// Prints a tree, with a line break at the end.
pub(super) fn print(node: &Node) -> String {
    let mut output = String::new();
    put_block(&node.value, 0, &mut output);
    end_line(&mut output);
    output
}

/// Appends a value in block style; a scalar is on one line. The first line is
/// indented already, and the others are indented by `indent` levels.
fn put_block(value: &Value, indent: usize, output: &mut String) {
    match value {
        Value::List(list) if !list.is_empty() => {
            for (index, item) in list.iter().enumerate() {
                pad(if index == 0 { 0 } else { indent }, output);
                output.push_str("- ");
                put_block(&item.value, indent + 1, output);
                end_line(output);
            }
        }
        Value::Map(map) if !map.is_empty() => {
            for (index, entry) in map.iter().enumerate() {
                pad(if index == 0 { 0 } else { indent }, output);
                put_scalar(&entry.key, output);
                output.push(':');
                put_entry_value(&entry.node.value, indent, output);
                end_line(output);
            }
        }
        flat => put_flat(flat, output),
    }
}

/// Appends the value of a key, after the colon. A collection is on the lines
/// below, other values on the same line. `indent` is the level of the key.
fn put_entry_value(value: &Value, indent: usize, output: &mut String) {
    match value {
        // A list has the same indentation as its key.
        Value::List(list) if !list.is_empty() => {
            output.push('\n');
            pad(indent, output);
            put_block(value, indent, output);
        }
        Value::Map(map) if !map.is_empty() => {
            output.push('\n');
            pad(indent + 1, output);
            put_block(value, indent + 1, output);
        }
        flat => {
            output.push(' ');
            put_flat(flat, output);
        }
    }
}

fn pad(indent: usize, output: &mut String) {
    output.extend(std::iter::repeat_n("  ", indent));
}

/// Ends the line, unless a value inside has done that.
fn end_line(output: &mut String) {
    if !output.ends_with('\n') {
        output.push('\n');
    }
}

/// Appends a value that fits on one line: a scalar, or an empty collection.
fn put_flat(value: &Value, output: &mut String) {
    match value {
        Value::Null => output.push_str("null"),
        Value::Bool(value) => output.push_str(if *value { "true" } else { "false" }),
        Value::Number(text) => output.push_str(text),
        Value::Float(text) => {
            output.push_str("!!float ");
            output.push_str(text);
        }
        Value::String(text) => put_scalar(text, output),
        Value::List(_) => output.push_str("[]"),
        Value::Map(_) => output.push_str("{}"),
    }
}

/// Appends a text, without quotes only if every version of YAML reads it as the
/// same text.
fn put_scalar(text: &str, output: &mut String) {
    const WORDS: &[&str] = &["true", "false", "null", "yes", "no", "on", "off", "y", "n"];
    let has_plain_start =
        text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_' || c == '/');
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-./".contains(c);
    let is_word = WORDS.iter().any(|word| word.eq_ignore_ascii_case(text));

    if has_plain_start && text.chars().all(is_plain) && !is_word {
        output.push_str(text);
    } else {
        put_string(text, output);
    }
}
