//! Makes a change, or rehearses it, and reports the outcome.

use axum::response::{IntoResponse as _, Response};
use http::{HeaderMap, StatusCode, Uri, header};
use serde::Serialize;
use trunkline::checked::{
    Edit, Effect, Finding, Guard, MOST_FINDINGS, Proposal, ResourceEdit, Settlement, sort_findings,
};
use trunkline::{Applied, ChangeCounts, Changed, Conflict, Lifetime, Precondition, Server, Terms};
use trunkline_core::resource::Version;

use super::accept::BodyText;
use super::error::{Detail, Refusal};
use super::query::Query;
use super::{Admin, Who};
use crate::output::count_of;

/// The origin of resources that are written over the API, unless a request
/// names another.
pub(super) const DEFAULT_ORIGIN: &str = "api";
/// The longest name of an origin, in bytes.
const LONGEST_ORIGIN: usize = 64;

/// The longest idempotency key, in bytes.
const LONGEST_KEY: usize = 128;

/// The effect of a change.
#[derive(Debug, Serialize)]
struct Outcome {
    /// Omitted in a summary.
    #[serde(skip_serializing_if = "Option::is_none")]
    changed: Option<Vec<ChangedVariant>>,
    counts: Counts,
    /// How many resources of the request are as they were.
    unchanged: usize,
    /// The revision that the change made, or that of the contents if it made
    /// none.
    revision: u64,
    warnings: Vec<Detail>,
    dry_run: bool,
    /// Whether the change was made by an earlier request with the same
    /// idempotency key.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    repeated: bool,
}

/// The number of each kind of change.
#[derive(Debug, Default, Serialize)]
pub(super) struct Counts {
    created: usize,
    changed: usize,
    deleted: usize,
}

impl From<ChangeCounts> for Counts {
    fn from(counts: ChangeCounts) -> Self {
        Self {
            created: counts.created,
            changed: counts.changed,
            deleted: counts.deleted,
        }
    }
}

/// The effect on one variant of a name.
#[derive(Debug, Serialize)]
pub(super) struct ChangedVariant {
    #[serde(rename = "type")]
    type_url: String,
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    constraints: Option<String>,
    from: Option<String>,
    to: Option<String>,
}

impl From<&Changed> for ChangedVariant {
    /// Describes the change of a variant. `from` is missing if the variant is
    /// new, and `to` if it is removed.
    fn from(change: &Changed) -> Self {
        Self {
            type_url: change.type_url.to_string(),
            name: change.name.to_string(),
            constraints: change.constraints.as_ref().map(ToString::to_string),
            from: change.from.as_ref().map(ToString::to_string),
            to: change.to.as_ref().map(ToString::to_string),
        }
    }
}

/// The options of a change: who it is for, and how it is made and reported.
pub(super) struct Options {
    /// The origin of the resources.
    pub(super) origin: String,
    /// Nothing is changed; only the effect is returned.
    pub(super) dry_run: bool,
    /// Changes are counted and not listed.
    summary: bool,
    takes_over: bool,
    precondition: Precondition,
    pub(super) guard: Guard,
    /// What the change means for the lease of its origin.
    pub(super) lifetime: Lifetime,
    /// The key of the header `Idempotency-Key`, and the hash of the request.
    pub(super) idempotency: Option<(String, u64)>,
    /// The revision whose contents the change restores.
    pub(super) restores: Option<u64>,
}

/// The parameters of the options.
pub(super) const OPTIONS: [&str; 6] = [
    "dry_run",
    "summary",
    "origin",
    "take_over",
    "if_revision",
    "yes",
];

impl Options {
    /// Returns the terms on which the server makes the change.
    fn terms(&self) -> Terms {
        Terms {
            precondition: self.precondition.clone(),
            lifetime: self.lifetime,
            idempotency: self.idempotency.clone(),
            restores: self.restores,
        }
    }

    /// Reads the options of a request from its parameters, and from the header
    /// `If-Match`.
    ///
    /// # Errors
    /// A parameter or the header has a value that is not allowed.
    pub(super) fn read(query: &Query, headers: &HeaderMap) -> Result<Self, Refusal> {
        let revision = query.one("if_revision")?.map(|revision| {
            revision.parse().map_err(|_| {
                Refusal::bad(format!(
                    "if_revision: expected a number, found {revision:?}"
                ))
            })
        });

        Ok(Self {
            origin: read_origin(query)?,
            dry_run: query.is_on("dry_run")?,
            summary: query.is_on("summary")?,
            takes_over: query.is_on("take_over")?,
            precondition: Precondition {
                revision: revision.transpose()?,
                version: read_if_match(headers)?,
            },
            guard: match query.is_on("yes")? {
                true => Guard::Off,
                false => Guard::On,
            },
            lifetime: Lifetime::Kept,
            idempotency: read_idempotency_key(headers)?,
            restores: None,
        })
    }

