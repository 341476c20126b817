//! The text of a NACK, without the secrets that the client was sent.
//!
//! It is scrubbed where it comes in, before the session, the hooks or the log
//! see it, so that nobody who shows it has to know about secrets.

use std::sync::Arc;

use bytes::Bytes;
use trunkline_core::message::{ErrorDetail, Request};
use trunkline_core::resource::{Resource, TypeUrl};
use trunkline_core::session::Session;
use trunkline_proto::descriptor::types;
use trunkline_proto::redact::{self, MAX_SCRUBBED};

use super::hooks::Limit;
use super::stream::Stream;

/// The most bytes of resources that are decoded to find their secrets, so that
/// a client that NACKs all day costs little.
const MAX_BODIES: usize = 4 * MAX_SCRUBBED;

/// The text in place of one that cannot be compared with all secrets.
const DROPPED: &str =
    "[redacted: the client was sent more secrets than its words can be compared with]";

/// Returns the error of a request; `None` if it is no NACK.
pub(super) fn error_of(request: &mut Request) -> Option<&mut ErrorDetail> {
    match request {
        Request::Sotw(request) => request.error.as_mut(),
        Request::Delta(request) => request.error.as_mut(),
    }
}

impl Stream {
    /// Takes the secrets of a type that the client was sent out of its error.
    /// The text is cut to its limit before, which bounds the work. If the
    /// secrets are too many, all of the text goes.
    pub(super) fn scrub_error(
        &self,
        session: Option<&Session>,
        type_url: Option<&TypeUrl>,
        error: &mut ErrorDetail,
    ) {
        let (Some(session), Some(type_url)) = (session, type_url) else {
            return;
        };
        let resources = self.shared.with(|db| session.sent_secrets(db, type_url));
        if resources.is_empty() {
            return;
        }

        cut(&mut error.message, self.shared.options.limits.error_bytes);
        let secrets = secrets_of(type_url, &resources);
        let text = secrets.and_then(|secrets| redact::scrub(&error.message, &secrets));
        error.message = text.unwrap_or_else(|| {
            self.shared.hooks.limited(Limit::ErrorText);
            DROPPED.to_owned()
        });
    }
}

/// Cuts a text to at most `max_bytes` bytes, at the end of a character.
fn cut(text: &mut String, max_bytes: usize) {
    let end = text.floor_char_boundary(max_bytes);
    text.truncate(end);
}

/// Returns the secrets in resources of a type; `None` if the resources are too
/// large together to be searched.
fn secrets_of(type_url: &TypeUrl, resources: &[Arc<Resource>]) -> Option<Vec<Bytes>> {
    let length = |resource: &Arc<Resource>| resource.body.as_ref().map_or(0, Bytes::len);
    if resources.iter().map(length).sum::<usize>() > MAX_BODIES {
        return None;
    }

    let mut secrets = Vec::new();
    for resource in resources {
        let body = resource.body.clone();
        let in_body = body.and_then(|body| redact::values(type_url.as_str(), body));
        let rare = resource.facts().rare.as_deref();
        let metadata = rare.and_then(|rare| rare.metadata.clone());
        let in_metadata = metadata.and_then(|metadata| redact::values(types::METADATA, metadata));
        secrets.extend(in_body.into_iter().chain(in_metadata).flatten());
    }
    Some(secrets)
}

#[cfg(test)]
mod tests {
    use super::*;
    use trunkline_core::kind;

    #[test]
    fn a_text_is_cut_between_characters() {
        let mut text = "aé".to_owned();
        cut(&mut text, 2);
        assert_eq!(text, "a");
    }

    #[test]
    fn resources_that_are_too_large_are_not_decoded() {
        let body = Bytes::from(vec![0; MAX_BODIES / 2]);
        let one = Arc::new(Resource::new("a".into(), body));
        let few = [Arc::clone(&one), Arc::clone(&one)];
        assert_eq!(secrets_of(&kind::CDS.into(), &few), Some(Vec::new()));
        let many = vec![one; 3];
        assert_eq!(secrets_of(&kind::CDS.into(), &many), None);
    }
}
