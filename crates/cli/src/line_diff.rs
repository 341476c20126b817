//! The difference of two texts, line by line, as `diff -u` shows it.

/// Lines around a difference that are shown with it.
const CONTEXT: usize = 3;
/// The maximum of pairs of lines that are compared: more would take long. Texts
/// that differ in more are shown as two different blocks.
const MOST_PAIRS: usize = 1 << 24;

/// A line of the difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Line<'a> {
    Same(&'a str),
    Removed(&'a str),
    Added(&'a str),
}

impl<'a> Line<'a> {
    /// Returns the text of the line.
    fn text(self) -> &'a str {
        match self {
            Self::Same(text) | Self::Removed(text) | Self::Added(text) => text,
        }
    }

    /// Returns whether both texts have the line.
    fn is_same(self) -> bool {
        matches!(self, Self::Same(_))
    }
}

/// Writes the difference of two YAML texts: each changed part with some lines
/// around it, below the path of keys that leads to it. Returns an empty text if
/// they are equal.
pub(crate) fn write_diff(old_text: &str, new_text: &str) -> String {
    let lines = compare_lines(old_text, new_text);
    let mut text = String::new();
    for (start, end) in find_hunks(&lines) {
        text.push_str(&match key_path(&lines, start) {
            path if path.is_empty() => "@@\n".to_owned(),
            path => format!("@@ {path}\n"),
        });
        for line in &lines[start..end] {
            let mark = match line {
                Line::Same(_) => ' ',
                Line::Removed(_) => '-',
                Line::Added(_) => '+',
            };
            text.push_str(&format!("{mark} {}\n", line.text()));
        }
    }
    text
}

/// Returns the lines of both texts in order, with common lines only once.
fn compare_lines<'a>(old_lines: &'a str, new_lines: &'a str) -> Vec<Line<'a>> {
    let (old_lines, new_lines): (Vec<&str>, Vec<&str>) =
        (old_lines.lines().collect(), new_lines.lines().collect());
    let pairs = old_lines.iter().zip(&new_lines);
    let same_at_start = pairs.take_while(|(a, b)| a == b).count();
    let (old_end, new_end) = (&old_lines[same_at_start..], &new_lines[same_at_start..]);

    let pairs = old_end.iter().rev().zip(new_end.iter().rev());
    let same_at_end = pairs.take_while(|(a, b)| a == b).count();

    let mut lines: Vec<Line<'a>> = old_lines[..same_at_start]
        .iter()
        .map(|line| Line::Same(line))
        .collect();
    compare_middle(
        &old_end[..old_end.len() - same_at_end],
        &new_end[..new_end.len() - same_at_end],
        &mut lines,
    );
    let end = &old_end[old_end.len() - same_at_end..];
    lines.extend(end.iter().map(|line| Line::Same(line)));
    lines
}

/// Compares lines of which the first and the last differ, by the longest common
/// subsequence. Above [`MOST_PAIRS`] pairs of lines, all old lines count as
/// removed and all new ones as added.
fn compare_middle<'a>(old_lines: &[&'a str], new_lines: &[&'a str], lines: &mut Vec<Line<'a>>) {
    let width = new_lines.len() + 1;
    if old_lines.len().saturating_mul(width) > MOST_PAIRS {
        lines.extend(old_lines.iter().map(|line| Line::Removed(line)));
        lines.extend(new_lines.iter().map(|line| Line::Added(line)));
        return;
    }

    // For each pair of positions, the length of the longest common
    // subsequence of the lines from there on.
    let mut longest = vec![0_u32; (old_lines.len() + 1) * width];
    for i in (0..old_lines.len()).rev() {
        for j in (0..new_lines.len()).rev() {
            longest[i * width + j] = match old_lines[i] == new_lines[j] {
                true => longest[(i + 1) * width + j + 1] + 1,
                false => longest[(i + 1) * width + j].max(longest[i * width + j + 1]),
            };
        }
    }

    let (mut i, mut j) = (0, 0);
    while i < old_lines.len() && j < new_lines.len() {
        if old_lines[i] == new_lines[j] {
            lines.push(Line::Same(old_lines[i]));
            (i, j) = (i + 1, j + 1);
        } else if longest[(i + 1) * width + j] >= longest[i * width + j + 1] {
            lines.push(Line::Removed(old_lines[i]));
            i += 1;
        } else {
            lines.push(Line::Added(new_lines[j]));
            j += 1;
        }
    }
    lines.extend(old_lines[i..].iter().map(|line| Line::Removed(line)));
    lines.extend(new_lines[j..].iter().map(|line| Line::Added(line)));
}

