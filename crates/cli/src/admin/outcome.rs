//! Makes a change, or rehearses it, and reports the outcome.

use axum::response::{IntoResponse as _, Response};
use http::{HeaderMap, StatusCode, header};
use serde::Serialize;
use trunkline::checked::{
    Edit, Effect, Finding, Guard, MOST_FINDINGS, Proposal, ResourceEdit, Settlement, sort_findings,
};
use trunkline::{Applied, ChangeCounts, Changed, Conflict, Lifetime, Precondition, Server};
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
    /// Writes the change of a variant; a version is missing if there was none
    /// before, or is none after it.
    fn from(changed: &Changed) -> Self {
        Self {
            type_url: changed.type_url.to_string(),
            name: changed.name.to_string(),
            constraints: changed.constraints.as_ref().map(ToString::to_string),
            from: changed.from.as_ref().map(ToString::to_string),
            to: changed.to.as_ref().map(ToString::to_string),
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
    /// Reads the options of a request from its parameters, and from the header
    /// `If-Match`.
    ///
    /// # Errors
    /// A value makes no sense.
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
        })
    }
}

impl Options {
    /// Holds no change: who names what is removed has confirmed it.
    pub(super) fn without_guard(self) -> Self {
        let guard = Guard::Off;
        Self { guard, ..self }
    }
}

/// Reads the origin of a change.
///
/// # Errors
/// It is the origin of files, or not a name.
fn read_origin(query: &Query) -> Result<String, Refusal> {
    let Some(origin) = query.one("origin")? else {
        return Ok(DEFAULT_ORIGIN.to_owned());
    };
    let is_name = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    if origin == trunkline_store::ORIGIN {
        return Err(Refusal::bad(format!(
            "origin: {origin:?} is that of the files of --config; choose another"
        )));
    }
    match !origin.is_empty() && origin.len() <= LONGEST_ORIGIN && origin.chars().all(is_name) {
        true => Ok(origin.to_owned()),
        false => Err(Refusal::bad(format!(
            "origin: expected a name of at most {LONGEST_ORIGIN} letters, digits, and any of -_., \
             found {origin:?}"
        ))),
    }
}

/// Reads the version of the header `If-Match`, which may be in quotes.
fn read_if_match(headers: &HeaderMap) -> Result<Option<Version>, Refusal> {
    let Some(value) = headers.get(header::IF_MATCH) else {
        return Ok(None);
    };
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
    /// Makes the change, all of it or nothing, or rehearses it. Responds with
    /// its effect, and with the warnings about it.
    ///
    /// # Errors
    /// There is a mistake. The details are all that were found, at most
    /// [`MOST_FINDINGS`].
    pub(super) fn make(
        &self,
        edit: ResourceEdit,
        warnings: Vec<Finding>,
    ) -> Result<Response, Refusal> {
        let takes_over = self.options.takes_over;
        let edit = ResourceEdit { takes_over, ..edit };
        let proposal = Proposal {
            origin: &self.options.origin,
            edits: vec![Edit::Resources(edit)],
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
        let Options {
            precondition,
            lifetime,
            ..
        } = &self.options;
        let server = &self.admin.server;
        let settlement = server.settle_for(&self.who.0, proposal, precondition, *lifetime);
        let mut settlement = settlement.map_err(|conflict| conflict_refusal(&conflict))?;
        if let Some(text) = &self.text {
            text.locate_references(&mut settlement);
        }
        respond(server, &self.options, settlement, warnings)
    }
}

/// Responds to a change with its effect, and with the warnings about it.
///
/// # Errors
/// The change was rejected.
pub(super) fn respond(
    server: &Server,
    options: &Options,
    mut settlement: Settlement<Applied>,
    warnings: Vec<Finding>,
) -> Result<Response, Refusal> {
    if let Some(rejection) = settlement.rejections.pop() {
        let mut findings = rejection.findings.iter();
        return Err(match findings.find(|finding| finding.fault.is_veto()) {
            Some(veto) => Refusal::new(
                StatusCode::SERVICE_UNAVAILABLE,
                format!("{}; nothing was changed", veto.fault),
            ),
            None => refusal(rejection.findings),
        });
    }

    let Applied {
        changed,
        counts,
        revision,
    } = settlement.applied.unwrap_or_default();
    let mut warnings = [warnings, settlement.warnings].concat();
    sort_findings(&mut warnings);
    let list = || changed.iter().map(ChangedVariant::from).collect();
    let outcome = Outcome {
        changed: (!options.summary).then(list),
        counts: counts.into(),
        unchanged: settlement.unchanged,
        revision: revision.unwrap_or_else(|| server.revision()),
        warnings: warnings.into_iter().map(Detail::from).collect(),
        dry_run: options.dry_run,
    };
    Ok(axum::Json(outcome).into_response())
}

/// Responds to a part of a change that is not the last one: nothing was changed
/// so far.
pub(super) fn staged_response(revision: u64, warnings: Vec<Finding>) -> Response {
    let outcome = Outcome {
        changed: None,
        counts: Counts::default(),
        unchanged: 0,
        revision,
        warnings: warnings.into_iter().map(Detail::from).collect(),
        dry_run: false,
    };
    axum::Json(outcome).into_response()
}

/// Makes the error of a change whose precondition does not hold. Its details are
/// the changes since.
fn conflict_refusal(conflict: &Conflict) -> Refusal {
    let details = match conflict {
        Conflict::Revision { changes, .. } => changes.iter().map(Detail::new).collect(),
        Conflict::Version { .. } => Vec::new(),
    };
    Refusal {
        details,
        ..Refusal::new(
            StatusCode::PRECONDITION_FAILED,
            format!("{conflict}; nothing was changed"),
        )
    }
}

/// Makes the error of a body with mistakes, in their order, which says how many
/// there are.
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
