//! A binary `DiscoveryResponse` in pieces: one resource after another, and of a
//! route configuration with VHDS one virtual host after another.
//!
//! The response is never in memory as a whole, however large it is. The
//! contents of a piece are not read here.
//!
//! ```
//! use std::io::Cursor;
//! use trunkline_proto::pieces::{Piece, Pieces};
//!
//! // resources: [{type_url: "t/x", value: "ab"}]
//! let bytes = b"\x12\x09\x0a\x03t/x\x12\x02ab";
//! let mut pieces = Pieces::new(Cursor::new(bytes));
//! let Some((0, Piece::Whole(any))) = pieces.next().unwrap() else { panic!() };
//! assert_eq!(any.value, "ab");
//! assert!(pieces.next().unwrap().is_none());
//! ```

#[cfg(test)]
mod tests;
mod window;

use std::io::{self, Read, Seek};
use std::ops::Range;

use bytes::Bytes;
use prost::Message;

use self::window::Window;
use crate::descriptor::{full_name, types};
use crate::discovery::{Any, Resource};
use crate::vhosts::{VHDS, VIRTUAL_HOSTS};

/// `DiscoveryResponse.resources`, `Resource.resource` and `Any.value`.
const INSIDE: u32 = 2;
/// `Any.type_url`.
const TYPE_URL: u32 = 1;

/// A piece of a response.
#[derive(Debug, Clone, PartialEq)]
pub enum Piece {
    /// A resource, as it stands.
    Whole(Any),
    /// A route configuration; its virtual hosts come next.
    Route(Box<Route>),
    /// A virtual host of the route configuration before it, as it stands, with
    /// its index.
    Host(usize, Bytes),
}

/// A route configuration without its virtual hosts.
#[derive(Debug, Clone, PartialEq)]
pub struct Route {
    /// Its type, in the spelling of the response.
    pub type_url: String,
    /// The rest of its body.
    pub rest: Bytes,
    /// Its wrapper, if it has one.
    pub wrapper: Option<Resource>,
}

/// Why a response cannot be read further.
#[derive(Debug, thiserror::Error)]
pub enum PiecesError {
    /// It cannot be read.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// It ends in the middle of a field.
    #[error("it ends inside of a field, after {0} bytes")]
    Cut(u64),
    /// Not a field.
    #[error("there is no field at byte {0}")]
    NoField(u64),
    /// The wrapper of a resource is malformed.
    #[error(transparent)]
    Malformed(#[from] prost::DecodeError),
}

/// Takes a response apart.
#[derive(Debug)]
pub struct Pieces<R> {
    window: Window<R>,
    /// The offset of the next field of the response.
    offset: u64,
    /// The index of the next resource.
    index: usize,
    /// The route configuration whose virtual hosts come next.
    hosts: Option<Hosts>,
}

/// The fields of a route configuration whose virtual hosts come one by one.
#[derive(Debug)]
struct Hosts {
    /// The bytes of the fields that were not read.
    unread: Range<u64>,
    /// The index of the next virtual host.
    next: usize,
}

impl<R: Read + Seek> Pieces<R> {
    /// Starts at the beginning of a source. Reads nothing yet.
    pub fn new(source: R) -> Self {
        Self {
            window: Window::new(source),
            offset: 0,
            index: 0,
            hosts: None,
        }
    }

