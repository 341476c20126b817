//! `xds_servers`: control planes in the order in which they are tried (A71).

use std::sync::Arc;

use trunkline_core::message::Mode;
use trunkline_core::sink::BackoffConfig;

use super::super::problem::Problem;
use super::super::resolve::set_feature;
use super::super::target;
use super::super::tree::Part;
use super::creds;
use crate::client::{ApiSource, ControlPlane, Features, Transport};

/// Reads a list of servers. Returns `Some(None)` if the list is empty or not
/// set, and `None` after a mistake.
pub(super) fn read(part: &Part<'_, '_>, key: &str) -> Option<Option<ApiSource>> {
    let servers: Vec<_> = part.items(key).iter().map(read_server).collect();
    let servers = servers.into_iter().collect::<Option<Vec<_>>>()?;
    let source = (!servers.is_empty()).then(|| ApiSource {
        transport: Transport::Grpc {
            mode: Mode::Sotw,
            aggregated: true,
        },
        servers,
        rate_limit: None,
        backoff: BackoffConfig::default(),
        // C16.
        node_on_first_message_only: true,
    });
    Some(source)
}

/// Reads one server. Returns `None` after a mistake.
fn read_server(part: &Part<'_, '_>) -> Option<Arc<ControlPlane>> {
    let addresses = match part.get("server_uri") {
        None => part
            .scope
            .missing("server_uri", "write such as xds.example.com:443"),
        Some(uri) => uri.text().and_then(|text| match target::parse(text) {
            Ok(addresses) => Some(addresses),
            Err(problem) => uri.scope.mistake(problem),
        }),
    };

    let security = creds::read_channel(part);
    let token_file = creds::read_token_file(part);
    let features = read_features(part);

    let mut addresses = addresses?.into_iter();
    let mut server = ControlPlane {
        security: security?,
        token_file: token_file?,
        features,
        ..ControlPlane::plaintext(addresses.next()?)
    };
    server.alternatives = addresses.collect();
    if server.sends_token_in_plaintext() {
        part.scope.warn(Problem::PlainToken);
    }
    Some(Arc::new(server))
}

/// The spelling of a feature in some places of gRFC A88.
const FAILURE: &str = "resource_timer_is_transient_failure";
const ERROR: &str = "resource_timer_is_transient_error";

/// Reads the features of a server. Unknown ones are ignored (C4).
fn read_features(part: &Part<'_, '_>) -> Features {
    let mut features = Features::default();
    for item in part.items("server_features") {
        match item.text() {
            Some(FAILURE) => {
                set_feature(&mut features, ERROR, true);
                let remedy = "it is taken for resource_timer_is_transient_error; write that";
                item.scope
                    .warn_ignored(format!("the spelling {FAILURE:?}"), remedy);
            }
            Some(name) => {
                set_feature(&mut features, name, true);
            }
            None => {}
        }
    }
    features
}
