//! The lines that two listings do not share.

use std::fmt;

/// The changes from one listing to another, in their order.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Diff<'a>(Vec<(char, &'a str)>);

/// A longer diff than this is read in git.
const SHOWN: usize = 60;

impl<'a> Diff<'a> {
    pub(super) fn new(old: &'a str, new: &'a str) -> Self {
        let old: Vec<&str> = old.lines().collect();
        let new: Vec<&str> = new.lines().collect();
        let same = old.iter().zip(&new).take_while(|(old, new)| old == new);
        let start = same.count();
        Self(between(&old[start..], &new[start..]))
    }
}

/// A shortest way from the old lines to the new ones.
fn between<'a>(old: &[&'a str], new: &[&'a str]) -> Vec<(char, &'a str)> {
    // At [i][j]: how many lines old[i..] and new[j..] can share.
    let mut shared = vec![vec![0_usize; new.len() + 1]; old.len() + 1];
    for i in (0..old.len()).rev() {
        for j in (0..new.len()).rev() {
            shared[i][j] = if old[i] == new[j] {
                shared[i + 1][j + 1] + 1
            } else {
                shared[i + 1][j].max(shared[i][j + 1])
            };
        }
    }
    let (mut i, mut j) = (0, 0);
    let mut changes = Vec::new();
    while i < old.len() || j < new.len() {
        if i < old.len() && j < new.len() && old[i] == new[j] {
            (i, j) = (i + 1, j + 1);
        } else if j == new.len() || (i < old.len() && shared[i + 1][j] >= shared[i][j + 1]) {
            changes.push(('-', old[i]));
            i += 1;
        } else {
            changes.push(('+', new[j]));
            j += 1;
        }
    }
    changes
}

impl fmt::Display for Diff<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (sign, line) in self.0.iter().take(SHOWN) {
            writeln!(f, "{sign} {line}")?;
        }
        match self.0.len().checked_sub(SHOWN) {
            None | Some(0) => Ok(()),
            Some(more) => writeln!(f, "  and {more} more lines"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_lines_that_differ_are_shown() {
        let diff = Diff::new("a\nb\nc\nd\n", "a\nc\nx\nd\ne\n");
        assert_eq!(diff.to_string(), "- b\n+ x\n+ e\n");
        assert_eq!(Diff::new("a\n", "a\n").to_string(), "");
    }

    #[test]
    fn a_changed_line_stands_beside_what_it_was() {
        let diff = Diff::new("a\nf(u8)\nz", "a\nf(u16)\nz");
        assert_eq!(diff.to_string(), "- f(u8)\n+ f(u16)\n");
    }

    #[test]
    fn a_long_diff_is_cut() {
        let new = "x\n".repeat(SHOWN + 3);
        assert!(
            Diff::new("", &new)
                .to_string()
                .ends_with("and 3 more lines\n")
        );
    }
}
