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
use super::replace::replaced_variants;
use super::{Admin, Shared, Who, Writes, resources};

/// `POST /api/v1/resources`: applies the resources of the body, all of them or
/// none. One change waits for the one before, because each is checked against
/// the state that it finds.
pub(super) async fn apply(
    State(admin): State<Shared>,
    Extension(who): Extension<Who>,
    uri: Uri,
    headers: HeaderMap,
    body: Result<Bytes, BytesRejection>,
) -> Result<Response, Refusal> {
    let query = Query::read(&uri, &["dry_run", "summary", "bulk", "part", "last"])?;
    let options = Options {
        dry_run: query.is_on("dry_run")?,
        summary: query.is_on("summary")?,
    };
    let part = read_part(&query)?;
    check_writable(&admin)?;
    let body = checked_body(&admin, body)?;
    let form = form_of(&headers);

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
        make_change(&request, &accepted, plan, &mut writes)
    })
    .await?
}

/// Makes the change of a request, or rehearses it, and responds with its effect
/// and the warnings about it. Only a change that was made is kept in `writes`.
fn make_change(
    request: &ChangeRequest<'_>,
    accepted: &Accepted,
    mut plan: Plan,
    writes: &mut Writes,
) -> Result<Response, Refusal> {
    let Writes { derived, known } = writes;
    let server = &request.admin.server;
    let mut warnings = accepted.warnings.clone();
    warnings.extend(plan.kept.iter().map(warn_of_kept_hosts));

    derived.free_domains(&mut plan, request.document, server);
    // Removals make room for additions.
    let mut changes = std::mem::take(&mut plan.removed);
    changes.extend(replaced_variants(server, request.document, &changes));
    let upsert = |item: &Item| Change::Upsert(item.type_url.clone(), Arc::clone(&item.resource));
    changes.extend(request.document.items.iter().map(upsert));

    let made = request.make(changes)?;
    warnings.extend(coverage_warnings(request, &made, known));
    let is_rehearsed = made.scratch.is_some();
    if !is_rehearsed {
        derived.commit(plan);
    }
    Ok(request.response(&made, warnings))
}

/// Warns that the virtual hosts of a route configuration stay although it lists
/// none: the route configuration, and their number.
fn warn_of_kept_hosts((route, hosts): &(Name, usize)) -> Detail {
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
    let document = Some(request.document);
    let written = coverage::names_with_variants(request.document);

    match &made.scratch {
        None => {
            let mut names = known.note(&made.changed);
            names.extend(written);

            let variants =
                |url: &_, name: &_| resources::variants_of(&request.admin.server, url, name);
            known.warn(&names, document, variants)
        }
        Some(scratch) => {
            let mut known = known.clone();
            known.note(&made.changed);

            let variants = |url: &_, name: &_| resources::variants_of(scratch, url, name);
            known.warn(&written.collect(), document, variants)
        }
    }
}

/// Reads which part of a change this request is, from the parameters `bulk`,
/// `part` and `last`; `None` if it is the whole change.
///
/// # Errors
/// `part` or `last` is given without `bulk`, or a value makes no sense.
fn read_part(query: &Query) -> Result<Option<Part>, Refusal> {
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
        last: query.is_on("last")?,
    }))
}

/// The longest name of a change, in bytes.
const LONGEST_NAME: usize = 64;

/// Refuses changes where contents come from files, which are the only source
/// then.
pub(super) fn check_writable(admin: &Admin) -> Result<(), Refusal> {
    match admin.files {
        None => Ok(()),
        Some(_) => Err(Refusal::new(
            StatusCode::CONFLICT,
            "contents come from files: edit them, or start the server without --config",
        )),
    }
}

/// Returns the body of a request.
///
/// # Errors
/// The body is too long, or broke off.
pub(super) fn checked_body(
    admin: &Admin,
    body: Result<Bytes, BytesRejection>,
) -> Result<Bytes, Refusal> {
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
pub(super) fn form_of(headers: &HeaderMap) -> Form {
    let content_type = headers.get(header::CONTENT_TYPE);
    let content_type = content_type.and_then(|value| value.to_str().ok());
    let media_type = content_type.unwrap_or_default().split(';').next();
    match media_type.map(str::trim) {
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
            form_of(&HeaderMap::from_iter([(header::CONTENT_TYPE, value)]))
        };
        let json = Form::Text(Format::Json);
        assert_eq!(of("application/json; charset=utf-8"), json);
        assert_eq!(of("application/yaml"), Form::Text(Format::Yaml));
        assert_eq!(of("application/x-protobuf"), Form::Binary);
        assert_eq!(form_of(&HeaderMap::new()), Form::Text(Format::Yaml));
    }

    #[test]
    fn a_part_of_a_change_says_of_which() {
        let of = |query: &str| {
            let uri = format!("/x?{query}").parse().unwrap();
            read_part(&Query::read(&uri, &["bulk", "part", "last"]).unwrap())
        };
        assert!(of("").unwrap().is_none());
        let part = of("bulk=a&part=3&last=true").unwrap().unwrap();
        assert_eq!((part.name.as_str(), part.number, part.last), ("a", 3, true));
        for bad in ["part=1", "last=true", "bulk=", "bulk=a&part=x"] {
            assert!(of(bad).is_err(), "{bad}");
        }
    }
}
