//! Bootstraps of clients: files as data, and the rules that they follow.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test that fails says where"
)]

mod envoy;
mod files;
mod grpc;
mod resolve;

use trunkline::client::{ApiSource, Bootstrap, ConfigError, ConfigSource, Specifier};

/// The control planes of a source.
fn api(source: Option<&ConfigSource>) -> &ApiSource {
    match source.map(|source| &source.specifier) {
        Some(Specifier::Api(api)) => api,
        other => panic!("no control planes: {other:?}"),
    }
}

/// The mistakes, a line for each.
fn mistakes(read: Result<Bootstrap, ConfigError>) -> Vec<String> {
    let error = read.expect_err("it has mistakes");
    error.to_string().lines().map(str::to_owned).collect()
}