    /// Sets the revision at which the contents have to be for the change to be
    /// made, unless the request names one.
    pub(super) fn expect_revision(&mut self, revision: u64) {
        self.precondition.revision.get_or_insert(revision);
    }

    /// Adds the hash of a request to its idempotency key, by which two requests
    /// with one key are told apart. Does nothing without a key.
    pub(super) fn hash_request(&mut self, uri: &Uri, body: &[u8]) {
        if let Some((_, hash)) = &mut self.idempotency {
            let request = [uri.to_string().as_bytes(), b"\n", body].concat();
            let version = Version::of_body(&request);
            // A version that was made from bytes is sixteen hexadecimal digits.
            *hash = u64::from_str_radix(version.as_str(), 16).unwrap_or_default();
        }
    }

    /// Returns the options with the guard off, so that no removal is held: whoever
    /// names what is removed has confirmed it.
    pub(super) fn without_guard(self) -> Self {
        let guard = Guard::Off;
        Self { guard, ..self }
    }
}

/// Reads the origin of a change; the default one without the parameter.
///
/// # Errors
/// The origin is that of files, or contains a character that a name may not
/// have.
fn read_origin(query: &Query) -> Result<String, Refusal> {
    let Some(origin) = query.one("origin")? else {
        return Ok(DEFAULT_ORIGIN.to_owned());
    };
    let is_name_char = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);

    if origin == trunkline_store::ORIGIN {
        return Err(Refusal::bad(format!(
            "origin: {origin:?} is that of the files of --config; choose another"
        )));
    }
    match !origin.is_empty() && origin.len() <= LONGEST_ORIGIN && origin.chars().all(is_name_char) {
        true => Ok(origin.to_owned()),
        false => Err(Refusal::bad(format!(
            "origin: expected a name of at most {LONGEST_ORIGIN} letters, digits, and any of -_., \
             found {origin:?}"
        ))),
    }
}

/// Reads the header `Idempotency-Key`. The second value is the hash of the
/// request, which stays zero until the body was read. Returns `None` without
/// the header.
fn read_idempotency_key(headers: &HeaderMap) -> Result<Option<(String, u64)>, Refusal> {
    let Some(value) = headers.get("idempotency-key") else {
        return Ok(None);
    };
    match value.to_str().map(|key| key.trim_matches('"')) {
        Ok(key) if !key.is_empty() && key.len() <= LONGEST_KEY => Ok(Some((key.to_owned(), 0))),
        _ => Err(Refusal::bad(format!(
            "Idempotency-Key: expected a text of at most {LONGEST_KEY} bytes"
        ))),
    }
}

/// Reads the version in the header `If-Match`, with or without quotes. Returns
/// `None` without the header.
fn read_if_match(headers: &HeaderMap) -> Result<Option<Version>, Refusal> {
    let Some(value) = headers.get(header::IF_MATCH) else {
        return Ok(None);
    };
    // A value that is no text is refused as an empty one is.
    let version = value.to_str().unwrap_or_default().trim_matches('"');
    match version.is_empty() || version == "*" || version.contains(',') {
        true => Err(Refusal::bad(
            "If-Match: expected one version, as `get` shows it",
        )),
        false => Ok(Some(Version::new(version))),
    }
}

/// A request for a change.
pub(super) struct ChangeRequest<'a> {
    pub(super) admin: &'a Admin,
    pub(super) who: &'a Who,
    pub(super) options: Options,
    /// The text of the body, if it is one: references in it have places.
    pub(super) text: Option<BodyText>,
}

impl ChangeRequest<'_> {
    /// Makes the change, all of it or nothing, or rehearses it for a dry run.
    /// Responds with the effect and the warnings.
    ///
    /// # Errors
    /// The change was rejected. The details list the mistakes, at most
    /// [`MOST_FINDINGS`].
    pub(super) fn make(
        &self,
        edit: ResourceEdit,
        warnings: Vec<Finding>,
    ) -> Result<Response, Refusal> {
        let takes_over = self.options.takes_over;
        let edit = ResourceEdit { takes_over, ..edit };
        self.make_edit(Edit::Resources(edit), warnings)
    }

    /// Makes the change of an edit, or rehearses it for a dry run.
    ///
    /// # Errors
    /// The same as those of [`Self::make`].
    pub(super) fn make_edit(
        &self,
        edit: Edit,
        warnings: Vec<Finding>,
    ) -> Result<Response, Refusal> {
        let proposal = Proposal {
            origin: &self.options.origin,
            edits: vec![edit],
            dangling: self.admin.dangling.into(),
            is_complete: true,
            effect: match self.options.dry_run {
                true => Effect::Rehearsed,
                false => Effect::Applied,
            },
            guard: match self.admin.hold_removals {
                true => self.options.guard,
                false => Guard::Off,
            },
        };

        let server = &self.admin.server;
        let terms = self.options.terms();
        let mut settlement = match server.settle_on(&self.who.0, proposal, &terms) {
            Ok(settlement) => settlement,
            Err(Conflict::Repeated {
                revision,
                is_same: true,
            }) => return Ok(repeated_response(revision)),
            Err(conflict) => return Err(conflict_refusal(&conflict)),
        };

        if let Some(text) = &self.text {
            text.locate_references(&mut settlement);
        }
        respond(server, &self.options, settlement, warnings)
    }
}

