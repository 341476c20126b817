//! REST polling: one request, one response, and nothing is kept (S67).

use std::sync::Arc;

use bytes::Bytes;
use http::header::{CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderValue, Request, Response, StatusCode};
use tonic::body::Body;
use tonic::{Code, Status};
use trunkline_core::kind::Kind;
use trunkline_core::message::{self, Mode, SotwResponse, WireResource};
use trunkline_core::resource::Version;
use trunkline_core::resource_list::ResourceList;
use trunkline_core::session::{Event, Session};

use super::admit::{self, Admitted};
use super::hooks::{Call, Limit};
use super::push::take_withheld;
use super::report::{Report, Sent};
use super::shared::Shared;
use super::stream::Stream;
use crate::paths::StreamForm;
use crate::questions::{self, AnswerBody, ArriveError, BodyLimits, Busy, Question};
use crate::rest::{self, RestError, RestLimits};

const JSON: HeaderValue = HeaderValue::from_static("application/json");

/// Why a poll gets no resources.
enum Refusal {
    /// The client was not admitted.
    NotAdmitted(Status),
    /// The body is no poll of this path.
    Unreadable(RestError),
    /// The body ended before its end, so nobody is left to read a reason.
    Broken,
    /// JSON cannot express a resource that may not be left out.
    Inexpressible(String),
    /// Writing the response panicked.
    NotWritten,
    /// Too much is being asked.
    Busy(Busy),
    /// The body did not arrive in time.
    TooSlow,
}

/// Serves a poll for a type: the resources, `304` if the client has this
/// version already, or a reason why it gets none.
pub(super) async fn serve(
    shared: Arc<Shared>,
    kind: &'static str,
    request: Request<Body>,
) -> Response<Body> {
    match poll(shared, kind, request).await {
        Ok(Some(body)) => json_response(StatusCode::OK, Body::new(body)),
        Ok(None) => empty_response(StatusCode::NOT_MODIFIED),
        Err(refusal) => refusal.into_response(),
    }
}

/// Returns the body of the response to a poll; `None` if the client has this
/// version already. The client is admitted like a stream, and counts as one
/// until the body is made.
async fn poll(
    shared: Arc<Shared>,
    kind: &'static str,
    request: Request<Body>,
) -> Result<Option<AnswerBody>, Refusal> {
    let call = Call::of(&request);
    let admitted = admit::admit(&shared, &call).await;
    let Admitted {
        admission: _admission,
        identity,
    } = admitted.map_err(Refusal::NotAdmitted)?;

    let limits = poll_limits(&shared);
    let peer = call.connection.peer.map(|peer| peer.ip());
    let mut question = shared.questions.ask(peer);
    let body = read_body(&shared, request.into_body(), &mut question, &limits).await?;
    let body_bytes = body.len();
    let read = question.run(move || rest::read(kind, &body, &limits)).await;
    let read = read.map_err(Refusal::Busy)?.ok_or(Refusal::NotWritten)?;
    let mut read = read.map_err(Refusal::Unreadable)?;
    question.release();
    // With a version the session would take the client for one that resumes.
    let held_version = read.request.version.take();

    let stream_form = StreamForm {
        mode: Mode::Sotw,
        only: Some(kind.into()),
    };
    let stream = Arc::new(Stream::new(shared, stream_form, call.connection, identity));
    let polled_stream = Arc::clone(&stream);
    let response = question.run(move || first_response(&polled_stream, read, body_bytes));
    let response = response.await.map_err(Refusal::Busy)?;
    let response = response.ok_or(Refusal::NotWritten)?;
    if held_version.as_ref() == Some(&response.version) {
        return Ok(None);
    }
    let body = write_body(question, stream, response).await?;
    Ok(Some(body))
}

/// Writes a response as JSON for as long as its client reads it: a large set
/// takes a while to write, and longer to be read.
async fn write_body(
    mut question: Question,
    stream: Arc<Stream>,
    response: SotwResponse,
) -> Result<AnswerBody, Refusal> {
    let list_bytes = response.resources.len() * size_of::<WireResource>();
    question.hold(list_bytes).map_err(Refusal::Busy)?;
    let pieces = question.run(move || write_json(stream, response)).await;
    let pieces = pieces
        .map_err(Refusal::Busy)?
        .ok_or(Refusal::NotWritten)??;
    let body = questions::stream(question, pieces).await;
    body.map_err(Refusal::Busy)?.ok_or(Refusal::NotWritten)
}

/// Reads the body of a poll. One beyond the limit, or one that is too slow, is
/// refused. Its bytes count for the question.
async fn read_body(
    shared: &Shared,
    body: Body,
    question: &mut Question,
    limits: &RestLimits,
) -> Result<Bytes, Refusal> {
    let limit = limits.body_bytes;
    let mut busy = Busy::Bytes;
    let grow = |bytes| question.hold(bytes).map_err(|error| busy = error).is_ok();
    let bytes = questions::read_body(body, BodyLimits::of(limit), grow).await;
    bytes.map_err(|error| match error {
        ArriveError::TooLong { .. } => Refusal::Unreadable(RestError::TooLarge { limit }),
        ArriveError::TooSlow => {
            shared.hooks.limited(Limit::SlowBodies);
            Refusal::TooSlow
        }
        ArriveError::Broken => Refusal::Broken,
        ArriveError::NoRoom => Refusal::Busy(busy),
    })
}

