//! Outcomes as a table, for a terminal and for a page.

use std::fmt::Write as _;

use crate::outcome::Outcome;
use crate::scene::Latency;

/// The head of the table.
const HEAD: [&str; 7] = [
    "attack",
    "p99 quiet, attacked (ms)",
    "p99 seen (ms)",
    "MiB before, peak, after",
    "CPU (s)",
    "refused",
    "verdict",
];

/// The table in Markdown.
pub(crate) fn markdown(outcomes: &[Outcome]) -> String {
    let mut text = format!("| # | {} |\n|---|", HEAD.join(" | "));
    text.push_str(&"---|".repeat(HEAD.len()));
    text.push('\n');
    for outcome in outcomes {
        let mut cells = cells(outcome);
        cells[0] = format!("`{}`: {}", outcome.name, outcome.about);
        if !outcome.failed.is_empty() {
            cells[6] = format!("**{}**", cells[6]);
        }
        let _ = writeln!(text, "| {} | {} |", outcome.number, cells.join(" | "));
    }
    text
}

/// The table for a terminal.
pub(crate) fn plain(outcomes: &[Outcome]) -> String {
    let mut rows = vec![HEAD.map(str::to_owned)];
    rows.extend(outcomes.iter().map(cells));
    let widths: [usize; 7] = std::array::from_fn(|column| {
        let widths = rows.iter().map(|row| row[column].chars().count());
        widths.max().unwrap_or(0)
    });
    let mut text = String::new();
    for row in &rows {
        for (cell, width) in row.iter().zip(widths) {
            let _ = write!(text, "{cell:<width$}  ");
        }
        text.truncate(text.trim_end().len());
        text.push('\n');
    }
    text
}

/// One line about an outcome, as soon as it is there.
pub(crate) fn line(outcome: &Outcome) -> String {
    let reason = outcome.reason.as_deref().unwrap_or_default();
    let (taken, cells) = (outcome.taken, cells(outcome).join(" | "));
    format!("{cells} | taken {taken} | {reason}")
}

fn cells(outcome: &Outcome) -> [String; 7] {
    let mib = |bytes: u64| bytes >> 20;
    [
        outcome.name.to_owned(),
        format!("{}, {}", p99(outcome.quiet), p99(outcome.attacked)),
        format!("{:.0}", outcome.attacked_seen.p99),
        format!(
            "{}, {}, {}",
            mib(outcome.before),
            mib(outcome.peak),
            mib(outcome.after)
        ),
        format!("{:.1}", outcome.cpu),
        refused(outcome),
        match outcome.failed.is_empty() {
            true => "holds".to_owned(),
            false => outcome.failed.join("; "),
        },
    ]
}

fn p99(latency: Option<Latency>) -> String {
    match latency {
        Some(latency) if latency.p99.is_finite() => format!("{}", latency.p99),
        Some(_) => "over 10 s".to_owned(),
        None => "?".to_owned(),
    }
}

/// How often attackers were turned away, and what the server counted.
fn refused(outcome: &Outcome) -> String {
    let mut parts = Vec::new();
    if outcome.refused > 0 {
        parts.push(format!("{} times", outcome.refused));
    }
    let counted = outcome.refusals.iter();
    parts.extend(counted.map(|(name, count)| format!("{name} {count}")));
    parts.join(", ")
}
