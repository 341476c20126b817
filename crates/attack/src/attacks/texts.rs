//! Questions to `explain`, for which no right is needed, with hostile YAML.

use std::fmt::Write as _;
use std::time::Duration;

use bytes::Bytes;

use crate::admin;
use crate::error::{Error, Result};
use crate::field::Field;

const PATH: &str = "/api/v1/explain?type=cds&name=victim-0";

/// Posts a text that is as broad as 60 MB allow.
pub(super) async fn huge(field: Field) {
    let size = field.pick(60_000_000, 2_000_000);
    let mut text = String::with_capacity(size + 64);
    text.push_str("id: x\nmetadata:\n");
    for key in 0.. {
        if text.len() > size {
            break;
        }
        let _ = writeln!(text, "  k{key}: [a, b]");
    }
    ask(&field, vec![text], 1).await;
}

/// Posts lists in lists, in both styles of YAML.
pub(super) async fn deep(field: Field) {
    let depth = field.pick(100_000, 5_000);
    let flow = format!("metadata: {}{}", "[".repeat(depth), "]".repeat(depth));
    let block = format!("metadata:\n  {}x", "- ".repeat(depth));
    ask(&field, vec![flow, block], 4).await;
}

/// Posts aliases of aliases: each line is ten times as much as the one before.
pub(super) async fn aliases(field: Field) {
    let mut text = String::from("metadata:\n  a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n");
    for level in 1..12 {
        let before = format!("*a{}", level - 1);
        let list = vec![before; 10].join(", ");
        let _ = writeln!(text, "  a{level}: &a{level} [{list}]");
    }
    ask(&field, vec![text], 4).await;
}

/// Lets so many attackers ask until it is over, with one text or another.
async fn ask(field: &Field, texts: Vec<String>, attackers: usize) {
    let bodies: Vec<Bytes> = texts.into_iter().map(Bytes::from).collect();
    let asked = field.crowd(attackers, |index, field| {
        let body = bodies[index % bodies.len()].clone();
        async move {
            while !field.is_over() {
                if let Err(error) = post(&field, body.clone()).await {
                    field.note_refused(&error);
                    field.pause(Duration::from_millis(50)).await;
                }
            }
            Ok(())
        }
    });
    asked.await;
}

async fn post(field: &Field, body: Bytes) -> Result<()> {
    let answer = admin::post(&field.admin, PATH, "application/yaml", body).await?;
    match answer.is_good() {
        true => {
            field.note_taken(1);
            Ok(())
        }
        false => Err(Error::Refused(format!("HTTP {}", answer.status))),
    }
}
