//! The admin API of a Trunkline server.

use bytes::Bytes;
use form_urlencoded::Serializer;
use http::Method;
use trunkline::BoxFuture;

use super::http::Http;
use super::{Driver, Put, json};
use crate::contents::Kind;
use crate::error::Result;

/// See the module's documentation.
#[derive(Debug)]
pub(super) struct Admin(Http);

impl Admin {
    pub(super) fn new(url: &str) -> Result<Self> {
        Ok(Self(Http::new(url)?))
    }
}

impl Driver for Admin {
    fn put<'a>(&'a mut self, resources: &'a [Put]) -> BoxFuture<'a, Result<()>> {
        Box::pin(async move {
            let body = json(resources)?.into();
            let path = "/api/v1/resources";
            self.0
                .send(Method::POST, path, "application/json", body)
                .await?;
            Ok(())
        })
    }

    /// Removes names as a whole: a request does not remove single variants.
    fn remove<'a>(&'a mut self, resources: &'a [Put]) -> BoxFuture<'a, Result<()>> {
        Box::pin(async move {
            for kind in Kind::ALL {
                let query = names(resources, kind);
                if query.is_empty() {
                    continue;
                }
                let path = format!("/api/v1/resources/{}?{query}", kind.short());
                self.0
                    .send(Method::DELETE, &path, "application/json", Bytes::new())
                    .await?;
            }
            Ok(())
        })
    }
}

/// Writes the names of a type as a query.
fn names(resources: &[Put], kind: Kind) -> String {
    let of_kind = resources.iter().filter(|put| put.place.kind == kind);
    let names = of_kind.map(|put| ("name", &put.name));
    let mut query = Serializer::new(String::new());
    query.extend_pairs(names).finish()
}
