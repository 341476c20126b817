//! The services beside discovery.

use std::sync::Arc;

use http::{Request, Response};
use tonic::Status;
use tonic::body::Body;
use tower_service::Service;

use super::Server;
use super::hooks::{Call, Connection};
use super::shared::Shared;
use crate::status::csds;

const LOAD: &str = "/envoy.service.load_stats.v3.LoadReportingService/";
const STATUS: &str = "/envoy.service.status.v3.ClientStatusDiscoveryService/";

/// Answers a request that is no stream of discovery.
pub(super) async fn answer(shared: Arc<Shared>, request: Request<Body>) -> Response<Body> {
    let path = request.uri().path().to_owned();
    let is = |prefix: &str| path.starts_with(prefix);
    if !(is(LOAD) || is(STATUS)) {
        return Status::unimplemented(format!("no method {path}")).into_http();
    }
    if let Err(status) = shared.hooks.authenticate(&call_of(&request)).await {
        return status.into_http();
    }
    let Ok(answer) = match () {
        () if is(LOAD) => shared.load.service().call(request).await,
        () => {
            let clients = Arc::new(Server { shared });
            csds::service(clients).call(request).await
        }
    };
    answer
}

fn call_of(request: &Request<Body>) -> Call {
    let connection = request.extensions().get::<Connection>();
    Call {
        path: request.uri().path().to_owned(),
        headers: request.headers().clone(),
        connection: connection.cloned().unwrap_or_default(),
    }
}
