//! What criterion measured, from the files that it wrote.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::failure::{Failure, Result};

/// One benchmark.
#[derive(Debug, PartialEq)]
pub(super) struct Time {
    /// What was measured.
    group: String,
    /// With how much of it, or in which way.
    value: String,
    nanoseconds: f64,
}

/// Every benchmark under a folder, by group, and in it from small to large.
pub(super) fn read(folder: &Path) -> Result<Vec<Time>> {
    let mut files = Vec::new();
    find(folder, &mut files)?;
    let mut times = files
        .iter()
        .map(|file| {
            let samples = file.with_file_name("sample.json");
            time(&json(file)?, &json(&samples)?)
                .ok_or_else(|| Failure::new(format!("{}: not as expected", file.display())))
        })
        .collect::<Result<Vec<_>>>()?;
    sort(&mut times);
    Ok(times)
}

/// Finds the description of each newest measurement.
fn find(folder: &Path, found: &mut Vec<PathBuf>) -> Result<()> {
    let unreadable = |error| Failure::new(format!("cannot read {}: {error}", folder.display()));
    for entry in fs::read_dir(folder).map_err(unreadable)? {
        let path = entry.map_err(unreadable)?.path();
        if path.is_dir() {
            find(&path, found)?;
        } else if path.ends_with("new/benchmark.json") {
            found.push(path);
        }
    }
    Ok(())
}

fn json(file: &Path) -> Result<Value> {
    let text = fs::read_to_string(file)
        .map_err(|error| Failure::new(format!("cannot read {}: {error}", file.display())))?;
    serde_json::from_str(&text)
        .map_err(|error| Failure::new(format!("{}: {error}", file.display())))
}

/// The fastest sample counts: other work on the machine makes samples longer,
/// never shorter.
fn time(benchmark: &Value, samples: &Value) -> Option<Time> {
    let numbers = |key: &str| -> Option<Vec<f64>> {
        let array = samples[key].as_array()?;
        array.iter().map(Value::as_f64).collect()
    };
    let (times, rounds) = (numbers("times")?, numbers("iters")?);
    let each = times.iter().zip(&rounds);
    let each = each.map(|(time, rounds)| time / rounds);
    let value = benchmark["value_str"]
        .as_str()
        .or_else(|| benchmark["function_id"].as_str());
    Some(Time {
        group: benchmark["group_id"].as_str()?.to_owned(),
        value: value?.to_owned(),
        nanoseconds: each.min_by(f64::total_cmp)?,
    })
}

fn sort(times: &mut [Time]) {
    let number = |time: &Time| time.value.parse().unwrap_or(u64::MAX);
    times.sort_by(|a, b| {
        let by_size = number(a).cmp(&number(b));
        let by_name = a.value.cmp(&b.value);
        a.group.cmp(&b.group).then(by_size).then(by_name)
    });
}

/// The times as a table.
pub(super) fn table(times: &[Time]) -> String {
    let mut table = String::from("| what | | time | ratio |\n|---|--:|--:|--:|\n");
    for group in times.chunk_by(|a, b| a.group == b.group) {
        for (index, time) in group.iter().enumerate() {
            let what = if index == 0 { time.group.as_str() } else { "" };
            let ratio = time.nanoseconds / group[0].nanoseconds;
            let shown = shown(time.nanoseconds);
            // Writing to a String cannot fail.
            let _ = writeln!(table, "| {what} | {} | {shown} | {ratio:.2} |", time.value);
        }
    }
    table
}

/// Three digits and a unit.
fn shown(nanoseconds: f64) -> String {
    let (number, unit) = match nanoseconds {
        n if n < 1e3 => (n, "ns"),
        n if n < 1e6 => (n / 1e3, "µs"),
        n if n < 1e9 => (n / 1e6, "ms"),
        n => (n / 1e9, "s"),
    };
    let digits = if number < 10.0 {
        2
    } else {
        usize::from(number < 100.0)
    };
    format!("{number:.digits$} {unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(group: &str, value: &str, nanoseconds: f64) -> Time {
        Time {
            group: group.into(),
            value: value.into(),
            nanoseconds,
        }
    }

    #[test]
    fn files_are_read() {
        let samples = r#"{"iters": [1.0, 2.0, 4.0], "times": [9.0, 15.0, 40.0]}"#;
        let samples: Value = serde_json::from_str(samples).unwrap();
        for benchmark in [
            r#"{"group_id": "g", "function_id": null, "value_str": "10"}"#,
            r#"{"group_id": "g", "function_id": "10", "value_str": null}"#,
        ] {
            let benchmark: Value = serde_json::from_str(benchmark).unwrap();
            assert_eq!(time(&benchmark, &samples), Some(of("g", "10", 7.5)));
        }
        assert_eq!(time(&Value::Null, &samples), None);
    }

    #[test]
    fn groups_go_from_small_to_large() {
        let mut times = [of("b", "1", 1.0), of("a", "1000", 3.0), of("a", "20", 2.0)];
        sort(&mut times);
        let table = table(&times);
        let rows: Vec<_> = table.lines().skip(2).collect();
        assert_eq!(
            rows,
            [
                "| a | 20 | 2.00 ns | 1.00 |",
                "|  | 1000 | 3.00 ns | 1.50 |",
                "| b | 1 | 1.00 ns | 1.00 |"
            ]
        );
    }

    #[test]
    fn times_have_three_digits() {
        let all = [1.234, 12.34, 123.4, 1234.0, 1.5e6, 2.25e9].map(shown);
        let expected = [
            "1.23 ns", "12.3 ns", "123 ns", "1.23 µs", "1.50 ms", "2.25 s",
        ];
        assert_eq!(all, expected);
    }
}
