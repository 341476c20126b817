//! `channel_creds` and `call_creds` of a server.

use std::path::PathBuf;

use super::super::problem::Problem;
use super::super::tree::Part;
use super::files;
use crate::client::{Security, TlsOptions};

/// Reads how connections to a server are made secure: by the first of its
/// `channel_creds` whose type is supported (C2). Returns `None` after a mistake.
pub(super) fn read_channel(server: &Part<'_, '_>) -> Option<Security> {
    let channel_creds = server.items("channel_creds");
    if channel_creds.is_empty() {
        server.list_or_none("channel_creds")?;
        let remedy = "add channel_creds: [{type: insecure}], or tls";
        return server.scope.missing("channel_creds", remedy);
    }

    let mut unsupported_types = Vec::new();
    for creds in &channel_creds {
        let Some(kind) = creds.get("type") else {
            return creds.scope.missing("type", "write insecure or tls");
        };
        match kind.text()? {
            "insecure" => return Some(Security::Plaintext),
            "tls" => return read_tls(creds).map(Security::Tls),
            unsupported_type => unsupported_types.push(unsupported_type),
        }
    }

    let types = unsupported_types.join(", ");
    let scope = server.scope.field("channel_creds");
    scope.mistake(Problem::Credentials { types })
}

/// Reads the files of TLS (A65). Without a `config`, the certificate
/// authorities of the system are trusted.
fn read_tls(creds: &Part<'_, '_>) -> Option<TlsOptions> {
    let Some(config) = creds.get("config") else {
        return Some(TlsOptions::default());
    };
    let files = files::read(&config)?;
    Some(TlsOptions {
        ca: files.ca.map(files::pem),
        certificate: files
            .certificate
            .map(|(chain, key)| (files::pem(chain), files::pem(key))),
        server_name: None,
    })
}

/// Reads the name of the file with the token of every stream (A97). Returns
/// `Some(None)` if no credentials name one; credentials of other types are
/// ignored.
pub(super) fn read_token_file(server: &Part<'_, '_>) -> Option<Option<PathBuf>> {
    for creds in server.items("call_creds") {
        if creds.text_of("type")? != Some("jwt_token_file") {
            continue;
        }
        let config = creds.get("config");
        let path = config
            .as_ref()
            .map_or(Some(None), |config| config.text_of("jwt_token_file"))?;
        return match path {
            Some(path) => Some(Some(PathBuf::from(path))),
            None => creds
                .scope
                .missing("config.jwt_token_file", "name the file"),
        };
    }
    Some(None)
}
