//! One file: its resources and their places, or its mistakes.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use trunkline::wire::accept_text;
use trunkline::{Resource, TypeUrl};
use trunkline_proto::{Path as Field, descriptor, text};
use twox_hash::XxHash3_128;

use crate::problem::{Fault, MOST, Place, Problem};

/// A resource and where it stands.
#[derive(Debug)]
pub(crate) struct Item {
    pub(crate) type_url: TypeUrl,
    pub(crate) resource: Arc<Resource>,
    line: u32,
    column: u32,
    pub(crate) field: Box<str>,
}

/// What a file without a mistake says.
#[derive(Debug)]
pub(crate) struct Parsed {
    pub(crate) file: Arc<str>,
    pub(crate) items: Vec<Item>,
}

impl Parsed {
    pub(crate) fn place(&self, item: &Item) -> Place {
        Place {
            file: Arc::clone(&self.file),
            line: item.line,
            column: item.column,
        }
    }

    pub(crate) fn problem(&self, item: &Item, fault: Fault) -> Problem {
        Problem {
            place: self.place(item),
            field: item.field.clone(),
            fault,
        }
    }
}

/// What was read.
pub(crate) struct Outcome {
    /// All resources, those of a file with mistakes too.
    pub(crate) parsed: Parsed,
    pub(crate) errors: Vec<Problem>,
    pub(crate) warnings: Vec<Problem>,
    /// Of the bytes; `None` if there were none to be had.
    pub(crate) hash: Option<u128>,
}

/// Reads a file, unless its bytes are those that were read before.
pub(crate) fn read(
    path: &Path,
    file: &Arc<str>,
    before: Option<u128>,
    options: &text::Options,
) -> Option<Outcome> {
    match bytes(path, options.limits.bytes) {
        Ok(bytes) => {
            let hash = Some(XxHash3_128::oneshot(&bytes));
            (before.is_none() || before != hash).then(|| parse(file, bytes, hash, options))
        }
        Err(error) => {
            let fault = match error.kind() {
                io::ErrorKind::NotFound => Fault::Missing,
                _ => Fault::from(&error),
            };
            Some(Outcome {
                parsed: Parsed {
                    file: Arc::clone(file),
                    items: Vec::new(),
                },
                errors: vec![Problem::whole(file, fault)],
                warnings: Vec::new(),
                hash: None,
            })
        }
    }
}

/// The bytes of a file, one more than the limit at most: then reading says so.
fn bytes(path: &Path, limit: usize) -> io::Result<Bytes> {
    let mut bytes = Vec::new();
    let limit = u64::try_from(limit).unwrap_or(u64::MAX).saturating_add(1);
    File::open(path)?.take(limit).read_to_end(&mut bytes)?;
    Ok(bytes.into())
}

fn parse(file: &Arc<str>, bytes: Bytes, hash: Option<u128>, options: &text::Options) -> Outcome {
    let document = text::read_bytes(file, bytes, options);
    let mut errors: Vec<_> = document.errors.into_iter().map(|e| said(file, e)).collect();
    let warnings = document.warnings.into_iter();
    let warnings = warnings.map(|e| said(file, e)).collect();
    let mut urls = Urls::default();
    let mut items = Vec::with_capacity(document.resources.len());
    // One after the other, so that the tree of each is gone before the next.
    for read in document.resources {
        let at = read.position(&Field::default());
        let (line, column) = (number(at.line), number(at.column));
        let broken = read.validate().into_iter().map(|e| said(file, e));
        errors.extend(broken.take(MOST.saturating_sub(errors.len())));
        match accept_text(&read) {
            Ok(resource) => items.push(Item {
                type_url: urls.normal(&read.type_url),
                resource: Arc::new(resource),
                line,
                column,
                field: read.path.to_string().into(),
            }),
            Err(error) if errors.len() < MOST => errors.push(Problem {
                place: Place {
                    file: Arc::clone(file),
                    line,
                    column,
                },
                field: read.path.to_string().into(),
                fault: Fault::Accept(error),
            }),
            Err(_) => {}
        }
    }
    let file = Arc::clone(file);
    Outcome {
        parsed: Parsed { file, items },
        errors,
        warnings,
        hash,
    }
}

fn said(file: &Arc<str>, error: text::TextError) -> Problem {
    Problem {
        place: Place {
            file: Arc::clone(file),
            line: number(error.at.line),
            column: number(error.at.column),
        },
        field: error.path.into(),
        fault: Fault::Text(error.problem),
    }
}

fn number(n: usize) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}

/// The type URLs of a file, each kept once, in the spelling that clients use.
#[derive(Default)]
struct Urls(HashMap<String, TypeUrl>);

impl Urls {
    fn normal(&mut self, written: &str) -> TypeUrl {
        if let Some(known) = self.0.get(written) {
            return known.clone();
        }
        let url = match descriptor::message(written) {
            Some(of) => TypeUrl::new(format!("type.googleapis.com/{}", of.full_name())),
            None => TypeUrl::new(written),
        };
        self.0.insert(written.to_owned(), url.clone());
        url
    }
}
