//! Control planes, and how to reach them.

use std::path::PathBuf;
use std::time::Duration;

/// A control plane, and how to reach it. Equal ones share connections and
/// streams, whoever names them (C12).
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ControlPlane {
    /// Where it listens.
    pub address: Address,
    /// Other hosts of the same control plane. An attempt to connect that fails
    /// is followed by one to the next host.
    pub alternatives: Vec<Address>,
    /// How connections are made secure.
    pub security: Security,
    /// The `:authority` of its requests; the address if it is `None`.
    pub authority: Option<String>,
    /// Headers of every stream and poll, such as tokens.
    pub metadata: Vec<(String, Secret)>,
    /// A file with a bearer token, read anew for every stream.
    pub token_file: Option<PathBuf>,
    /// What is known of the server.
    pub features: Features,
    /// How long an attempt to connect may take.
    pub connect_timeout: Duration,
    /// How a connection that nothing is heard of is found dead; if it is
    /// `None`, as the transport's options say.
    pub keepalive: Option<Keepalive>,
}

impl ControlPlane {
    /// Returns whether a token goes over a network without TLS.
    pub(super) fn sends_token_in_plaintext(&self) -> bool {
        let has_token = self.token_file.is_some()
            || self.metadata.iter().any(|(key, _)| key == "authorization");
        let mut addresses = std::iter::once(&self.address).chain(&self.alternatives);
        has_token && self.security == Security::Plaintext && !addresses.all(Address::is_local)
    }

    /// How long an attempt to connect may take, if nothing else is said.
    pub const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

    /// Returns a control plane at an address, without TLS.
    #[must_use]
    pub fn plaintext(address: Address) -> Self {
        Self {
            address,
            alternatives: Vec::new(),
            security: Security::Plaintext,
            authority: None,
            metadata: Vec::new(),
            token_file: None,
            features: Features::default(),
            connect_timeout: Self::CONNECT_TIMEOUT,
            keepalive: None,
        }
    }
}

/// Pings of HTTP/2.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Keepalive {
    /// The time between two pings.
    pub interval: Duration,
    /// How long the answer to a ping may take.
    pub timeout: Duration,
}

/// A value that is not shown.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Secret(pub String);

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("[redacted]")
    }
}

/// Where a control plane listens.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Address {
    /// A host, by name or by IP address, and a port. A name is resolved anew
    /// for every attempt to connect.
    Tcp {
        /// A name or an IP address.
        host: String,
        /// The port.
        port: u16,
    },
    /// A socket in the file system.
    Unix(PathBuf),
}

impl Address {
    /// Returns whether the address is on this machine: a Unix socket,
    /// `localhost` or a loopback IP.
    pub(crate) fn is_local(&self) -> bool {
        match self {
            Self::Unix(_) => true,
            Self::Tcp { host, .. } => {
                let ip = host.parse::<std::net::IpAddr>();
                host == "localhost" || ip.is_ok_and(|ip| ip.is_loopback())
            }
        }
    }
}

/// How connections to a control plane are made secure.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Security {
    /// Not at all.
    Plaintext,
    /// By TLS.
    Tls(TlsOptions),
}

/// TLS of a client. Files are read anew when they change.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TlsOptions {
    /// The authorities that are trusted; those of the system if it is `None`.
    pub ca: Option<Pem>,
    /// The client's own certificate and its key.
    pub certificate: Option<(Pem, Pem)>,
    /// The name that the server's certificate must have, and that is sent as
    /// SNI; the host of the address if it is `None`.
    pub server_name: Option<String>,
}

/// A text in PEM.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Pem {
    /// In a file.
    File(PathBuf),
    /// In the configuration.
    Inline(Vec<u8>),
}

impl std::fmt::Debug for Pem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::File(path) => f.debug_tuple("File").field(path).finish(),
            Self::Inline(_) => f.write_str("[redacted]"),
        }
    }
}

/// What is known of a server: `server_features` of gRPC's bootstrap (C4).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Features {
    /// `fail_on_data_errors`: a resource with a data error is dropped (C41).
    pub fail_on_data_errors: bool,
    /// `resource_timer_is_transient_error`: a name without a response is
    /// unavailable for now (C35).
    pub resource_timer_is_transient_error: bool,
    /// `ignore_resource_deletion`: deletions of listeners and clusters are
    /// ignored (A53).
    pub ignore_resource_deletion: bool,
    /// `trusted_xds_server`: it may decide more (A81).
    pub trusted: bool,
    /// `dynamic_parameters`: it takes resource locators (TP2).
    pub locators: bool,
}
