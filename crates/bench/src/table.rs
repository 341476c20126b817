//! The report for people.

use std::fmt::Write as _;

use crate::measure::{Quantiles, Usage, Work};
use crate::report::{Check, Phase, Report};

/// Writes the report for people.
pub(crate) fn show(report: &Report) -> String {
    let mut text = String::new();
    let s = &report.scenario;
    let types: Vec<_> = s.types.iter().map(|kind| kind.short()).collect();
    // Writing to a String cannot fail, here and below.
    let _ = writeln!(
        text,
        "{} clients, {:?}, {}, {} resources of {} bytes, server: {}",
        s.clients,
        s.mode,
        types.join("+"),
        s.resources,
        s.size,
        s.server
    );
    if s.variants > 1 {
        let _ = writeln!(
            text,
            "{} variants of each, clients of {} categories",
            s.variants, s.categories
        );
    }
    if let Some(seconds) = report.started_in {
        let _ = writeln!(text, "started in {seconds:.3} s");
    }
    if let Some(first) = report.memory_of_first_stream {
        let _ = writeln!(text, "memory of the first stream: {}", bytes(first));
    }
    for phase in &report.phases {
        show_phase(&mut text, phase);
    }
    check(&mut text, &report.check);
    for warning in &report.warnings {
        let _ = writeln!(text, "! {warning}");
    }
    text
}

/// Writes a phase, one line for each thing that was measured.
fn show_phase(text: &mut String, phase: &Phase) {
    let _ = writeln!(text, "\n{} ({:.3} s)", phase.name, phase.seconds);
    show_times(text, phase);
    show_traffic(text, phase);
    if let Some(changed) = phase.changed_bytes {
        row(text, "changed meanwhile", bytes(changed as f64));
    }
    show_server(text, phase);
    row(text, "tool", usage(&phase.tool));
}

/// Writes a line with a name and a value.
fn row(text: &mut String, name: &str, value: String) {
    let _ = writeln!(text, "  {name:<22}{value}");
}

/// Writes a number behind others, with what it counts; nothing if it is zero.
fn more(number: u64, what: &str) -> String {
    match number {
        0 => String::new(),
        some => format!(", {some} {what}"),
    }
}

/// Writes how long things took for clients.
fn show_times(text: &mut String, phase: &Phase) {
    if let Some(first) = &phase.first_configuration {
        row(text, "first configuration", quantiles(first));
    }
    if let Some(convergence) = &phase.convergence {
        row(text, "convergence", quantiles(convergence));
    }
    if let Some(convergence) = &phase.convergence_of_nackers {
        row(text, "at those who reject", quantiles(convergence));
    }
    if let Some(answer) = &phase.answer {
        row(text, "answer", quantiles(answer));
    }
}

/// Writes what clients received and sent.
fn show_traffic(text: &mut String, phase: &Phase) {
    let count = &phase.count;
    if count.delivered > 0 {
        let removed = more(count.removed, "of them removals");
        let overtaken = more(count.overtaken, "overtaken");
        let rate = count.delivered as f64 / phase.seconds.max(1e-9);
        let delivered = count.delivered;
        let value = format!("{delivered}, {rate:.0} a second{removed}{overtaken}");
        row(text, "updates delivered", value);
    }
    if count.responses > 0 {
        let received = format!(
            "{} responses, {} resources, {}",
            count.responses,
            count.resources,
            bytes(count.bytes as f64)
        );
        row(text, "received", received);
        let said = format!(
            "{} requests, {}, {} rejections{}",
            count.requests,
            bytes(count.request_bytes as f64),
            count.nacks,
            more(count.rejected, "changes not taken")
        );
        row(text, "said", said);
    }
    if count.needless > 0 {
        row(text, "needless responses", count.needless.to_string());
    }
}

/// Writes what the server used and did, as far as that is known.
fn show_server(text: &mut String, phase: &Phase) {
    if let Some(server) = &phase.server {
        row(text, "server", usage(server));
    }
    if let Some(work) = &phase.work {
        row(text, "server's engine", engine(work));
    }
    if let Some(cpu) = phase.cpu_per_update {
        row(text, "server CPU per update", format!("{cpu:.2} µs"));
    }
    if let Some(memory) = phase.memory_per_stream {
        row(text, "memory per stream", bytes(memory));
    }
}

/// Writes whether clients held the right contents at the end.
fn check(text: &mut String, check: &Check) {
    let verdict = match *check == Check::default() {
        true => "all contents right".to_owned(),
        false => format!(
            "{} stale, {} missing, {} wrong, {} for other clients, {} backwards, {} lost",
            check.stale, check.missing, check.wrong, check.foreign, check.backwards, check.lost
        ),
    };
    let _ = writeln!(text, "\nat the end: {verdict}");
}

/// Writes where the times of a distribution lie.
fn quantiles(q: &Quantiles) -> String {
    format!(
        "p50 {:.1} ms, p90 {:.1} ms, p99 {:.1} ms, max {:.1} ms",
        q.p50, q.p90, q.p99, q.max
    )
}

/// Writes what a process used.
fn usage(usage: &Usage) -> String {
    format!(
        "{:.2} s CPU ({:.2} user, {:.2} system), {} now, {} at most",
        usage.cpu(),
        usage.user,
        usage.system,
        bytes(usage.memory as f64),
        bytes(usage.peak as f64)
    )
}

/// Writes what the server's engine did.
fn engine(work: &Work) -> String {
    format!(
        "{} names looked at, {} at once at most, {} constraints evaluated, {} views and {} \
         subscribers told, {} views; longest wait for it {:.2} ms",
        work.names,
        work.largest_slice,
        work.evaluations,
        work.views_told,
        work.subscribers_told,
        work.views,
        work.longest_wait as f64 / 1000.0
    )
}

/// Writes a number of bytes with a unit, to about three digits.
fn bytes(number: f64) -> String {
    let mut units = ["B", "kB", "MB", "GB"].into_iter();
    let mut number = number;
    let mut unit = units.next().unwrap_or_default();
    for next in units {
        if number.abs() < 1000.0 {
            break;
        }
        number /= 1000.0;
        unit = next;
    }
    let digits = if number.abs() < 100.0 && unit != "B" {
        1
    } else {
        0
    };
    format!("{number:.digits$} {unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_have_units() {
        let all = [0.0, 999.0, 1500.0, 123_456.0, 5e7, -2e9].map(bytes);
        assert_eq!(
            all,
            ["0 B", "999 B", "1.5 kB", "123 kB", "50.0 MB", "-2.0 GB"]
        );
    }
}
