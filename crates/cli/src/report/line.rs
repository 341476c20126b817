//! A source line with a caret under its fault.
//!
//! ```text
//!    |
//! 12 |   type: EDDS
//!    |         ^^^^
//! ```

use super::width::{columns, is_invisible};
use crate::color::{Palette, Style};

/// The columns of a line that are shown; a longer one is cut around its caret.
const WIDEST: usize = 100;
/// The columns before the caret in a line whose beginning is cut off.
const BEFORE: usize = 30;
/// The characters before the caret, and from it on, that are looked at: more than
/// are shown.
const NEAR: usize = 4 * WIDEST;
/// The columns of a tab.
const TAB: usize = 4;
/// The mark of a cut.
const CUT: char = '…';

/// Writes a line with its number, and carets under the scalar at `column`, which
/// counts characters from one.
pub(super) fn show(
    text: &str,
    line: usize,
    column: usize,
    style: Style,
    palette: Palette,
) -> String {
    let first = column.saturating_sub(1);
    let count = extent(text, first);
    // A text may be one line of many megabytes.
    let skipped = first.saturating_sub(NEAR);
    let cells = cells(text.chars().skip(skipped).take(2 * NEAR));
    // A place behind the end of a line is the end.
    let first = (first - skipped).min(cells.len());
    let (shown, indent, width) = cut(&cells, first, count);

    let number = line.to_string();
    let gutter = " ".repeat(number.len());
    let aside = |text: &str| palette.paint(Style::Aside, text);
    let carets = palette.paint(style, &"^".repeat(width));
    let empty = aside(&format!("{gutter} |"));
    let numbered = aside(&format!("{number} |"));
    let shown = shown.trim_end();
    let space = if shown.is_empty() { "" } else { " " };
    format!(
        "{empty}\n{numbered}{space}{shown}\n{empty} {}{carets}\n",
        " ".repeat(indent)
    )
}

/// Returns what is shown of each character: itself, spaces for a tab, and a mark
/// for one that is not seen.
fn cells(text: impl Iterator<Item = char>) -> Vec<(String, usize)> {
    let cell = |c: char| match c {
        '\t' => (" ".repeat(TAB), TAB),
        c if is_invisible(c) => (char::REPLACEMENT_CHARACTER.to_string(), 1),
        c => (c.to_string(), columns(c)),
    };
    text.map(cell).collect()
}

/// Cuts a line around `count` characters from `first` on. Returns it, the
/// columns before the carets, and the columns of these.
fn cut(cells: &[(String, usize)], first: usize, count: usize) -> (String, usize, usize) {
    let width = |cells: &[(String, usize)]| cells.iter().map(|(_, width)| width).sum::<usize>();
    let marked = width(&cells[first..(first + count).min(cells.len())]).clamp(1, WIDEST - BEFORE);

    let mut start = 0;
    if width(&cells[..first]) + marked > WIDEST {
        start = first;
        while start > 0 && width(&cells[start..first]) < BEFORE {
            start -= 1;
        }
    }

    let mut shown = String::new();
    let mut indent = width(&cells[start..first]);
    let mut used = 0;
    if start > 0 {
        shown.push(CUT);
        indent += 1;
        used += 1;
    }
    for (text, width) in &cells[start..] {
        if used + width > WIDEST {
            shown.push(CUT);
            break;
        }
        used += width;
        shown.push_str(text);
    }
    (shown, indent, marked)
}

/// Returns the number of characters of the scalar that begins at `first`; one,
/// if the line does not tell.
fn extent(text: &str, first: usize) -> usize {
    let rest: Vec<char> = text.chars().skip(first).take(NEAR).collect();
    match rest.first() {
        Some(quote @ ('"' | '\'')) => quoted_extent(&rest, *quote),
        Some('{' | '}' | '[' | ']' | '|' | '>' | '-' | '#' | ',' | ':') | None => 1,
        Some(c) if c.is_whitespace() => 1,
        Some(_) => plain_extent(&rest, is_in_flow(text, first)),
    }
}

