//! Changes over the API: all of a request, or none.

use std::sync::Arc;

use axum::Extension;
use axum::extract::State;
use axum::extract::rejection::BytesRejection;
use axum::response::Response;
use bytes::Bytes;
use http::{HeaderMap, StatusCode, Uri, header};
use trunkline::checked::{Form, Item};
use trunkline::{Change, Name};
use trunkline_proto::text::Format;

use super::accept::{self, Accepted};
use super::coverage::{self, KnownValues};
use super::derived::{Part, Plan};
use super::error::{Detail, Refusal};
use super::outcome::{ChangeRequest, Made, Options};
use super::query::Query;
use super::replace::replaced;
use super::{Admin, Shared, Who, Writes, resources};

/// `POST /api/v1/resources`: applies the resources of the body.
pub(super) async fn apply(
    State(admin): State<Shared>,
    Extension(who): Extension<Who>,
    uri: Uri,
    headers: HeaderMap,
    body: Result<Bytes, BytesRejection>,
) -> Result<Response, Refusal> {
    let query = Query::read(&uri, &["dry_run", "summary", "bulk", "part", "last"])?;
    let options = Options {
        dry_run: query.switch("dry_run")?,
        summary: query.switch("summary")?,
    };
    let part = part(&query)?;
    writable(&admin)?;
    let body = self::body(&admin, body)?;
    let form = form(&headers);
    let mut writes = Arc::clone(&admin.writes).lock_owned().await;
    super::run_blocking(move || {
        let accepted = accept::accept(&admin.server, body, form, admin.dangling)?;
        let request = ChangeRequest {
            admin: &admin,
            who: &who,
            document: &accepted.document,
            options,
        };
        let plan = writes.derived.plan(&accepted.document, part);
        let plan = plan.map_err(|forgotten| Refusal::new(StatusCode::CONFLICT, forgotten))?;
        make(&request, &accepted, plan, &mut writes)
    })
    .await?
}

/// Makes the change of a request, or rehearses it; only a change that was made
/// is kept in `writes`.
fn make(
    request: &ChangeRequest<'_>,
    accepted: &Accepted,
    mut plan: Plan,
    writes: &mut Writes,
) -> Result<Response, Refusal> {
    let Writes { derived, known } = writes;
    let server = &request.admin.server;
    let mut warnings = accepted.warnings.clone();
    warnings.extend(plan.kept.iter().map(kept_hosts));
    derived.free_domains(&mut plan, request.document, server);
    // Removals make room for additions.
    let mut changes = std::mem::take(&mut plan.removed);
    changes.extend(replaced(server, request.document, &changes));
    let upsert = |one: &Item| Change::Upsert(one.type_url.clone(), Arc::clone(&one.resource));
    changes.extend(request.document.items.iter().map(upsert));
    let made = request.make(changes)?;
    warnings.extend(coverage_warnings(request, &made, known));
    if made.scratch.is_none() {
        derived.commit(plan);
    }
    Ok(request.response(&made, warnings))
}

/// Warns of a route configuration whose virtual hosts stay.
fn kept_hosts((route, hosts): &(Name, usize)) -> Detail {
    Detail::new(format!(
        "{route:?} lists no virtual hosts: the {hosts} that came with it stay; \
         delete them by name"
    ))
}

/// Warns of values that no variant serves after the change. A rehearsed change
/// is noted in a copy of the known values, and checked for its own names only,
/// for the scratch server has no others.
fn coverage_warnings(
    request: &ChangeRequest<'_>,
    made: &Made,
    known: &mut KnownValues,
) -> Vec<Detail> {
    let written = coverage::names_with_variants(request.document);
    match &made.scratch {
        None => {
            let mut names = known.note(&made.changed);
            names.extend(written);
            let held = |url: &_, name: &_| resources::held(&request.admin.server, url, name);
            known.warn(&names, Some(request.document), held)
        }
        Some(scratch) => {
            let mut known = known.clone();
            known.note(&made.changed);
            let held = |url: &_, name: &_| resources::held(scratch, url, name);
            known.warn(&written.collect(), Some(request.document), held)
        }
    }
}

/// Reads which part of a change this request is; `None` if it is the whole
/// change.
fn part(query: &Query) -> Result<Option<Part>, Refusal> {
    let Some(name) = query.one("bulk")? else {
        return match query.one("part")?.or(query.one("last")?) {
            None => Ok(None),
            Some(_) => Err(Refusal::bad(
                "part and last need bulk, the name of the change",
            )),
        };
    };
    if name.is_empty() || name.len() > LONGEST_NAME {
        return Err(Refusal::bad(format!(
            "bulk: expected a name of at most {LONGEST_NAME} bytes"
        )));
    }
    let number = query.one("part")?.unwrap_or("0");
    let number = number
        .parse()
        .map_err(|_| Refusal::bad(format!("part: expected a number from 0, found {number:?}")))?;
    Ok(Some(Part {
        name: name.to_owned(),
        number,
        last: query.switch("last")?,
    }))
}

/// The longest name of a change, in bytes.
const LONGEST_NAME: usize = 64;

/// Refuses changes where contents come from files, which are the only source
/// then.
pub(super) fn writable(admin: &Admin) -> Result<(), Refusal> {
    match admin.files {
        None => Ok(()),
        Some(_) => Err(Refusal::new(
            StatusCode::CONFLICT,
            "contents come from files: edit them, or start the server without --config",
        )),
    }
}

/// Returns the body of a request, unless it is too long.
pub(super) fn body(admin: &Admin, body: Result<Bytes, BytesRejection>) -> Result<Bytes, Refusal> {
    body.map_err(|rejected| match rejected.status() {
        StatusCode::PAYLOAD_TOO_LARGE => Refusal::new(
            StatusCode::PAYLOAD_TOO_LARGE,
            format!(
                "the body has more than {} bytes; split it, or raise --max-admin-body",
                admin.body_limit
            ),
        ),
        status => Refusal::new(status, rejected.body_text()),
    })
}

/// Returns the format of a body by its content type; YAML, which JSON is as
/// well, unless it says otherwise.
pub(super) fn form(headers: &HeaderMap) -> Form {
    let kind = headers.get(header::CONTENT_TYPE);
    let kind = kind.and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    match kind.split(';').next().map(str::trim) {
        Some("application/json") => Form::Text(Format::Json),
        Some("application/x-protobuf" | "application/protobuf") => Form::Binary,
        _ => Form::Text(Format::Yaml),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_form_of_a_body_is_told_by_its_type() {
        let of = |value: &'static str| {
            let value = http::HeaderValue::from_static(value);
            form(&HeaderMap::from_iter([(header::CONTENT_TYPE, value)]))
        };
        let json = Form::Text(Format::Json);
        assert_eq!(of("application/json; charset=utf-8"), json);
        assert_eq!(of("application/yaml"), Form::Text(Format::Yaml));
        assert_eq!(of("application/x-protobuf"), Form::Binary);
        assert_eq!(form(&HeaderMap::new()), Form::Text(Format::Yaml));
    }

    #[test]
    fn a_part_of_a_change_says_of_which() {
        let of = |query: &str| {
            let uri = format!("/x?{query}").parse().unwrap();
            part(&Query::read(&uri, &["bulk", "part", "last"]).unwrap())
        };
        assert!(of("").unwrap().is_none());
        let part = of("bulk=a&part=3&last=true").unwrap().unwrap();
        assert_eq!((part.name.as_str(), part.number, part.last), ("a", 3, true));
        for bad in ["part=1", "last=true", "bulk=", "bulk=a&part=x"] {
            assert!(of(bad).is_err(), "{bad}");
        }
    }
}
