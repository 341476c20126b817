//! A tree as YAML in block style.

use super::{
    super::tree::{Node, Value},
    json::string,
};

pub(super) fn print(node: &Node) -> String {
    let mut out = String::new();
    block(&node.value, 0, &mut out);
    if !out.ends_with('\n') {
        out.push('\n');
    }
    out
}

/// The value at the start of a line that is indented already.
fn block(value: &Value, indent: usize, out: &mut String) {
    match value {
        Value::List(list) if !list.is_empty() => {
            for (index, item) in list.iter().enumerate() {
                pad(if index == 0 { 0 } else { indent }, out);
                out.push_str("- ");
                block(&item.value, indent + 1, out);
                end(out);
            }
        }
        Value::Map(map) if !map.is_empty() => {
            for (index, entry) in map.iter().enumerate() {
                pad(if index == 0 { 0 } else { indent }, out);
                scalar(&entry.key, out);
                out.push(':');
                under(&entry.node.value, indent, out);
                end(out);
            }
        }
        other => flat(other, out),
    }
}

/// The value of a key: on the same line if it fits there.
fn under(value: &Value, indent: usize, out: &mut String) {
    match value {
        // A list stands under its key, not further in.
        Value::List(list) if !list.is_empty() => {
            out.push('\n');
            pad(indent, out);
            block(value, indent, out);
        }
        Value::Map(map) if !map.is_empty() => {
            out.push('\n');
            pad(indent + 1, out);
            block(value, indent + 1, out);
        }
        other => {
            out.push(' ');
            flat(other, out);
        }
    }
}

fn pad(indent: usize, out: &mut String) {
    out.extend(std::iter::repeat_n("  ", indent));
}

fn end(out: &mut String) {
    if !out.ends_with('\n') {
        out.push('\n');
    }
}

fn flat(value: &Value, out: &mut String) {
    match value {
        Value::Null => out.push_str("null"),
        Value::Bool(value) => out.push_str(if *value { "true" } else { "false" }),
        Value::Number(text) => out.push_str(text),
        Value::String(text) => scalar(text, out),
        Value::List(_) => out.push_str("[]"),
        Value::Map(_) => out.push_str("{}"),
    }
}

/// Without quotes only if no reader of YAML, old or new, could take it for
/// anything but this text.
fn scalar(text: &str, out: &mut String) {
    const WORDS: &[&str] = &["true", "false", "null", "yes", "no", "on", "off", "y", "n"];
    let starts = text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_' || c == '/');
    let inside = |c: char| c.is_ascii_alphanumeric() || "_-./".contains(c);
    let reserved = WORDS.iter().any(|word| word.eq_ignore_ascii_case(text));
    if starts && text.chars().all(inside) && !reserved {
        out.push_str(text);
    } else {
        string(text, out);
    }
}
