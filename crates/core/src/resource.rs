//! Resources and the wire strings around them: types, versions, nonces.
//!
//! A body is opaque here. It arrives encoded, is never decoded again, and is
//! shared by every stream that sends it. [`Facts`] beside it have the little
//! that the rules need to know about it.

use std::fmt;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use bytes::Bytes;
use smol_str::{SmolStr, format_smolstr};
use twox_hash::XxHash3_128;

use crate::facts::Facts;
use crate::hosts::HostName;
use crate::kind;
use crate::name::Name;
use crate::params::Constraints;

/// A newtype of a wire string. Strings that are short and many are `SmolStr`,
/// which is stored inline; a few strings that many resources share are
/// `Arc<str>`.
macro_rules! wire_string {
    ($(#[$doc:meta])* $name:ident($kept:ty) $(by $made:path)?) => {
        wire_string!(@ $(#[$doc])* $name($kept), $($made,)? Into::into);
    };
    (@ $(#[$doc:meta])* $name:ident($kept:ty), $made:path $(, $other:path)?) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name($kept);

        impl $name {
            /// Takes the string as it is on the wire.
            #[must_use]
            pub fn new(text: impl AsRef<str>) -> Self {
                Self($made(text.as_ref()))
            }

            /// Returns the string as it is on the wire.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Debug::fmt(&self.0, f)
            }
        }

        impl From<&str> for $name {
            fn from(text: &str) -> Self {
                Self::new(text)
            }
        }
    };
}

wire_string!(
    /// The type of a resource: `type.googleapis.com/` and a message name.
    TypeUrl(Arc<str>) by shared_url
);
wire_string!(
    /// The version of one resource. Equal versions mean equal contents.
    Version(SmolStr)
);
wire_string!(
    /// Names one response on one stream, so that a request can refer to it
    /// (S4).
    Nonce(SmolStr)
);

impl Nonce {
    /// Makes the nonce of a number: its hexadecimal digits. Every response has
    /// a nonce, so the digits are not written by a formatter, which costs more
    /// than all else here.
    #[must_use]
    pub(crate) fn of_number(number: u64) -> Self {
        let mut digits = [0; 16];
        let mut start = digits.len();
        let mut remaining = number;
        loop {
            start -= 1;
            digits[start] = b"0123456789abcdef"[(remaining & 0xf) as usize];
            remaining >>= 4;
            if remaining == 0 {
                break;
            }
        }

        // The digits are ASCII.
        Self(str::from_utf8(&digits[start..]).unwrap_or_default().into())
    }
}

/// Returns one shared string for each built-in type: there are few types and
/// millions of references to them. Any other URL is copied.
fn shared_url(text: &str) -> Arc<str> {
    static KNOWN: LazyLock<Vec<Arc<str>>> =
        LazyLock::new(|| kind::ALL.iter().map(|url| Arc::from(*url)).collect());
    let known_url = KNOWN.iter().find(|url| &***url == text);
    known_url.map_or_else(|| Arc::from(text), Arc::clone)
}

impl Version {
    /// Makes the version of a body: a hash of its bytes, so that the same
    /// contents have the same version in every process (S48, S71).
    #[must_use]
    pub fn of_body(body: &[u8]) -> Self {
        Self::of_hash(XxHash3_128::oneshot(body))
    }

    /// Makes the version of a resource that a client holds at a version that it
    /// did not say: no resource has it.
    pub(crate) fn unknown() -> Self {
        Self(SmolStr::default())
    }

    /// Makes a version of the upper half of a 128-bit hash: sixteen hexadecimal
    /// digits. The version of a whole set is made so from the sum of the
    /// fingerprints of its resources (S71).
    #[must_use]
    pub fn of_hash(hash: u128) -> Self {
        Self(format_smolstr!("{:016x}", (hash >> 64) as u64))
    }
}

/// Bytes of a resource in a response beside its name, aliases and body.
const OTHER_FIELDS_BYTES: usize = 128;

/// One resource, or one variant of it: immutable and shared.
#[derive(Clone, PartialEq, Eq)]
pub struct Resource {
    /// The name of the resource, or of the resource that this is a variant of.
    pub name: Name,
    /// Other names that the resource answers to (S36).
    pub aliases: Box<[Name]>,
    /// The clients that this variant is for; `None` is all of them (TP2).
    pub constraints: Option<Constraints>,
    /// Equal versions of one variant mean equal contents.
    pub version: Version,
    /// How long a client may use the resource without hearing of it again
    /// (S58).
    pub ttl: Option<Duration>,
    /// The encoded message, without its type. `None` is the negative answer
    /// that VHDS understands: the name does not exist (S35).
    pub body: Option<Bytes>,
    /// Facts about the body.
    pub facts: Option<Box<Facts>>,
}

impl Resource {
    /// Makes a resource for all clients, with a version made from its body.
    #[must_use]
    pub fn new(name: Name, body: Bytes) -> Self {
        Self {
            name,
            aliases: Box::default(),
            constraints: None,
            version: Version::of_body(&body),
            ttl: None,
            body: Some(body),
            facts: None,
        }
    }

    /// Returns the clients that the resource is for; without constraints, all.
    #[must_use]
    pub fn clients(&self) -> Constraints {
        let constraints = self.constraints.clone();
        constraints.unwrap_or_else(Constraints::always)
    }

    /// Returns a hash of the name, the version and the constraints. Sums of
    /// fingerprints identify a set of variants, whatever its order.
    #[must_use]
    pub fn fingerprint(&self) -> u128 {
        // Hashed in one piece: an incremental hasher costs more to set up than
        // a short text to copy.
        let mut text = Vec::with_capacity(128);
        for part in [self.name.as_str(), self.version.as_str()] {
            // With their lengths, other parts do not make the same text.
            text.extend_from_slice(&(part.len() as u64).to_le_bytes());
            text.extend_from_slice(part.as_bytes());
        }
        if let Some(constraints) = &self.constraints {
            text.extend_from_slice(constraints.to_string().as_bytes());
        }
        XxHash3_128::oneshot(&text)
    }

    /// Estimates the size of the resource in a response, in bytes.
    #[must_use]
    pub fn wire_size(&self) -> usize {
        // Beside its constraints, a response has the name again.
        let name_bytes = 2 * self.name.as_str().len();
        let aliases = self.aliases.iter();
        let alias_bytes: usize = aliases.map(|alias| alias.as_str().len() + 2).sum();
        let body_bytes = self.body.as_ref().map_or(0, Bytes::len);
        let rare_facts = self.facts().rare.as_deref();
        let metadata = rare_facts.and_then(|rare| rare.metadata.as_ref());
        let metadata_bytes = metadata.map_or(0, Bytes::len);
        name_bytes + alias_bytes + body_bytes + metadata_bytes + OTHER_FIELDS_BYTES
    }

    /// Returns every other name that the resource answers to: its aliases, and
    /// for a virtual host the hosts that are exact domains of it (S36).
    pub fn other_names(&self) -> impl Iterator<Item = Name> + '_ {
        let aliases = self.aliases.iter().cloned();
        let name = HostName::split(self.name.as_str());
        let hosts = name.into_iter().flat_map(|name| {
            let domains = self.facts().domains.exact();
            domains.map(move |host| Name::new(&format!("{}/{host}", name.route)))
        });
        aliases.chain(hosts)
    }

    /// Returns the facts about the body; empty facts if none were computed.
    #[must_use]
    pub fn facts(&self) -> &Facts {
        self.facts.as_deref().unwrap_or_else(|| Facts::none())
    }
}

impl fmt::Debug for Resource {
    /// Writes the name, the version and the constraints, and no body.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{}", self.name, self.version)?;
        if let Some(constraints) = &self.constraints {
            write!(f, "[{constraints}]")?;
        }
        Ok(())
    }
}

/// Why a source has no resource for a name (TP3, S61).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResourceError {
    /// The kind of error.
    pub code: ErrorCode,
    /// For people only (S64).
    pub message: Arc<str>,
}

/// The gRPC status codes that TP3 gives a meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorCode {
    /// The resource does not exist: the same as a removal.
    NotFound,
    /// This client may not have the resource.
    PermissionDenied,
    /// The resource is not available for now; a cached one stays in use.
    Unavailable,
    /// Any other code, by number; transient.
    Other(i32),
}

impl ErrorCode {
    /// Returns whether a cached resource is invalid, too (S61).
    #[must_use]
    pub fn is_data_error(self) -> bool {
        matches!(self, Self::NotFound | Self::PermissionDenied)
    }
}
