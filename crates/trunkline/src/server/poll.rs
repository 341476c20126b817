//! REST polling: one request, one answer, and nothing is kept (S67).

use std::sync::Arc;

use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderValue, Request, Response, StatusCode};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use tonic::body::Body;
use tonic::{Code, Status};
use trunkline_core::kind::Kind;
use trunkline_core::message::{Mode, SotwResponse};
use trunkline_core::resource::Version;
use trunkline_core::resource_list::ResourceList;
use trunkline_core::session::Session;

use super::admit;
use super::report::{Report, Sent};
use super::services::call_of;
use super::shared::Shared;
use super::stream::Stream;
use crate::rest::{self, RestError, RestLimits};

const JSON: HeaderValue = HeaderValue::from_static("application/json");

/// Answers a poll for a type.
pub(super) async fn answer(
    shared: Arc<Shared>,
    kind: &'static str,
    request: Request<Body>,
) -> Response<Body> {
    let call = call_of(&request);
    let (_admission, identity) = match admit::admit(&shared, &call).await {
        Ok(admitted) => admitted,
        Err(status) => return refusal(code_of(&status), status.message()),
    };
    let limits = limits(&shared);
    let body = match Limited::new(request.into_body(), limits.body_bytes)
        .collect()
        .await
    {
        Ok(body) => body.to_bytes(),
        Err(error) if error.is::<LengthLimitError>() => {
            let limit = limits.body_bytes;
            return wrong(&RestError::TooLarge { limit });
        }
        // Nobody is left to read an answer.
        Err(_) => return empty(StatusCode::BAD_REQUEST),
    };
    let bytes = body.len();
    let mut read = match rest::read(kind, &body, &limits) {
        Ok(read) => read,
        Err(error) => return wrong(&error),
    };
    let held = read.request.version.take();
    let only = (Mode::Sotw, Some(kind.into()));
    let stream = Stream::new(Arc::clone(&shared), only, call.connection, identity);
    let stream = Arc::new(stream);
    let response = ask(&stream, read, bytes);
    if held.as_ref() == Some(&response.version) {
        return empty(StatusCode::NOT_MODIFIED);
    }
    // A large set takes a while to write.
    let written = tokio::task::spawn_blocking(move || {
        let written = rest::write(&response, &shared.options.identifier);
        // What is left out of a whole set would be deleted by who polls (S38).
        if let Some(lost) = written.left_out.first()
            && Kind::of(&response.type_url).whole_set
        {
            let why = format!("{}: {}; poll by gRPC instead", lost.name, lost.loss);
            return Err(why);
        }
        let body = written.body;
        stream.report(Report::Sent(Sent {
            type_url: &response.type_url,
            nonce: &response.nonce,
            resources: &response.resources,
            removed: &[],
            bytes: body.len(),
        }));
        Ok(body)
    });
    match written.await {
        Ok(Ok(body)) => json(StatusCode::OK, body),
        Ok(Err(why)) => refusal(StatusCode::INTERNAL_SERVER_ERROR, &why),
        Err(_) => empty(StatusCode::INTERNAL_SERVER_ERROR),
    }
}

/// What a stream would be told first.
fn ask(stream: &Arc<Stream>, read: rest::Read, bytes: usize) -> SotwResponse {
    let (shared, request) = (&stream.shared, read.request);
    let type_url = request.type_url.clone().unwrap_or_else(|| "".into());
    stream.introduce(request.node.as_ref().map(|node| &node.id));
    stream.report(Report::Requested {
        type_url: &type_url,
        bytes,
    });
    let denied = !stream.may_see(&type_url);
    let now = shared.hub.now();
    let mut session = shared.with(|db| Session::open(db, stream.config()));
    stream.set_node(&mut session, &mut None, &read.node);
    if denied {
        session.deny(type_url.clone());
    }
    let handled = shared.with(|db| session.handle_sotw(db, request, now));
    let response = handled.ok().and_then(|()| shared.answer(&mut session, now));
    let response = response.and_then(trunkline_core::message::Response::into_sotw);
    shared.close(session);
    // Nothing to say is said, too: who polls waits for an answer.
    response.unwrap_or_else(|| SotwResponse {
        type_url,
        version: Version::of_hash(0),
        nonce: "1".into(),
        resources: ResourceList::Own(Vec::new()),
        errors: Vec::new(),
    })
}

fn limits(shared: &Shared) -> RestLimits {
    let options = &shared.options;
    RestLimits {
        body_bytes: options.request_bytes,
        name_bytes: options.limits.name_bytes,
        names: options.limits.subscriptions,
        metadata: !shared.rules.is_empty(),
        ..RestLimits::default()
    }
}

/// The answer to a request that is not a `POST`.
pub(super) fn not_a_poll() -> Response<Body> {
    empty(StatusCode::METHOD_NOT_ALLOWED)
}

fn wrong(error: &RestError) -> Response<Body> {
    json(error.status(), error.to_json())
}

fn code_of(status: &Status) -> StatusCode {
    match status.code() {
        Code::Unauthenticated => StatusCode::UNAUTHORIZED,
        Code::PermissionDenied => StatusCode::FORBIDDEN,
        Code::ResourceExhausted => StatusCode::TOO_MANY_REQUESTS,
        _ => StatusCode::SERVICE_UNAVAILABLE,
    }
}

fn refusal(code: StatusCode, why: &str) -> Response<Body> {
    let message = serde_json::Value::from(why);
    json(
        code,
        format!(r#"{{"code":{},"message":{message}}}"#, code.as_u16()),
    )
}

fn json(code: StatusCode, body: String) -> Response<Body> {
    let body = http_body_util::Full::new(Bytes::from(body));
    let mut response = Response::new(Body::new(body));
    *response.status_mut() = code;
    response.headers_mut().insert(CONTENT_TYPE, JSON);
    response
}

fn empty(code: StatusCode) -> Response<Body> {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = code;
    response
}
