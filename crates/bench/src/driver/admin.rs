//! The admin API of a Trunkline server.

use http::Method;
use trunkline::BoxFuture;

use super::http::Http;
use super::{Driver, Put, json};
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
}