/// Returns the length of a quoted scalar with its quotes; one, if it does not end
/// in the line.
fn quoted_extent(rest: &[char], quote: char) -> usize {
    let mut is_escaped = false;
    for (index, c) in rest.iter().enumerate().skip(1) {
        match c {
            _ if is_escaped => is_escaped = false,
            '\\' if quote == '"' => is_escaped = true,
            c if *c == quote => return index + 1,
            _ => {}
        }
    }
    1
}

/// Returns the length of a plain scalar: up to a colon or a comment, and in a flow
/// collection up to its end or a comma.
fn plain_extent(rest: &[char], is_in_flow: bool) -> usize {
    let ends = |index: usize| {
        let (c, next) = (rest[index], rest.get(index + 1));
        match c {
            ':' => next.is_none_or(|c| c.is_whitespace()),
            '#' => index > 0 && rest[index - 1].is_whitespace(),
            ',' | '}' | ']' => is_in_flow,
            _ => false,
        }
    };
    let end = (0..rest.len()).find(|index| ends(*index));
    let scalar = &rest[..end.unwrap_or(rest.len())];
    let trailing = scalar
        .iter()
        .rev()
        .take_while(|c| c.is_whitespace())
        .count();
    (scalar.len() - trailing).max(1)
}

/// Returns whether a bracket is open before a character of a line.
fn is_in_flow(text: &str, first: usize) -> bool {
    let before = text.chars().take(first);
    let depth = before.fold(0_i32, |depth, c| match c {
        '{' | '[' => depth + 1,
        '}' | ']' => depth - 1,
        _ => depth,
    });
    depth > 0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str, column: usize) -> String {
        show(text, 12, column, Style::Bad, Palette::NONE)
    }

    #[test]
    fn a_scalar_is_underlined_as_far_as_the_line_tells() {
        for (text, column, carets) in [
            ("  type: EDDS", 9, "        ^^^^"),
            ("  type: EDDS  # of us", 9, "        ^^^^"),
            ("  tipe: EDS", 3, "  ^^^^"),
            ("  name: a b", 9, "        ^^^"),
            (r#"  name: "a \" b" # c"#, 9, "        ^^^^^^^^"),
            ("  name: 'open", 9, "        ^"),
            ("- {a: b, c: d}", 3, "  ^"),
            ("- {a: b, c: d}", 7, "      ^"),
            ("- {a: bb, c: d}", 7, "      ^^"),
            ("a:", 3, "  ^"),
            ("a:", 90, "  ^"),
            ("", 1, "^"),
        ] {
            let expected = format!("   | {carets}\n");
            let shown = shown(text, column);
            assert!(shown.ends_with(&expected), "{text}:\n{shown}");
        }
    }

    #[test]
    fn the_caret_is_under_its_character() {
        assert_eq!(
            shown("\ta: 漢字 bad", 8),
            "   |\n12 |     a: 漢字 bad\n   |             ^^^\n"
        );
        assert_eq!(
            shown("a\u{301}: x", 4),
            "   |\n12 | a\u{301}: x\n   |   ^\n"
        );
    }

    #[test]
    fn what_is_not_seen_is_harmless() {
        assert_eq!(
            shown("a\x1b[2J\u{202e}: x", 9),
            "   |\n12 | a\u{fffd}[2J\u{fffd}: x\n   |         ^\n"
        );
    }

    #[test]
    fn a_long_line_is_cut_around_the_caret() {
        let long = format!(
            "{{{}, last: wrong, {}}}",
            "a: b, ".repeat(50),
            "c: d, ".repeat(50)
        );
        let column = long.find("wrong").unwrap() + 1;
        let shown = shown(&long, column);
        let lines: Vec<&str> = shown.lines().collect();
        assert!(lines[1].starts_with("12 | …"), "{shown}");
        assert!(lines[1].ends_with('…'), "{shown}");
        assert!(lines[1].chars().count() <= 5 + WIDEST + 1, "{shown}");
        let at = lines[1].chars().collect::<Vec<_>>();
        let caret = lines[2].chars().position(|c| c == '^').unwrap();
        assert_eq!(at[caret..caret + 5].iter().collect::<String>(), "wrong");
        assert_eq!(lines[2].matches('^').count(), 5);
    }
}
