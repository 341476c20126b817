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
use crate::admin::{COUNT, REVISION, file_form};
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

/// Writes the contents to the place of the command line, and says how many.
pub(super) fn run(args: &cli::Export) -> Result<()> {
    descriptors::load(&args.types.descriptors)?;
    let target = Target::parse(&args.to)?;
    let of_types: std::result::Result<Vec<TypeUrl>, _> = args
        .of_types
        .iter()
        .map(|text| kinds::parse(text))
        .collect();
    let of_types = of_types.map_err(Failure::usage)?;
    let Exported {
        resources,
        revision,
    } = match &args.data {
        Some(dir) => of_store(dir, args.origin.as_deref(), &of_types)?,
        None => run_request(of_server(args, &of_types))?,
    };

    let Some(shown) = target.write(&resources)? else {
        return Ok(());
    };
    let count = count_of(resources.len(), "resource");
    print(format!("{count} of revision {revision} written to {shown}\n").as_bytes())
}

/// Reads the contents that a directory has kept, of a server that does not run.
fn of_store(dir: &Path, origin: Option<&str>, of_types: &[TypeUrl]) -> Result<Exported> {
    let shown = dir.display();
    if !EmbeddedStore::is_in(dir) {
        return Err(Failure::wrong(format!(
            "{shown}: nothing is kept here; name the directory of `serve --data`"
        )));
    }
    // A history of any length stays: it is cut by changes only.
    let kept = EmbeddedStore::open(dir, u64::MAX).and_then(|store| store.load());
    let mut kept = kept.map_err(Failure::wrong)?;
    kept.rows.sort_by(|(a, _), (b, _)| {
        let key = |key: &RowKey| (key.type_url.clone(), key.name.clone());
        key(a).cmp(&key(b)).then_with(|| a.cmp(b))
    });
    let is_wanted = |(key, _): &(RowKey, Row)| {
        let is_own = origin.is_none_or(|origin| *key.origin == *origin);
        is_own && (of_types.is_empty() || of_types.contains(&key.type_url))
    };
    let rows = kept.rows.into_iter().filter(is_wanted);
    Ok(Exported {
        resources: rows
            .map(|(key, row)| file_form(&key.type_url, &row.resource))
            .collect(),
        revision: kept.revision,
    })
}

/// Asks a server for its contents.
async fn of_server(args: &cli::Export, of_types: &[TypeUrl]) -> Result<Exported> {
    let mut query: Vec<String> = Vec::new();
    let origin = args.origin.iter();
    query.extend(origin.map(|it| format!("origin={}", encode_url(it))));
    let types = of_types.iter();
    query.extend(types.map(|it| format!("type={}", encode_url(it.as_str()))));
    let path = format!("/api/v1/export?{}", query.join("&"));
    let client = Client::new(&args.remote)?;
    let response = match client.open_call(Call::bare(Method::POST, &path)).await? {
        Opening::Open(response) => response,
        Opening::Refused(_, failure) => return Err(failure),
    };
    let number = |name: &str| response.header(name).and_then(|text| text.parse().ok());
    let (Some(count), Some(revision)) = (number(COUNT), number(REVISION)) else {
        return Err(Failure::wrong(
            "the answer is not understood; is --admin the admin address of a trunkline server?",
        ));
    };

    let body = read(response).await;
    let document = DiscoveryResponse::decode(body).ok();
    let resources = document.map(|document| document.resources);
    let is_whole = |all: &Vec<Any>| all.len() as u64 == count;
    let resources = resources.filter(is_whole).ok_or_else(|| {
        Failure::wrong("the server was lost before the end of the export; nothing was written")
    })?;
    Ok(Exported {
        resources,
        revision,
    })
}

/// Reads a body to its end, with progress.
async fn read(mut response: OpenResponse) -> Bytes {
    let mut body = BytesMut::new();
    let mut progress = Progress::new("received", 0);
    while let Some(block) = response.next_chunk().await {
        body.extend_from_slice(&block);
        progress.show_text(|| format!("received {} MiB", body.len() >> 20));
    }
    progress.end();
    body.freeze()
}
