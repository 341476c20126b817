//! One line of a listing, and the order of lines.

use super::attrs::Marks;

/// Ordered by path, so that everything of one type stands together.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Line {
    path: Vec<String>,
    rank: Rank,
    pub(super) text: String,
}

/// The order of lines with one path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Rank {
    Item,
    Use,
    Impl,
}

impl Line {
    pub(super) fn new(path: Vec<String>, rank: Rank, marks: &Marks, text: String) -> Self {
        let text = marks.shown() + &text;
        Self { path, rank, text }
    }
}
