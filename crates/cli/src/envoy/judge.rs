//! The resources that Envoy rejects. It stops at its first mistake and does not
//! always name a resource, so the one at fault is searched, left out, and the
//! others are judged again.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use trunkline::{Resource, TypeUrl};

use super::bootstrap::{self, routes_listener};
use super::part::{Part, Role};
use super::program::{Program, Verdict};
use super::views::Views;
use crate::failure::{Failure, Result};
use crate::kinds;

/// The maximum of mistakes that are searched for.
const MOST_MISTAKES: usize = 20;

/// What an Envoy says of resources.
#[derive(Debug)]
pub(crate) struct Judgement {
    /// The version of Envoy, such as `1.40.0`.
    pub(crate) version: String,
    /// The resources that it rejects, each with its words.
    pub(crate) rejected: Vec<(TypeUrl, Arc<Resource>, String)>,
    /// Whether it may reject more.
    pub(crate) is_cut: bool,
    /// What it did not judge, in words; `None` if it judged all.
    pub(crate) left_out: Option<String>,
}

/// Has the Envoy at a path check resources, in the views that their clients
/// have.
///
/// # Errors
/// The Envoy cannot be run.
pub(crate) async fn judge(
    envoy: &Path,
    resources: &[(TypeUrl, Arc<Resource>)],
) -> Result<Judgement> {
    let mut parts = Vec::new();
    let mut skipped_types: BTreeMap<&str, usize> = BTreeMap::new();
    for (type_url, resource) in resources {
        match Part::new(type_url, resource) {
            Some(part) => parts.push(part),
            None => *skipped_types.entry(kinds::short(type_url)).or_default() += 1,
        }
    }
    // The sort is stable: within a role, resources stay in the order of files.
    parts.sort_by_key(|part| part.role);

    let views = Views::choose(&parts);
    let mut judging = Judging {
        program: Program::open(envoy).await?,
        parts,
        rejected: BTreeMap::new(),
    };
    for view in &views.views {
        judging.judge_view(view).await?;
    }
    Ok(Judgement {
        left_out: describe_omission(&skipped_types, views.left_out),
        is_cut: judging.rejected.len() >= MOST_MISTAKES,
        version: judging.program.version,
        rejected: judging
            .rejected
            .into_iter()
            .map(|(index, error)| {
                let part = &judging.parts[index];
                (part.type_url.clone(), Arc::clone(&part.resource), error)
            })
            .collect(),
    })
}

/// Describes the resources that Envoy did not check: those of other types, and
/// variants beyond the maximum of views. Returns `None` if it checked all.
fn describe_omission(
    skipped_types: &BTreeMap<&str, usize>,
    skipped_variants: usize,
) -> Option<String> {
    let mut parts: Vec<String> = Vec::new();
    for (kind, count) in skipped_types {
        parts.push(format!("{count} {kind}"));
    }
    if skipped_variants > 0 {
        parts.push(format!("{skipped_variants} variants of too many clients"));
    }
    (!parts.is_empty()).then(|| parts.join(", "))
}

/// Resources that are being judged.
struct Judging {
    program: Program,
    parts: Vec<Part>,
    /// Envoy's words of each part that it rejects.
    rejected: BTreeMap<usize, String>,
}

impl Judging {
    /// Checks the view of a client. Envoy reports only one mistake per run, so
    /// the rejected part is removed and Envoy runs again, until it accepts the
    /// parts or [`MOST_MISTAKES`] parts are rejected.
    async fn judge_view(&mut self, view: &[usize]) -> Result<()> {
        while self.rejected.len() < MOST_MISTAKES {
            let is_unrejected = |index: &usize| !self.rejected.contains_key(index);
            let remaining_parts: Vec<usize> = view.iter().copied().filter(is_unrejected).collect();
            let Verdict::Bad(error) = self.run(&remaining_parts).await? else {
                return Ok(());
            };
            let (index, error) = self.find_rejected_part(&remaining_parts, error).await?;
            let own_error = self.parts[index].strip_listener(error);
            self.rejected.insert(index, own_error);
        }
        Ok(())
    }

    /// Finds one part that Envoy rejects among several, and returns its index
    /// with Envoy's error. Tries the part that the error names first. If that
    /// part alone is accepted, bisects: the shortest rejected beginning of the
    /// list ends with the part.
    async fn find_rejected_part(&self, parts: &[usize], error: String) -> Result<(usize, String)> {
        if let Some(index) = self.find_named_part(parts, &error)
            && let Verdict::Bad(error) = self.run(&[index]).await?
        {
            return Ok((index, error));
        }

        // Envoy accepts the first `good` parts and rejects the first `bad`.
        let (mut good, mut bad, mut error) = (0, parts.len(), error);
        while bad - good > 1 {
            let middle = good + (bad - good) / 2;
            match self.run(&parts[..middle]).await? {
                Verdict::Good => good = middle,
                Verdict::Bad(middle_error) => (bad, error) = (middle, middle_error),
            }
        }

        match (good, parts.get(good)) {
            (1.., Some(index)) => Ok((*index, error)),
            // No part was accepted yet: the fault is Envoy's if it rejects an
            // empty bootstrap too.
            (0, Some(index)) if matches!(self.run(&[]).await?, Verdict::Good) => {
                Ok((*index, error))
            }
            _ => Err(Failure::wrong(format!(
                "Envoy {} takes no configuration at all: {error}",
                self.program.version
            ))),
        }
    }

    /// Returns the part whose name the error quotes. Returns `None` if the
    /// error quotes the names of several parts, or of none.
    fn find_named_part(&self, parts: &[usize], error: &str) -> Option<usize> {
        let quoted_names: BTreeSet<&str> = error.split(['\'', '"']).skip(1).step_by(2).collect();
        let mut named_parts = parts.iter().filter(|index| {
            let part = &self.parts[**index];
            quoted_names.contains(part.name())
                || quoted_names.contains(&*routes_listener(part.name()))
        });
        let index = named_parts.next()?;
        named_parts.next().is_none().then_some(*index)
    }

    /// Lets Envoy judge some parts.
    async fn run(&self, parts: &[usize]) -> Result<Verdict> {
        let parts: Vec<&Part> = parts.iter().map(|index| &self.parts[*index]).collect();
        self.program
            .judge(&bootstrap::encode_bootstrap(&parts))
            .await
    }
}

impl Part {
    /// Removes the name of the listener from Envoy's error, if that listener
    /// was only made to hold a route configuration.
    fn strip_listener(&self, error: String) -> String {
        let routes = match self.role {
            Role::Routes => self.name(),
            Role::VirtualHost => self.name().rsplit_once('/').map_or("", |(name, _)| name),
            _ => return error,
        };
        let prefix = format!("error adding listener '{}': ", routes_listener(routes));
        match error.strip_prefix(&prefix) {
            Some(message) => message.to_owned(),
            None => error,
        }
    }
}
