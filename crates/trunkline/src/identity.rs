//! Who a client is, as far as it was proved. Made once for each connection, or
//! by the hooks of an embedder for each stream, and handed to hooks, events,
//! status and audit.

use std::fmt;

/// The name of a client, by what vouches for it.
///
/// To grant rights to a name, check its kind too: an authority that verifies
/// names of one kind may not verify those of another.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Identity {
    /// The first URI among the alternative names of its certificate, as SPIFFE
    /// has it.
    Uri(String),
    /// The first DNS name among them, where there is no URI.
    Dns(String),
    /// The common name of the certificate's subject, where there is neither.
    CommonName(String),
    /// It showed a token that the server shares with its operators, who have no
    /// names of their own.
    Token,
    /// The name that [`Hooks::authenticate`](crate::Hooks::authenticate) found.
    Hook(String),
}

impl Identity {
    /// Returns the name, whatever its kind; `token` for a client that has none.
    #[must_use]
    pub fn as_str(&self) -> &str {
        match self {
            Self::Uri(name) | Self::Dns(name) | Self::CommonName(name) | Self::Hook(name) => name,
            Self::Token => "token",
        }
    }

    /// Returns the kind, in a word for logs: `uri`, `dns`, `cn`, `token` or
    /// `hook`.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Uri(_) => "uri",
            Self::Dns(_) => "dns",
            Self::CommonName(_) => "cn",
            Self::Token => "token",
            Self::Hook(_) => "hook",
        }
    }
}

impl fmt::Display for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
