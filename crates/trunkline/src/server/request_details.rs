//! The contents of a request, copied for hooks that read them.

use trunkline_core::message::{ErrorDetail, Locator, Request};
use trunkline_core::resource::Nonce;

use super::report::RequestDetails;

/// The maximum of names that are copied of one list: a client that reconnects
/// lists all of its names.
const MOST_NAMES: usize = 16;
/// The longest copy of a name, in characters.
const LONGEST_NAME: usize = 256;
/// The longest copy of an error, in characters.
const LONGEST_ERROR: usize = 4096;

impl RequestDetails {
    /// Copies the contents of a request, as far as the limits allow.
    pub(super) fn of(request: &Request) -> Self {
        match request {
            Request::Sotw(request) => {
                let (nonce, error) = (&request.nonce, &request.error);
                Self {
                    version: request.version.clone(),
                    ..Self::of_parts(&request.names, &[], nonce, error)
                }
            }
            Request::Delta(request) => {
                let (nonce, error) = (&request.nonce, &request.error);
                Self::of_parts(&request.subscribe, &request.unsubscribe, nonce, error)
            }
        }
    }

    /// Copies the parts that requests of both protocols have.
    fn of_parts(
        names: &[Locator],
        unsubscribed: &[Locator],
        nonce: &Option<Nonce>,
        error: &Option<ErrorDetail>,
    ) -> Self {
        Self {
            names: copy_names(names),
            more: names.len().saturating_sub(MOST_NAMES),
            unsubscribed: copy_names(unsubscribed),
            more_unsubscribed: unsubscribed.len().saturating_sub(MOST_NAMES),
            nonce: nonce.clone(),
            version: None,
            error: error
                .as_ref()
                .map(|error| cut(&error.message, LONGEST_ERROR)),
        }
    }
}

/// Copies the first names of a list, each cut to some length.
fn copy_names(names: &[Locator]) -> Vec<String> {
    let names = names.iter().take(MOST_NAMES);
    names
        .map(|locator| cut(&locator.name, LONGEST_NAME))
        .collect()
}

/// Copies the first characters of a text, at most `max_chars`.
fn cut(text: &str, max_chars: usize) -> String {
    text.chars().take(max_chars).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use trunkline_core::message::DeltaRequest;

    #[test]
    fn long_requests_are_cut() {
        let locator = |name: String| Locator::from(name.as_str());
        let request = DeltaRequest {
            subscribe: (0..20).map(|n| locator(format!("{n}"))).collect(),
            unsubscribe: vec![locator("x".repeat(1000))],
            nonce: Some("7".into()),
            ..DeltaRequest::default()
        };
        let details = RequestDetails::of(&Request::Delta(request));
        assert_eq!((details.names.len(), details.more), (16, 4));
        assert_eq!(details.unsubscribed, ["x".repeat(LONGEST_NAME)]);
        assert_eq!(details.more_unsubscribed, 0);
        assert_eq!(details.nonce, Some("7".into()));
        assert_eq!(details.error, None);
    }
}
