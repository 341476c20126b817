//! What the reports of the figures say, as tables.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use serde_json::Value;

use super::figures::{Column, FIGURES, Figure, Run};
use super::picture;

/// All figures that were measured, and pictures of them by name.
pub(super) fn tables(folder: &Path) -> (String, Vec<(String, String)>) {
    let (mut text, mut pictures) = (String::new(), Vec::new());
    for figure in FIGURES {
        let read = |run: &Run| Some((*run, report(&folder.join(figure.file(run)))?));
        let rows: Vec<(Run, Value)> = figure.runs.iter().filter_map(read).collect();
        if !rows.is_empty() {
            // Writing to a String cannot fail, here and below.
            let _ = writeln!(text, "### {}. {}\n", figure.number, figure.title);
            let _ = writeln!(text, "{}\n", figure.about);
            if let Some(picture) = picture(figure, &rows) {
                let name = format!("{}.svg", figure.number);
                let _ = writeln!(text, "![{}](benchmarks/{name})\n", figure.title);
                pictures.push((name, picture));
            }
            text.push_str(&table(figure, &rows));
            text.push('\n');
        }
    }
    (text, pictures)
}

/// The first column as bars, where there is something to compare.
fn picture(figure: &Figure, rows: &[(Run, Value)]) -> Option<String> {
    let column = figure.columns.first()?;
    let row = |(run, report): &(Run, Value)| {
        Some((name(run), column.number(report)?, column.value(report)))
    };
    let rows: Vec<_> = rows.iter().filter_map(row).collect();
    (rows.len() > 1).then(|| picture::bars(column.title(), &rows))
}

fn name(run: &Run) -> String {
    match run.label {
        "" => run.server.name(),
        label => format!("{}, {label}", run.server.name()),
    }
}

/// What does not exist was not measured.
fn report(file: &Path) -> Option<Value> {
    serde_json::from_str(&fs::read_to_string(file).ok()?).ok()
}

fn table(figure: &Figure, rows: &[(Run, Value)]) -> String {
    let mut text = String::from("| server |");
    for column in figure.columns {
        let _ = write!(text, " {} |", column.title());
    }
    text.push_str("\n|---|");
    text.push_str(&"--:|".repeat(figure.columns.len()));
    text.push('\n');
    for (run, report) in rows {
        let _ = write!(text, "| {} |", name(run));
        for column in figure.columns {
            let _ = write!(text, " {} |", column.value(report));
        }
        text.push('\n');
    }
    for (run, report) in rows {
        let warnings = report["warnings"].as_array().map_or(&[][..], Vec::as_slice);
        for warning in warnings.iter().filter_map(Value::as_str) {
            let _ = writeln!(text, "\n{}: {warning}.", name(run));
        }
    }
    text.push_str("\n```sh\n");
    for (_, report) in rows {
        let command = report["scenario"]["command"].as_str().unwrap_or_default();
        let _ = writeln!(text, "{}", shortened(command));
    }
    text.push_str("```\n");
    text
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

impl Column {
    fn title(self) -> &'static str {
        match self {
            Self::CpuPerUpdate => "CPU for each update",
            Self::Convergence => "convergence p50 / p99 / max",
            Self::Answer(_) => "answer p50 / p99 / max",
            Self::Memory(_) => "memory",
            Self::Peak("connect") => "peak while connecting",
            Self::Peak(_) => "peak of memory",
            Self::PerStream(_) => "memory for each stream",
            Self::Seconds(_) => "time",
            Self::Cold => "cold start",
            Self::ServerCpu(_) => "CPU",
            Self::Received(_) => "received",
            Self::Changed(_) => "changed",
        }
    }

    fn value(self, report: &Value) -> String {
        self.read(report).unwrap_or_else(|| "?".to_owned())
    }

    /// What a bar is as long as.
    fn number(self, report: &Value) -> Option<f64> {
        match self {
            Self::CpuPerUpdate => number(report, "changes", "/cpu_per_update"),
            Self::Convergence => number(report, "changes", "/convergence/p99"),
            Self::Answer(name) => number(report, name, "/answer/p99"),
            Self::Memory(name) => number(report, name, "/server/memory"),
            Self::Peak(name) => number(report, name, "/server/peak"),
            Self::PerStream(name) => number(report, name, "/memory_per_stream"),
            Self::Seconds(name) => number(report, name, "/seconds"),
            Self::Cold => {
                Some(report["started_in"].as_f64()? + number(report, "connect", "/seconds")?)
            }
            Self::ServerCpu(name) => Some(
                number(report, name, "/server/user")? + number(report, name, "/server/system")?,
            ),
            Self::Received(name) => number(report, name, "/count/bytes"),
            Self::Changed(name) => number(report, name, "/changed_bytes"),
        }
    }

    fn read(self, report: &Value) -> Option<String> {
        let number = self.number(report)?;
        Some(match self {
            Self::CpuPerUpdate => format!("{number:.1} µs"),
            Self::Convergence => quantiles(report, "changes", "convergence")?,
            Self::Answer(name) => quantiles(report, name, "answer")?,
            Self::Seconds(_) | Self::Cold | Self::ServerCpu(_) => format!("{number:.2} s"),
            _ => bytes(number),
        })
    }
}

fn quantiles(report: &Value, phase: &str, of: &str) -> Option<String> {
    let at = |q: &str| number(report, phase, &format!("/{of}/{q}"));
    let (p50, p99, max) = (at("p50")?, at("p99")?, at("max")?);
    Some(format!("{p50:.1} / {p99:.1} / {max:.1} ms"))
}

/// A number of a phase.
fn number(report: &Value, phase: &str, pointer: &str) -> Option<f64> {
    let phases = report["phases"].as_array()?;
    let phase = phases.iter().find(|one| one["name"] == phase)?;
    phase.pointer(pointer)?.as_f64()
}

fn bytes(number: f64) -> String {
    let (number, unit) = match number.abs() {
        n if n < 1e3 => (number, "B"),
        n if n < 1e6 => (number / 1e3, "kB"),
        n if n < 1e9 => (number / 1e6, "MB"),
        _ => (number / 1e9, "GB"),
    };
    format!("{number:.1} {unit}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_column_is_read_from_its_phase() {
        let report = json!({"phases": [
            {"name": "connect", "server": {"peak": 2_500_000}},
            {"name": "changes", "cpu_per_update": 12.34, "server": {"memory": 900},
             "convergence": {"p50": 1.0, "p99": 2.0, "max": 3.26}},
        ]});
        assert_eq!(Column::CpuPerUpdate.value(&report), "12.3 µs");
        assert_eq!(Column::Convergence.value(&report), "1.0 / 2.0 / 3.3 ms");
        assert_eq!(Column::Peak("connect").value(&report), "2.5 MB");
        assert_eq!(Column::Memory("changes").value(&report), "900.0 B");
        assert_eq!(Column::Memory("idle").value(&report), "?");
    }

    #[test]
    fn a_table_says_what_keeps_it_from_being_believed() {
        let figure = &FIGURES[0];
        let report = json!({"warnings": ["the machine was busy"], "scenario": {"command": "x"}});
        let shown = table(figure, &[(figure.runs[0], report)]);
        assert!(
            shown.contains("\nTrunkline: the machine was busy.\n"),
            "{shown}"
        );
    }

    #[test]
    fn a_command_has_no_places_of_a_machine() {
        let command = "trunkline-bench --start /a/b/peer -x --report /c/d.json";
        assert_eq!(shortened(command), "trunkline-bench --start peer -x");
    }
}
