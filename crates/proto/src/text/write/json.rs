//! A tree as JSON, indented by two.

use super::super::tree::{Node, Value};

/// Prints a tree, with a line break at the end.
pub(super) fn print(node: &Node) -> String {
    let mut output = String::new();
    put_value(&node.value, 0, &mut output);
    output.push('\n');
    output
}

/// Appends a value. `indent` is the level of the line on which the value
/// begins.
fn put_value(value: &Value, indent: usize, output: &mut String) {
    match value {
        Value::Null => output.push_str("null"),
        Value::Bool(true) => output.push_str("true"),
        Value::Bool(false) => output.push_str("false"),
        Value::Number(text) | Value::Float(text) => output.push_str(text),
        Value::String(text) => put_string(text, output),
        Value::List(list) if list.is_empty() => output.push_str("[]"),
        Value::Map(map) if map.is_empty() => output.push_str("{}"),
        Value::List(list) => put_items('[', ']', list, indent, output, |item, output| {
            put_value(&item.value, indent + 1, output);
        }),
        Value::Map(map) => put_items('{', '}', map, indent, output, |entry, output| {
            put_string(&entry.key, output);
            output.push_str(": ");
            put_value(&entry.node.value, indent + 1, output);
        }),
    }
}

/// Appends a list or a mapping that is not empty, from `open` to `close`.
/// `put_item` appends each item, on its own line. `indent` is the level of the
/// line with `open`.
fn put_items<T>(
    open: char,
    close: char,
    items: &[T],
    indent: usize,
    output: &mut String,
    mut put_item: impl FnMut(&T, &mut String),
) {
    output.push(open);
    for (index, item) in items.iter().enumerate() {
        output.push_str(if index == 0 { "\n" } else { ",\n" });
        output.extend(std::iter::repeat_n("  ", indent + 1));
        put_item(item, output);
    }
    output.push('\n');
    output.extend(std::iter::repeat_n("  ", indent));
    output.push(close);
}

/// Appends a text in quotes, with escapes. The result is also a double-quoted
/// scalar of YAML.
pub(super) fn put_string(text: &str, output: &mut String) {
    output.push('"');
    for character in text.chars() {
        match character {
            '"' => output.push_str("\\\""),
            '\\' => output.push_str("\\\\"),
            '\n' => output.push_str("\\n"),
            '\r' => output.push_str("\\r"),
            '\t' => output.push_str("\\t"),
            // YAML would read these as a line break or a byte order mark, and no
            // control character may be unescaped.
            character
                if character.is_control()
                    || matches!(character, '\u{2028}' | '\u{2029}' | '\u{feff}') =>
            {
                output.push_str(&format!("\\u{:04x}", u32::from(character)));
            }
            character => output.push(character),
        }
    }
    output.push('"');
}
