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
    at: u64,
    index: usize,
    /// The rest of a route configuration.
    hosts: Option<Hosts>,
}

#[derive(Debug)]
struct Hosts {
    left: Range<u64>,
    next: usize,
}

impl<R: Read + Seek> Pieces<R> {
    /// All pieces of a readable source.
    pub fn new(source: R) -> Self {
        Self {
            window: Window::new(source),
            at: 0,
            index: 0,
            hosts: None,
        }
    }

    /// The next piece, and the index of its resource.
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
        if let Some(piece) = self.next_host()? {
            return Ok(Some((self.index - 1, piece)));
        }
        let mut left = self.at..self.window.end()?;
        while !left.is_empty() {
            let field = self.window.next(&mut left)?;
            self.at = left.start;
            if let Some(resource) = field.is(INSIDE) {
                self.index += 1;
                return Ok(Some((self.index - 1, self.resource(resource)?)));
            }
        }
        Ok(None)
    }

    fn next_host(&mut self) -> Result<Option<Piece>, PiecesError> {
        let Some(hosts) = &mut self.hosts else {
            return Ok(None);
        };
        while !hosts.left.is_empty() {
            let field = self.window.next(&mut hosts.left)?;
            if let Some(host) = field.is(VIRTUAL_HOSTS) {
                hosts.next += 1;
                let body = self.window.load(host)?;
                return Ok(Some(Piece::Host(hosts.next - 1, body)));
            }
        }
        self.hosts = None;
        Ok(None)
    }

    fn resource(&mut self, range: Range<u64>) -> Result<Piece, PiecesError> {
        let whole = range.clone();
        let Some((type_url, value)) = self.any(range)? else {
            return self.whole(whole);
        };
        let is = |of| full_name(&type_url) == full_name(of);
        if is(types::ROUTE_CONFIGURATION) {
            let route = self.route(type_url, value, None)?;
            return route.map_or_else(|| self.whole(whole), Ok);
        }
        if !is(types::RESOURCE) {
            return self.whole(whole);
        }
        let Some((wrapper, inner)) = self.wrapper(value)? else {
            return self.whole(whole);
        };
        match self.any(inner)? {
            Some((url, value)) if full_name(&url) == full_name(types::ROUTE_CONFIGURATION) => {
                let wrapper = Resource::decode(wrapper)?;
                let route = self.route(url, value, Some(wrapper))?;
                route.map_or_else(|| self.whole(whole), Ok)
            }
            _ => self.whole(whole),
        }
    }

    fn whole(&mut self, range: Range<u64>) -> Result<Piece, PiecesError> {
        Ok(Piece::Whole(Any::decode(self.window.load(range)?)?))
    }

    /// The type of an `Any` and the range of its body, if both are there once.
    fn any(&mut self, range: Range<u64>) -> Result<Option<(String, Range<u64>)>, PiecesError> {
        let (mut url, mut value) = (None, None);
        let mut left = range;
        while !left.is_empty() {
            let field = self.window.next(&mut left)?;
            let before = match (field.is(TYPE_URL), field.is(INSIDE)) {
                (Some(range), _) => url.replace(range),
                (_, Some(range)) => value.replace(range),
                (None, None) => return Ok(None),
            };
            if before.is_some() {
                return Ok(None);
            }
        }
        let (Some(url), Some(value)) = (url, value) else {
            return Ok(None);
        };
        let url = String::from_utf8(self.window.load(url)?.into());
        Ok(url.ok().map(|url| (url, value)))
    }

    /// The wrapper's own fields, and the range of the wrapped resource, if it
    /// is there once.
    fn wrapper(&mut self, range: Range<u64>) -> Result<Option<(Bytes, Range<u64>)>, PiecesError> {
        let mut rest = Vec::new();
        let mut inner = None;
        let mut left = range;
        while !left.is_empty() {
            let field = self.window.next(&mut left)?;
            match field.is(INSIDE) {
                Some(_) if inner.is_some() => return Ok(None),
                Some(range) => inner = Some(range),
                None => rest.extend_from_slice(&self.window.load(field.whole)?),
            }
        }
        Ok(inner.map(|inner| (rest.into(), inner)))
    }

    /// A route configuration whose virtual hosts come one by one; `None` if it
    /// keeps them.
    fn route(
        &mut self,
        type_url: String,
        range: Range<u64>,
        wrapper: Option<Resource>,
    ) -> Result<Option<Piece>, PiecesError> {
        let mut rest = Vec::new();
        let (mut hosts, mut vhds) = (false, false);
        let mut left = range.clone();
        while !left.is_empty() {
            let field = self.window.next(&mut left)?;
            vhds |= field.number == VHDS;
            match field.is(VIRTUAL_HOSTS) {
                Some(_) => hosts = true,
                None => rest.extend_from_slice(&self.window.load(field.whole)?),
            }
        }
        if !vhds || !hosts {
            return Ok(None);
        }
        self.hosts = Some(Hosts {
            left: range,
            next: 0,
        });
        Ok(Some(Piece::Route(Box::new(Route {
            type_url,
            rest: rest.into(),
            wrapper,
        }))))
    }
}
