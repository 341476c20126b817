//! No file names a place that exists on one machine only.

use super::{Finding, numbered};

/// Roots of people's and machines' own folders, written so that this file does
/// not hold what it looks for.
const OWN_FOLDERS: &[&str] = &[
    concat!("/ho", "me/"),
    concat!("/ro", "ot/"),
    concat!("/wo", "rk/"),
    concat!("/Us", "ers/"),
];

pub(super) fn check(text: &str) -> Vec<Finding> {
    numbered(text)
        .filter_map(|(number, line)| {
            let folder = OWN_FOLDERS.iter().find(|folder| line.contains(**folder))?;
            Some(Finding::new(
                number,
                format!("a path under {folder} exists on one machine only"),
            ))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_folders_are_found() {
        let path = concat!("first\n/ho", "me/someone/x");
        assert_eq!(check(path).len(), 1);
        assert_eq!(check("target/debug/x"), []);
    }
}
