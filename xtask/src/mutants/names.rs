//! The names of mutants, as cargo-mutants lists them.

use serde_json::Value;

use crate::failure::{Failure, Result};

/// The names in cargo-mutants' list.
pub(super) fn from_json(list: &str) -> Result<Vec<String>> {
    let parsed: Value = serde_json::from_str(list)
        .map_err(|error| Failure::new(format!("the list of mutants is not JSON: {error}")))?;
    let mutants = parsed.as_array().map_or(&[][..], Vec::as_slice);
    let names: Option<Vec<String>> = mutants
        .iter()
        .map(|mutant| mutant["name"].as_str().map(str::to_owned))
        .collect();
    names.ok_or_else(|| {
        Failure::new("a mutant in the list has no name").remedy("use cargo-mutants 27 or newer")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read() {
        assert_eq!(
            from_json(r#"[{"name": "a"}, {"name": "b"}]"#).unwrap(),
            ["a", "b"]
        );
        assert!(from_json(r#"[{}]"#).is_err());
    }
}
