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

/// Lets the Envoy at a path judge resources, as their clients would get them.
///
/// # Errors
/// It does not run.
pub(crate) async fn judge(
    envoy: &Path,
    resources: &[(TypeUrl, Arc<Resource>)],
) -> Result<Judgement> {
    let mut parts = Vec::new();
    let mut others: BTreeMap<&str, usize> = BTreeMap::new();
    for (type_url, resource) in resources {
        match Part::new(type_url, resource) {
            Some(part) => parts.push(part),
            None => *others.entry(kinds::short(type_url)).or_default() += 1,
        }
    }
    // Stable: resources of one kind stay in the order of their files.
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
        left_out: left_out(&others, views.left_out),
        is_cut: judging.rejected.len() >= MOST_MISTAKES,
        version: judging.program.version,
        rejected: judging
            .rejected
            .into_iter()
            .map(|(index, words)| {
                let part = &judging.parts[index];
                (part.type_url.clone(), Arc::clone(&part.resource), words)
            })
            .collect(),
    })
}

/// Writes what was not judged.
fn left_out(others: &BTreeMap<&str, usize>, variants: usize) -> Option<String> {
    let mut parts: Vec<String> = Vec::new();
    for (kind, count) in others {
        parts.push(format!("{count} {kind}"));
    }
    if variants > 0 {
        parts.push(format!("{variants} variants of too many clients"));
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
    /// Judges the view of a client. Envoy reports one mistake in a run, so it
    /// runs again without the rejected parts until it takes the rest, or
    /// [`MOST_MISTAKES`] parts are rejected.
    async fn judge_view(&mut self, view: &[usize]) -> Result<()> {
        while self.rejected.len() < MOST_MISTAKES {
            let is_left = |index: &usize| !self.rejected.contains_key(index);
            let left: Vec<usize> = view.iter().copied().filter(is_left).collect();
            let Verdict::Bad(error) = self.run(&left).await? else {
                return Ok(());
            };
            let (index, error) = self.find_rejected_part(&left, error).await?;
            let own_error = self.parts[index].own_words(error);
            self.rejected.insert(index, own_error);
        }
        Ok(())
    }

    /// Finds a part that Envoy rejects among some that it rejects together, and
    /// returns it with Envoy's words. The part that the words name is tried
    /// alone; if it is not at fault alone, the shortest beginning that Envoy
    /// rejects ends with the part at fault.
    async fn find_rejected_part(&self, parts: &[usize], words: String) -> Result<(usize, String)> {
        if let Some(index) = self.named_in(parts, &words)
            && let Verdict::Bad(words) = self.run(&[index]).await?
        {
            return Ok((index, words));
        }

        let (mut good, mut bad, mut words) = (0, parts.len(), words);
        while bad - good > 1 {
            let middle = good + (bad - good) / 2;
            match self.run(&parts[..middle]).await? {
                Verdict::Good => good = middle,
                Verdict::Bad(of_middle) => (bad, words) = (middle, of_middle),
            }
        }
        match (good, parts.get(good)) {
            (1.., Some(index)) => Ok((*index, words)),
            // Nothing was good yet: is it the resource, or Envoy?
            (0, Some(index)) if matches!(self.run(&[]).await?, Verdict::Good) => {
                Ok((*index, words))
            }
            _ => Err(Failure::wrong(format!(
                "Envoy {} takes no configuration at all: {words}",
                self.program.version
            ))),
        }
    }

    /// Returns the part whose name is quoted, if it is one only.
    fn named_in(&self, parts: &[usize], words: &str) -> Option<usize> {
        let quoted: BTreeSet<&str> = words.split(['\'', '"']).skip(1).step_by(2).collect();
        let mut named = parts.iter().filter(|index| {
            let part = &self.parts[**index];
            quoted.contains(part.name()) || quoted.contains(&*routes_listener(part.name()))
        });
        let first = named.next()?;
        named.next().is_none().then_some(*first)
    }

    /// Lets Envoy judge some parts.
    async fn run(&self, parts: &[usize]) -> Result<Verdict> {
        let parts: Vec<&Part> = parts.iter().map(|index| &self.parts[*index]).collect();
        self.program.judge(&bootstrap::encode(&parts)).await
    }
}

impl Part {
    /// Takes the listener that is only around a route configuration out of
    /// Envoy's words.
    fn own_words(&self, words: String) -> String {
        let routes = match self.role {
            Role::Routes => self.name(),
            Role::VirtualHost => self.name().rsplit_once('/').map_or("", |(name, _)| name),
            _ => return words,
        };
        let around = format!("error adding listener '{}': ", routes_listener(routes));
        match words.strip_prefix(&around) {
            Some(own) => own.to_owned(),
            None => words,
        }
    }
}
