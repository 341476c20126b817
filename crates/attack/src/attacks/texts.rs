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
    ask(&field, text, 1).await
}

/// Posts lists in lists, in both styles of YAML.
pub(super) async fn deep(field: Field) -> Findings {
    let depth = field.pick(100_000, 5_000);
    let flow = format!("metadata: {}{}", "[".repeat(depth), "]".repeat(depth));
    let block = format!("metadata:\n  {}x", "- ".repeat(depth));
    let mut findings = ask(&field, flow, 2).await;
    let others = ask(&again(&field), block, 2).await;
    findings.taken += others.taken;
    findings.refused += others.refused;
    findings
}

/// Posts aliases of aliases: each line is ten times as much as the one before.
pub(super) async fn aliases(field: Field) -> Findings {
    let mut text = String::from("metadata:\n  a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n");
    for level in 1..12 {
        let before = format!("*a{}", level - 1);
        let list = vec![before; 10].join(", ");
        let _ = writeln!(text, "  a{level}: &a{level} [{list}]");
    }
    ask(&field, text, 4).await
}

/// The second half of an attack goes on a second longer, so that it happens at
/// all.
fn again(field: &Field) -> Field {
    Field {
        until: field.until + std::time::Duration::from_secs(1),
        ..field.clone()
    }
}

/// Lets so many attackers ask until it is over.
async fn ask(field: &Field, text: String, attackers: usize) -> Findings {
    let body = Bytes::from(text);
    let asked = field.crowd(attackers, |_, field| {
        let body = body.clone();
        async move {
            let mut taken = 0;
            let mut last = Ok(0);
            while !field.is_over() {
                last = post(&field, body.clone()).await;
                taken += last.as_ref().unwrap_or(&0);
                if last.is_err() {
                    field.pause(std::time::Duration::from_millis(50)).await;
                }
            }
            last.map(|_| taken)
        }
    });
    let mut findings = asked.await;
    // The attackers are cut off at the end; one more question says how the
    // server answers.
    if findings.taken + findings.refused == 0 {
        findings.add(post(field, body.clone()).await);
    }
    findings
}

async fn post(field: &Field, body: Bytes) -> Result<u64> {
    let answer = admin::post(&field.admin, PATH, "application/yaml", body).await?;
    match answer.is_good() {
        true => Ok(1),
        false => Err(Error::Ended(format!("HTTP {}", answer.status))),
    }
}
