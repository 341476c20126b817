//! What is done for the words of findings about dangling references, and how much
//! of it: a server does not wait long for them.

use trunkline_core::facts::Reference;
use trunkline_core::name::Name;
use trunkline_proto::Path;
use trunkline_proto::facts::find_reference;
use trunkline_proto::text::nearest;

use super::index::Index;
use super::slots::SlotItem;

/// The names that are compared for one settlement: enough for a slip of the
/// fingers in the files of a team.
const MOST_COMPARED: usize = 200_000;
/// The bytes of bodies that are searched for one settlement.
const MOST_SEARCHED: usize = 16 << 20;
/// The bytes that any search costs, however short the body is.
const LEAST_SEARCHED: usize = 1 << 10;

/// Finds the fields that refer and the names that are meant, until so much was
/// done that the rest goes without.
pub(super) struct Effort {
    names_left: usize,
    bytes_left: usize,
}

impl Default for Effort {
    fn default() -> Self {
        Self {
            names_left: MOST_COMPARED,
            bytes_left: MOST_SEARCHED,
        }
    }
}

impl Effort {
    /// Finds the existing name that is most like that of a reference, among
    /// those of its type. Returns `None` if none is like it, or if all the
    /// names that may be compared have been.
    pub(super) fn nearest_name(&mut self, index: &Index, target: &Reference) -> Option<Name> {
        self.names_left = self.names_left.checked_sub(index.slots.len())?;
        let items = index.slots.iter().map(|(_, item)| item);
        let of_type = items.filter(|item| *item.type_url == target.type_url);
        let names = of_type.map(|item| item.resource.name.to_string());
        nearest(target.name.as_str(), names).map(|name| Name::new(&name))
    }

    /// Finds the field of an item that refers to a resource. Returns `None` if
    /// there is none, or if all the bytes that may be searched have been.
    pub(super) fn referring_field(
        &mut self,
        item: SlotItem<'_>,
        target: &Reference,
    ) -> Option<Path> {
        let body = item.resource.body.as_ref()?;
        let cost = body.len().max(LEAST_SEARCHED);
        self.bytes_left = self.bytes_left.checked_sub(cost)?;
        let target = (target.type_url.as_str(), target.name.as_str());
        find_reference(item.type_url.as_str(), body, target)
    }
}
