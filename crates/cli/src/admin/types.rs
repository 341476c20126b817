//! The types of a server: how many resources each has, and whose they are.

use std::collections::BTreeMap;

use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use serde::Serialize;
use trunkline::TypeUrl;

use super::Shared;
use super::asking::Asking;
use super::error::Refusal;

/// The types that have resources.
#[derive(Serialize)]
struct List {
    types: Vec<TypeCount>,
}

/// The number of resources of a type.
#[derive(Serialize)]
struct TypeCount {
    #[serde(rename = "type")]
    type_url: String,
    /// Variants count one by one.
    resources: usize,
    /// The same by origin.
    origins: BTreeMap<String, usize>,
}

/// `GET /api/v1/types`: shows the types that have resources, with the number of
/// resources of each, and of each origin.
pub(super) async fn list(State(admin): State<Shared>, asking: Asking) -> Result<Response, Refusal> {
    let count_resources = move || {
        let server = &admin.server;
        let type_counts: Vec<(TypeUrl, usize)> = server.read(|db| {
            let types = db.types();
            types.map(|(id, url)| (url.clone(), db.len(id))).collect()
        });

        let mut origin_counts = server.read_set(|set| set.count_by_origin());
        let mut take_origins = |type_url: &TypeUrl| {
            let counts = origin_counts.remove(type_url).into_iter().flatten();
            counts
                .map(|(name, count_resources)| (name.to_string(), count_resources))
                .collect()
        };

        let types = type_counts
            .into_iter()
            .filter(|(_, resources)| *resources > 0);
        let types = types.map(|(type_url, resources)| TypeCount {
            origins: take_origins(&type_url),
            type_url: type_url.to_string(),
            resources,
        });
        let types = types.collect();
        axum::Json(List { types }).into_response()
    };
    asking.run(count_resources).await
}
