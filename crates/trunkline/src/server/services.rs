//! Requests that open no discovery stream: load reports, client status, health,
//! reflection, REST.

use std::convert::Infallible;
use std::sync::Arc;

use http::{Method, Request, Response};
use tonic::Status;
use tonic::body::Body;
use tower_service::Service;

use super::hooks::{Call, Limit};
use super::shared::Shared;
use super::whole_messages::WholeMessages;
use super::{Server, poll, service};
use crate::questions::Asked;
use crate::reflection::Reflection;
use crate::status::csds;
use crate::{health, paths, questions, reflection, rest};

const LOAD: &str = "envoy.service.load_stats.v3.LoadReportingService";
const STATUS: &str = "envoy.service.status.v3.ClientStatusDiscoveryService";

/// Returns the full names of all services, those of discovery first.
pub(super) fn names() -> impl Iterator<Item = String> {
    let others = [
        LOAD,
        STATUS,
        health::NAME,
        reflection::NAME,
        reflection::NAME_V1ALPHA,
    ];
    paths::service_names().chain(others.map(str::to_owned))
}

/// Serves a request that opens no discovery stream. All but health checks are
/// authenticated; a poll is also admitted like a stream. A path that no service
/// has gets the status of an unimplemented one.
pub(super) async fn serve(shared: Arc<Shared>, request: Request<Body>) -> Response<Body> {
    let path = request.uri().path().to_owned();
    if let Some(kind) = rest::kind_of_path(&path) {
        return match *request.method() {
            Method::POST => poll::serve(shared, kind, request).await,
            _ => poll::wrong_method(),
        };
    }

    let service = path.split('/').nth(1).unwrap_or_default();
    // A health check needs no authentication.
    if service == health::NAME {
        let Ok(response) = shared.health.service().call(request).await;
        return response;
    }

    if !names().any(|name| name == service) {
        return no_method(&path);
    }
    if let Err(status) = shared.hooks.authenticate(&Call::of(&request)).await {
        return status.into_http();
    }

    let questions = shared.questions.clone();
    let reflection = || Reflection::new(names()).with_questions(questions.clone());
    let Ok(response) = match service {
        LOAD => serve_load(&shared, request).await,
        STATUS => {
            let clients = Arc::new(Server { shared });
            let service = csds::service_with(clients, questions);
            service.clone().call(request).await.map(pace_answer)
        }
        reflection::NAME => reflection().v1().call(request).await.map(pace_answer),
        reflection::NAME_V1ALPHA => {
            let mut service = reflection().v1alpha();
            service.call(request).await.map(pace_answer)
        }
        // A discovery service, but none of its streams.
        _ => return no_method(&path),
    };
    response
}

/// Serves a stream of load reports. Its messages arrive whole, and count among
/// the unfinished requests until then. Reports the limit if there are too many
/// streams, of which the service refuses one more.
async fn serve_load(shared: &Shared, request: Request<Body>) -> Result<Response<Body>, Infallible> {
    if shared.load.is_full() {
        shared.hooks.limited(Limit::LoadStreams);
    }
    let connection = service::connection_of(&request);
    let limit = shared.load.message_bytes();
    let bounds = shared.request_bounds();
    let collect_messages = |body| Body::new(WholeMessages::new(body, bounds, connection, limit));
    shared
        .load
        .service()
        .call(request.map(collect_messages))
        .await
}

/// Hands an answer over piece by piece, and gives it up if its asker takes
/// nothing of it in time. An answer without a question in its extensions is
/// passed on as it is.
fn pace_answer(mut response: Response<Body>) -> Response<Body> {
    match response.extensions_mut().remove::<Asked>() {
        Some(asked) => {
            response.map(|body| Body::new(questions::stream_body(body, asked.into_question())))
        }
        None => response,
    }
}

/// Returns the response to a call of a method that does not exist.
fn no_method(path: &str) -> Response<Body> {
    Status::unimplemented(format!("no method {path}")).into_http()
}
