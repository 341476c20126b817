//! Contents over the API as one binary document, which `apply` and `--config`
//! take: secrets included.

use std::io;
use std::sync::Arc;

use axum::Extension;
use axum::body::Body;
use axum::extract::State;
use axum::response::Response;
use bytes::Bytes;
use http::{StatusCode, Uri, header};
use prost::Message as _;
use tokio::sync::mpsc;
use trunkline::{Connection, Resource, Server, TypeUrl};
use trunkline_proto::discovery::DiscoveryResponse;

use super::backup::refuse_if_overheard;
use super::error::Refusal;
use super::query::Query;
use super::resources::all;
use super::view::file_form;
use super::{Shared, run_blocking};
use crate::client::BINARY;
use crate::kinds;

/// The header with the number of resources that a document has.
pub(crate) const COUNT: &str = "trunkline-resources";
/// The header with the revision of the contents.
pub(crate) const REVISION: &str = "trunkline-revision";

/// Resources that are encoded at a time.
const BATCH: usize = 256;
/// Batches that wait for a slow reader.
const BATCHES: usize = 4;

/// `POST /api/v1/export`: responds with the resources of all types and origins,
/// or of some.
pub(super) async fn export(
    State(admin): State<Shared>,
    Extension(connection): Extension<Connection>,
    uri: Uri,
) -> Result<Response, Refusal> {
    let query = Query::read(&uri, &["origin", "type"])?;
    refuse_if_overheard(&connection)?;
    let origin = query.one("origin")?.map(str::to_owned);
    let types: Result<Vec<TypeUrl>, _> = query.all("type").map(kinds::parse).collect();
    let types = types.map_err(Refusal::bad)?;

    let collect = move || {
        let revision = admin.server.revision();
        (revision, contents(&admin.server, origin.as_deref(), &types))
    };
    let (revision, found) = run_blocking(collect).await?;
    let count = found.len();
    let (sender, receiver) = mpsc::channel(BATCHES);
    tokio::task::spawn_blocking(move || send_batches(&found, &sender));
    let batches = tokio_stream::wrappers::ReceiverStream::new(receiver);
    Response::builder()
        .header(header::CONTENT_TYPE, BINARY)
        .header(COUNT, count)
        .header(REVISION, revision)
        .body(Body::from_stream(batches))
        .map_err(|error| Refusal::new(StatusCode::INTERNAL_SERVER_ERROR, error))
}

/// Returns the resources of an origin, or of all, in the order of types, names
/// and constraints: the same contents are the same document.
fn contents(
    server: &Server,
    origin: Option<&str>,
    types: &[TypeUrl],
) -> Vec<(TypeUrl, Arc<Resource>)> {
    let mut present: Vec<TypeUrl> =
        server.read(|db| db.types().map(|(_, url)| url.clone()).collect());
    present.retain(|url| types.is_empty() || types.contains(url));
    present.sort();
    let of_type = |url: TypeUrl| {
        let mut resources = all(server, &url);
        if let Some(origin) = origin {
            let is_own = |resource: &Arc<Resource>| {
                let owner = server.read_set(|set| set.origin_of(&url, resource));
                owner.is_some_and(|owner| *owner == *origin)
            };
            resources.retain(is_own);
        }
        resources.into_iter().map(move |one| (url.clone(), one))
    };
    present.into_iter().flat_map(of_type).collect()
}

/// Sends resources, encoded, until nobody listens. Encoded documents one after
/// the other are one document.
fn send_batches(found: &[(TypeUrl, Arc<Resource>)], sender: &mpsc::Sender<io::Result<Bytes>>) {
    for batch in found.chunks(BATCH) {
        let resources = batch.iter().map(|(url, resource)| file_form(url, resource));
        let document = DiscoveryResponse {
            resources: resources.collect(),
            ..DiscoveryResponse::default()
        };
        let bytes = Bytes::from(document.encode_to_vec());
        if sender.blocking_send(Ok(bytes)).is_err() {
            return;
        }
    }
}
