//! A client of any control plane, as flags describe it.

use std::fs::File;
use std::path::{Path, PathBuf};

use trunkline::client::{
    Address, Bootstrap, Client, ClientBuilder, ControlPlane, Pem, Security, TlsOptions,
};

use crate::failure::{Failure, Result};

/// The control planes of a client, for people.
pub(in crate::command) struct Servers {
    pub(in crate::command) shown: String,
    /// What to look at if none of them can be reached.
    pub(in crate::command) hint: &'static str,
}

/// A file, with the flag that names it.
pub(in crate::command) type Flagged<'a> = (&'static str, &'a Path);

/// What flags say of control planes, and of the client.
pub(in crate::command) struct Dial<'a> {
    pub(in crate::command) servers: &'a [String],
    /// A bootstrap in their place.
    pub(in crate::command) bootstrap: Option<&'a PathBuf>,
    pub(in crate::command) sotw: bool,
    pub(in crate::command) params: &'a [(String, String)],
    /// The node id, and that of a client without one.
    pub(in crate::command) node: (Option<&'a String>, &'static str),
    pub(in crate::command) ca: Option<Flagged<'a>>,
    /// A certificate and its key.
    pub(in crate::command) certificate: Option<(Flagged<'a>, Flagged<'a>)>,
    pub(in crate::command) token: Option<Flagged<'a>>,
    /// The name that the certificates of servers are for.
    pub(in crate::command) tls_name: Option<&'a String>,
}

/// A client, its servers, and the parameters that it has by itself.
type BuilderParts = (ClientBuilder, Servers, Vec<(String, String)>);

impl Dial<'_> {
    /// Makes the builder of the client, from the bootstrap or from the flags.
    ///
    /// # Errors
    /// An address, a file or a parameter is wrong.
    pub(in crate::command) fn builder(&self) -> Result<(ClientBuilder, Servers)> {
        let (builder, servers, params) = match self.bootstrap {
            Some(path) => prepare_bootstrap(path)?,
            None => self.prepare_servers()?,
        };
        let builder = match self.node.0 {
            Some(id) => builder.node_id(id),
            None => builder,
        };

        let all_params = params.iter().chain(self.params);
        let all_params = all_params.map(|(key, value)| (key.as_str(), value.as_str()));
        let builder = builder.params(all_params);
        let invalid_param = |error| Failure::usage(format!("--param: {error}"));
        Ok((builder.map_err(invalid_param)?, servers))
    }

    /// Makes the builder of a client for the control planes of `--server`.
    fn prepare_servers(&self) -> Result<BuilderParts> {
        let mut builder = Client::builder().node_id(self.node.1);
        if self.sotw {
            builder = builder.state_of_the_world();
        }
        for text in self.servers {
            builder = builder.control_plane(self.parse_control_plane(text)?);
        }
        let servers = Servers {
            shown: self.servers.join(", "),
            hint: "--server is the xDS address of a control plane, and https:// before it speaks TLS",
        };
        Ok((builder, servers, Vec::new()))
    }

    /// Parses an address of `--server`, and adds the flags for TLS and the
    /// token. Without a scheme, a flag for TLS decides whether TLS is used.
    fn parse_control_plane(&self, text: &str) -> Result<ControlPlane> {
        let (address, is_secure) = match text.split_once("://") {
            Some(("https", address)) => (address, true),
            Some(("http", address)) => (address, false),
            _ => (text, self.ca.is_some() || self.certificate.is_some()),
        };
        let address: Address = address
            .trim_end_matches('/')
            .parse()
            .map_err(|error| Failure::usage(format!("--server {text}: {error}")))?;

        let mut plane = ControlPlane::plaintext(address);
        if is_secure {
            plane.security = Security::Tls(self.tls_options()?);
        }
        plane.token_file = self.token.map(check_file).transpose()?;
        Ok(plane)
    }

    /// Reads the flags for TLS. The files must exist.
    fn tls_options(&self) -> Result<TlsOptions> {
        let file = |path_flag| check_file(path_flag).map(Pem::File);
        let certificate = self.certificate;
        let certificate = certificate.map(|(cert, key)| Ok((file(cert)?, file(key)?)));
        Ok(TlsOptions {
            ca: self.ca.map(file).transpose()?,
            certificate: certificate.transpose()?,
            server_name: self.tls_name.cloned(),
        })
    }
}

/// Makes the builder of a client from a bootstrap. Warnings about the bootstrap
/// go to standard error.
fn prepare_bootstrap(path: &Path) -> Result<BuilderParts> {
    let path_text = path.display();
    let bootstrap = Bootstrap::from_path(path)
        .map_err(|error| Failure::usage(format!("--bootstrap {path_text}: {error}")))?;
    for warning in &bootstrap.warnings {
        eprintln!("warning: {warning}");
    }
    let servers = bootstrap.servers().map(|server| server.address.to_string());

    let servers = Servers {
        shown: servers.collect::<Vec<_>>().join(", "),
        hint: "its address and its TLS are in the bootstrap",
    };
    let params = bootstrap.parameters.all.iter();
    let params = params.map(|(key, value)| (key.to_owned(), value.to_owned()));
    let params = params.collect();
    Ok((Client::builder().bootstrap(bootstrap), servers, params))
}

/// Checks that a file of a flag can be read: the client reads it later, and
/// again and again.
fn check_file((flag, path): Flagged<'_>) -> Result<PathBuf> {
    let shown = path.display();
    match File::open(path) {
        Ok(_) => Ok(path.to_owned()),
        Err(error) => Err(Failure::usage(format!("{flag} {shown}: {error}"))),
    }
}
