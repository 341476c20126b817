//! Makes a change, or rehearses it, and reports the outcome.

use axum::response::{IntoResponse as _, Response};
use serde::Serialize;
use trunkline::checked::{Edit, Effect, Finding, MOST_FINDINGS, Proposal, ResourceEdit};
use trunkline::{Applied, ChangeCounts, Changed};

use super::error::{Detail, Refusal};
use super::{Admin, Who};

/// The origin of resources that are written over the API.
const ORIGIN: &str = "api";

/// The effect of a change.
#[derive(Debug, Serialize)]
struct Outcome {
    /// Omitted in a summary.
    #[serde(skip_serializing_if = "Option::is_none")]
    changed: Option<Vec<ChangedVariant>>,
    counts: Counts,
    /// How many resources of the request are as they were.
    unchanged: usize,
    warnings: Vec<Detail>,
    dry_run: bool,
}

/// The number of each kind of change.
#[derive(Debug, Default, Serialize)]
struct Counts {
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
struct ChangedVariant {
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

/// The options of a change: how it is made and reported.
#[derive(Clone, Copy)]
pub(super) struct Options {
    /// Nothing is changed; only the effect is returned.
    pub(super) dry_run: bool,
    /// Changes are counted and not listed.
    pub(super) summary: bool,
}

/// A request for a change.
pub(super) struct ChangeRequest<'a> {
    pub(super) admin: &'a Admin,
    pub(super) who: &'a Who,
    pub(super) options: Options,
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
        let proposal = Proposal {
            origin: ORIGIN,
            edits: vec![Edit::Resources(edit)],
            dangling: self.admin.dangling.into(),
            is_complete: true,
            effect: match self.options.dry_run {
                true => Effect::Rehearsed,
                false => Effect::Applied,
            },
        };
        let mut settlement = self.admin.server.settle(&self.who.0, proposal);
        if let Some(rejection) = settlement.rejections.pop() {
            return Err(refusal(rejection.findings));
        }

        let Applied { changed, counts } = settlement.applied.unwrap_or_default();
        let warnings = warnings.into_iter().chain(settlement.warnings);
        let list = || changed.iter().map(ChangedVariant::from).collect();
        let outcome = Outcome {
            changed: (!self.options.summary).then(list),
            counts: counts.into(),
            unchanged: settlement.unchanged,
            warnings: warnings.map(Detail::from).collect(),
            dry_run: self.options.dry_run,
        };
        Ok(axum::Json(outcome).into_response())
    }
}

/// Responds to a part of a change that is not the last one: nothing was changed
/// so far.
pub(super) fn staged_response(warnings: Vec<Finding>) -> Response {
    let outcome = Outcome {
        changed: None,
        counts: Counts::default(),
        unchanged: 0,
        warnings: warnings.into_iter().map(Detail::from).collect(),
        dry_run: false,
    };
    axum::Json(outcome).into_response()
}

/// Makes the error of a body with mistakes, which says how many there are.
pub(super) fn refusal(mut mistakes: Vec<Finding>) -> Refusal {
    mistakes.truncate(MOST_FINDINGS);
    let count = match mistakes.len() {
        1 => "1 mistake".to_owned(),
        MOST_FINDINGS => format!("{MOST_FINDINGS} mistakes or more"),
        count => format!("{count} mistakes"),
    };
    let details = mistakes.into_iter().map(Detail::from).collect();
    Refusal::invalid(format!("{count}; nothing was changed"), details)
}
