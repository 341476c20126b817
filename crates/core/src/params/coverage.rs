//! The values that constraints mention, and those that no variant serves: a
//! client with such a value is told that the resource does not exist (TP2).

use std::collections::BTreeSet;

use super::{ConstraintError, Constraints, Expr};

impl Constraints {
    /// Values of one key that are checked for being unserved.
    pub(crate) const MAX_KNOWN: usize = 1 << 12;

    /// Returns the values that the constraint mentions, with their keys; each
    /// once, in order.
    #[must_use]
    pub fn values(&self) -> Vec<(&str, &str)> {
        let diagram = self.diagram();
        let mut pairs = BTreeSet::new();
        for node in &diagram.nodes {
            let key = diagram.keys.get(node.key);
            for (value, _) in &node.values {
                pairs.insert((key, diagram.value(*value)));
            }
        }
        pairs.into_iter().collect()
    }

    /// Returns whether some client with this value of a key matches.
    ///
    /// # Errors
    ///
    /// If a constraint is too complex.
    pub(crate) fn serves(&self, key: &str, value: &str) -> Result<bool, ConstraintError> {
        let client = Self::new(&Expr::value(key, value))?;
        Ok(self.overlap(&client)?.is_some())
    }

    /// Returns the known values of the tested keys that no variant serves, with
    /// their keys. `known` lists the values of a key that clients have, of
    /// which at most `MAX_KNOWN` are checked.
    ///
    /// ```
    /// use trunkline_core::params::Constraints;
    ///
    /// let prod: Constraints = "env=prod".parse()?;
    /// let test: Constraints = "env=test".parse()?;
    /// let known = |key: &str| if key == "env" { vec!["prod", "qa"] } else { vec![] };
    /// let unserved = Constraints::unserved(&[&prod, &test], known)?;
    /// assert_eq!(unserved, [("env".to_owned(), "qa")]);
    /// # Ok::<(), trunkline_core::params::ConstraintError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// If a constraint is too complex.
    pub fn unserved<'k, I>(
        variants: &[&Self],
        known: impl Fn(&str) -> I,
    ) -> Result<Vec<(String, &'k str)>, ConstraintError>
    where
        I: IntoIterator<Item = &'k str>,
    {
        let served_clients = Self::any(variants.iter().copied())?;
        let mut unserved_values = Vec::new();
        // Variants that serve every client test no key, which is the usual
        // case.
        for key in served_clients.keys().iter() {
            for value in known(key).into_iter().take(Self::MAX_KNOWN) {
                if !served_clients.serves(key, value)? {
                    unserved_values.push((key.to_owned(), value));
                }
            }
        }
        Ok(unserved_values)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Constraints {
        text.parse().unwrap()
    }

    #[test]
    fn values_are_those_that_are_spoken_of() {
        let all = read("(env=prod AND NOT version=v1) OR (env=test AND version exists)");
        assert_eq!(
            all.values(),
            [("env", "prod"), ("env", "test"), ("version", "v1")]
        );
        assert_eq!(read("always").values(), []);
    }

    fn unserved(variants: &[&str]) -> Vec<String> {
        let variants: Vec<Constraints> = variants.iter().map(|text| read(text)).collect();
        let variants: Vec<&Constraints> = variants.iter().collect();
        let known = |key: &str| match key {
            "env" => vec!["prod", "qa", "test"],
            "zone" => vec!["a"],
            _ => vec![],
        };
        let found = Constraints::unserved(&variants, known).unwrap();
        let show = |(key, value)| format!("{key}={value}");
        found.into_iter().map(show).collect()
    }

    #[test]
    fn tp2_a_value_that_no_variant_serves_is_found() {
        assert_eq!(unserved(&["env=prod", "env=test"]), ["env=qa"]);
        assert_eq!(unserved(&["env=prod", "NOT env=prod"]), [""; 0]);
        assert_eq!(
            unserved(&["env=prod", "NOT env exists"]),
            ["env=qa", "env=test"]
        );
        // Some client with the value is served.
        assert_eq!(
            unserved(&["env=prod", "env=test AND zone=b", "env=qa"]),
            [""; 0]
        );
        assert_eq!(unserved(&["env=prod AND zone=b", "zone=c"]), ["zone=a"]);
    }
}
