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
    /// Reads `raw`; bodies in the result are slices of it. A name that is too
    /// long is taken out of the message and listed beside it.
    ///
    /// # Errors
    /// The bytes are no such message, or pass a limit that no real client
    /// reaches.
    fn decode_checked(raw: Bytes, limits: &Limits) -> Result<Checked<Self>, DecodeError>;
}

/// The parts of decoding that differ between those messages.
pub(crate) trait Bounded: prost::Message + Default {
    const SHAPE: &'static Shape;

    /// Takes the names that are too long out of the message, and shortens the
    /// text of its error.
    fn enforce(&mut self, names: &mut NameLimit<'_>);
}

impl<M: Bounded> Inbound for M {
    /// Scans the bytes, decodes them, and then refuses long names one by one.
    /// The scan allocates nothing, so a message beyond the limits costs no
    /// memory.
    fn decode_checked(raw: Bytes, limits: &Limits) -> Result<Checked<Self>, DecodeError> {
        let shape = M::SHAPE;
        scan::check_message(shape, &raw, limits.message_bytes, limits)?;

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
pub(crate) struct NameLimit<'a> {
    limits: &'a Limits,
    refused: Vec<Refusal>,
}

impl NameLimit<'_> {
    /// Removes the items whose name is too long from a list, and records a
    /// refusal for each. `field` is the name of the list.
    fn refuse_long_names<T>(
        &mut self,
        field: &'static str,
        list: &mut Vec<T>,
        name: impl Fn(&T) -> &str,
    ) {
        list.retain(|item| self.accept_name(field, name(item)));
    }

    /// Returns whether a name is short enough. Records a refusal if it is not.
    fn accept_name(&mut self, field: &'static str, name: &str) -> bool {
        let (len, max) = (name.len(), self.limits.name_bytes);
        if len <= max {
            return true;
        }
        let beginning = name.chars().take(QUOTED).collect();
        self.refused.push(Refusal {
            field,
            start: beginning,
            len,
            max,
        });
        false
    }

    /// Shortens the text of an error to its limit, at a character boundary.
    /// Only people read the text (S64), so a part of it is enough. Does nothing
    /// without an error.
    pub(crate) fn shorten_error(&self, status: Option<&mut Status>) {
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

    /// Refuses names of subscriptions that are too long, and shortens the error
    /// of a NACK.
    fn enforce(&mut self, names: &mut NameLimit<'_>) {
        names.refuse_long_names("resource_names", &mut self.resource_names, |name| name);
        let locators = &mut self.resource_locators;
        names.refuse_long_names("resource_locators", locators, |locator| &locator.name);
        names.shorten_error(self.error_detail.as_mut());
    }
}

impl Bounded for DiscoveryResponse {
    const SHAPE: &'static Shape = &shape::DISCOVERY_RESPONSE;

    /// Does nothing: names are in the bodies, which are not decoded here.
    fn enforce(&mut self, _: &mut NameLimit<'_>) {}
}

impl Bounded for DeltaDiscoveryRequest {
    const SHAPE: &'static Shape = &shape::DELTA_REQUEST;

    /// Refuses names that are too long, of subscriptions and of resources that
    /// the client holds, and shortens the error of a NACK.
    fn enforce(&mut self, names: &mut NameLimit<'_>) {
        let subscribe = &mut self.resource_names_subscribe;
        names.refuse_long_names("resource_names_subscribe", subscribe, |name| name);
        let unsubscribe = &mut self.resource_names_unsubscribe;
        names.refuse_long_names("resource_names_unsubscribe", unsubscribe, |name| name);

        let subscribe = &mut self.resource_locators_subscribe;
        names.refuse_long_names("resource_locators_subscribe", subscribe, |locator| {
            &locator.name
        });
        let unsubscribe = &mut self.resource_locators_unsubscribe;
        names.refuse_long_names("resource_locators_unsubscribe", unsubscribe, |locator| {
            &locator.name
        });

        let versions = &mut self.initial_resource_versions;
        names.refuse_long_names("initial_resource_versions", versions, |version| {
            &version.name
        });
        names.shorten_error(self.error_detail.as_mut());
    }
}

impl Bounded for DeltaDiscoveryResponse {
    const SHAPE: &'static Shape = &shape::DELTA_RESPONSE;

    /// Refuses names that are too long, of resources and of removals.
    fn enforce(&mut self, names: &mut NameLimit<'_>) {
        names.refuse_long_names("resources", &mut self.resources, |r| &r.name);
        names.refuse_long_names("removed_resources", &mut self.removed_resources, |name| {
            name
        });
    }
}

/// In a SotW response the wrapper is the body of an `Any`, which the scan of
/// the response does not look into (S58).
impl Bounded for Resource {
    const SHAPE: &'static Shape = &shape::RESOURCE;

    fn enforce(&mut self, _: &mut NameLimit<'_>) {}
}
