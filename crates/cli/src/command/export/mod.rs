//! `trunkline export`: the contents of a server, or of a directory of
//! `serve --data`, as files that `apply` and `--config` read.

mod folder;
mod target;
mod text;

use std::path::Path;

use bytes::{Bytes, BytesMut};
use http::Method;
use prost::Message as _;
use trunkline::checked::{Row, RowKey};
use trunkline::{Store as _, TypeUrl};
use trunkline_proto::discovery::{Any, DiscoveryResponse};
use trunkline_store::EmbeddedStore;

pub(super) use self::target::Target;
use super::{encode_url, print, run_request};
use crate::admin::{COUNT, REVISION, encode_file_form};
use crate::cli;
use crate::client::{Call, Client, OpenResponse, Opening};
use crate::descriptors;
use crate::failure::{Failure, Result};
use crate::kinds;
use crate::output::count_of;
use crate::progress::Progress;

/// What is exported, and the revision that it is from.
struct Exported {
    resources: Vec<Any>,
    revision: u64,
}

/// Writes the contents to the place that the command line names, and prints the
/// number of resources.
pub(super) fn run(args: &cli::Export) -> Result<()> {
    descriptors::load(&args.types.descriptors)?;
    let target = Target::parse(&args.to)?;
    let types: std::result::Result<Vec<TypeUrl>, _> = args
        .of_types
        .iter()
        .map(|text| kinds::parse(text))
        .collect();
    let types = types.map_err(Failure::usage)?;

    let Exported {
        resources,
        revision,
    } = match &args.data {
        Some(dir) => read_store(dir, args.origin.as_deref(), &types)?,
        None => run_request(fetch_contents(args, &types))?,
    };

    let Some(target_name) = target.write(&resources)? else {
        return Ok(());
    };
    let count = count_of(resources.len(), "resource");
    print(format!("{count} of revision {revision} written to {target_name}\n").as_bytes())
}

/// Reads the contents that a stopped server has left in its directory.
///
/// # Errors
/// The directory has no store, or the store cannot be opened.
fn read_store(dir: &Path, origin: Option<&str>, types: &[TypeUrl]) -> Result<Exported> {
    let path_text = dir.display();
    if !EmbeddedStore::is_in(dir) {
        return Err(Failure::wrong(format!(
            "{path_text}: nothing is kept here; name the directory of `serve --data`"
        )));
    }
    // The export must not shorten the history, so it may have any length.
    let contents = EmbeddedStore::open(dir, u64::MAX).and_then(|store| store.load());
    let mut contents = contents.map_err(Failure::wrong)?;

    contents.rows.sort_by(|(a, _), (b, _)| {
        let key = |key: &RowKey| (key.type_url.clone(), key.name.clone());
        key(a).cmp(&key(b)).then_with(|| a.cmp(b))
    });
    let is_selected = |(key, _): &(RowKey, Row)| {
        let is_own = origin.is_none_or(|origin| *key.origin == *origin);
        is_own && (types.is_empty() || types.contains(&key.type_url))
    };

    let rows = contents.rows.into_iter().filter(is_selected);
    Ok(Exported {
        resources: rows
            .map(|(key, row)| encode_file_form(&key.type_url, &row.resource))
            .collect(),
        revision: contents.revision,
    })
}

/// Fetches the contents of a running server.
async fn fetch_contents(args: &cli::Export, selected_types: &[TypeUrl]) -> Result<Exported> {
    let mut query: Vec<String> = Vec::new();
    let origin = args.origin.iter();
    query.extend(origin.map(|origin| format!("origin={}", encode_url(origin))));
    let types = selected_types.iter();
    query.extend(types.map(|type_url| format!("type={}", encode_url(type_url.as_str()))));
    let path = format!("/api/v1/export?{}", query.join("&"));

    let client = Client::new(&args.remote)?;
    let response = match client.open_call(Call::bare(Method::POST, &path)).await? {
        Opening::Open(response) => response,
        Opening::Refused(_, failure) => return Err(failure),
    };

    let header_number = |name: &str| response.header(name).and_then(|text| text.parse().ok());
    let (Some(count), Some(revision)) = (header_number(COUNT), header_number(REVISION)) else {
        return Err(Failure::wrong(
            "the answer is not understood; is --admin the admin address of a trunkline server?",
        ));
    };

    let body = read_body(response).await;
    let document = DiscoveryResponse::decode(body).ok();
    let resources = document.map(|document| document.resources);
    let is_complete = |resources: &Vec<Any>| resources.len() as u64 == count;
    let resources = resources.filter(is_complete).ok_or_else(|| {
        Failure::wrong("the server was lost before the end of the export; nothing was written")
    })?;
    Ok(Exported {
        resources,
        revision,
    })
}

/// Reads a body to its end, and shows the progress.
async fn read_body(mut response: OpenResponse) -> Bytes {
    let mut body = BytesMut::new();
    let mut progress = Progress::new("received", 0);
    while let Some(block) = response.next_chunk().await {
        body.extend_from_slice(&block);
        progress.show_text(|| format!("received {} MiB", body.len() >> 20));
    }
    progress.end();
    body.freeze()
}
