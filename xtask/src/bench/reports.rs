//! What the reports of the figures say, as tables.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::iter;

use serde_json::Value;

use super::figures::{Bar, FIGURES, Figure, Run, Verdict};
use super::picture;
use super::remarks;
use super::samples::Samples;
use super::written::{self, Written};

/// A run and all reports of it.
type Row = (Run, Vec<Value>);

/// All figures that were measured, now or for the page as it is, and pictures of
/// those that were measured now by name.
pub(super) fn tables(samples: &Samples, written: &Written) -> (String, Vec<(String, String)>) {
    let (mut text, mut pictures) = (String::new(), Vec::new());
    for figure in FIGURES {
        let rows = figure
            .runs
            .iter()
            .map(|run| (*run, samples.of(figure, run)));
        let rows: Vec<Row> = rows.filter(|(_, reports)| !reports.is_empty()).collect();
        if rows.is_empty() {
            text.push_str(written.figure(figure.number).unwrap_or_default());
            continue;
        }
        // Writing to a String cannot fail, here and below.
        let _ = writeln!(text, "### {}. {}\n", figure.number, figure.title);
        let _ = writeln!(text, "{}\n", figure.about);
        for (place, (title, picture)) in drawn(figure, &rows).into_iter().enumerate() {
            let name = match place {
                0 => format!("{}.svg", figure.number),
                more => format!("{}-{}.svg", figure.number, more + 1),
            };
            let _ = writeln!(text, "![{title}](benchmarks/{name})\n");
            pictures.push((name, picture));
        }
        text.push_str(&table(figure, &rows));
        text.push_str(&verdicts(&judged(figure, samples)));
        let said = rows
            .iter()
            .map(|(run, reports)| (run.name(), warnings(reports)));
        text.push_str(&remarks::list(said));
        text.push_str(&commands(&rows));
    }
    (text, pictures)
}

/// The pictures of a figure, each with what it shows.
fn drawn(figure: &Figure, rows: &[Row]) -> Vec<(String, String)> {
    let first = figure
        .columns
        .first()
        .filter(|_| figure.pictures.is_empty());
    let of_runs = first.map(|column| {
        let bars = rows.iter().filter_map(|(run, reports)| {
            let ours = run.server.is_ours();
            picture::Bar::new(run.name(), ours, column, reports)
        });
        (column.counts(), bars.collect::<Vec<_>>())
    });
    let of_cells = figure.pictures.iter().map(|picture| {
        let bars = picture.bars.iter().filter_map(|(label, server, column)| {
            let (_, reports) = rows.iter().find(|(run, _)| run.server == *server)?;
            picture::Bar::new((*label).to_owned(), server.is_ours(), column, reports)
        });
        (picture.title.to_owned(), bars.collect::<Vec<_>>())
    });
    let all = of_runs.into_iter().chain(of_cells);
    // One bar alone shows nothing.
    let all = all.filter(|(_, bars)| bars.len() > 1);
    all.map(|(title, bars)| {
        let drawn = picture::bars(&title, &bars);
        (format!("{}: {title}", figure.title), drawn)
    })
    .collect()
}

fn table(figure: &Figure, rows: &[Row]) -> String {
    let heads = figure.columns.iter().map(|column| column.head());
    let mut lines = vec![iter::once(String::new()).chain(heads).collect::<Vec<_>>()];
    lines.extend(rows.iter().map(|(run, reports)| {
        let cells = figure.columns.iter().map(|column| column.value(reports));
        iter::once(run.name()).chain(cells).collect()
    }));
    if figure.sideways {
        let turned = |place: usize| lines.iter().map(|line| line[place].clone()).collect();
        lines = (0..=figure.columns.len()).map(turned).collect();
    }
    let width = lines.first().map_or(0, Vec::len);
    let mut text = String::new();
    for (place, line) in lines.iter().enumerate() {
        let _ = writeln!(text, "| {} |", line.join(" | "));
        if place == 0 {
            let _ = writeln!(text, "|---|{}", "--:|".repeat(width.saturating_sub(1)));
        }
    }
    let _ = writeln!(text, "\n{}\n", origin(rows));
    text
}

/// The bars that are not kept, and how many there are: what a reader should
/// know first.
pub(super) fn summary(figures: &str) -> String {
    let (known, missed) = written::bars(figures);
    let missed = missed.into_iter();
    let missed: Vec<String> = missed
        .map(|(number, says)| format!("- figure {number}: {says}\n"))
        .collect();
    match (known, missed.len()) {
        (0, _) => String::new(),
        (known, 0) => format!("Of {known} bars on servers, all are kept.\n"),
        (known, some) => {
            let kept = known - some;
            format!(
                "Of {known} bars on servers, {kept} are kept. Those that are not:\n\n{}",
                missed.concat()
            )
        }
    }
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

fn warnings(reports: &[Value]) -> impl Iterator<Item = &str> {
    let all = reports.iter().filter_map(|r| r["warnings"].as_array());
    all.flatten().filter_map(Value::as_str)
}

/// How to make one report of each run.
fn commands(rows: &[Row]) -> String {
    let command = |(_, reports): &Row| Some(reports.last()?["run"]["command"].as_str()?.to_owned());
    let mut commands: Vec<String> = rows.iter().filter_map(command).collect();
    commands.dedup();
    match commands.is_empty() {
        true => String::new(),
        false => format!("```sh\n{}\n```\n\n", commands.join("\n")),
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
}
