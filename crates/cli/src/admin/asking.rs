//! Questions over the API: worked on a few at a time, and answered as they are
//! read.

use std::convert::Infallible;

use axum::body::Body;
use axum::extract::FromRequestParts;
use axum::response::{IntoResponse as _, Response};
use bytes::Bytes;
use http::request::Parts;
use http::{StatusCode, header};
use serde::Serialize;
use trunkline::Connection;
use trunkline::questions::{self, Busy, Question};

use super::Shared;
use super::error::Refusal;

/// The paths of questions that take little, and that people ask when something
/// is wrong: they do not wait for lists of contents.
const LIGHT: [&str; 3] = ["/api/v1/status", "/api/v1/types", "/api/v1/explain"];

/// The question of a request.
pub(super) struct Asking(Question);

impl FromRequestParts<Shared> for Asking {
    type Rejection = Infallible;

    /// Registers a question under the address that the request comes from. A
    /// path in [`LIGHT`] asks a light one.
    async fn from_request_parts(parts: &mut Parts, admin: &Shared) -> Result<Self, Infallible> {
        let connection = parts.extensions.get::<Connection>();
        let peer = connection.and_then(|connection| connection.peer);
        let address = peer.map(|peer| peer.ip());
        let questions = admin.server.questions();
        let is_light = LIGHT.contains(&parts.uri.path());
        Ok(Self(match is_light {
            true => questions.ask_light(address),
            false => questions.ask(address),
        }))
    }
}

impl Asking {
    /// Works on the question, aside from streams.
    ///
    /// # Errors
    /// Too many questions wait, or the work panicked.
    pub(super) async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Refusal> {
        self.0
            .run(work)
            .await
            .map_err(busy_refusal)?
            .ok_or_else(panic_refusal)
    }

    /// Counts a list that the answer is made of, until it is read. What the items
    /// refer to is taken for three times as much as they are.
    ///
    /// # Errors
    /// Too many answers are not read yet.
    pub(super) fn hold<T>(&mut self, list: &[T]) -> Result<(), Refusal> {
        self.0.hold(4 * size_of_val(list)).map_err(busy_refusal)
    }

    /// Responds with JSON: `head`, the items with commas between them, and the
    /// result of `tail`. An item is encoded only when the response reaches it.
    ///
    /// # Errors
    /// Too many questions wait, or making the first items panicked.
    pub(super) async fn answer_list<T: Serialize>(
        self,
        head: String,
        items: impl Iterator<Item = T> + Send + 'static,
        tail: impl Fn() -> String + Send + 'static,
    ) -> Result<Response, Refusal> {
        let mut separator = "";
        let items = items.map(move |item| {
            // A value of plain fields can always be serialized.
            let item = serde_json::to_string(&item).unwrap_or_default();
            format!("{}{item}", std::mem::replace(&mut separator, ","))
        });
        let end = std::iter::once_with(tail);
        let texts = std::iter::once(head).chain(items).chain(end);
        self.answer_texts(texts).await
    }

    /// Responds with JSON that is sent part by part.
    ///
    /// # Errors
    /// Too many questions wait, or making the first parts panicked.
    pub(super) async fn answer_texts(
        self,
        mut texts: impl Iterator<Item = String> + Send + 'static,
    ) -> Result<Response, Refusal> {
        let next_part = move || texts.next().map(Bytes::from);
        let body = questions::stream(self.0, next_part).await;
        let body = body.map_err(busy_refusal)?.ok_or_else(panic_refusal)?;

        let headers = [(header::CONTENT_TYPE, "application/json")];
        Ok((headers, Body::new(body)).into_response())
    }
}

/// Makes the error of a question that is not answered now.
fn busy_refusal(busy: Busy) -> Refusal {
    Refusal::new(StatusCode::SERVICE_UNAVAILABLE, busy)
}

/// Makes the error of work that panicked.
fn panic_refusal() -> Refusal {
    Refusal::new(StatusCode::INTERNAL_SERVER_ERROR, "the answer was dropped")
}
