//! A tree as JSON, indented by two.

use super::super::tree::{Node, Value};

/// Prints a tree, with a line break at the end.
pub(super) fn print(node: &Node) -> String {
    let mut out = String::new();
    put_value(&node.value, 0, &mut out);
    out.push('\n');
    out
}

/// Appends a value; `indent` is the level of the line on which it begins.
fn put_value(value: &Value, indent: usize, out: &mut String) {
    match value {
        Value::Null => out.push_str("null"),
        Value::Bool(true) => out.push_str("true"),
        Value::Bool(false) => out.push_str("false"),
        Value::Number(text) | Value::Float(text) => out.push_str(text),
        Value::String(text) => put_string(text, out),
        Value::List(list) if list.is_empty() => out.push_str("[]"),
        Value::Map(map) if map.is_empty() => out.push_str("{}"),
        Value::List(list) => put_items('[', ']', list, indent, out, |item, out| {
            put_value(&item.value, indent + 1, out);
        }),
        Value::Map(map) => put_items('{', '}', map, indent, out, |entry, out| {
            put_string(&entry.key, out);
            out.push_str(": ");
            put_value(&entry.node.value, indent + 1, out);
        }),
    }
}

/// Appends a list or a mapping that is not empty, from `open` to `close`.
/// `put_item` appends each item, on a line of its own. `indent` is the level of
/// the line on which the whole begins.
fn put_items<T>(
    open: char,
    close: char,
    items: &[T],
    indent: usize,
    out: &mut String,
    mut put_item: impl FnMut(&T, &mut String),
) {
    out.push(open);
    for (index, item) in items.iter().enumerate() {
        out.push_str(if index == 0 { "\n" } else { ",\n" });
        out.extend(std::iter::repeat_n("  ", indent + 1));
        put_item(item, out);
    }
    out.push('\n');
    out.extend(std::iter::repeat_n("  ", indent));
    out.push(close);
}

/// Appends a text in quotes, with escapes where it needs them, in a form that
/// is also a double-quoted scalar of YAML.
pub(super) fn put_string(text: &str, out: &mut String) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            // Control characters, and what YAML takes for a line break or a mark.
            c if c.is_control() || matches!(c, '\u{2028}' | '\u{2029}' | '\u{feff}') => {
                out.push_str(&format!("\\u{:04x}", u32::from(c)));
            }
            c => out.push(c),
        }
    }
    out.push('"');
}
