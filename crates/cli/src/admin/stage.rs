//! Changes of several requests: their parts are staged until the last one has
//! arrived, so that no client sees a state between.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use trunkline::checked::{Document, Item};
use trunkline::kind;

/// Open changes that are kept; the oldest is dropped.
pub(crate) const MOST_OPEN: usize = 4;
/// An open change is dropped after this time without a part.
const MOST_IDLE: Duration = Duration::from_secs(300);

/// One request of a change.
#[derive(Clone, Debug)]
pub(super) struct Part {
    /// The client's name for the change.
    pub(super) name: String,
    /// The index of the request.
    pub(super) number: u64,
    /// Whether it is the last request of it.
    pub(super) last: bool,
}

/// A request of a change whose earlier requests are not known any more.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "nothing is known of the earlier parts of this change; it was given up, or the server was \
     started again: apply all of it again"
)]
pub(super) struct Forgotten;

/// The parts of changes that are not complete.
#[derive(Debug, Default)]
pub(crate) struct Stage(HashMap<String, OpenChange>);

/// A change of several requests, of which the last is still to come.
#[derive(Debug)]
struct OpenChange {
    document: Document,
    /// The number of the next part.
    next: u64,
    last_used: Instant,
}

impl Stage {
    /// Adds a part to its change. Returns the whole change if this is the last
    /// part, and `None` otherwise. Changes that had no part for [`MOST_IDLE`]
    /// are given up.
    ///
    /// # Errors
    /// An earlier part is missing. The change is given up then.
    pub(super) fn add(
        &mut self,
        part: Part,
        document: Document,
    ) -> Result<Option<Document>, Forgotten> {
        self.0
            .retain(|_, open| open.last_used.elapsed() < MOST_IDLE);
        let mut earlier_parts = self.0.remove(&part.name);
        if part.number == 0 {
            // A first part begins the change anew.
            earlier_parts = None;
        }

        let whole = match earlier_parts {
            None if part.number == 0 => document,
            Some(mut open) if part.number == open.next => {
                append_part(&mut open.document, document);
                open.document
            }
            _ => return Err(Forgotten),
        };

        if part.last {
            return Ok(Some(whole));
        }

        self.drop_oldest();
        let open_change = OpenChange {
            document: whole,
            next: part.number + 1,
            last_used: Instant::now(),
        };
        self.0.insert(part.name, open_change);
        Ok(None)
    }

    /// Gives a change up.
    pub(super) fn forget(&mut self, name: &str) {
        self.0.remove(name);
    }

    /// Drops the change that had no part for the longest time, if there are
    /// [`MOST_OPEN`] changes.
    fn drop_oldest(&mut self) {
        if self.0.len() < MOST_OPEN {
            return;
        }
        let oldest = self.0.iter().min_by_key(|(_, open)| open.last_used);
        if let Some(name) = oldest.map(|(name, _)| name.clone()) {
            self.0.remove(&name);
        }
    }
}

/// Appends a part to the parts before it. If the virtual hosts of a route
/// configuration take several parts, the configuration is at the beginning of
/// each part; only its first copy is kept.
fn append_part(whole: &mut Document, mut part: Document) {
    let is_route = |item: &&Item| item.type_url.as_str() == kind::RDS && !item.is_inline_host;
    let repeated_routes = part.items.iter().take_while(is_route).take_while(|item| {
        let mut earlier = whole
            .items
            .iter()
            .rev()
            .skip_while(|earlier| earlier.is_inline_host);
        earlier
            .any(|earlier| earlier.type_url == item.type_url && earlier.resource == item.resource)
    });
    let repeated_count = repeated_routes.count();
    part.items.drain(..repeated_count);
    whole.append(part);
}
