//! Questions to `explain`, for which no right is needed, with hostile YAML.

use std::fmt::Write as _;

use bytes::Bytes;

use crate::admin;
use crate::error::{Error, Result};
use crate::field::{Field, Findings};

const PATH: &str = "/api/v1/explain?type=cds&name=victim-0";

/// Posts a text that is as broad as 60 MB allow.
pub(super) async fn huge(field: Field) -> Findings {
    let size = field.pick(60_000_000, 4_000_000);
    let mut text = String::with_capacity(size + 64);
    text.push_str("id: x\nmetadata:\n");
    for key in 0.. {
        if text.len() > size {
            break;
        }
        let _ = writeln!(text, "  k{key}: [a, b]");
    }
    ask(&field, vec![text], 1).await
}

/// Posts lists in lists, in both styles of YAML.
pub(super) async fn deep(field: Field) -> Findings {
    let depth = field.pick(100_000, 5_000);
    let flow = format!("metadata: {}{}", "[".repeat(depth), "]".repeat(depth));
    let block = format!("metadata:\n  {}x", "- ".repeat(depth));
    ask(&field, vec![flow, block], 4).await
}

/// Posts aliases of aliases: each line is ten times as much as the one before.
pub(super) async fn aliases(field: Field) -> Findings {
    let mut text = String::from("metadata:\n  a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n");
    for level in 1..12 {
        let before = format!("*a{}", level - 1);
        let list = vec![before; 10].join(", ");
        let _ = writeln!(text, "  a{level}: &a{level} [{list}]");
    }
    ask(&field, vec![text], 4).await
}

/// Lets so many attackers ask until it is over, with one text or another.
async fn ask(field: &Field, texts: Vec<String>, attackers: usize) -> Findings {
    let bodies: Vec<Bytes> = texts.into_iter().map(Bytes::from).collect();
    let asked = field.crowd(attackers, |index, field| {
        let body = bodies[index % bodies.len()].clone();
        async move {
            let mut last = Ok(());
            while !field.is_over() {
                last = post(&field, body.clone()).await;
                if last.is_err() {
                    field.pause(std::time::Duration::from_millis(50)).await;
                }
            }
            last
        }
    });
    let mut findings = asked.await;
    // The attackers are cut off at the end; one more question says how the
    // server answers.
    if field.taken() + findings.refused == 0 {
        findings.add(post(field, bodies[0].clone()).await);
    }
    findings
}

async fn post(field: &Field, body: Bytes) -> Result<()> {
    let answer = admin::post(&field.admin, PATH, "application/yaml", body).await?;
    match answer.is_good() {
        true => {
            field.note_taken(1);
            Ok(())
        }
        false => Err(Error::Ended(format!("HTTP {}", answer.status))),
    }
}
