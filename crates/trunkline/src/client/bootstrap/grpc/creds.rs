//! `channel_creds` and `call_creds` of a server.

use std::path::PathBuf;

use super::super::problem::Problem;
use super::super::tree::Part;
use super::files;
use crate::client::{Security, TlsOptions};

/// Reads how connections are made secure: by the first type that is supported
/// (C2).
pub(super) fn channel(server: &Part<'_, '_>) -> Option<Security> {
    let all = server.items("channel_creds");
    if all.is_empty() {
        server.list_or_none("channel_creds")?;
        let remedy = "add channel_creds: [{type: insecure}], or tls";
        return server.scope.missing("channel_creds", remedy);
    }
    let mut others = Vec::new();
    for creds in &all {
        let Some(kind) = creds.get("type") else {
            return creds.scope.missing("type", "write insecure or tls");
        };
        match kind.text()? {
            "insecure" => return Some(Security::Plaintext),
            "tls" => return tls(creds).map(Security::Tls),
            other => others.push(other),
        }
    }
    let types = others.join(", ");
    let scope = server.scope.field("channel_creds");
    scope.mistake(Problem::Credentials { types })
}

/// TLS with files (A65); the authorities of the system without them.
fn tls(creds: &Part<'_, '_>) -> Option<TlsOptions> {
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

/// Reads the file with the token of every stream (A97); `Some(None)` if there
/// is none. Credentials that are not supported are ignored.
pub(super) fn call(server: &Part<'_, '_>) -> Option<Option<PathBuf>> {
    for creds in server.items("call_creds") {
        if creds.text_of("type")? != Some("jwt_token_file") {
            continue;
        }
        let config = creds.get("config");
        let path = config
            .as_ref()
            .map_or(Some(None), |c| c.text_of("jwt_token_file"))?;
        return match path {
            Some(path) => Some(Some(PathBuf::from(path))),
            None => creds
                .scope
                .missing("config.jwt_token_file", "name the file"),
        };
    }
    Some(None)
}
