//! Resources with Envoy's verdicts on what they describe, from the files of
//! `data/construction`.
//!
//! A file has several documents. Each begins with a comment: the verdict and
//! the name of the case. If the verdict is `reject`, a second one has the
//! mistake, with its field. The first line after that is the type.

use std::fs;

const FOLDER: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../proto/tests/data/construction"
);

/// A resource, and whether Envoy takes it.
pub(crate) struct Case {
    /// The file and the name.
    pub(crate) name: String,
    /// The mistake that Envoy rejects; `None` if it takes the resource.
    pub(crate) mistake: Option<String>,
    /// The resource in YAML, from its type on.
    pub(crate) text: String,
}

/// Reads all cases, in the order of their files.
pub(crate) fn read_all() -> Vec<Case> {
    let files = fs::read_dir(FOLDER).expect("the cases");
    let mut files: Vec<_> = files.map(|file| file.expect("a file").path()).collect();
    files.sort();

    let mut cases = Vec::new();
    for file in files {
        let folder = file.file_stem().expect("a name").to_string_lossy();
        let text = fs::read_to_string(&file).expect("a text");
        let documents = text.split("---\n");
        cases.extend(documents.map(|document| read_case(&folder, document)));
    }
    cases
}

fn read_case(folder: &str, document: &str) -> Case {
    let take_comment = |text: &str| {
        let (line, rest) = text.split_once('\n').expect("a line");
        let comment = line.strip_prefix("# ").expect("a comment");
        (comment.to_owned(), rest.to_owned())
    };
    let (head, rest) = take_comment(document);
    let (verdict, name) = head.split_once(": ").expect("a verdict and a name");
    let (mistake, text) = match verdict {
        "accept" => (None, rest),
        "reject" => {
            let (mistake, text) = take_comment(&rest);
            (Some(mistake), text)
        }
        other => panic!("{name}: {other} is no verdict"),
    };
    Case {
        name: format!("{folder}/{name}"),
        mistake,
        text,
    }
}
