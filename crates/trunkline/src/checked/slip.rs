//! The name that a dangling reference may be a slip for.

use trunkline_core::facts::Reference;
use trunkline_core::name::Name;
use trunkline_proto::text::nearest;

use super::index::Index;

/// The names that are compared for one settlement: enough for a slip of the
/// fingers in the files of a team, few enough that a server does not wait.
const MOST_COMPARED: usize = 200_000;

/// Finds the names that are meant, until so many were compared that the rest has
/// none.
pub(super) struct Slips {
    names_left: usize,
}

impl Default for Slips {
    fn default() -> Self {
        Self {
            names_left: MOST_COMPARED,
        }
    }
}

impl Slips {
    /// Finds the name that is there and nearest to that of a reference.
    pub(super) fn find(&mut self, index: &Index, target: &Reference) -> Option<Name> {
        let items = index.slots.iter().map(|(_, item)| item);
        self.names_left = self.names_left.checked_sub(index.slots.len())?;
        let of_type = items.filter(|item| *item.type_url == target.type_url);
        let names = of_type.map(|item| item.resource.name.to_string());
        nearest(target.name.as_str(), names).map(|name| Name::new(&name))
    }
}
