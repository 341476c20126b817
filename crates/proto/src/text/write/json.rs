//! A tree as JSON, indented by two.

use super::super::tree::{Node, Value};

pub(super) fn print(node: &Node) -> String {
    let mut out = String::new();
    value(&node.value, 0, &mut out);
    out.push('\n');
    out
}

fn value(value: &Value, indent: usize, out: &mut String) {
    match value {
        Value::Null => out.push_str("null"),
        Value::Bool(true) => out.push_str("true"),
        Value::Bool(false) => out.push_str("false"),
        Value::Number(text) => out.push_str(text),
        Value::String(text) => string(text, out),
        Value::List(list) if list.is_empty() => out.push_str("[]"),
        Value::Map(map) if map.is_empty() => out.push_str("{}"),
        Value::List(list) => items('[', ']', list, indent, out, |item, out| {
            self::value(&item.value, indent + 1, out);
        }),
        Value::Map(map) => items('{', '}', map, indent, out, |entry, out| {
            string(&entry.key, out);
            out.push_str(": ");
            self::value(&entry.node.value, indent + 1, out);
        }),
    }
}

fn items<T>(
    open: char,
    close: char,
    items: &[T],
    indent: usize,
    out: &mut String,
    mut item: impl FnMut(&T, &mut String),
) {
    out.push(open);
    for (index, each) in items.iter().enumerate() {
        out.push_str(if index == 0 { "\n" } else { ",\n" });
        out.extend(std::iter::repeat_n("  ", indent + 1));
        item(each, out);
    }
    out.push('\n');
    out.extend(std::iter::repeat_n("  ", indent));
    out.push(close);
}

/// In quotes; also valid as a double-quoted scalar of YAML.
pub(super) fn string(text: &str, out: &mut String) {
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
