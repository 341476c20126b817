//! The events that a reader wants.

use trunkline::events::LogEvent;
use trunkline::{ChangeCounts, TypeUrl};

use super::error::Refusal;
use super::query::Query;
use crate::kinds;

/// The events that a reader wants. A list that is empty lets everything pass.
/// A type or a node says nothing of events that have none.
#[derive(Debug, Default)]
pub(super) struct EventFilter {
    types: Vec<TypeUrl>,
    events: Vec<String>,
    nodes: Vec<String>,
}

/// The parameters of a filter; each may be given several times.
pub(super) const FILTERS: [&str; 3] = ["type", "event", "node"];

impl EventFilter {
    /// Reads the filter of a request from its parameters.
    ///
    /// # Errors
    /// A type or an event has a name that does not exist.
    pub(super) fn read(query: &Query) -> Result<Self, Refusal> {
        let types: Result<_, _> = query.all("type").map(kinds::parse).collect();
        let mut event_names = query.all("event");
        if let Some(unknown_event) = event_names.find(|event| !LogEvent::NAMES.contains(event)) {
            return Err(Refusal::bad(format!(
                "event: expected one of {}, found {unknown_event:?}",
                LogEvent::NAMES.join(", ")
            )));
        }
        Ok(Self {
            types: types.map_err(Refusal::bad)?,
            events: query.all("event").map(str::to_owned).collect(),
            nodes: query.all("node").map(str::to_owned).collect(),
        })
    }

    /// Returns whether events of this kind pass.
    pub(super) fn has_event(&self, event: &LogEvent) -> bool {
        self.events.is_empty() || self.events.iter().any(|name| name == event.name())
    }

    /// Returns whether events about a type pass.
    pub(super) fn has_type(&self, type_url: &TypeUrl) -> bool {
        self.types.is_empty() || self.types.contains(type_url)
    }

    /// Returns whether events of a node pass.
    pub(super) fn has_node(&self, node: &str) -> bool {
        self.nodes.is_empty() || self.nodes.iter().any(|one| one == node)
    }

    /// Counts the changes of types that pass; `None` if there are none.
    pub(super) fn count(&self, counts: &[(TypeUrl, ChangeCounts)]) -> Option<ChangeCounts> {
        let mut sum = ChangeCounts::default();
        for (_, counts) in counts.iter().filter(|(url, _)| self.has_type(url)) {
            sum += *counts;
        }
        (sum.total() > 0).then_some(sum)
    }
}
