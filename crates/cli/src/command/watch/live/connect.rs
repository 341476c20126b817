//! The client that the flags describe.

use std::fs::File;
use std::path::Path;

use trunkline::client::{
    Address, Bootstrap, Client, ClientBuilder, ControlPlane, Pem, Security, TlsOptions,
};

use crate::cli;
use crate::failure::{Failure, Result};

/// The node id without `--node`.
const NODE: &str = "trunkline-watch";

/// The control planes of a client, for people.
pub(super) struct Servers {
    pub(super) shown: String,
    /// What to look at if none of them can be reached.
    pub(super) hint: &'static str,
}

/// Prepares the client of the flags.
///
/// # Errors
/// An address, a file or a parameter is wrong.
pub(super) fn builder(args: &cli::Watch) -> Result<(ClientBuilder, Servers)> {
    let (builder, servers, params) = match &args.plane.bootstrap {
        Some(path) => of_bootstrap(path)?,
        None => of_servers(args)?,
    };
    let builder = match args.nodes.first() {
        Some(id) => builder.node_id(id),
        None => builder,
    };
    let params = params.iter().chain(&args.plane.params);
    let params = params.map(|(key, value)| (key.as_str(), value.as_str()));
    let builder = builder.params(params);
    let wrong = |error| Failure::usage(format!("--param: {error}"));
    Ok((builder.map_err(wrong)?, servers))
}

/// A client, its servers, and the parameters that it has by itself.
type Prepared = (ClientBuilder, Servers, Vec<(String, String)>);

fn of_bootstrap(path: &Path) -> Result<Prepared> {
    let shown = path.display();
    let bootstrap = Bootstrap::from_path(path)
        .map_err(|error| Failure::usage(format!("--bootstrap {shown}: {error}")))?;
    for warning in &bootstrap.warnings {
        eprintln!("warning: {warning}");
    }
    let servers = bootstrap.servers().map(|one| one.address.to_string());
    let servers = Servers {
        shown: servers.collect::<Vec<_>>().join(", "),
        hint: "its address and its TLS are in the bootstrap",
    };
    let params = bootstrap.parameters.all.iter();
    let params = params.map(|(key, value)| (key.to_owned(), value.to_owned()));
    let params = params.collect();
    Ok((Client::builder().bootstrap(bootstrap), servers, params))
}

fn of_servers(args: &cli::Watch) -> Result<Prepared> {
    let mut builder = Client::builder().node_id(NODE);
    if args.plane.sotw {
        builder = builder.state_of_the_world();
    }
    for text in &args.plane.servers {
        builder = builder.control_plane(control_plane(text, args)?);
    }
    let servers = Servers {
        shown: args.plane.servers.join(", "),
        hint: "--server is the xDS address of a control plane, and https:// before it speaks TLS",
    };
    Ok((builder, servers, Vec::new()))
}

/// Reads an address of `--server`, with the flags that concern it.
fn control_plane(text: &str, args: &cli::Watch) -> Result<ControlPlane> {
    let remote = &args.remote;
    if remote.token_file.is_some() && std::env::var_os("TRUNKLINE_TOKEN_FILE").is_none() {
        return Err(Failure::usage(
            "--token-file is for the admin address of a Trunkline server; the token of --server \
             is given with --server-token-file",
        ));
    }
    let (address, is_secure) = match text.split_once("://") {
        Some(("https", rest)) => (rest, true),
        Some(("http", rest)) => (rest, false),
        _ => (text, remote.tls_ca.is_some() || remote.tls_cert.is_some()),
    };
    let address: Address = address
        .trim_end_matches('/')
        .parse()
        .map_err(|error| Failure::usage(format!("--server {text}: {error}")))?;
    let token_file = args.plane.server_token_file.clone();
    let mut plane = ControlPlane::plaintext(address);
    if is_secure {
        plane.security = Security::Tls(tls(args)?);
    }
    if let Some(path) = &token_file {
        check_file("--server-token-file", path)?;
    }
    plane.token_file = token_file;
    Ok(plane)
}

fn tls(args: &cli::Watch) -> Result<TlsOptions> {
    let cli::Remote {
        tls_ca,
        tls_cert,
        tls_key,
        ..
    } = &args.remote;
    let files = [
        ("--tls-ca", tls_ca),
        ("--tls-cert", tls_cert),
        ("--tls-key", tls_key),
    ];
    for (flag, path) in files {
        if let Some(path) = path {
            check_file(flag, path)?;
        }
    }
    let certificate = tls_cert.clone().zip(tls_key.clone());
    Ok(TlsOptions {
        ca: tls_ca.clone().map(Pem::File),
        certificate: certificate.map(|(cert, key)| (Pem::File(cert), Pem::File(key))),
        server_name: args.plane.tls_name.clone(),
    })
}

/// Checks that a file of a flag can be read: the client reads it later, and
/// again and again.
fn check_file(flag: &str, path: &Path) -> Result<()> {
    let shown = path.display();
    match File::open(path) {
        Ok(_) => Ok(()),
        Err(error) => Err(Failure::usage(format!("{flag} {shown}: {error}"))),
    }
}
