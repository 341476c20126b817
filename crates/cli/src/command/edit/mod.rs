//! `trunkline edit`: the variants of a name, in the user's editor.
//!
//! ```text
//! fetch ─▶ text ─▶ editor ─▶ check, apply ─▶ done
//!            ▲                 │        └──▶ somebody else changed it: the text is kept
//!            └──── mistakes ◀──┘
//! ```

mod check;
mod editor;
mod fetch;
mod text;

use std::path::Path;

use bytes::Bytes;
use http::{Method, StatusCode};
use tempfile::NamedTempFile;
use trunkline_proto::text::Format;

use self::fetch::{Fetched, Subject};
use self::text::Mistake;
use super::{changes, encode_url, print, run_request};
use crate::cli;
use crate::client::{Answer, Call, Client, Refused, content_type};
use crate::failure::{Failure, Result};

/// How often the editor opens: a program in its place may never come to an end.
const MOST_ROUNDS: usize = 50;
/// How often a change is tried again because others changed other resources
/// meanwhile.
const MOST_TRIES: usize = 10;

/// Lets the user edit a resource, and applies what was saved.
///
/// # Errors
/// There is nothing to edit, the editor fails, or somebody else changes the
/// resource meanwhile. The edited text is kept in a file that the error names.
pub(super) fn run(args: &cli::Edit) -> Result<()> {
    let subject = Subject::parse(args)?;
    let client = Client::new(&args.remote)?;
    let fetched = run_request(fetch::fetch(&client, &subject))?;
    let failed = |error| Failure::wrong(format!("no file for the editor: {error}"));
    // Only its owner may read it.
    let file = tempfile::Builder::new()
        .prefix("trunkline-edit-")
        .suffix(".yaml")
        .tempfile()
        .map_err(failed)?;

    let editing = Editing {
        client,
        subject,
        fetched,
    };
    match editing.run(file.path()) {
        Ok(()) => Ok(()),
        Err(failure) => Err(keep(file, failure)),
    }
}

/// Keeps the file of the text, and names it in the failure.
fn keep(file: NamedTempFile, failure: Failure) -> Failure {
    match file.keep() {
        Ok((_, path)) => failure.with_words(format!("; the text is kept in {}", path.display())),
        Err(error) => failure.with_words(format!("; the text could not be kept: {error}")),
    }
}

/// A resource that is edited.
struct Editing {
    client: Client,
    subject: Subject,
    fetched: Fetched,
}

/// What became of a text that was saved.
enum Tried {
    /// It was applied.
    Applied(Bytes),
    /// It has mistakes, and changed nothing.
    Mistaken(Vec<Mistake>),
}

impl Editing {
    /// Opens the editor until the text is applied, or as it was.
    fn run(&self, path: &Path) -> Result<()> {
        let mut body = self.fetched.text.clone();
        let mut mistakes: Vec<Mistake> = Vec::new();
        for _ in 0..MOST_ROUNDS {
            let text = text::with_head(&self.head(), &mistakes, &body);
            text::write(path, &text)?;
            editor::open(path)?;
            let saved = text::read_body(path)?;
            if saved.trim().is_empty() {
                // The file that is kept has the last text.
                text::write(path, &text)?;
                return Err(Failure::wrong("the file was empty; nothing was changed"));
            }
            if saved == self.fetched.text {
                return print(b"unchanged: nothing was applied\n");
            }
            if !mistakes.is_empty() && saved == body {
                text::write(path, &text)?;
                return Err(Failure::wrong(
                    "the mistakes are still there; nothing was changed",
                ));
            }

            body = saved;
            match run_request(self.try_text(&body))? {
                Tried::Applied(answer) => {
                    return changes::print_outcome_without_file(&answer).map(drop);
                }
                Tried::Mistaken(found) => mistakes = found,
            }
        }
        Err(Failure::wrong(
            "there are still mistakes after many rounds; nothing was changed",
        ))
    }

    /// Writes what the text is about.
    fn head(&self) -> String {
        let Fetched {
            origin, revision, ..
        } = &self.fetched;
        format!(
            "{} of origin {origin:?}, at revision {revision}.",
            self.subject
        )
    }

    /// Checks a text and applies it, if the resource is as it was fetched.
    ///
    /// # Errors
    /// Somebody else changed it, or the server does not take a change at all.
    async fn try_text(&self, body: &str) -> Result<Tried> {
        let found = check::check(&self.subject, &self.fetched, body)?;
        if !found.is_empty() {
            return Ok(Tried::Mistaken(found));
        }

        let mut revision = self.fetched.revision;
        for _ in 0..MOST_TRIES {
            match self.send(body, revision).await? {
                Answer::Good(answer) => return Ok(Tried::Applied(answer)),
                Answer::Refused(StatusCode::PRECONDITION_FAILED, refused) => {
                    revision = self.revision_if_same(&refused).await?;
                }
                Answer::Refused(StatusCode::UNPROCESSABLE_ENTITY, refused) => {
                    let found = refused.details.into_iter().map(Mistake::from);
                    return Ok(Tried::Mistaken(found.collect()));
                }
                Answer::Refused(_, refused) => return Err(Failure::wrong(refused.message)),
            }
        }
        Err(Failure::wrong(
            "the contents change all the time; nothing was changed, try again later",
        ))
    }

    /// Sends a text, to be applied if the contents are at a revision.
    async fn send(&self, body: &str, revision: u64) -> Result<Answer> {
        let origin = encode_url(&self.fetched.origin);
        let call = Call {
            method: Method::POST,
            path: &format!("/api/v1/resources?origin={origin}&if_revision={revision}"),
            content_type: content_type(Format::Yaml),
            body: body.into(),
            file: "",
        };
        self.client.ask(call).await
    }

    /// Returns the revision of the contents, after something was changed, if the
    /// resource itself is as it was.
    ///
    /// # Errors
    /// It was changed; the error says by whom, if the server does.
    async fn revision_if_same(&self, refused: &Refused) -> Result<u64> {
        let now = fetch::list(&self.client, &self.subject).await?;
        if now.versions == self.fetched.versions {
            return Ok(now.revision);
        }
        let label = format!("{} ", self.subject.name_label());
        let mut changes = refused.details.iter().map(|detail| &detail.message);
        let by = changes.rfind(|change| change.starts_with(&label));
        let what = match by {
            Some(change) => change.clone(),
            None => format!("{} was changed meanwhile", self.subject),
        };
        Err(Failure::wrong(format!("{what}; nothing was applied")))
    }
}
