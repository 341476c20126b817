//! Variants of each resource, and which client gets which (TP2).
//!
//! Clients come in categories, which they tell by a parameter. A variant is for
//! every so manieth category: of three variants, the second is for the
//! categories 1, 4, 7 and so on. So every client gets exactly one of each
//! resource.

use trunkline_core::params::{ConstraintError, Constraints, Expr, Params};

/// The parameter by which clients are told apart.
pub(crate) const KEY: &str = "category";

/// Returns the name of a category, which clients of it tell.
pub(crate) fn category_name(number: usize) -> String {
    format!("c{number}")
}

/// Returns the parameters of a client of a category.
pub(crate) fn params(number: usize) -> Params {
    // One short parameter is below every limit.
    Params::new([(KEY, category_name(number))]).unwrap_or_default()
}

/// See the module's documentation.
#[derive(Clone, Debug)]
pub(crate) struct Variants(Vec<Option<Constraints>>);

impl Default for Variants {
    /// Makes one variant, which is for all clients.
    fn default() -> Self {
        Self(vec![None])
    }
}

impl Variants {
    /// Makes `count` variants of each resource, for clients of so many
    /// categories.
    ///
    /// # Errors
    /// If a variant would be for more categories than a constraint can name.
    pub(crate) fn new(count: usize, categories: usize) -> Result<Self, ConstraintError> {
        if count <= 1 {
            return Ok(Self::default());
        }
        let one = |variant: usize| {
            let mine = (variant..categories).step_by(count);
            let any = mine.map(|number| Expr::value(KEY, category_name(number)));
            Constraints::new(&Expr::or(any.collect())?).map(Some)
        };
        (0..count).map(one).collect::<Result<_, _>>().map(Self)
    }

    /// Returns how many variants there are of each resource.
    pub(crate) fn count(&self) -> usize {
        self.0.len()
    }

    /// Returns the variant that a client of a category gets.
    pub(crate) fn variant_of(&self, category: Option<usize>) -> usize {
        category.unwrap_or(0) % self.count()
    }

    /// Returns the constraints of a variant; `None` if it is for all.
    pub(crate) fn constraints(&self, variant: usize) -> Option<&Constraints> {
        self.0.get(variant)?.as_ref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_category_gets_exactly_one() {
        for (count, categories) in [(8, 50), (3, 3), (2, 7)] {
            let variants = Variants::new(count, categories).unwrap();
            assert_eq!(variants.count(), count);
            for number in 0..categories {
                let matches =
                    |v: &usize| variants.constraints(*v).unwrap().matches(&params(number));
                let all: Vec<usize> = (0..count).filter(matches).collect();
                assert_eq!(
                    all,
                    [variants.variant_of(Some(number))],
                    "{count} of {categories}"
                );
            }
        }
        let one = Variants::new(1, 50).unwrap();
        assert_eq!((one.count(), one.variant_of(Some(7))), (1, 0));
        assert_eq!(one.constraints(0), None);
    }

    #[test]
    fn a_constraint_has_an_end() {
        assert!(Variants::new(2, 1_000_000).is_err());
    }
}
