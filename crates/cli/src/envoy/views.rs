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
    /// Chooses clients until each variant is in the view of one of them, up to
    /// [`MOST_VIEWS`].
    pub(super) fn choose(parts: &[Part]) -> Self {
        let clients: Vec<Constraints> = parts.iter().map(|part| part.resource.clients()).collect();
        let mut is_seen = vec![false; parts.len()];
        let mut views = Vec::new();
        while views.len() < MOST_VIEWS {
            let Some(client) = unseen_client(&clients, &mut is_seen) else {
                break;
            };
            let matches = |index: &usize| clients[*index].matches(&client);
            let view: Vec<usize> = (0..parts.len()).filter(matches).collect();
            for index in &view {
                is_seen[*index] = true;
            }
            views.push(view);
        }
        Self {
            views,
            left_out: is_seen.iter().filter(|seen| !**seen).count(),
        }
    }
}

/// Returns the parameters of a client of the first variant that no view has;
/// `None` if there is no such variant. One that has no client is passed over.
fn unseen_client(clients: &[Constraints], is_seen: &mut [bool]) -> Option<Params> {
    loop {
        let next = is_seen.iter().position(|seen| !seen)?;
        if let Ok(Some(client)) = clients[next].overlap(&Constraints::always()) {
            return Some(client);
        }
        is_seen[next] = true;
    }
}
