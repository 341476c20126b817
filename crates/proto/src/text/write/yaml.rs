//! A tree as YAML in block style.

use super::{
    super::tree::{Node, Value},
    json::put_string,
};

/// Prints a tree, with a line break at the end.
pub(super) fn print(node: &Node) -> String {
    let mut out = String::new();
    put_block(&node.value, 0, &mut out);
    end_line(&mut out);
    out
}

/// Appends a value in block style, a scalar on one line. Its first line is
/// indented already; the lines after that are indented by `indent` levels.
fn put_block(value: &Value, indent: usize, out: &mut String) {
    match value {
        Value::List(list) if !list.is_empty() => {
            for (index, item) in list.iter().enumerate() {
                pad(if index == 0 { 0 } else { indent }, out);
                out.push_str("- ");
                put_block(&item.value, indent + 1, out);
                end_line(out);
            }
        }
        Value::Map(map) if !map.is_empty() => {
            for (index, entry) in map.iter().enumerate() {
                pad(if index == 0 { 0 } else { indent }, out);
                put_scalar(&entry.key, out);
                out.push(':');
                put_entry_value(&entry.node.value, indent, out);
                end_line(out);
            }
        }
        other => put_flat(other, out),
    }
}

/// Appends the value of a key, after the colon: a collection on the lines below
/// it, anything else on the same line. `indent` is the level of the key.
fn put_entry_value(value: &Value, indent: usize, out: &mut String) {
    match value {
        // A list stands under its key, not further in.
        Value::List(list) if !list.is_empty() => {
            out.push('\n');
            pad(indent, out);
            put_block(value, indent, out);
        }
        Value::Map(map) if !map.is_empty() => {
            out.push('\n');
            pad(indent + 1, out);
            put_block(value, indent + 1, out);
        }
        other => {
            out.push(' ');
            put_flat(other, out);
        }
    }
}

fn pad(indent: usize, out: &mut String) {
    out.extend(std::iter::repeat_n("  ", indent));
}

/// Ends the line, unless a value inside has done that.
fn end_line(out: &mut String) {
    if !out.ends_with('\n') {
        out.push('\n');
    }
}

/// Appends a value that fits on one line: a scalar, or an empty collection.
fn put_flat(value: &Value, out: &mut String) {
    match value {
        Value::Null => out.push_str("null"),
        Value::Bool(value) => out.push_str(if *value { "true" } else { "false" }),
        Value::Number(text) => out.push_str(text),
        Value::Float(text) => {
            out.push_str("!!float ");
            out.push_str(text);
        }
        Value::String(text) => put_scalar(text, out),
        Value::List(_) => out.push_str("[]"),
        Value::Map(_) => out.push_str("{}"),
    }
}

/// Appends a text: without quotes only if no reader of YAML, old or new, could
/// take it for anything but this text.
fn put_scalar(text: &str, out: &mut String) {
    const WORDS: &[&str] = &["true", "false", "null", "yes", "no", "on", "off", "y", "n"];
    let has_plain_start =
        text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_' || c == '/');
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-./".contains(c);
    let is_word = WORDS.iter().any(|word| word.eq_ignore_ascii_case(text));

    if has_plain_start && text.chars().all(is_plain) && !is_word {
        out.push_str(text);
    } else {
        put_string(text, out);
    }
}
