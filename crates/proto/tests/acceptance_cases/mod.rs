//! Resources with the findings of a client, from the files of
//! `data/acceptance`.
//!
//! A file has several documents. Each begins with a comment: the verdict and
//! the name of the case. A case that is rejected has its reasons in the
//! comments after that, one to a line; a case that is accepted has what is
//! `ignored` and `unsupported`. A comment `policy:` changes the policy, and
//! `grpc:` says where gRPC itself is of another opinion, and why. The first line
//! after the comments is the type.

use std::fs;

const FOLDER: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../proto/tests/data/acceptance"
);

/// A resource, and what a client finds in it.
pub(crate) struct Case {
    pub(crate) name: String,
    pub(crate) is_accepted: bool,
    /// Reasons, or what is ignored and unsupported, in the order of the file.
    pub(crate) findings: Vec<String>,
    /// The words of its policy.
    pub(crate) policy: Vec<String>,
    /// Whether gRPC's own clients accept it too, if it is accepted, and reject
    /// it too otherwise.
    #[allow(dead_code, reason = "a test against gRPC itself reads it")]
    pub(crate) grpc_agrees: bool,
    /// The resource in YAML, from its type on.
    pub(crate) text: String,
}

/// Reads the cases of one rule.
pub(crate) fn read(rule: &str) -> Vec<Case> {
    let file = format!("{FOLDER}/{rule}.yaml");
    let text = fs::read_to_string(&file).expect("the cases");
    text.split("---\n").map(read_case).collect()
}

fn read_case(document: &str) -> Case {
    let comments = document.lines().take_while(|line| line.starts_with('#'));
    let comments: Vec<_> = comments
        .map(|line| line.trim_start_matches('#').trim_start())
        .collect();
    let text = document.lines().skip(comments.len());
    let text: String = text.flat_map(|line| [line, "\n"]).collect();

    let (head, rest) = comments.split_first().expect("a verdict");
    let (verdict, name) = head.split_once(": ").expect("a verdict and a name");
    let mut case = Case {
        name: name.to_owned(),
        is_accepted: match verdict {
            "accept" => true,
            "reject" => false,
            other => panic!("{name}: {other} is no verdict"),
        },
        findings: Vec::new(),
        policy: Vec::new(),
        grpc_agrees: true,
        text,
    };
    for comment in rest {
        if let Some(words) = comment.strip_prefix("policy: ") {
            case.policy = words.split(' ').map(str::to_owned).collect();
        } else if comment.starts_with("grpc: ") {
            case.grpc_agrees = false;
        } else {
            case.findings.push((*comment).to_owned());
        }
    }
    case
}
