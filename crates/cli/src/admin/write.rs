//! Changes over the API: all of a request, or none.

use std::sync::Arc;

use axum::Extension;
use axum::body::Body;
use axum::extract::State;
use axum::response::Response;
use http::{HeaderMap, StatusCode, Uri, header};
use tokio::sync::OwnedMutexGuard;
use trunkline::checked::{Document, Finding, FirstOfPart, Form, Removal, ResourceEdit};
use trunkline::{Connection, Lifetime, Name};
use trunkline_proto::text::Format;

use super::accept::BodyText;
use super::bodies::Arrived;
use super::error::Refusal;
use super::outcome::{ChangeRequest, OPTIONS, Options, staged_response};
use super::query::Query;
use super::remove::RemovedNames;
use super::stage::{Part, Stage};
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
        names: read_removals(&query)?,
        missing_ok: query.is_on("missing_ok")?,
    };

    let body = bodies::read(&admin, &connection, body, admin.body_limit).await?;
    options.hash_request(&uri, &body.bytes);
    let form = match read_body_form(&headers) {
        Form::Binary => Form::Part(read_first_position(&query)?),
        text_form => text_form,
    };

    let stage = Arc::clone(&admin.stage).lock_owned().await;
    let upload = Upload {
        admin,
        who,
        options,
        part,
        replaces_origin,
        removed_names,
        body,
        form,
    };
    super::run_blocking(move || upload.make_or_stage(stage)).await?
}

/// A change as it was uploaded: its body, and what the request says of it.
struct Upload {
    admin: Shared,
    who: Who,
    options: Options,
    /// The part that the body is; `None` if it is the whole change.
    part: Option<Part>,
    replaces_origin: bool,
    removed_names: RemovedNames,
    body: Arrived,
    form: Form,
}

impl Upload {
    /// Makes the change, or stages the body if other parts are still to come.
    ///
    /// Bodies are decoded one at a time, for the memory that it takes: `stage`
    /// is locked for it. The lock ends before the change is made, so that
    /// several changes can be stored in one write.
    fn make_or_stage(mut self, mut stage: OwnedMutexGuard<Stage>) -> Result<Response, Refusal> {
        let text = BodyText::from_form(&self.body.bytes, self.form);
        let (document, warnings) = self.read_document(&mut stage)?;
        drop(stage);
        let Some(document) = document else {
            let revision = self.admin.server.revision();
            return Ok(staged_response(revision, warnings));
        };

        let edit = ResourceEdit {
            removals: self.removed_names.select_existing(&self.admin.server)?,
            replaces_origin: self.replaces_origin,
            ..ResourceEdit::of_document(document)
        };
        let request = ChangeRequest {
            admin: &self.admin,
            who: &self.who,
            options: self.options,
            text,
        };
        let response = request.make(edit, warnings)?;
        if !request.options.dry_run {
            self.admin.applied.note_applied(&request.options.origin);
        }
        Ok(response)
    }

    /// Decodes the body. Returns the document of the whole change, which is
    /// `None` if other parts are still to come, and warnings about the body.
    ///
    /// # Errors
    /// The body has a mistake, or an earlier part is missing. The change is
    /// given up then.
    fn read_document(
        &mut self,
        stage: &mut Stage,
    ) -> Result<(Option<Document>, Vec<Finding>), Refusal> {
        let part = self.part.take();
        let accepted = accept::accept(self.body.bytes.clone(), self.form);
        let (mut document, warnings) = accepted.inspect_err(|_| {
            // The change can never be complete without this part.
            if let Some(part) = &part {
                stage.forget(&part.name);
            }
        })?;

        let Some(part) = part else {
            return Ok((Some(document), warnings));
        };
        self.admin.server.read_set(|set| set.share(&mut document));
        let conflict = |forgotten| Refusal::new(StatusCode::CONFLICT, forgotten);
        Ok((stage.add(part, document).map_err(conflict)?, warnings))
    }
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
fn read_removals(query: &Query) -> Result<Vec<Removal>, Refusal> {
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