    /// Reads the next piece, and returns it with the index of its resource;
    /// `None` after the last one. After an error, further calls have no
    /// meaning.
    ///
    /// The bytes of small pieces are slices of larger ones: copy them to keep a
    /// few.
    ///
    /// # Errors
    /// The source cannot be read, or is no response.
    #[allow(
        clippy::should_implement_trait,
        reason = "an iterator would go on after an error"
    )]
    pub fn next(&mut self) -> Result<Option<(usize, Piece)>, PiecesError> {
        // A route configuration comes in pieces of its virtual hosts.
        if let Some(piece) = self.next_host()? {
            return Ok(Some((self.index - 1, piece)));
        }

        let mut unread = self.offset..self.window.source_length()?;
        while !unread.is_empty() {
            let field = self.window.take_field(&mut unread)?;
            self.offset = unread.start;
            if let Some(resource) = field.value_of(INSIDE) {
                let index = self.index;
                self.index += 1;
                return Ok(Some((index, self.read_resource(resource)?)));
            }
        }
        Ok(None)
    }

    /// Reads the next virtual host of the open route configuration. Returns
    /// `None` if it has no more, or none is open.
    fn next_host(&mut self) -> Result<Option<Piece>, PiecesError> {
        let Some(hosts) = &mut self.hosts else {
            return Ok(None);
        };
        while !hosts.unread.is_empty() {
            let field = self.window.take_field(&mut hosts.unread)?;
            if let Some(host) = field.value_of(VIRTUAL_HOSTS) {
                let index = hosts.next;
                hosts.next += 1;
                let body = self.window.load(host)?;
                return Ok(Some(Piece::Host(index, body)));
            }
        }
        self.hosts = None;
        Ok(None)
    }

    /// Reads a resource: a route configuration with VHDS without its virtual
    /// hosts, anything else as it stands.
    fn read_resource(&mut self, range: Range<u64>) -> Result<Piece, PiecesError> {
        match self.split_route(range.clone())? {
            Some(route) => Ok(Piece::Route(Box::new(route))),
            None => Ok(Piece::Whole(Any::decode(self.window.load(range)?)?)),
        }
    }

    /// Reads a route configuration without its virtual hosts, which are the
    /// next pieces. Reads the inner one of a wrapper. Returns `None` if the
    /// resource has another type, or its encoding is unusual, such as a field
    /// twice.
    fn split_route(&mut self, range: Range<u64>) -> Result<Option<Route>, PiecesError> {
        let Some((mut type_url, mut body)) = self.find_any_parts(range)? else {
            return Ok(None);
        };

        let mut wrapper = None;
        if full_name(&type_url) == full_name(types::RESOURCE) {
            let Some((own_fields, inner)) = self.split_wrapper(body)? else {
                return Ok(None);
            };
            let Some(inner_parts) = self.find_any_parts(inner)? else {
                return Ok(None);
            };
            (type_url, body) = inner_parts;
            wrapper = Some(own_fields);
        }
        if full_name(&type_url) != full_name(types::ROUTE_CONFIGURATION) {
            return Ok(None);
        }

        let wrapper = wrapper.map(Resource::decode).transpose()?;
        let remainder = self.read_route_without_hosts(body)?;
        Ok(remainder.map(|remainder| Route {
            type_url,
            rest: remainder,
            wrapper,
        }))
    }

    /// Reads the type of the `Any` in a range, and finds the range of its body.
    /// Returns `None` if one of them is missing or occurs twice, if there is
    /// another field, or if the type is not UTF-8.
    fn find_any_parts(
        &mut self,
        range: Range<u64>,
    ) -> Result<Option<(String, Range<u64>)>, PiecesError> {
        let mut url = None;
        let mut value = None;
        let mut unread = range;
        while !unread.is_empty() {
            let field = self.window.take_field(&mut unread)?;
            let previous_range = if let Some(range) = field.value_of(TYPE_URL) {
                url.replace(range)
            } else if let Some(range) = field.value_of(INSIDE) {
                value.replace(range)
            } else {
                return Ok(None);
            };
            if previous_range.is_some() {
                return Ok(None);
            }
        }

        let (Some(url), Some(value)) = (url, value) else {
            return Ok(None);
        };
        let url = String::from_utf8(self.window.load(url)?.into());
        Ok(url.ok().map(|url| (url, value)))
    }

    /// Reads the encoded fields of a wrapper but its resource, and finds the
    /// range of the resource. Returns `None` if the resource is missing or
    /// occurs twice.
    fn split_wrapper(
        &mut self,
        range: Range<u64>,
    ) -> Result<Option<(Bytes, Range<u64>)>, PiecesError> {
        let mut own_fields = Vec::new();
        let mut inner = None;
        let mut unread = range;
        while !unread.is_empty() {
            let field = self.window.take_field(&mut unread)?;
            match field.value_of(INSIDE) {
                Some(_) if inner.is_some() => return Ok(None),
                Some(range) => inner = Some(range),
                None => own_fields.extend_from_slice(&self.window.load(field.whole)?),
            }
        }
        Ok(inner.map(|inner| (own_fields.into(), inner)))
    }

    /// Reads a route configuration without its virtual hosts, which are the
    /// next pieces. Returns `None` if the configuration stays whole, because it
    /// has no virtual hosts or does not use VHDS.
    fn read_route_without_hosts(
        &mut self,
        range: Range<u64>,
    ) -> Result<Option<Bytes>, PiecesError> {
        let mut remainder = Vec::new();
        let mut has_hosts = false;
        let mut has_vhds = false;
        let mut unread = range.clone();
        while !unread.is_empty() {
            let field = self.window.take_field(&mut unread)?;
            has_vhds |= field.number == VHDS;
            match field.value_of(VIRTUAL_HOSTS) {
                Some(_) => has_hosts = true,
                None => remainder.extend_from_slice(&self.window.load(field.whole)?),
            }
        }
        if !has_vhds || !has_hosts {
            return Ok(None);
        }

        self.hosts = Some(Hosts {
            unread: range,
            next: 0,
        });
        Ok(Some(remainder.into()))
    }
}
