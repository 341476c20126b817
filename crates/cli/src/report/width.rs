//! The columns that a character takes on a terminal.

/// Characters that take two columns: those of East Asian scripts, and emoji.
const WIDE: [(char, char); 12] = [
    ('\u{1100}', '\u{115f}'),
    ('\u{2e80}', '\u{303e}'),
    ('\u{3041}', '\u{a4cf}'),
    ('\u{a960}', '\u{a97f}'),
    ('\u{ac00}', '\u{d7a3}'),
    ('\u{f900}', '\u{faff}'),
    ('\u{fe30}', '\u{fe6f}'),
    ('\u{ff00}', '\u{ff60}'),
    ('\u{ffe0}', '\u{ffe6}'),
    ('\u{1f300}', '\u{1f64f}'),
    ('\u{1f900}', '\u{1f9ff}'),
    ('\u{20000}', '\u{3fffd}'),
];

/// Characters that take no column of their own: they combine with the one
/// before.
const COMBINING: [(char, char); 6] = [
    ('\u{300}', '\u{36f}'),
    ('\u{483}', '\u{489}'),
    ('\u{591}', '\u{5bd}'),
    ('\u{1ab0}', '\u{1aff}'),
    ('\u{20d0}', '\u{20ff}'),
    ('\u{fe00}', '\u{fe0f}'),
];

/// Characters that are not seen, and turn or hide the text around them.
const INVISIBLE: [(char, char); 4] = [
    ('\u{200b}', '\u{200f}'),
    ('\u{202a}', '\u{202e}'),
    ('\u{2060}', '\u{2069}'),
    ('\u{feff}', '\u{feff}'),
];

/// Returns the number of columns that a character takes.
pub(super) fn columns(c: char) -> usize {
    if is_in(&COMBINING, c) {
        return 0;
    }
    1 + usize::from(is_in(&WIDE, c))
}

/// Returns whether a character is not seen, and may turn or hide the text around
/// it.
pub(super) fn is_invisible(c: char) -> bool {
    c.is_control() || is_in(&INVISIBLE, c)
}

/// Returns whether a character is in one of the ranges, whose ends are
/// included.
fn is_in(ranges: &[(char, char)], c: char) -> bool {
    ranges
        .iter()
        .any(|(first, last)| (*first..=*last).contains(&c))
}
