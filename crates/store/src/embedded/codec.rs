//! Rows to records and back.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use prost::Message as _;
use trunkline::checked::{Row, RowKey};
use trunkline::wire::{Intake, KeptResource, read_constraints, write_constraints};
use trunkline::{Name, Resource, StoreError, Version};
use trunkline_core::params::Constraints;
use trunkline_proto::discovery::DynamicParameterConstraints;

use super::message::{KeyRecord, RowRecord};
use super::seal::hash;

/// Returns the record of a row's key.
pub(super) fn write_key(key: &RowKey) -> KeyRecord {
    KeyRecord {
        origin: key.origin.to_string(),
        type_url: key.type_url.to_string(),
        name: key.name.to_string(),
        constraints: key.constraints.as_ref().map(encode_constraints),
    }
}

/// Returns the record of a row without its body, whose hash is in the record.
pub(super) fn write_row(row: &Row) -> RowRecord {
    let resource = &row.resource;
    let rare = resource.facts().rare.as_deref();
    let nanos = |ttl: Duration| u64::try_from(ttl.as_nanos()).unwrap_or(u64::MAX);
    RowRecord {
        version: resource.version.to_string(),
        ttl_nanos: resource.ttl.map(nanos),
        aliases: resource.aliases.iter().map(ToString::to_string).collect(),
        body: body_hash(resource).to_be_bytes().to_vec(),
        metadata: rare.and_then(|rare| rare.metadata.as_ref().map(|bytes| bytes.to_vec())),
        do_not_cache: rare.is_some_and(|rare| rare.do_not_cache),
        wrapper_constraints: row.wrapper_constraints.as_ref().map(encode_constraints),
        is_inline_host: row.is_inline_host,
    }
}

/// Returns the hash of the body of a resource.
pub(super) fn body_hash(resource: &Resource) -> u128 {
    hash(resource.body.as_deref().unwrap_or_default())
}

/// Returns the hash of the body of a row.
///
/// # Errors
/// The record has none.
pub(super) fn hash_of(record: &RowRecord) -> Result<u128, StoreError> {
    let bytes = record.body.as_slice().try_into();
    let bytes = bytes.map_err(|_| unreadable("a row", "it has no body"))?;
    Ok(u128::from_be_bytes(bytes))
}

/// Reads rows. Strings that they have in common are kept once.
#[derive(Default)]
pub(super) struct RowReader {
    intake: Intake,
    origin: Option<Arc<str>>,
}

impl RowReader {
    /// Reads a row from its key, its record and its body.
    ///
    /// # Errors
    /// A part of the row is malformed.
    pub(super) fn read(
        &mut self,
        key: KeyRecord,
        record: RowRecord,
        body: Bytes,
    ) -> Result<(RowKey, Row), StoreError> {
        let constraints = decode_constraints(key.constraints.as_deref())?;
        let type_url = self.intake.type_url(&key.type_url);
        let kept = KeptResource {
            name: Name::new(&key.name),
            aliases: record
                .aliases
                .iter()
                .map(|alias| Name::new(alias))
                .collect(),
            constraints: constraints.clone(),
            version: Version::new(&record.version),
            ttl: record.ttl_nanos.map(Duration::from_nanos),
            body,
            metadata: record.metadata.map(Bytes::from),
            do_not_cache: record.do_not_cache,
        };

        let resource = self.intake.restore(&type_url, kept);
        let resource =
            resource.map_err(|error| unreadable(&format!("{:?}", key.name), &error.to_string()))?;
        let name = resource.name.clone();
        let row = Row {
            resource: Arc::new(resource),
            wrapper_constraints: decode_constraints(record.wrapper_constraints.as_deref())?,
            is_inline_host: record.is_inline_host,
        };

        let key = RowKey {
            origin: self.share_origin(&key.origin),
            type_url,
            name,
            constraints,
        };
        Ok((key, row))
    }

    /// Returns a shared copy of the name of an origin: consecutive rows of one
    /// origin have the same.
    fn share_origin(&mut self, name: &str) -> Arc<str> {
        match &self.origin {
            Some(origin) if **origin == *name => Arc::clone(origin),
            _ => {
                let origin: Arc<str> = name.into();
                self.origin = Some(Arc::clone(&origin));
                origin
            }
        }
    }
}

fn encode_constraints(constraints: &Constraints) -> Vec<u8> {
    write_constraints(constraints.expr()).encode_to_vec()
}

/// Decodes the constraints of a record; `None` if it has none.
fn decode_constraints(bytes: Option<&[u8]>) -> Result<Option<Constraints>, StoreError> {
    let Some(bytes) = bytes else {
        return Ok(None);
    };
    let message = DynamicParameterConstraints::decode(bytes)
        .map_err(|error| unreadable("constraints", &error.to_string()))?;
    let expr = read_constraints(&message);
    let expr = expr.map_err(|error| unreadable("constraints", &error.to_string()))?;

    let constraints = Constraints::new(&expr);
    constraints
        .map(Some)
        .map_err(|error| unreadable("constraints", &error.to_string()))
}

/// Makes the error of a record that makes no sense.
pub(super) fn unreadable(subject: &str, reason: &str) -> StoreError {
    StoreError::Damaged {
        what: subject.to_owned(),
        reason: reason.to_owned(),
    }
}