/// Finds the ranges of lines to show: the changes with the lines around them.
/// Ranges that touch are joined.
fn find_hunks(lines: &[Line<'_>]) -> Vec<(usize, usize)> {
    let mut hunks: Vec<(usize, usize)> = Vec::new();
    for (index, line) in lines.iter().enumerate() {
        if line.is_same() {
            continue;
        }
        let start = index.saturating_sub(CONTEXT);
        let end = (index + CONTEXT + 1).min(lines.len());
        match hunks.last_mut() {
            Some((_, last_end)) if start <= *last_end => *last_end = end,
            _ => hunks.push((start, end)),
        }
    }
    hunks
}

/// Returns the keys that lead to a line of YAML, such as
/// `load_assignment.endpoints`. The columns of the lines before it say which
/// keys enclose it.
fn key_path(lines: &[Line<'_>], index: usize) -> String {
    let Some(line) = lines.get(index) else {
        return String::new();
    };
    let mut keys: Vec<&str> = Vec::new();
    let (mut column, _) = split_line(line.text());
    for line in lines[..index].iter().rev() {
        let (line_column, content) = split_line(line.text());
        if line_column < column
            && let Some((key, _)) = content.split_once(':')
        {
            keys.push(key);
            column = line_column;
        }
    }
    keys.reverse();
    keys.join(".")
}

/// Splits a line into the column of its first word, and the line from there on.
/// The marks of list items stand before it.
fn split_line(line: &str) -> (usize, &str) {
    let mut content = line.trim_start();
    while let Some(item) = content.strip_prefix("- ") {
        content = item.trim_start();
    }
    (line.len() - content.len(), content)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_texts_have_no_difference() {
        assert_eq!(write_diff("a: 1\n", "a: 1\n"), "");
    }

    #[test]
    fn a_change_has_the_keys_that_lead_to_it() {
        let old = "a: 1\nb:\n- c:\n    d: 1\n    e: 2\n    f: 3\n    g: 4\n    h: 5\nz: 0\n";
        let new = old.replace("h: 5", "h: 6");
        assert_eq!(
            write_diff(old, &new).lines().collect::<Vec<_>>(),
            [
                "@@ b.c",
                "      e: 2",
                "      f: 3",
                "      g: 4",
                "-     h: 5",
                "+     h: 6",
                "  z: 0",
            ]
        );
    }

    #[test]
    fn the_lines_of_both_texts_are_all_there() {
        let texts = ["", "a\nb\nc\n", "b\nx\nc\nd\n", "x\n", "c\nb\na\n"];
        for old in texts {
            for new in texts {
                let lines = compare_lines(old, new);
                let side = |is_left_out: fn(&Line<'_>) -> bool| {
                    let kept = lines.iter().filter(|line| !is_left_out(line));
                    let kept = kept.map(|line| format!("{}\n", line.text()));
                    kept.collect::<String>()
                };
                assert_eq!(side(|line| matches!(line, Line::Added(_))), old);
                assert_eq!(side(|line| matches!(line, Line::Removed(_))), new);
            }
        }
        let same = compare_lines("a\nb\nc\n", "b\nx\nc\nd\n");
        let same = same.iter().filter(|line| line.is_same()).count();
        assert_eq!(same, 2);
    }

    #[test]
    fn changes_that_are_far_apart_are_shown_apart() {
        let old: String = (0..20).map(|n| format!("k{n}: 1\n")).collect();
        let new = old.replace("k0: 1", "k0: 2").replace("k19: 1", "k19: 2");
        let text = write_diff(&old, &new);
        assert_eq!(text.matches("@@").count(), 2, "{text}");
        assert!(!text.contains("k10"), "{text}");
    }
}
