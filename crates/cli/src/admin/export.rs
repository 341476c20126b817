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
use super::resources::sorted_resources;
use super::view::encode_file_form;
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
/// or with those of the types and the origin that the request names.
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

    let read_contents = move || {
        let revision = admin.server.revision();
        (
            revision,
            select_contents(&admin.server, origin.as_deref(), &types),
        )
    };
    let (revision, resources) = run_blocking(read_contents).await?;
    let resource_count = resources.len();

    let (sender, receiver) = mpsc::channel(BATCHES);
    tokio::task::spawn_blocking(move || send_batches(&resources, &sender));
    let batches = tokio_stream::wrappers::ReceiverStream::new(receiver);

    Response::builder()
        .header(header::CONTENT_TYPE, BINARY)
        .header(COUNT, resource_count)
        .header(REVISION, revision)
        .body(Body::from_stream(batches))
        .map_err(|error| Refusal::new(StatusCode::INTERNAL_SERVER_ERROR, error))
}

/// Returns the resources of these types, or of all types if the list is empty;
/// of this origin, or of all. They are in the order of types, names and
/// constraints, so that equal contents are equal documents.
fn select_contents(
    server: &Server,
    origin: Option<&str>,
    types: &[TypeUrl],
) -> Vec<(TypeUrl, Arc<Resource>)> {
    let mut selected_types: Vec<TypeUrl> =
        server.read(|db| db.types().map(|(_, url)| url.clone()).collect());
    selected_types.retain(|url| types.is_empty() || types.contains(url));
    selected_types.sort();

    let select_resources = |url: TypeUrl| {
        let mut resources = sorted_resources(server, &url);
        if let Some(origin) = origin {
            let is_own = |resource: &Arc<Resource>| {
                let owner = server.read_set(|set| set.origin_of(&url, resource));
                owner.is_some_and(|owner| *owner == *origin)
            };
            resources.retain(is_own);
        }
        resources
            .into_iter()
            .map(move |resource| (url.clone(), resource))
    };

    selected_types
        .into_iter()
        .flat_map(select_resources)
        .collect()
}

/// Sends the encoded resources in batches, until the receiver is dropped.
/// Encoded messages that follow each other decode as one message.
fn send_batches(resources: &[(TypeUrl, Arc<Resource>)], sender: &mpsc::Sender<io::Result<Bytes>>) {
    for batch in resources.chunks(BATCH) {
        let bodies = batch
            .iter()
            .map(|(url, resource)| encode_file_form(url, resource));
        let document = DiscoveryResponse {
            resources: bodies.collect(),
            ..DiscoveryResponse::default()
        };
        let bytes = Bytes::from(document.encode_to_vec());
        if sender.blocking_send(Ok(bytes)).is_err() {
            return;
        }
    }
}
