//! Virtual hosts on demand, as Envoy subscribes to them when the first request
//! for a host comes.

use trunkline::{Hooks, Peer, Report, Resource, kind};

use super::view;

/// Prints on-demand subscriptions, and their answers.
pub(super) struct Live;

impl Hooks for Live {
    /// Prints a line for each virtual host that a client requests or is sent.
    /// Skips the client of the demo itself.
    fn report(&self, peer: Peer<'_>, report: Report<'_>) {
        // The client of the demo prints its own requests and responses.
        if peer.node == view::NODE {
            return;
        }
        match report {
            Report::HostsRequested { names, .. } => {
                for name in names {
                    println!("  ? vhds {name:<28} {} asks", peer.node);
                }
            }
            Report::Sent(sent) if sent.type_url.as_str() == kind::VHDS => {
                for delivery in sent.resources {
                    print_answer(&delivery.resource);
                }
            }
            _ => {}
        }
    }
}

/// Prints the version of a virtual host that a client is sent, or that the host
/// does not exist: then it has no body.
fn print_answer(resource: &Resource) {
    let answer = match &resource.body {
        Some(_) => resource.version.to_string(),
        None => "does not exist".to_owned(),
    };
    println!("  ! vhds {:<28} {answer}", resource.name.as_str());
}
