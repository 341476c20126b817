//! REST polling: one request, one response, and nothing is kept (S67).

use std::sync::Arc;

use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderValue, Request, Response, StatusCode};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use tonic::body::Body;
use tonic::{Code, Status};
use trunkline_core::kind::Kind;
use trunkline_core::message::{self, Mode, SotwResponse};
use trunkline_core::resource::Version;
use trunkline_core::resource_list::ResourceList;
use trunkline_core::session::{Event, Session};

use super::admit::{self, Admitted};
use super::hooks::Call;
use super::paths::StreamForm;
use super::report::{Report, Sent};
use super::shared::Shared;
use super::stream::{Stream, take_withheld};
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
}

/// Serves a poll for a type: the resources, `304` if the client has this
/// version already, or a reason why it gets none.
pub(super) async fn serve(
    shared: Arc<Shared>,
    kind: &'static str,
    request: Request<Body>,
) -> Response<Body> {
    match poll(shared, kind, request).await {
        Ok(Some(body)) => json_response(StatusCode::OK, body),
        Ok(None) => empty_response(StatusCode::NOT_MODIFIED),
        Err(refusal) => refusal.into_response(),
    }
}

/// Returns the body of the response to a poll; `None` if the client has this
/// version already. The client is admitted like a stream, and counts as one
/// meanwhile.
async fn poll(
    shared: Arc<Shared>,
    kind: &'static str,
    request: Request<Body>,
) -> Result<Option<String>, Refusal> {
    let call = Call::of(&request);
    let admitted = admit::admit(&shared, &call).await;
    let Admitted {
        admission: _admission,
        identity,
    } = admitted.map_err(Refusal::NotAdmitted)?;

    let limits = poll_limits(&shared);
    let body = read_body(request.into_body(), limits.body_bytes).await?;
    let mut read = rest::read(kind, &body, &limits).map_err(Refusal::Unreadable)?;
    // With a version the session would take the client for one that resumes.
    let held_version = read.request.version.take();

    let stream_form = StreamForm {
        mode: Mode::Sotw,
        only: Some(kind.into()),
    };
    let stream = Arc::new(Stream::new(shared, stream_form, call.connection, identity));
    let response = first_response(&stream, read, body.len());
    if held_version.as_ref() == Some(&response.version) {
        return Ok(None);
    }

    // A large set takes a while to write.
    let written = tokio::task::spawn_blocking(move || write_json(&stream, &response));
    let body = written.await.unwrap_or(Err(Refusal::NotWritten))?;
    Ok(Some(body))
}

/// Reads the body of a poll. One beyond the limit is refused.
async fn read_body(body: Body, limit: usize) -> Result<Bytes, Refusal> {
    match Limited::new(body, limit).collect().await {
        Ok(body) => Ok(body.to_bytes()),
        Err(error) if error.is::<LengthLimitError>() => {
            Err(Refusal::Unreadable(RestError::TooLarge { limit }))
        }
        Err(_) => Err(Refusal::Broken),
    }
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
    let handled = shared.with(|db| session.handle_sotw(db, request, now));
    let response = handled
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

fn is_withheld(event: &Event) -> bool {
    matches!(event, Event::Withheld { .. })
}

/// Writes a response as JSON, and reports it as sent. Refuses a whole set with
/// a resource that JSON cannot express: a client deletes a resource that is
/// left out of it (S38).
fn write_json(stream: &Stream, response: &SotwResponse) -> Result<String, Refusal> {
    let written = rest::write(response, &stream.shared.options.identifier);
    if let Some(lost) = written.left_out.first()
        && Kind::of(&response.type_url).whole_set
    {
        let why = format!("{}: {}; poll by gRPC instead", lost.name, lost.loss);
        return Err(Refusal::Inexpressible(why));
    }

    stream.report(Report::Sent(Sent {
        type_url: &response.type_url,
        nonce: &response.nonce,
        resources: &response.resources,
        removed: &[],
        bytes: written.body.len(),
    }));
    Ok(written.body)
}

/// The limits of a poll, by the options of the server. Metadata is read if
/// there are rules, which may need it.
fn poll_limits(shared: &Shared) -> RestLimits {
    let options = &shared.options;
    RestLimits {
        body_bytes: options.request_bytes,
        name_bytes: options.limits.name_bytes,
        names: options.limits.subscriptions,
        metadata: !shared.rules.is_empty(),
        ..RestLimits::default()
    }
}

/// The response to a request that is not a `POST`.
pub(super) fn wrong_method() -> Response<Body> {
    empty_response(StatusCode::METHOD_NOT_ALLOWED)
}

impl Refusal {
    /// The response, with the reason as JSON where there is one.
    fn into_response(self) -> Response<Body> {
        match self {
            Self::NotAdmitted(status) => reason_response(http_status(&status), status.message()),
            Self::Unreadable(error) => json_response(error.status(), error.to_json()),
            Self::Broken => empty_response(StatusCode::BAD_REQUEST),
            Self::Inexpressible(why) => reason_response(StatusCode::INTERNAL_SERVER_ERROR, &why),
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

/// A response with a reason, in the form of [`RestError::to_json`].
fn reason_response(code: StatusCode, why: &str) -> Response<Body> {
    let message = serde_json::Value::from(why);
    let body = format!(r#"{{"code":{},"message":{message}}}"#, code.as_u16());
    json_response(code, body)
}

fn json_response(code: StatusCode, body: String) -> Response<Body> {
    let body = http_body_util::Full::new(Bytes::from(body));
    let mut response = Response::new(Body::new(body));
    *response.status_mut() = code;
    response.headers_mut().insert(CONTENT_TYPE, JSON);
    response
}

fn empty_response(code: StatusCode) -> Response<Body> {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = code;
    response
}