/// Makes the error of a rejected change. If a veto is among the findings, the
/// error is about it alone.
fn rejection_refusal(findings: Vec<Finding>) -> Refusal {
    match findings.iter().find(|finding| finding.fault.is_veto()) {
        Some(veto) => Refusal::new(
            StatusCode::SERVICE_UNAVAILABLE,
            format!("{}; nothing was changed", veto.fault),
        ),
        None => refusal(findings),
    }
}

/// Responds to a change with its effect and the warnings about it.
///
/// # Errors
/// The change was rejected, by a check or by a veto such as that of the audit
/// log.
pub(super) fn respond(
    server: &Server,
    options: &Options,
    mut settlement: Settlement<Applied>,
    warnings: Vec<Finding>,
) -> Result<Response, Refusal> {
    if let Some(rejection) = settlement.rejections.pop() {
        return Err(rejection_refusal(rejection.findings));
    }

    let Applied {
        changed,
        counts,
        revision,
    } = settlement.applied.unwrap_or_default();
    let mut warnings = [warnings, settlement.warnings].concat();
    sort_findings(&mut warnings);
    let list_changes = || changed.iter().map(ChangedVariant::from).collect();
    let outcome = Outcome {
        changed: (!options.summary).then(list_changes),
        counts: counts.into(),
        unchanged: settlement.unchanged,
        revision: revision.unwrap_or_else(|| server.revision()),
        warnings: warnings.into_iter().map(Detail::from).collect(),
        dry_run: options.dry_run,
        repeated: false,
    };

    Ok(axum::Json(outcome).into_response())
}

/// Responds to a part of a change that is not its last part: the contents are
/// unchanged until the last part arrives.
pub(super) fn staged_response(revision: u64, warnings: Vec<Finding>) -> Response {
    let outcome = Outcome {
        changed: None,
        counts: Counts::default(),
        unchanged: 0,
        revision,
        warnings: warnings.into_iter().map(Detail::from).collect(),
        dry_run: false,
        repeated: false,
    };
    axum::Json(outcome).into_response()
}

/// Responds to a repeated request, whose change was made at `revision`.
fn repeated_response(revision: u64) -> Response {
    let outcome = Outcome {
        changed: Some(Vec::new()),
        counts: Counts::default(),
        unchanged: 0,
        revision,
        warnings: Vec::new(),
        dry_run: false,
        repeated: true,
    };
    axum::Json(outcome).into_response()
}

/// Makes the error of a change whose precondition does not hold. If the
/// revision differs, the details are the changes since the expected one.
fn conflict_refusal(conflict: &Conflict) -> Refusal {
    let (status, details) = match conflict {
        Conflict::Revision { changes, .. } => {
            let details = changes.iter().map(Detail::new).collect();
            (StatusCode::PRECONDITION_FAILED, details)
        }
        Conflict::Version { .. } => (StatusCode::PRECONDITION_FAILED, Vec::new()),
        Conflict::Repeated { .. } => (StatusCode::CONFLICT, Vec::new()),
        Conflict::Store { .. } => (StatusCode::SERVICE_UNAVAILABLE, Vec::new()),
    };
    let message = match conflict {
        Conflict::Repeated { revision, .. } => format!(
            "revision {revision} was made by another request with the same Idempotency-Key; \
             nothing was changed: give each change a key of its own"
        ),
        _ => format!("{conflict}; nothing was changed"),
    };
    Refusal {
        details,
        ..Refusal::new(status, message)
    }
}

/// Makes the error of a change with mistakes. The message has their number, and
/// the details are the mistakes in the order of the text.
pub(super) fn refusal(mut mistakes: Vec<Finding>) -> Refusal {
    sort_findings(&mut mistakes);
    mistakes.truncate(MOST_FINDINGS);
    let count = match mistakes.len() {
        MOST_FINDINGS => format!("{MOST_FINDINGS} mistakes or more"),
        count => count_of(count, "mistake"),
    };
    let details = mistakes.into_iter().map(Detail::from).collect();
    Refusal::invalid(format!("{count}; nothing was changed"), details)
}
