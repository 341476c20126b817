//! Changes over the API: all of a request, or none.

use std::sync::Arc;

use axum::Extension;
use axum::extract::State;
use axum::extract::rejection::BytesRejection;
use axum::response::Response;
use bytes::Bytes;
use http::{HeaderMap, StatusCode, Uri, header};
use trunkline::Change;
use trunkline_proto::text::Format;

use super::body::{BodyResource, Form};
use super::derived::Part;
use super::error::{Detail, Refusal};
use super::outcome::{How, Making};
use super::query::Query;
use super::replace::replaced;
use super::{Shared, Who, Writes, accept, coverage, resources};

/// `POST /api/v1/resources`
pub(super) async fn apply(
    State(admin): State<Shared>,
    Extension(who): Extension<Who>,
    uri: Uri,
    headers: HeaderMap,
    body: Result<Bytes, BytesRejection>,
) -> Result<Response, Refusal> {
    let query = Query::read(&uri, &["dry_run", "summary", "bulk", "part", "last"])?;
    let how = How {
        dry_run: query.switch("dry_run")?,
        summary: query.switch("summary")?,
    };
    let part = part(&query)?;
    writable(&admin)?;
    let body = self::body(&admin, body)?;
    let form = form(&headers);
    let mut writes = Arc::clone(&admin.writes).lock_owned().await;
    super::aside(move || {
        let Writes { derived, known } = &mut *writes;
        let accepted = accept::accept(&admin.server, body, form, admin.dangling)?;
        let (given, empty) = (&accepted.given, &accepted.empty);
        let plan = derived.plan(given, empty, part);
        let mut plan = plan.map_err(|forgotten| Refusal::new(StatusCode::CONFLICT, forgotten))?;
        let mut warnings = accepted.warnings;
        warnings.extend(plan.kept.iter().map(|(route, hosts)| {
            Detail::new(format!(
                "{route:?} lists no virtual hosts: the {hosts} that came with it stay; \
                 delete them by name"
            ))
        }));
        derived.give_way(&mut plan, given, &admin.server);
        // Removals make room for additions.
        let mut changes = std::mem::take(&mut plan.removed);
        changes.extend(replaced(&admin.server, given, empty, &changes));
        let upsert =
            |one: &BodyResource| Change::Upsert(one.type_url.clone(), Arc::clone(&one.resource));
        changes.extend(given.iter().map(upsert));
        let making = Making {
            admin: &admin,
            who: &who,
            given,
            how,
        };
        let made = making.make(changes)?;
        match &made.scratch {
            None => {
                derived.keep(plan);
                let mut names = known.note(&made.changed);
                names.extend(coverage::given_names(given));
                let held = |url: &_, name: &_| resources::held(&admin.server, url, name);
                warnings.extend(known.warn(&names, given, held));
            }
            Some(scratch) => {
                let mut known = known.clone();
                known.note(&made.changed);
                let names = coverage::given_names(given).collect();
                let held = |url: &_, name: &_| resources::held(scratch, url, name);
                warnings.extend(known.warn(&names, given, held));
            }
        }
        Ok(making.tell(&made, warnings))
    })
    .await?
}

/// The part of a change that this request is, if the change takes several.
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

/// The longest name of a change.
const LONGEST_NAME: usize = 64;

/// Where there are files, they are the only source.
pub(super) fn writable(admin: &super::Admin) -> Result<(), Refusal> {
    match admin.files {
        None => Ok(()),
        Some(_) => Err(Refusal::new(
            StatusCode::CONFLICT,
            "contents come from files: edit them, or start the server without --config",
        )),
    }
}

/// The body of a request, unless it is too long.
pub(super) fn body(
    admin: &super::Admin,
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
