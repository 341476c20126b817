//! What the reports of the figures say, as tables.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use serde_json::Value;

use super::figures::{Bar, Column, FIGURES, Figure, Run, Verdict};
use super::picture;
use super::samples::Samples;

/// A run and all reports of it.
type Row = (Run, Vec<Value>);

/// All figures that were measured, and pictures of them by name.
pub(super) fn tables(samples: &Samples) -> (String, Vec<(String, String)>) {
    let (mut text, mut pictures) = (String::new(), Vec::new());
    for figure in FIGURES {
        let rows = figure
            .runs
            .iter()
            .map(|run| (*run, samples.of(figure, run)));
        let rows: Vec<Row> = rows.filter(|(_, reports)| !reports.is_empty()).collect();
        if rows.is_empty() {
            continue;
        }
        // Writing to a String cannot fail, here and below.
        let _ = writeln!(text, "### {}. {}\n", figure.number, figure.title);
        let _ = writeln!(text, "{}\n", figure.about);
        if let Some(picture) = picture(figure, &rows) {
            let name = format!("{}.svg", figure.number);
            let _ = writeln!(text, "![{}](benchmarks/{name})\n", figure.title);
            pictures.push((name, picture));
        }
        text.push_str(&table(figure, &rows));
        text.push_str(&verdicts(&judged(figure, samples)));
        text.push_str(&remarks(&rows));
        text.push_str(&commands(&rows));
    }
    (text, pictures)
}

/// The first column as bars, where there is something to compare.
fn picture(figure: &Figure, rows: &[Row]) -> Option<String> {
    let column = figure.columns.first()?;
    let row = |(run, reports): &Row| {
        let length = column.median(reports)?;
        Some((run.name(), length, column.value(reports)))
    };
    let rows: Vec<_> = rows.iter().filter_map(row).collect();
    (rows.len() > 1).then(|| picture::bars(column.title, &rows))
}

fn table(figure: &Figure, rows: &[Row]) -> String {
    let titles = figure.columns.iter().map(|column: &Column| column.title);
    let mut text = format!("| server | {} |\n", titles.collect::<Vec<_>>().join(" | "));
    let _ = writeln!(text, "|---|{}", "--:|".repeat(figure.columns.len()));
    for (run, reports) in rows {
        let cells = figure.columns.iter().map(|column| column.value(reports));
        let cells = cells.collect::<Vec<_>>().join(" | ");
        let _ = writeln!(text, "| {} | {cells} |", run.name());
    }
    let _ = writeln!(text, "\n{}\n", origin(rows));
    text
}

/// How many reports the numbers come from, and of what.
fn origin(rows: &[Row]) -> String {
    let counts: BTreeSet<usize> = rows.iter().map(|(_, reports)| reports.len()).collect();
    let (least, most) = (counts.first(), counts.last());
    let runs = match (least, most) {
        (Some(1), Some(1)) => "One run each".to_owned(),
        (Some(least), Some(most)) if least == most => {
            format!("The middle of {most} runs each, in turns, and the least and the most")
        }
        (Some(least), Some(most)) => {
            format!("The middle of {least} to {most} runs each, and the least and the most")
        }
        _ => String::new(),
    };
    let all = || rows.iter().flat_map(|(_, reports)| reports);
    let said = |key: &str| {
        let values = all().filter_map(|report| report["run"][key].as_str());
        let values: BTreeSet<&str> = values.collect();
        values.into_iter().collect::<Vec<_>>().join(", ")
    };
    match (said("tree").as_str(), said("day").as_str()) {
        ("", _) | (_, "") => format!("{runs}."),
        (tree, day) => format!("{runs}; {day}, at {tree}."),
    }
}

/// The bars of a figure, and what came of them.
fn judged(figure: &Figure, samples: &Samples) -> Vec<(&'static Bar, Verdict)> {
    let reports = |figure: &Figure, run: &Run| samples.of(figure, run);
    let of = |bar: &'static Bar| (bar, bar.verdict(|cell| cell.reports(reports)));
    figure.bars.iter().map(of).collect()
}

