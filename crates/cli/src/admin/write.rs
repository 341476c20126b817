//! Changes over the API: all of a request, or none.

use std::sync::Arc;

use axum::Extension;
use axum::body::Body;
use axum::extract::State;
use axum::response::Response;
use http::{HeaderMap, StatusCode, Uri, header};
use trunkline::checked::{FirstOfPart, Form, Removal, ResourceEdit};
use trunkline::{Connection, Lifetime, Name};
use trunkline_proto::text::Format;

use super::accept::BodyText;
use super::error::Refusal;
use super::outcome::{ChangeRequest, OPTIONS, Options, staged_response};
use super::query::Query;
use super::remove::RemovedNames;
use super::stage::Part;
use super::{Shared, Who, accept, bodies, leases};
use crate::kinds;

/// `POST /api/v1/resources`: applies the resources of the body, all of them or
/// none. Changes are applied one after the other, since each is checked against
/// the contents before it.
pub(super) async fn apply(
    State(admin): State<Shared>,
    Extension(connection): Extension<Connection>,
    Extension(who): Extension<Who>,
    uri: Uri,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Refusal> {
    let query = Query::read(&uri, &[&QUERY[..], &OPTIONS].concat())?;
    let mut options = Options::read(&query, &headers)?;
    options.lifetime = leases::read_lifetime(&query, &options)?;
    if let Lifetime::Leased(_) = options.lifetime {
        // The lease must not end while the change waits for its turn. The
        // first change of an origin has no lease to renew yet.
        let _ = admin.server.renew(&options.origin);
    }

    let part = read_part(&query)?;
    let replaces_origin = query.is_on("replace")?;
    let removed_names = RemovedNames {
        names: read_deleted(&query)?,
        missing_ok: query.is_on("missing_ok")?,
    };

    let body = bodies::read(&admin, &connection, body, admin.body_limit).await?;
    options.hash_request(&uri, &body.bytes);
    let form = match read_body_form(&headers) {
        Form::Binary => Form::Part(read_first_position(&query)?),
        text_form => text_form,
    };

    let mut stage = Arc::clone(&admin.stage).lock_owned().await;
    super::run_blocking(move || {
        let text = BodyText::from_form(&body.bytes, form);
        let accepted = accept::accept(body.bytes.clone(), form);
        let (mut document, warnings) = accepted.inspect_err(|_| {
            // The change can never be complete without this part.
            if let Some(part) = &part {
                stage.forget(&part.name);
            }
        })?;

        let whole = match part {
            None => Some(document),
            Some(part) => {
                admin.server.read_set(|set| set.share(&mut document));
                let staged = stage.add(part, document);
                staged.map_err(|forgotten| Refusal::new(StatusCode::CONFLICT, forgotten))?
            }
        };

        // Bodies are decoded one at a time, for the memory that it takes. The
        // lock ends here, so that several changes can be stored in one write.
        drop(stage);
        let Some(document) = whole else {
            return Ok(staged_response(admin.server.revision(), warnings));
        };

        let edit = ResourceEdit {
            removals: removed_names.existing(&admin.server)?,
            replaces_origin,
            ..ResourceEdit::of_document(document)
        };
        let request = ChangeRequest {
            admin: &admin,
            who: &who,
            options,
            text,
        };

        let response = request.make(edit, warnings)?;
        if !request.options.dry_run {
            admin.applied.note_applied(&request.options.origin);
        }
        Ok(response)
    })
    .await?
}

/// Reads which part of a change this request is, from the parameters `bulk`,
/// `part` and `last`. Returns `None` if the request is the whole change.
///
/// # Errors
/// `part` or `last` is given without `bulk`, the name is too long, or a value
/// cannot be parsed.
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

/// Reads the position of the first resource in the whole change, from the
/// parameters `first` and `first_host`. Each is zero if it is missing.
fn read_first_position(query: &Query) -> Result<FirstOfPart, Refusal> {
    let read_number = |name: &str| match query.one(name)? {
        None => Ok(0),
        Some(number) => number.parse().map_err(|_| {
            Refusal::bad(format!(
                "{name}: expected a number from 0, found {number:?}"
            ))
        }),
    };
    Ok(FirstOfPart {
        resource: read_number("first")?,
        host: read_number("first_host")?,
    })
}

/// Reads the resources that the change removes besides its upserts, each from a
/// parameter `delete=TYPE/NAME`.
fn read_deleted(query: &Query) -> Result<Vec<Removal>, Refusal> {
    let removals = query.all("delete").map(|text| {
        let (type_url, name) = kinds::parse_with_name(text).map_err(Refusal::bad)?;
        let name = name.ok_or_else(|| {
            Refusal::bad(format!(
                "delete: expected a type and a name such as cds/backend, found {text:?}"
            ))
        })?;
        Ok(Removal {
            type_url,
            name: Name::new(name),
            variant: None,
        })
    });
    removals.collect()
}

/// The parameters of a change, beside [`OPTIONS`].
const QUERY: [&str; 9] = [
    "lease",
    "replace",
    "delete",
    "missing_ok",
    "bulk",
    "part",
    "last",
    "first",
    "first_host",
];

/// The longest name of a change, in bytes.
const LONGEST_NAME: usize = 64;

/// Returns the form of a body, from its content type. An unknown type, or none,
/// means YAML, of which JSON is a part.
pub(super) fn read_body_form(headers: &HeaderMap) -> Form {
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
            read_body_form(&HeaderMap::from_iter([(header::CONTENT_TYPE, value)]))
        };
        let json = Form::Text(Format::Json);
        assert_eq!(of("application/json; charset=utf-8"), json);
        assert_eq!(of("application/yaml"), Form::Text(Format::Yaml));
        assert_eq!(of("application/x-protobuf"), Form::Binary);
        assert_eq!(read_body_form(&HeaderMap::new()), Form::Text(Format::Yaml));
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
