//! Every crate of the workspace takes the workspace's lints.

use super::Finding;

pub(super) fn check(text: &str) -> Option<Finding> {
    let headed = |heading: &str| text.lines().any(|line| line.trim() == heading);
    // A root has no package; a crate with a workspace of its own (fuzzing)
    // cannot inherit.
    if !headed("[package]") || headed("[workspace]") || takes_lints(text) {
        return None;
    }
    Some(Finding::new(
        0,
        "a crate takes the workspace's lints: `[lints] workspace = true`",
    ))
}

fn takes_lints(text: &str) -> bool {
    text.lines()
        .map(str::trim)
        .skip_while(|line| *line != "[lints]")
        .skip(1)
        .take_while(|line| !line.starts_with('['))
        .any(|line| line == "workspace = true")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lints_must_be_inherited() {
        assert!(check("[package]\n[lints]\nworkspace = true\n").is_none());
        assert!(check("[package]\n[dependencies]\nworkspace = true\n").is_some());
        assert!(check("[workspace]\n").is_none());
    }
}
