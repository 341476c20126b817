//! The fields that are supported, and the search for others that are set (C57).
//!
//! gRPC ignores what it does not support, so that a control plane may serve old
//! and new clients; an operator still wants to know. A table has the supported
//! fields of some messages. A body is searched as bytes, along the table, with
//! no descriptor and no allocation unless there is something to tell.

mod list;
mod scan;
mod table;
#[cfg(test)]
mod tests;

use std::sync::{Arc, LazyLock};

pub use list::FieldsError;
use table::Table;

/// The fields that are supported, message by message.
///
/// A message that is not in the list is supported as a whole. A list is a text:
/// the full name of a message, and its fields in the lines after it, indented.
/// Lines that begin with `#` are comments.
///
/// ```
/// use trunkline_proto::acceptance::{Policy, SupportedFields, decode};
/// use trunkline_proto::envoy::envoy::config::cluster::v3::Cluster;
///
/// let fields = SupportedFields::parse(
///     "envoy.config.cluster.v3.Cluster
///        name type",
/// )
/// .unwrap();
/// let mut policy = Policy::generic();
/// policy.fields = Some(fields.into());
/// // name: "c", respect_dns_ttl: true
/// let body = bytes::Bytes::from_static(b"\x0a\x01c\xb8\x02\x01");
/// let accepted = decode::<Cluster>(&body, &policy).unwrap();
/// assert_eq!(accepted.report.unsupported, ["respect_dns_ttl"]);
/// ```
#[derive(Debug)]
pub struct SupportedFields {
    table: Table,
}

/// What gRPC supports, by its gRFCs.
const GRPC: &str = include_str!("grpc.txt");

static OF_GRPC: LazyLock<Arc<SupportedFields>> = LazyLock::new(|| {
    #[expect(
        clippy::expect_used,
        reason = "the text is a constant, and a test of this module reads it"
    )]
    Arc::new(SupportedFields::parse(GRPC).expect("the list of gRPC's fields is valid"))
});

impl SupportedFields {
    /// Returns the fields that gRPC supports.
    #[must_use]
    pub fn grpc() -> Arc<Self> {
        OF_GRPC.clone()
    }

    /// Reads a list.
    ///
    /// # Errors
    /// A message or a field does not exist.
    pub fn parse(list: &str) -> Result<Self, FieldsError> {
        Table::parse(list).map(|table| Self { table })
    }

    /// Returns the fields that gRPC supports, and those of another list.
    ///
    /// # Errors
    /// A message or a field does not exist.
    pub fn grpc_and(list: &str) -> Result<Self, FieldsError> {
        Self::parse(&format!("{GRPC}\n{list}"))
    }
}