/// Returns the first response of a stream that would make this request, by a
/// session that is closed again. Reports the request; `bytes` is its length. A
/// poll to which a stream would send nothing gets an empty response.
fn first_response(stream: &Arc<Stream>, read: rest::Read, bytes: usize) -> SotwResponse {
    let (shared, request) = (&stream.shared, read.request);
    let type_url = request.type_url.clone().unwrap_or_else(|| "".into());
    if let Some(node) = &request.node {
        stream.bind_node_id(&node.id);
    }
    stream.report(Report::Requested {
        type_url: &type_url,
        bytes,
        details: None,
    });

    let may_see = stream.may_see(&type_url);
    let now = shared.hub.now();
    let mut session = shared.with(|db| Session::open(db, stream.config()));
    stream.set_node(&mut session, &mut None, &read.node);
    if !may_see {
        session.deny(type_url.clone());
    }
    let result = shared.with_request(|db| session.handle_sotw(db, request, now));
    let response = result
        .ok()
        .and_then(|()| shared.poll_to_end(&mut session, now))
        .and_then(message::Response::into_sotw);
    let withheld = take_withheld(&mut session);
    shared.close(session);
    for event in withheld.iter().filter(|event| is_withheld(event)) {
        stream.report_withheld(event);
    }

    // A stream would be sent nothing, but every poll needs a response.
    response.unwrap_or_else(|| SotwResponse {
        type_url,
        version: Version::of_hash(0),
        nonce: "1".into(),
        resources: ResourceList::Own(Vec::new()),
        errors: Vec::new(),
        removed: Vec::new(),
    })
}

/// Returns whether a resource was withheld.
fn is_withheld(event: &Event) -> bool {
    matches!(event, Event::Withheld { .. })
}

/// Writes a response as JSON, in pieces, and reports it as sent after the last.
/// Refuses a whole set with a resource that JSON cannot express: a client
/// deletes a resource that is left out of it (S38).
fn write_json(
    stream: Arc<Stream>,
    response: SotwResponse,
) -> Result<impl FnMut() -> Option<Bytes> + Send + 'static, Refusal> {
    let (mut pieces, left_out) = rest::pieces(&response, &stream.shared.options.identifier);
    if let Some(resource) = left_out.first()
        && Kind::of(&response.type_url).whole_set
    {
        let reason = format!("{}: {}; poll by gRPC instead", resource.name, resource.loss);
        return Err(Refusal::Inexpressible(reason));
    }

    let mut bytes = 0;
    Ok(move || match pieces.next() {
        Some(piece) => {
            bytes += piece.len();
            Some(Bytes::from(piece))
        }
        None => {
            stream.report(Report::Sent(Sent {
                type_url: &response.type_url,
                nonce: &response.nonce,
                resources: &response.resources,
                removed: &[],
                bytes,
            }));
            None
        }
    })
}

/// Returns the limits of a poll, by the options of the server. Metadata is read
/// only if there are rules, which may need it.
fn poll_limits(shared: &Shared) -> RestLimits {
    let options = &shared.options;
    RestLimits {
        body_bytes: options.request_bytes.min(RestLimits::default().body_bytes),
        name_bytes: options.limits.name_bytes,
        names: options.limits.subscriptions,
        metadata: !shared.rules.is_empty(),
        ..RestLimits::default()
    }
}

/// Returns the response to a request that is not a `POST`.
pub(super) fn wrong_method() -> Response<Body> {
    empty_response(StatusCode::METHOD_NOT_ALLOWED)
}

impl Refusal {
    /// Returns the HTTP response, with the reason as JSON where there is one.
    fn into_response(self) -> Response<Body> {
        match self {
            Self::NotAdmitted(status) => reason_response(http_status(&status), status.message()),
            Self::Unreadable(error) => json_response(error.status(), text_body(error.to_json())),
            Self::Broken => empty_response(StatusCode::BAD_REQUEST),
            Self::Inexpressible(why) => reason_response(StatusCode::INTERNAL_SERVER_ERROR, &why),
            Self::Busy(busy) => {
                let mut response =
                    reason_response(StatusCode::SERVICE_UNAVAILABLE, &busy.to_string());
                let second = HeaderValue::from_static("1");
                response.headers_mut().insert(RETRY_AFTER, second);
                response
            }
            Self::TooSlow => reason_response(
                StatusCode::REQUEST_TIMEOUT,
                &ArriveError::TooSlow.to_string(),
            ),
            Self::NotWritten => empty_response(StatusCode::INTERNAL_SERVER_ERROR),
        }
    }
}

/// Returns the HTTP status for the gRPC status of a client that was not
/// admitted.
fn http_status(status: &Status) -> StatusCode {
    match status.code() {
        Code::Unauthenticated => StatusCode::UNAUTHORIZED,
        Code::PermissionDenied => StatusCode::FORBIDDEN,
        Code::ResourceExhausted => StatusCode::TOO_MANY_REQUESTS,
        // Not loaded yet, or a reason of a hook: the client may poll again.
        _ => StatusCode::SERVICE_UNAVAILABLE,
    }
}

/// Returns a response with a reason, in the form of [`RestError::to_json`].
fn reason_response(code: StatusCode, reason: &str) -> Response<Body> {
    let message = serde_json::Value::from(reason);
    let body = format!(r#"{{"code":{},"message":{message}}}"#, code.as_u16());
    json_response(code, text_body(body))
}

/// Returns a body with this text.
fn text_body(text: String) -> Body {
    Body::new(http_body_util::Full::new(Bytes::from(text)))
}

/// Returns a response with this status and a body of JSON.
fn json_response(code: StatusCode, body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    *response.status_mut() = code;
    response.headers_mut().insert(CONTENT_TYPE, JSON);
    response
}

/// Returns a response with this status and no body.
fn empty_response(code: StatusCode) -> Response<Body> {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = code;
    response
}
