//! Looks through the names of a request for what counts before any single name
//! does: wildcards, globs, and parameters that come with them.

use super::delta::DeltaList;
use super::slice::count_within;
use crate::message::Locator;
use crate::name::Glob;
use crate::params::Params;

/// The findings in a list.
#[derive(Debug, Default)]
pub(super) struct ListScan {
    /// The number of names that were scanned.
    scanned_count: usize,
    /// `*` is among the subscriptions.
    pub(super) has_star: bool,
    /// Something other than `*` is among the subscriptions. A name counts even
    /// if it is refused: the list is not empty (S27).
    pub(super) has_names: bool,
    /// `*` is among the unsubscriptions.
    pub(super) ends_star: bool,
    /// A name comes with parameters of its own.
    pub(super) has_locators: bool,
    /// The parameters of the last wildcard or glob that has some (TP2).
    pub(super) scope_params: Option<Params>,
}

impl ListScan {
    /// Scans names of a list, as many as `budget` allows. Returns whether the
    /// list is scanned to its end.
    pub(super) fn scan(&mut self, list: &[Locator], mut budget: usize) -> bool {
        let unscanned_locators = list.get(self.scanned_count..).unwrap_or_default();
        let part = &unscanned_locators[..count_within(unscanned_locators, &mut budget)];
        for locator in part {
            let is_star = locator.name == "*";
            self.has_star |= is_star;
            self.has_names |= !is_star;
            if let Some(params) = &locator.params {
                self.has_locators = true;
                if is_star || is_glob(&locator.name) {
                    self.scope_params = Some(params.clone());
                }
            }
        }
        self.scanned_count += part.len();
        part.len() == unscanned_locators.len()
    }

    /// Scans both lists of a delta request, the subscriptions first. Returns
    /// whether both are scanned to their end. `budget` is the number of names,
    /// fewer if they are long.
    pub(super) fn scan_delta(&mut self, list: &DeltaList, mut budget: usize) -> bool {
        let subscribe = list.subscribe.as_slice();
        if self.scanned_count < subscribe.len() && !self.scan(subscribe, budget) {
            return false;
        }
        let unsubscribe = list.unsubscribe.as_slice();
        let unscanned_locators =
            &unsubscribe[(self.scanned_count - subscribe.len()).min(unsubscribe.len())..];
        let part = &unscanned_locators[..count_within(unscanned_locators, &mut budget)];
        self.ends_star |= part.iter().any(|locator| locator.name == "*");
        self.scanned_count += part.len();
        part.len() == unscanned_locators.len()
    }
}

/// Returns whether a text is a glob. Only a structured name with a star is
/// parsed, and the star may be encoded.
fn is_glob(text: &str) -> bool {
    let has_star = || text.contains('*') || text.contains('%');
    text.starts_with("xdstp:") && has_star() && Glob::parse(text).is_ok()
}
