//! Virtual hosts on demand, as they are asked for and answered: by Envoy, when
//! the first request for a host comes.

use trunkline::{Hooks, Peer, Report, kind};

use super::view;

/// Prints what clients ask for on demand, and what they are told.
pub(super) struct Live;

impl Hooks for Live {
    fn report(&self, peer: Peer<'_>, report: Report<'_>) {
        // That one prints by itself what it receives.
        if peer.node == view::NODE {
            return;
        }
        match report {
            Report::Asked { names, .. } => {
                for name in names {
                    println!("  ? vhds {name:<28} {} asks", peer.node);
                }
            }
            Report::Sent(sent) if sent.type_url.as_str() == kind::VHDS => {
                for delivered in sent.resources {
                    let resource = &delivered.resource;
                    let answer = match &resource.body {
                        Some(_) => resource.version.to_string(),
                        None => "does not exist".to_owned(),
                    };
                    println!("  ! vhds {:<28} {answer}", resource.name.as_str());
                }
            }
            _ => {}
        }
    }
}
