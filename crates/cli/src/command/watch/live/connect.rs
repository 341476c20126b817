//! The client that the flags of `watch` describe.

use trunkline::client::ClientBuilder;

use crate::cli;
use crate::command::control_plane::{Dial, Servers};
use crate::failure::{Failure, Result};

/// The node id without `--node`.
const NODE: &str = "trunkline-watch";

/// Makes the builder of the client from the flags.
///
/// # Errors
/// An address, a file or a parameter is wrong.
pub(super) fn make_builder(args: &cli::Watch) -> Result<(ClientBuilder, Servers)> {
    let (plane, remote) = (&args.plane, &args.remote);
    let asks_servers = plane.bootstrap.is_none();
    let has_token = remote.token_file.is_some();
    if asks_servers && has_token && std::env::var_os("TRUNKLINE_TOKEN_FILE").is_none() {
        return Err(Failure::usage(
            "--token-file is for the admin address of a Trunkline server; the token of --server \
             is given with --server-token-file",
        ));
    }

    let cert = remote.tls_cert.as_deref().map(|path| ("--tls-cert", path));
    let key = remote.tls_key.as_deref().map(|path| ("--tls-key", path));
    let token = plane.server_token_file.as_deref();
    let dial = Dial {
        servers: &plane.servers,
        bootstrap: plane.bootstrap.as_ref(),
        sotw: plane.sotw,
        params: &plane.params,
        node: (args.nodes.first(), NODE),
        ca: remote.tls_ca.as_deref().map(|path| ("--tls-ca", path)),
        certificate: cert.zip(key),
        token: token.map(|path| ("--server-token-file", path)),
        tls_name: plane.tls_name.as_ref(),
    };
    dial.builder()
}
