//! An endpoint for each round, which answers with the name of its cluster.

use std::net::SocketAddr;

use super::contents::Peer;
use super::name_of;
use crate::{Backend, GrpcBackend};

/// They answer until they are dropped.
#[derive(Debug)]
pub(super) struct Endpoints(Vec<Endpoint>);

#[derive(Debug)]
enum Endpoint {
    Http(Backend),
    Grpc(GrpcBackend),
}

impl Endpoint {
    fn start(peer: Peer, round: usize) -> Self {
        let text = name_of(round);
        match peer {
            Peer::Grpc => Self::Grpc(GrpcBackend::start(&text)),
            Peer::Envoy => Self::Http(Backend::start(&text)),
        }
    }

    fn address(&self) -> SocketAddr {
        match self {
            Self::Http(backend) => backend.address(),
            Self::Grpc(backend) => backend.address(),
        }
    }
}

impl Endpoints {
    /// For round 0 and so many others.
    pub(super) fn start(peer: Peer, rounds: usize) -> Self {
        let all = (0..=rounds).map(|round| Endpoint::start(peer, round));
        Self(all.collect())
    }

    pub(super) fn address(&self, round: usize) -> SocketAddr {
        self.0[round].address()
    }

    /// How many rounds come after the first.
    pub(super) fn rounds(&self) -> usize {
        self.0.len() - 1
    }
}
