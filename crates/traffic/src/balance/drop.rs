//! Parts of all requests that an assignment says to drop (71).

use trunkline_proto::acceptance::{Place, Problem};
use trunkline_proto::envoy::envoy::config::endpoint::v3::ClusterLoadAssignment;

use crate::findings::Findings;
use crate::runtime::Fraction;

/// Categories of requests to drop, in order.
#[derive(Debug, Clone, Default)]
pub struct DropOverloads(Vec<(Box<str>, Fraction)>);

/// Why a request is dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dropped<'d> {
    /// It was drawn, for this category.
    Overload(&'d str),
    /// The category drops all.
    Unconditional(&'d str),
}

impl DropOverloads {
    /// Reads the categories of an assignment.
    pub(super) fn read(message: &ClusterLoadAssignment) -> Result<Self, Findings> {
        let mut findings = Findings::default();
        let overloads = message.policy.as_ref();
        let overloads = overloads.map_or(&[][..], |policy| &policy.drop_overloads);
        let place = Place::ROOT.field("policy");
        let categories =
            crate::route::compile_each("drop_overloads", overloads, &place, |drop, place| {
                let Some(percentage) = &drop.drop_percentage else {
                    findings.add(&place.field("drop_percentage"), Problem::Missing);
                    return None;
                };
                let place = place.field("drop_percentage");
                let fraction = Fraction::compile(percentage, &place, &mut findings);
                Some((drop.category.as_str().into(), fraction))
            });
        findings.finish(Self(categories.into_vec()))
    }

    /// Decides whether a request is dropped, by the first category that drops it;
    /// `None` if it goes on. Each category draws a number of its own.
    pub fn decide(&self, random: &mut dyn FnMut() -> u64) -> Option<Dropped<'_>> {
        self.0.iter().find_map(|(category, fraction)| {
            if fraction.numerator >= fraction.denominator {
                return Some(Dropped::Unconditional(category));
            }
            let is_dropped = fraction.includes(random());
            is_dropped.then_some(Dropped::Overload(category))
        })
    }
}
