//! Messages in one line each, for people who read what happened.

use trunkline_core::kind::Kind;
use trunkline_core::message::{ErrorDetail, Locator};
use trunkline_core::resource::{Nonce, TypeUrl};
use trunkline_core::sink::{Request, Response};

/// The name that people use for a type.
pub(crate) fn short(url: &TypeUrl) -> &str {
    match Kind::of(url).short {
        "" => url.as_str(),
        short => short,
    }
}

pub(super) fn response_type(response: &Response) -> TypeUrl {
    match response {
        Response::Delta(response) => response.type_url.clone(),
        Response::Sotw(response) => response.type_url.clone(),
    }
}

pub(crate) fn request(request: &Request) -> String {
    match request {
        Request::Delta(r) => {
            let url = r.type_url.as_ref().map_or("", short);
            let (plus, minus) = (names(&r.subscribe), names(&r.unsubscribe));
            let held: Vec<_> = r.initial_versions.iter().map(|(name, _)| name).collect();
            format!(
                "{url} +{plus:?} -{minus:?} held={held:?}{}",
                answer(r.nonce.as_ref(), r.error.as_ref())
            )
        }
        Request::Sotw(r) => {
            let url = r.type_url.as_ref().map_or("", short);
            let answer = answer(r.nonce.as_ref(), r.error.as_ref());
            format!(
                "{url} {:?} version={:?}{answer}",
                names(&r.names),
                r.version
            )
        }
    }
}

fn names(locators: &[Locator]) -> Vec<String> {
    let each = locators.iter().map(|locator| match &locator.params {
        None => locator.name.clone(),
        Some(params) => format!("{}{params:?}", locator.name),
    });
    each.collect()
}

fn answer(nonce: Option<&Nonce>, error: Option<&ErrorDetail>) -> String {
    match (nonce, error) {
        (None, _) => String::new(),
        (Some(nonce), None) => format!(" nonce={nonce}"),
        (Some(nonce), Some(error)) => format!(" NACK {nonce}: {}", error.message),
    }
}

pub(crate) fn response(response: &Response) -> String {
    let url = response_type(response);
    let (nonce, resources, removed) = match response {
        Response::Delta(r) => (&r.nonce, &r.resources[..], r.removed.clone()),
        Response::Sotw(r) => (&r.nonce, &r.resources[..], Vec::new()),
    };
    let bodies: Vec<_> = resources
        .iter()
        .map(|d| {
            String::from_utf8_lossy(d.resource.body.as_deref().unwrap_or_default()).into_owned()
        })
        .collect();
    format!("{} #{nonce} {bodies:?} removed={removed:?}", short(&url))
}
