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

use self::fetch::{Original, Subject};
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

/// Opens a resource in the user's editor, and applies the saved text.
///
/// # Errors
/// The resource cannot be edited, the editor fails, or the resource is changed
/// by somebody else meanwhile. The edited text is kept in a file that the error
/// names.
pub(super) fn run(args: &cli::Edit) -> Result<()> {
    let subject = Subject::parse(args)?;
    let client = Client::new(&args.remote)?;
    let original = run_request(fetch::fetch_subject(&client, &subject))?;
    let file_failure = |error| Failure::wrong(format!("no file for the editor: {error}"));

    // The file may contain secrets; a temporary file is for its owner only.
    let file = tempfile::Builder::new()
        .prefix("trunkline-edit-")
        .suffix(".yaml")
        .tempfile()
        .map_err(file_failure)?;

    let editing = Editing {
        client,
        subject,
        original,
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
    original: Original,
}

/// What became of a text that was saved.
enum Tried {
    /// It was applied.
    Applied(Bytes),
    /// It has mistakes, and changed nothing.
    Mistaken(Vec<Mistake>),
}

impl Editing {
    /// Opens the editor again and again, until the text has no mistakes and is
    /// applied. Ends without a change if the user saves the text unchanged.
    fn run(&self, path: &Path) -> Result<()> {
        let mut body = self.original.text.clone();
        let mut mistakes: Vec<Mistake> = Vec::new();
        for _ in 0..MOST_ROUNDS {
            let text = text::add_head(&self.head_text(), &mistakes, &body);
            text::write(path, &text)?;
            editor::run_editor(path)?;

            let edited_body = text::read_body(path)?;

            if edited_body.trim().is_empty() {
                // The file that is kept must have the last text, not the empty one.
                text::write(path, &text)?;
                return Err(Failure::wrong("the file was empty; nothing was changed"));
            }
            if edited_body == self.original.text {
                return print(b"unchanged: nothing was applied\n");
            }

            if !mistakes.is_empty() && edited_body == body {
                text::write(path, &text)?;
                return Err(Failure::wrong(
                    "the mistakes are still there; nothing was changed",
                ));
            }

            body = edited_body;
            match run_request(self.try_apply(&body))? {
                Tried::Applied(answer) => {
                    return changes::print_outcome_without_file(&answer).map(drop);
                }
                Tried::Mistaken(new_mistakes) => mistakes = new_mistakes,
            }
        }
        Err(Failure::wrong(
            "there are still mistakes after many rounds; nothing was changed",
        ))
    }

    /// Returns the line that says which resource the text has.
    fn head_text(&self) -> String {
        let Original {
            origin, revision, ..
        } = &self.original;
        format!(
            "{} of origin {origin:?}, at revision {revision}.",
            self.subject
        )
    }

    /// Checks a text and applies it, if the resource is unchanged since it was
    /// fetched. A change of another resource meanwhile does not matter: the
    /// request is repeated at the new revision.
    ///
    /// # Errors
    /// Somebody else changed the resource, or the server refuses the change for
    /// another reason than a mistake.
    async fn try_apply(&self, body: &str) -> Result<Tried> {
        let mistakes = check::find_mistakes(&self.subject, &self.original, body)?;
        if !mistakes.is_empty() {
            return Ok(Tried::Mistaken(mistakes));
        }

        let mut revision = self.original.revision;
        for _ in 0..MOST_TRIES {
            match self.send(body, revision).await? {
                Answer::Good(answer) => return Ok(Tried::Applied(answer)),
                Answer::Refused(StatusCode::PRECONDITION_FAILED, refusal) => {
                    revision = self.revision_if_same(&refusal).await?;
                }
                Answer::Refused(StatusCode::UNPROCESSABLE_ENTITY, refusal) => {
                    let mistakes = refusal.details.into_iter().map(Mistake::from);
                    return Ok(Tried::Mistaken(mistakes.collect()));
                }
                Answer::Refused(_, refusal) => return Err(Failure::wrong(refusal.message)),
            }
        }
        Err(Failure::wrong(
            "the contents change all the time; nothing was changed, try again later",
        ))
    }

    /// Sends a text, to be applied only if the contents are at this revision.
    async fn send(&self, body: &str, revision: u64) -> Result<Answer> {
        let origin = encode_url(&self.original.origin);
        let call = Call {
            method: Method::POST,
            path: &format!("/api/v1/resources?origin={origin}&if_revision={revision}"),
            content_type: content_type(Format::Yaml),
            body: body.into(),
            file: "",
        };
        self.client.call_for_answer(call).await
    }

    /// Returns the newest revision of the contents, if the resource is
    /// unchanged since it was fetched.
    ///
    /// # Errors
    /// Somebody changed the resource. The error names the author if the refusal
    /// does.
    async fn revision_if_same(&self, refusal: &Refused) -> Result<u64> {
        let current = fetch::list_variants(&self.client, &self.subject).await?;
        if current.versions == self.original.versions {
            return Ok(current.revision);
        }
        let label = format!("{} ", self.subject.name_label());
        let mut changes = refusal.details.iter().map(|detail| &detail.message);
        let own_change = changes.rfind(|change| change.starts_with(&label));
        let cause = match own_change {
            Some(change) => change.clone(),
            None => format!("{} was changed meanwhile", self.subject),
        };
        Err(Failure::wrong(format!("{cause}; nothing was applied")))
    }
}
