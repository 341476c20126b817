//! A body of resources: read and checked as `serve` checks files.

use std::collections::HashMap;
use std::sync::Arc;

use bytes::Bytes;
use trunkline::wire::accept_text;
use trunkline::{Name, Resource, Server, TypeUrl};
use trunkline_proto::redact::REDACTED;
use trunkline_proto::text::{self, Format, Position, TextError};
use trunkline_proto::{Path, descriptor};

use super::dangling::dangling;
use super::error::{Detail, Refusal};
use crate::kinds;
use crate::settings::OnDangling;

/// Resources without a mistake, and what may be one.
pub(super) struct Accepted {
    pub(super) resources: Vec<(TypeUrl, Arc<Resource>)>,
    pub(super) warnings: Vec<Detail>,
}

/// Reads a body and checks it against what the server holds.
pub(super) fn accept(
    server: &Server,
    body: Bytes,
    format: Format,
    on_dangling: OnDangling,
) -> Result<Accepted, Refusal> {
    let text = in_utf8(&body)?;
    let document = text::read_as(format, "body", text, &text::Options::default());
    let mut errors: Vec<Detail> = document.errors.into_iter().map(detail).collect();
    let mut resources = Vec::new();
    let mut places = HashMap::new();
    for read in &document.resources {
        errors.extend(read.validate().into_iter().map(detail));
        let at = read.position(&Path::default());
        let wrong = |message: String| Detail {
            line: Some(at.line),
            column: Some(at.column),
            field: read.path.to_string(),
            message,
        };
        if is_redacted(&read.body) {
            errors.push(wrong(format!(
                "holds {REDACTED:?}, which stands for a secret that was not shown; put the secret in"
            )));
        }
        match accept_text(read) {
            Err(error) => errors.push(wrong(error.to_string())),
            Ok(resource) => {
                let type_url = normal(&read.type_url);
                let constraints = resource.constraints.as_ref().map(ToString::to_string);
                let key = (type_url.clone(), resource.name.clone(), constraints);
                if let Some(first) = places.insert(key, at) {
                    errors.push(wrong(duplicate(&type_url, &resource.name, first)));
                }
                resources.push((type_url, Arc::new(resource), at));
            }
        }
    }
    let loose = dangling(server, &resources);
    let mut warnings: Vec<Detail> = document.warnings.into_iter().map(detail).collect();
    match on_dangling {
        OnDangling::Warn => warnings.extend(loose),
        OnDangling::Error => errors.extend(loose),
    }
    if !errors.is_empty() {
        let count = errors.len();
        let s = if count == 1 { "" } else { "s" };
        return Err(Refusal::invalid(
            format!("{count} mistake{s}; nothing was changed"),
            errors,
        ));
    }
    let resources = resources
        .into_iter()
        .map(|(url, resource, _)| (url, resource));
    Ok(Accepted {
        resources: resources.collect(),
        warnings,
    })
}

/// What `get` shows must not become the secret when it is given back.
fn is_redacted(body: &[u8]) -> bool {
    let mut parts = body.windows(REDACTED.len());
    parts.any(|part| part == REDACTED.as_bytes())
}

fn duplicate(type_url: &TypeUrl, name: &Name, first: Position) -> String {
    let kind = kinds::short(type_url);
    format!("{kind} {name:?} is there already, at {first}; remove one or rename it")
}

/// A body as text.
pub(super) fn in_utf8(body: &[u8]) -> Result<&str, Refusal> {
    std::str::from_utf8(body)
        .map_err(|_| Refusal::bad("the body is not text; send YAML or JSON in UTF-8"))
}

pub(super) fn detail(error: TextError) -> Detail {
    Detail {
        line: Some(error.at.line),
        column: Some(error.at.column),
        field: error.path,
        message: error.problem.to_string(),
    }
}

/// The spelling that clients use.
fn normal(written: &str) -> TypeUrl {
    match descriptor::message(written) {
        Some(of) => TypeUrl::new(format!("type.googleapis.com/{}", of.full_name())),
        None => TypeUrl::new(written),
    }
}
