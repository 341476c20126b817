//! A `DiscoveryResponse` from a text, as bytes.

use bytes::Bytes;
use prost::Message as _;
use trunkline_proto::text::{Format, Limits, Options, TextError, Unknown, read_message};

const RESPONSE: &str = "envoy.service.discovery.v3.DiscoveryResponse";

/// Reads a `DiscoveryResponse` as text, of at most `limit` bytes, and returns
/// it encoded. Fields that this build does not know are left out: a server may
/// be newer. With any other mistake all of it is refused, since a set without
/// the resource that has it would say that this is deleted.
pub(super) fn read(
    format: Format,
    name: &str,
    text: &[u8],
    limit: usize,
) -> Result<Bytes, Vec<TextError>> {
    let options = Options {
        unknown: Unknown::Warn,
        limits: Limits {
            bytes: limit,
            ..Limits::default()
        },
        ..Options::default()
    };
    let Ok(text) = std::str::from_utf8(text) else {
        // The reader of documents says where a text is no UTF-8.
        return Err(trunkline_proto::text::read_text_as(format, name, text, &options).errors);
    };
    let read = read_message(RESPONSE, format, name, text, None, &options)?;
    match read.errors.is_empty() {
        true => Ok(read.message.encode_to_vec().into()),
        false => Err(read.errors),
    }
}

/// Returns the first of some mistakes, and how many there are.
pub(super) fn summarize(errors: &[TextError]) -> String {
    match errors {
        [] => String::new(),
        [only] => only.to_string(),
        [first, others @ ..] => format!("{first}; and {} more", others.len()),
    }
}
