//! A role that dials: one stream after the other, with jittered exponential
//! back-off between them (M12).

use std::hash::{BuildHasher as _, RandomState};

use trunkline_core::sink::{Backoff, BackoffConfig};

use super::accept::Role;
use super::link::{Ended, Form, Link, Why};
use crate::client::transport::{Connector, TransportOptions};
use crate::client::{ControlPlane, Security};

/// Dials a peer and plays the role on the stream, again and again, until the
/// future is dropped. Waits between attempts, less after a stream on which a
/// message came.
pub(super) async fn dial<R: Role>(role: R, peer: ControlPlane, backoff: BackoffConfig) {
    let connector = Connector::new(TransportOptions {
        max_message: R::LONGEST,
        ..TransportOptions::default()
    });
    let mut backoff = Backoff::new(backoff, RandomState::new().hash_one(0));
    loop {
        let ended = dial_once(role.clone(), &connector, &peer).await;
        let address = &peer.address;
        match &ended.why {
            Why::Lost(reason) => tracing::warn!(peer = %address, reason, "disconnected"),
            Why::Refused(status) => {
                tracing::warn!(peer = %address, reason = status.message(), "ended");
            }
        }
        tokio::time::sleep(backoff.after_stream(ended.heard)).await;
    }
}

/// Dials a peer, and plays the role on the stream until it ends.
async fn dial_once<R: Role>(role: R, connector: &Connector, peer: &ControlPlane) -> Ended {
    let (method, wire) = role.dialled_method();
    match connector.open(peer, method).await {
        Ok(stream) => {
            let mut link = Link {
                peer: peer.address.to_string(),
                // The other end of TLS has shown who it is.
                is_for_secrets: peer.security != Security::Plaintext || peer.address.is_local(),
                wire,
                bounds: None,
                form: Form::Dialled(Box::new(stream)),
            };
            role.run(&mut link).await
        }
        Err(error) => Ended {
            heard: false,
            why: Why::Lost(error.to_string()),
        },
    }
}
