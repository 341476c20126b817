//! An event as a line of JSON, or as an event of `text/event-stream`.

use std::time::SystemTime;

use serde::Serialize;
use trunkline::events::{ClientStream, EventId, LogEntry, LogEvent, Missed};
use trunkline::{Name, TypeUrl, Version};

use super::event_filter::EventFilter;
use super::outcome::{ChangedVariant, Counts};
use super::status::nack_error;

/// The form of events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EventForm {
    /// One line of JSON for each; a line that is empty means nothing.
    Lines,
    /// Server-sent events, as browsers read them.
    ServerSent,
}

/// What readers are told to do when events are missing.
pub(super) const REMEDY: &str = "list the resources with GET /api/v1/resources, and watch from \
     the revision that it shows";

/// What is said of events that are forgotten soon after the revision at which
/// a reader begins.
pub(super) const GAP: &str = "ACKs, NACKs, connects and disconnects since this revision are in \
     part forgotten; changes are not, and GET /api/v1/status shows what clients have";

/// An event.
#[derive(Debug, Serialize)]
struct Shown<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<String>,
    time: String,
    event: &'static str,
    #[serde(flatten)]
    what: EventFields<'a>,
}

/// The fields of an event, which depend on its kind.
#[derive(Debug, Serialize)]
#[serde(untagged)]
enum EventFields<'a> {
    Changed {
        revision: u64,
        author: &'a str,
        changed: Vec<ChangedVariant>,
        counts: Counts,
        /// How many variants are counted, but not listed.
        #[serde(skip_serializing_if = "is_zero")]
        omitted: usize,
    },
    Acknowledged {
        #[serde(flatten)]
        client: Client<'a>,
        #[serde(rename = "type")]
        type_url: &'a str,
        nonce: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        revision: Option<u64>,
        #[serde(skip_serializing_if = "Option::is_none")]
        error: Option<String>,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        rejected: Vec<Rejected<'a>>,
    },
    Connected {
        #[serde(flatten)]
        client: Client<'a>,
        #[serde(skip_serializing_if = "Option::is_none")]
        address: Option<String>,
        #[serde(skip_serializing_if = "Option::is_none")]
        identity: Option<&'a str>,
    },
    Disconnected(Client<'a>),
    /// A place between events, from which a reader can go on.
    Bookmark {
        revision: u64,
    },
    /// Events that were forgotten.
    Missed {
        message: String,
    },
}

#[derive(Debug, Serialize)]
struct Client<'a> {
    stream: u64,
    node: &'a str,
}

/// A resource that the client rejected on its own.
#[derive(Debug, Serialize)]
struct Rejected<'a> {
    name: &'a str,
    version: &'a str,
}

impl EventForm {
    /// Returns the content type of the form.
    pub(super) fn content_type(self) -> &'static str {
        match self {
            Self::Lines => "application/x-ndjson",
            Self::ServerSent => "text/event-stream",
        }
    }

    /// Returns what is sent to say that the connection is alive.
    pub(super) fn keep_alive(self) -> &'static str {
        match self {
            Self::Lines => "\n",
            Self::ServerSent => ":\n\n",
        }
    }

    /// Writes an event, if the filter lets any part of it pass; else nothing.
    pub(super) fn write(self, text: &mut String, entry: &LogEntry, filter: &EventFilter) {
        if let Some(fields) = show_event(&entry.event, filter) {
            self.write_shown(
                text,
                &Shown {
                    id: Some(entry.id.to_string()),
                    time: super::timestamp(entry.time),
                    event: entry.event.name(),
                    what: fields,
                },
            );
        }
    }

    /// Writes a bookmark: a place in the log from which a reader can go on, and
    /// the revision of the contents.
    pub(super) fn write_bookmark(self, text: &mut String, id: EventId, revision: u64) {
        self.write_shown(
            text,
            &Shown {
                id: Some(id.to_string()),
                time: super::timestamp(SystemTime::now()),
                event: "bookmark",
                what: EventFields::Bookmark { revision },
            },
        );
    }

    /// Writes that a reader was too slow.
    pub(super) fn write_missed(self, text: &mut String, loss: Missed) {
        self.write_missed_message(text, format!("{loss}; {REMEDY}"));
    }

    /// Writes that events are missing. The message has no id: a reader that
    /// goes on after the last event that it got is told again.
    pub(super) fn write_missed_message(self, text: &mut String, message: String) {
        self.write_shown(
            text,
            &Shown {
                id: None,
                time: super::timestamp(SystemTime::now()),
                event: "missed",
                what: EventFields::Missed { message },
            },
        );
    }

    /// Appends an event as JSON: a line, or a server-sent event with its id and
    /// name.
    fn write_shown(self, text: &mut String, shown: &Shown<'_>) {
        // Texts, numbers and lists of them can always be serialized.
        let json = serde_json::to_string(shown).unwrap_or_default();
        if self == Self::ServerSent {
            if let Some(id) = &shown.id {
                text.push_str(&format!("id: {id}\n"));
            }
            text.push_str(&format!("event: {}\ndata: ", shown.event));
        }
        text.push_str(&json);
        text.push_str(match self {
            Self::Lines => "\n",
            Self::ServerSent => "\n\n",
        });
    }
}