fn verdicts(judged: &[(&Bar, Verdict)]) -> String {
    if judged.is_empty() {
        return String::new();
    }
    let mut text = String::from("| bar | measured | |\n|---|--:|---|\n");
    for (bar, verdict) in judged {
        let kept = match verdict.kept {
            Some(true) => "kept",
            Some(false) => "**not kept**",
            None => "",
        };
        let _ = writeln!(text, "| {} | {} | {kept} |", bar.says, verdict.measured);
    }
    text.push('\n');
    text
}

/// What keeps numbers from being believed; what differs in numbers only is said
/// once for all repeats of a run.
fn remarks(rows: &[Row]) -> String {
    let mut text = String::new();
    for (run, reports) in rows {
        let mut said = BTreeSet::new();
        let warnings = reports.iter().filter_map(|r| r["warnings"].as_array());
        for warning in warnings.flatten().filter_map(Value::as_str) {
            let kind: String = warning.chars().filter(|c| !c.is_ascii_digit()).collect();
            if said.insert(kind) {
                let _ = writeln!(text, "- {}: {warning}.", run.name());
            }
        }
    }
    if !text.is_empty() {
        text.push('\n');
    }
    text
}

fn commands(rows: &[Row]) -> String {
    let commands = rows.iter().filter_map(|(_, reports)| {
        let report = reports.last()?;
        Some(shortened(report["scenario"]["command"].as_str()?))
    });
    let commands: Vec<String> = commands.collect();
    format!("```sh\n{}\n```\n\n", commands.join("\n"))
}

/// A command as it was given, without the place of the machine's own files.
fn shortened(command: &str) -> String {
    let words = command
        .split_whitespace()
        .map(|word| match word.rsplit_once('/') {
            Some((_, name)) if word.starts_with('/') || word.contains("=/") => name,
            _ => word,
        });
    let words: Vec<&str> = words.collect();
    match words.iter().position(|word| *word == "--report") {
        Some(at) => words[..at].join(" "),
        None => words.join(" "),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn reports(warnings: &[&str]) -> Vec<Value> {
        let one = |w: &&str| json!({"warnings": [w], "run": {"tree": "abc", "day": "today"}});
        warnings.iter().map(one).collect()
    }

    #[test]
    fn what_keeps_numbers_from_being_believed_is_said_once() {
        let run = FIGURES[0].runs[0];
        let said = reports(&["load 1.6", "load 2.0", "the tool was busy"]);
        assert_eq!(
            remarks(&[(run, said)]),
            "- Trunkline: load 1.6.\n- Trunkline: the tool was busy.\n\n"
        );
    }

    #[test]
    fn a_table_says_what_its_numbers_come_from() {
        let run = FIGURES[0].runs[0];
        let of = |n: usize| (run, reports(&["", "", ""][..n]));
        assert_eq!(origin(&[of(1)]), "One run each; today, at abc.");
        let three = "The middle of 3 runs each, in turns, and the least and the most";
        assert_eq!(origin(&[of(3), of(3)]), format!("{three}; today, at abc."));
        assert!(origin(&[of(2), of(3)]).starts_with("The middle of 2 to 3 runs"));
    }

    #[test]
    fn a_bar_that_is_missed_stands_out() {
        let verdict = |kept| Verdict {
            measured: "1.60 ×".to_owned(),
            kept,
        };
        let bar = &FIGURES[0].bars[0];
        let shown = verdicts(&[(bar, verdict(Some(false)))]);
        assert!(shown.contains("| 1.60 × | **not kept** |"), "{shown}");
        assert!(verdicts(&[(bar, verdict(Some(true)))]).contains("| kept |"));
    }

    #[test]
    fn a_command_has_no_places_of_a_machine() {
        let command = "trunkline-bench --start /a/b/peer -x --report /c/d.json";
        assert_eq!(shortened(command), "trunkline-bench --start peer -x");
    }
}
