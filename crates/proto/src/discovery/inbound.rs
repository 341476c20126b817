//! Received messages: bounded, and their good parts kept.
//!
//! A message is scanned before it is decoded, so a limit costs no memory. A
//! name that is too long costs that name only (S72): it is taken out and listed
//! as a [`Refusal`] beside the message.

use bytes::Bytes;

use super::{
    limits::Limits,
    message::{
        DeltaDiscoveryRequest, DeltaDiscoveryResponse, DiscoveryRequest, DiscoveryResponse,
        Resource, Status,
    },
    scan::{self, Shape},
    shape,
};

/// A message, and the names that were taken out of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checked<M> {
    /// The message without the refused names.
    pub message: M,
    /// The refused names. Empty for every well-behaved sender.
    pub refused: Vec<Refusal>,
}

/// A name that is too long to be held.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{field}: the name {start:?}… has {len} bytes, the limit is {max}; it was ignored")]
pub struct Refusal {
    /// The field that carried it.
    pub field: &'static str,
    /// The beginning of the name.
    pub start: String,
    /// Its bytes.
    pub len: usize,
    /// The limit.
    pub max: usize,
}

/// Why a message cannot be read. The sender is at fault in every case.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// Not a protobuf message of this type.
    #[error("{message}: not a valid protobuf message: {source}")]
    Malformed {
        /// The message.
        message: &'static str,
        /// The decoder's error.
        source: prost::DecodeError,
    },
    /// The bytes end inside a field, or a field has no valid key.
    #[error("{message}: the bytes end inside a field, or hold an invalid field key")]
    Truncated {
        /// The message.
        message: &'static str,
    },
    /// The whole message is too long.
    #[error("{message} has {len} bytes, the limit is {max}")]
    MessageTooLong {
        /// The message.
        message: &'static str,
        /// Its bytes.
        len: usize,
        /// The limit.
        max: usize,
    },
    /// A text is too long.
    #[error("{message}.{field} has {len} bytes, the limit is {max}")]
    TextTooLong {
        /// The message.
        message: &'static str,
        /// The field.
        field: &'static str,
        /// Its bytes.
        len: usize,
        /// The limit.
        max: usize,
    },
    /// Too many strings, entries and nested messages together.
    #[error("{message} holds more than {max} names and entries")]
    TooMany {
        /// The message.
        message: &'static str,
        /// The limit.
        max: usize,
    },
    /// Constraints nest too deep.
    #[error("{message}: dynamic parameter constraints nest deeper than {max} levels")]
    TooDeep {
        /// The message.
        message: &'static str,
        /// The limit.
        max: usize,
    },
}

/// The four messages that a client or a server can send, and the wrapper inside
/// one of them.
pub trait Inbound: Sized {
    /// Reads `raw`; bodies in the result are slices of it.
    ///
    /// # Errors
    /// The bytes are no such message, or pass a limit that no real client
    /// reaches.
    fn decode_checked(raw: Bytes, limits: &Limits) -> Result<Checked<Self>, DecodeError>;
}

/// The parts of decoding that differ between those messages.
pub(super) trait Bounded: prost::Message + Default {
    const SHAPE: &'static Shape;

    /// Takes the names that are too long out of the message, and shortens the
    /// text of its error.
    fn enforce(&mut self, names: &mut NameLimit<'_>);
}

impl<M: Bounded> Inbound for M {
    fn decode_checked(raw: Bytes, limits: &Limits) -> Result<Checked<Self>, DecodeError> {
        let shape = M::SHAPE;
        scan::check(shape, &raw, limits.message_bytes, limits)?;
        let mut message = M::decode(raw).map_err(|source| DecodeError::Malformed {
            message: shape.name,
            source,
        })?;
        let mut names = NameLimit {
            limits,
            refused: Vec::new(),
        };
        message.enforce(&mut names);
        let refused = names.refused;
        Ok(Checked { message, refused })
    }
}

/// The characters of a refused name that its [`Refusal`] quotes.
const QUOTED: usize = 64;

/// Applies the limits that cost a single value and not the message.
pub(super) struct NameLimit<'a> {
    limits: &'a Limits,
    refused: Vec<Refusal>,
}

impl NameLimit<'_> {
    /// Takes the items whose name is too long out of a list.
    fn list<T>(&mut self, field: &'static str, list: &mut Vec<T>, name: impl Fn(&T) -> &str) {
        list.retain(|item| self.fits(field, name(item)));
    }

    /// Returns whether a name is short enough, and records a refusal if not.
    fn fits(&mut self, field: &'static str, name: &str) -> bool {
        let (len, max) = (name.len(), self.limits.name_bytes);
        if len > max {
            let start = name.chars().take(QUOTED).collect();
            self.refused.push(Refusal {
                field,
                start,
                len,
                max,
            });
        }
        len <= max
    }

    /// Shortens the text of an error to its limit, at the end of a character.
    /// The text is for people (S64), so the part that fits serves them.
    fn clip(&self, status: Option<&mut Status>) {
        let Some(status) = status else { return };
        let text = &mut status.message;
        let mut end = text.len().min(self.limits.error_bytes);
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        text.truncate(end);
    }
}

impl Bounded for DiscoveryRequest {
    const SHAPE: &'static Shape = &shape::DISCOVERY_REQUEST;

    fn enforce(&mut self, names: &mut NameLimit<'_>) {
        names.list("resource_names", &mut self.resource_names, |n| n);
        let locators = &mut self.resource_locators;
        names.list("resource_locators", locators, |l| &l.name);
        names.clip(self.error_detail.as_mut());
    }
}

impl Bounded for DiscoveryResponse {
    const SHAPE: &'static Shape = &shape::DISCOVERY_RESPONSE;

    fn enforce(&mut self, _: &mut NameLimit<'_>) {}
}

impl Bounded for DeltaDiscoveryRequest {
    const SHAPE: &'static Shape = &shape::DELTA_REQUEST;

    fn enforce(&mut self, names: &mut NameLimit<'_>) {
        let subscribe = &mut self.resource_names_subscribe;
        names.list("resource_names_subscribe", subscribe, |n| n);
        let unsubscribe = &mut self.resource_names_unsubscribe;
        names.list("resource_names_unsubscribe", unsubscribe, |n| n);
        let subscribe = &mut self.resource_locators_subscribe;
        names.list("resource_locators_subscribe", subscribe, |l| &l.name);
        let unsubscribe = &mut self.resource_locators_unsubscribe;
        names.list("resource_locators_unsubscribe", unsubscribe, |l| &l.name);
        let held = &mut self.initial_resource_versions;
        names.list("initial_resource_versions", held, |h| &h.name);
        names.clip(self.error_detail.as_mut());
    }
}

impl Bounded for DeltaDiscoveryResponse {
    const SHAPE: &'static Shape = &shape::DELTA_RESPONSE;

    fn enforce(&mut self, names: &mut NameLimit<'_>) {
        names.list("resources", &mut self.resources, |r| &r.name);
        names.list("removed_resources", &mut self.removed_resources, |n| n);
    }
}

/// In a SotW response the wrapper is the body of an `Any`, which the scan of
/// the response does not look into (S58).
impl Bounded for Resource {
    const SHAPE: &'static Shape = &shape::RESOURCE;

    fn enforce(&mut self, _: &mut NameLimit<'_>) {}
}