/// Shows the variants of a change whose types pass the filter. Returns `None` if
/// no type passes, or the event is not a change.
fn show_change<'a>(event: &'a LogEvent, filter: &EventFilter) -> Option<EventFields<'a>> {
    let LogEvent::Changed {
        revision,
        author,
        listed,
        counts,
    } = event
    else {
        return None;
    };
    let counts = filter.count(counts)?;
    let listed_variants = listed
        .iter()
        .filter(|variant| filter.has_type(&variant.type_url));
    let changed: Vec<ChangedVariant> = listed_variants.map(ChangedVariant::from).collect();

    Some(EventFields::Changed {
        revision: *revision,
        author,
        omitted: counts.total() - changed.len(),
        changed,
        counts: counts.into(),
    })
}

/// Shows the part of an event that passes the filter; of a change, the variants
/// of the types that pass. Returns `None` if no part passes.
fn show_event<'a>(event: &'a LogEvent, filter: &EventFilter) -> Option<EventFields<'a>> {
    if !filter.has_event(event) {
        return None;
    }
    Some(match event {
        LogEvent::Changed { .. } => show_change(event, filter)?,

        LogEvent::Acked {
            client,
            type_url,
            nonce,
            revision,
        } => EventFields::Acknowledged {
            client: filter.show_client(client, Some(type_url))?,
            type_url: type_url.as_str(),
            nonce: nonce.as_str(),
            revision: *revision,
            error: None,
            rejected: Vec::new(),
        },
        LogEvent::Nacked {
            client,
            type_url,
            nonce,
            revision,
            error,
            quarantined,
        } => EventFields::Acknowledged {
            client: filter.show_client(client, Some(type_url))?,
            type_url: type_url.as_str(),
            nonce: nonce.as_str(),
            revision: *revision,
            error: Some(nack_error(&error.message)),
            rejected: quarantined.iter().map(Rejected::from).collect(),
        },
        LogEvent::Connected {
            client,
            address,
            identity,
        } => EventFields::Connected {
            client: filter.show_client(client, None)?,
            address: address.map(|address| address.to_string()),
            identity: identity.as_deref(),
        },
        LogEvent::Disconnected { client } => {
            EventFields::Disconnected(filter.show_client(client, None)?)
        }
        _ => return None,
    })
}

impl EventFilter {
    /// Shows a client. Returns `None` if its node or the type does not pass.
    fn show_client<'a>(
        &self,
        client: &'a ClientStream,
        type_url: Option<&TypeUrl>,
    ) -> Option<Client<'a>> {
        let passes = self.has_node(&client.node) && type_url.is_none_or(|url| self.has_type(url));
        passes.then_some(Client {
            stream: client.stream,
            node: &client.node,
        })
    }
}

impl<'a> From<&'a (Name, Version)> for Rejected<'a> {
    fn from((name, version): &'a (Name, Version)) -> Self {
        Self {
            name: name.as_str(),
            version: version.as_str(),
        }
    }
}

/// Returns whether a count is left out of the JSON.
fn is_zero(count: &usize) -> bool {
    *count == 0
}
