//! Runtime values, and fractions that they override (46, 83).

use std::collections::HashMap;

use trunkline_proto::acceptance::{Place, Problem};
use trunkline_proto::envoy::envoy::config::core::v3::RuntimeFractionalPercent;
use trunkline_proto::envoy::envoy::r#type::v3::{FractionalPercent, fractional_percent};

use crate::findings::Findings;

/// A part of all requests: `numerator` of `denominator`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fraction {
    /// The number of requests that are meant.
    pub numerator: u64,
    /// Out of this many.
    pub denominator: u64,
}

impl Fraction {
    /// Returns whether a random number falls into the fraction. A numerator
    /// above the denominator means every request.
    #[must_use]
    pub fn includes(self, random: u64) -> bool {
        random % self.denominator < self.numerator
    }

    /// Reads a fraction. A denominator that is none is a finding.
    pub(crate) fn compile(
        message: &FractionalPercent,
        place: &Place<'_>,
        findings: &mut Findings,
    ) -> Self {
        use fractional_percent::DenominatorType;
        let denominator = match DenominatorType::try_from(message.denominator) {
            Ok(DenominatorType::Hundred) => 100,
            Ok(DenominatorType::TenThousand) => 10_000,
            Ok(DenominatorType::Million) => 1_000_000,
            Err(_) => {
                let problem = Problem::Other(format!("{} is no denominator", message.denominator));
                findings.add(&place.field("denominator"), problem);
                100
            }
        };

        Self {
            numerator: u64::from(message.numerator),
            denominator,
        }
    }
}

/// Values of the runtime that traffic reads: fractions by their keys.
#[derive(Debug, Clone, Default)]
pub struct Runtime {
    fractions: HashMap<String, Fraction>,
}

impl Runtime {
    /// Sets a value. Envoy reads a bare number as a part of a hundred.
    pub fn set(&mut self, key: impl Into<String>, fraction: Fraction) {
        self.fractions.insert(key.into(), fraction);
    }

    /// Returns the value of a key. Most runtimes are empty, and cost no look-up.
    fn fraction(&self, key: &str) -> Option<Fraction> {
        match self.fractions.is_empty() {
            true => None,
            false => self.fractions.get(key).copied(),
        }
    }
}

/// A fraction with a runtime key that may override it.
#[derive(Debug, Clone)]
pub(crate) struct RuntimeFraction {
    key: Box<str>,
    default: Fraction,
}

impl RuntimeFraction {
    /// Reads a fraction with its key. Returns `None` if it has no default.
    pub(crate) fn compile(
        message: &RuntimeFractionalPercent,
        place: &Place<'_>,
        findings: &mut Findings,
    ) -> Option<Self> {
        let Some(default) = &message.default_value else {
            findings.add(&place.field("default_value"), Problem::Missing);
            return None;
        };
        Some(Self {
            key: message.runtime_key.as_str().into(),
            default: Fraction::compile(default, &place.field("default_value"), findings),
        })
    }

    /// Returns whether a random number falls into the fraction that the runtime
    /// has for the key, or else into the default.
    pub(crate) fn includes(&self, runtime: &Runtime, random: u64) -> bool {
        let set = runtime.fraction(&self.key);
        set.unwrap_or(self.default).includes(random)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn d46_a_value_of_the_runtime_counts_over_the_default_of_its_key() {
        let fraction = |numerator| Fraction {
            numerator,
            denominator: 100,
        };
        let of = |key: &str| RuntimeFraction {
            key: key.into(),
            default: fraction(30),
        };
        let mut runtime = Runtime::default();
        assert!(of("a").includes(&runtime, 29) && !of("a").includes(&runtime, 30));
        runtime.set("a", fraction(70));
        assert!(of("a").includes(&runtime, 169) && !of("a").includes(&runtime, 170));
        assert!(of("b").includes(&runtime, 129) && !of("b").includes(&runtime, 130));
    }
}
