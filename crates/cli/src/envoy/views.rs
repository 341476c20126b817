//! Which resources clients get together: variants of one name never are.

use trunkline_core::params::{Constraints, Params};

use super::part::Part;

/// The maximum of clients whose views are judged.
const MOST_VIEWS: usize = 16;

/// The views of some clients.
#[derive(Debug)]
pub(super) struct Views {
    /// Of each client, the indexes of its parts.
    pub(super) views: Vec<Vec<usize>>,
    /// The number of variants that no view has.
    pub(super) left_out: usize,
}

impl Views {
    /// Chooses clients until the view of one of them has each variant, or
    /// [`MOST_VIEWS`] are chosen.
    pub(super) fn choose(parts: &[Part]) -> Self {
        let clients: Vec<Constraints> = parts.iter().map(|part| part.resource.clients()).collect();
        let mut is_covered = vec![false; parts.len()];
        let mut views = Vec::new();
        while views.len() < MOST_VIEWS {
            let Some(client) = uncovered_client(&clients, &mut is_covered) else {
                break;
            };
            let matches = |index: &usize| clients[*index].matches(&client);
            let view: Vec<usize> = (0..parts.len()).filter(matches).collect();
            for index in &view {
                is_covered[*index] = true;
            }
            views.push(view);
        }
        Self {
            views,
            left_out: is_covered.iter().filter(|covered| !**covered).count(),
        }
    }
}

/// Returns the parameters of a client of the first variant that no view has.
/// Returns `None` if there is no such variant. A variant whose constraints no
/// client meets is marked and skipped.
fn uncovered_client(clients: &[Constraints], is_covered: &mut [bool]) -> Option<Params> {
    loop {
        let index = is_covered.iter().position(|covered| !covered)?;
        if let Ok(Some(client)) = clients[index].overlap(&Constraints::always()) {
            return Some(client);
        }
        is_covered[index] = true;
    }
}
