//! Reading a message from a peer: bounded, and good parts kept.
//!
//! A message is scanned before it is decoded, so a limit costs no memory. What
//! is wrong with a single name costs that name only (S72): it is taken out and
//! listed as a [`Refusal`] beside the message.

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
    /// What stands.
    pub message: M,
    /// What was refused. Empty for every well-behaved peer.
    pub refused: Vec<Refusal>,
}

/// A name that is too long to be held.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{field}: the name {start:?}… has {len} bytes, the limit is {max}; it was ignored")]
pub struct Refusal {
    /// The field that carried it.
    pub field: &'static str,
    /// How it begins.
    pub start: String,
    /// Its bytes.
    pub len: usize,
    /// The limit.
    pub max: usize,
}

/// Why a message cannot be read. The peer is at fault in every case.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// Not a protobuf message of this type.
    #[error("{message}: not a valid protobuf message: {source}")]
    Malformed {
        /// The message.
        message: &'static str,
        /// What the decoder says.
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

/// The four messages that a peer can send, and the wrapper inside one of them.
pub trait Inbound: Sized {
    /// Reads `raw`; bodies in the result are slices of it.
    ///
    /// # Errors
    /// The bytes are no such message, or pass a limit that no real client
    /// reaches.
    fn decode_checked(raw: Bytes, limits: &Limits) -> Result<Checked<Self>, DecodeError>;
}

/// What differs between them.
pub(super) trait Bounded: prost::Message + Default {
    const SHAPE: &'static Shape;

    /// Takes out the names that are too long.
    fn refuse(&mut self, refuse: &mut Refuse<'_>);
}

impl<M: Bounded> Inbound for M {
    fn decode_checked(raw: Bytes, limits: &Limits) -> Result<Checked<Self>, DecodeError> {
        let (shape, len) = (M::SHAPE, raw.len());
        scan::check(shape, &raw, len, limits.message_bytes, limits)?;
        let mut message = M::decode(raw).map_err(|source| DecodeError::Malformed {
            message: shape.name,
            source,
        })?;
        let mut refuse = Refuse {
            limits,
            refused: Vec::new(),
        };
        message.refuse(&mut refuse);
        let refused = refuse.refused;
        Ok(Checked { message, refused })
    }
}

/// Collects refusals.
pub(super) struct Refuse<'a> {
    limits: &'a Limits,
    refused: Vec<Refusal>,
}

impl Refuse<'_> {
    fn list<T>(&mut self, field: &'static str, list: &mut Vec<T>, name: impl Fn(&T) -> &str) {
        list.retain(|item| self.keep(field, name(item)));
    }

    fn keep(&mut self, field: &'static str, name: &str) -> bool {
        let (len, max) = (name.len(), self.limits.name_bytes);
        if len > max {
            let start = name.chars().take(64).collect();
            self.refused.push(Refusal {
                field,
                start,
                len,
                max,
            });
        }
        len <= max
    }

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

    fn refuse(&mut self, refuse: &mut Refuse<'_>) {
        refuse.list("resource_names", &mut self.resource_names, |n| n);
        refuse.list("resource_locators", &mut self.resource_locators, |l| {
            &l.name
        });
        refuse.clip(self.error_detail.as_mut());
    }
}

impl Bounded for DiscoveryResponse {
    const SHAPE: &'static Shape = &shape::DISCOVERY_RESPONSE;

    fn refuse(&mut self, _: &mut Refuse<'_>) {}
}

impl Bounded for DeltaDiscoveryRequest {
    const SHAPE: &'static Shape = &shape::DELTA_REQUEST;

    fn refuse(&mut self, refuse: &mut Refuse<'_>) {
        let subscribe = &mut self.resource_names_subscribe;
        refuse.list("resource_names_subscribe", subscribe, |n| n);
        let unsubscribe = &mut self.resource_names_unsubscribe;
        refuse.list("resource_names_unsubscribe", unsubscribe, |n| n);
        let subscribe = &mut self.resource_locators_subscribe;
        refuse.list("resource_locators_subscribe", subscribe, |l| &l.name);
        let unsubscribe = &mut self.resource_locators_unsubscribe;
        refuse.list("resource_locators_unsubscribe", unsubscribe, |l| &l.name);
        let held = &mut self.initial_resource_versions;
        refuse.list("initial_resource_versions", held, |h| &h.name);
        refuse.clip(self.error_detail.as_mut());
    }
}

impl Bounded for DeltaDiscoveryResponse {
    const SHAPE: &'static Shape = &shape::DELTA_RESPONSE;

    fn refuse(&mut self, refuse: &mut Refuse<'_>) {
        refuse.list("resources", &mut self.resources, |r| &r.name);
        refuse.list("removed_resources", &mut self.removed_resources, |n| n);
    }
}

/// In a state-of-the-world response it is the body of an `Any`, which the scan
/// of the response does not look into (S58).
impl Bounded for Resource {
    const SHAPE: &'static Shape = &shape::RESOURCE;

    fn refuse(&mut self, _: &mut Refuse<'_>) {}
}
