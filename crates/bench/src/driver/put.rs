//! Encoded resources over HTTP: the way of the servers that the tool starts,
//! and of other servers that have a small program around them.
//!
//! `POST /resources` with an encoded `DiscoveryResponse` of one type: its
//! resources are added or replaced, together. One that is not for all clients
//! is in a `Resource`, which has its constraints. `DELETE /resources` with an
//! encoded `DeltaDiscoveryResponse`: the names in it are removed.

use bytes::Bytes;
use http::Method;
use prost::Message as _;
use trunkline::BoxFuture;
use trunkline_proto::discovery::{Any, DeltaDiscoveryResponse, DiscoveryResponse};

use super::http::Http;
use super::{Driver, Put};
use crate::contents::Kind;
use crate::error::Result;

/// See the module's documentation.
#[derive(Debug)]
pub(super) struct ByHttp(Http);

impl ByHttp {
    pub(super) fn new(url: &str) -> Result<Self> {
        Ok(Self(Http::new(url)?))
    }
}

impl Driver for ByHttp {
    fn put<'a>(&'a mut self, resources: &'a [Put]) -> BoxFuture<'a, Result<()>> {
        Box::pin(async move {
            for kind in Kind::ALL {
                let of_kind = resources.iter().filter(|put| put.place.kind == kind);
                let resources: Vec<Any> = of_kind.map(Put::to_any).collect();
                if resources.is_empty() {
                    continue;
                }
                let message = DiscoveryResponse {
                    type_url: kind.url().to_owned(),
                    resources,
                    ..DiscoveryResponse::default()
                };
                let body = Bytes::from(message.encode_to_vec());
                let kind = "application/x-protobuf";
                self.0.send(Method::POST, "/resources", kind, body).await?;
            }
            Ok(())
        })
    }

    fn remove<'a>(&'a mut self, resources: &'a [Put]) -> BoxFuture<'a, Result<()>> {
        Box::pin(async move {
            for kind in Kind::ALL {
                let of_kind = || resources.iter().filter(|put| put.place.kind == kind);
                if of_kind().next().is_none() {
                    continue;
                }
                let plain = of_kind().filter(|put| put.constraints.is_none());
                let message = DeltaDiscoveryResponse {
                    type_url: kind.url().to_owned(),
                    removed_resources: plain.map(|put| put.name.clone()).collect(),
                    removed_resource_names: of_kind().filter_map(Put::variant_name).collect(),
                    ..DeltaDiscoveryResponse::default()
                };
                let body = Bytes::from(message.encode_to_vec());
                let kind = "application/x-protobuf";
                self.0
                    .send(Method::DELETE, "/resources", kind, body)
                    .await?;
            }
            Ok(())
        })
    }
}
