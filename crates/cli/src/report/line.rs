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

/// Returns three lines for people: an empty gutter, `text` with its number
/// `line`, and carets in `style` under the scalar at `column`, which counts
/// characters from one. A long line is cut around its carets.
pub(super) fn show_line(
    text: &str,
    line: usize,
    column: usize,
    style: Style,
    palette: Palette,
) -> String {
    let first_char = column.saturating_sub(1);
    let char_count = scalar_length(text, first_char);

    // Only the characters near the place are read: a file may be one line of
    // many megabytes.
    let skipped_count = first_char.saturating_sub(NEAR);
    let cells = to_cells(text.chars().skip(skipped_count).take(2 * NEAR));
    // A column beyond the end of the line means its end.
    let first_char = (first_char - skipped_count).min(cells.len());
    let (excerpt, indent, width) = cut_excerpt(&cells, first_char, char_count);

    let number = line.to_string();
    let gutter = " ".repeat(number.len());
    let paint_aside = |text: &str| palette.paint(Style::Aside, text);
    let carets = palette.paint(style, &"^".repeat(width));
    let empty_gutter = paint_aside(&format!("{gutter} |"));
    let numbered_gutter = paint_aside(&format!("{number} |"));
    let excerpt = excerpt.trim_end();
    let space = if excerpt.is_empty() { "" } else { " " };
    format!(
        "{empty_gutter}\n{numbered_gutter}{space}{excerpt}\n{empty_gutter} {}{carets}\n",
        " ".repeat(indent)
    )
}

/// Returns the shown form of each character with its width: the character
/// itself, spaces for a tab, and a mark for an invisible one.
fn to_cells(text: impl Iterator<Item = char>) -> Vec<(String, usize)> {
    let to_cell = |c: char| match c {
        '\t' => (" ".repeat(TAB), TAB),
        c if is_invisible(c) => (char::REPLACEMENT_CHARACTER.to_string(), 1),
        c => (c.to_string(), columns(c)),
    };
    text.map(to_cell).collect()
}

/// Cuts the part of a line around `count` characters from `first` on, which is
/// at most the number of cells. Returns the part, the number of columns before
/// the carets, and the number of carets, which is at least one.
fn cut_excerpt(cells: &[(String, usize)], first: usize, count: usize) -> (String, usize, usize) {
    let width = |cells: &[(String, usize)]| cells.iter().map(|(_, width)| width).sum::<usize>();
    let caret_count =
        width(&cells[first..(first + count).min(cells.len())]).clamp(1, WIDEST - BEFORE);

    let mut start = 0;
    if width(&cells[..first]) + caret_count > WIDEST {
        start = first;
        while start > 0 && width(&cells[start..first]) < BEFORE {
            start -= 1;
        }
    }

    let mut excerpt = String::new();
    let mut indent = width(&cells[start..first]);
    let mut used_columns = 0;
    if start > 0 {
        excerpt.push(CUT);
        indent += 1;
        used_columns += 1;
    }
    for (text, width) in &cells[start..] {
        if used_columns + width > WIDEST {
            excerpt.push(CUT);
            break;
        }
        used_columns += width;
        excerpt.push_str(text);
    }
    (excerpt, indent, caret_count)
}

/// Returns the number of characters of the scalar that begins at character
/// `first` of a line, counted from zero. Returns one if that character is blank
/// or an indicator of YAML, or if a quoted scalar does not end in the line. A
/// plain scalar that goes on in the next line counts as far as this one.
fn scalar_length(text: &str, first: usize) -> usize {
    let remaining_chars: Vec<char> = text.chars().skip(first).take(NEAR).collect();
    match remaining_chars.first() {
        Some(quote @ ('"' | '\'')) => quoted_length(&remaining_chars, *quote),
        Some('{' | '}' | '[' | ']' | '|' | '>' | '-' | '#' | ',' | ':') | None => 1,
        Some(c) if c.is_whitespace() => 1,
        Some(_) => plain_length(&remaining_chars, is_in_flow(text, first)),
    }
}

/// Returns the number of characters of a quoted scalar, with its quotes.
/// Returns one if `chars` do not hold its end. A doubled `'` in a single-quoted
/// scalar counts as the end.
fn quoted_length(chars: &[char], quote: char) -> usize {
    let mut is_escaped = false;
    for (index, c) in chars.iter().enumerate().skip(1) {
        match c {
            _ if is_escaped => is_escaped = false,
            '\\' if quote == '"' => is_escaped = true,
            c if *c == quote => return index + 1,
            _ => {}
        }
    }
    1
}

/// Returns the number of characters of a plain scalar, without blanks at its
/// end, and at least one. It ends before a `:` that white space or the line's
/// end follows, and before a `#` after white space; in a flow collection also
/// before `,`, `}` or `]`.
fn plain_length(chars: &[char], is_in_flow: bool) -> usize {
    let ends_at = |index: usize| {
        let (c, next_char) = (chars[index], chars.get(index + 1));
        match c {
            ':' => next_char.is_none_or(|c| c.is_whitespace()),
            '#' => index > 0 && chars[index - 1].is_whitespace(),
            ',' | '}' | ']' => is_in_flow,
            _ => false,
        }
    };
    let end = (0..chars.len()).find(|index| ends_at(*index));
    let scalar = &chars[..end.unwrap_or(chars.len())];
    let trailing = scalar
        .iter()
        .rev()
        .take_while(|c| c.is_whitespace())
        .count();
    (scalar.len() - trailing).max(1)
}

/// Returns whether a bracket is open before the character at `first` of a line.
/// It reads this line alone and counts brackets in quotes too: a wrong answer
/// makes the carets longer or shorter, no more.
fn is_in_flow(text: &str, first: usize) -> bool {
    let preceding_chars = text.chars().take(first);
    let depth = preceding_chars.fold(0_i32, |depth, c| match c {
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
        show_line(text, 12, column, Style::Bad, Palette::NONE)
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
