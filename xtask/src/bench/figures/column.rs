//! Which number of a report a column shows, and how numbers look.

use serde_json::Value;

/// A number of a phase, or several that belong together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum What {
    /// A number at a place in the phase.
    At(&'static str, Unit),
    /// Of a distribution in milliseconds: p50, p99 and max. The one in the
    /// middle counts.
    Quantiles(&'static str),
    /// From the start of a server to the first configuration of a client.
    Cold,
    /// User and system, of the server.
    Cpu,
    /// The same of a client.
    ClientCpu,
    /// Something that the engine counts.
    Work(&'static str),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unit {
    Bytes,
    Count,
    Micros,
    Millis,
    Seconds,
}

/// See the module's documentation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) struct Column {
    title: &'static str,
    phase: &'static str,
    what: What,
}

const fn column(title: &'static str, phase: &'static str, what: What) -> Column {
    Column { title, phase, what }
}

/// The columns that there are.
impl Column {
    pub(super) const CPU_PER_UPDATE: Self = column(
        "CPU for each update",
        "changes",
        What::At("/cpu_per_update", Unit::Micros),
    );
    pub(super) const CONVERGENCE: Self =
        column("convergence", "changes", What::Quantiles("convergence"));
    pub(super) const COLD: Self = column("cold start", "connect", What::Cold);
    pub(super) const CONNECT_PEAK: Self = Self::peak("peak while connecting", "connect");

    /// From subscribing to a name to its resource.
    pub(super) const fn answer(title: &'static str, phase: &'static str) -> Self {
        column(title, phase, What::Quantiles("answer"))
    }

    pub(super) const fn memory(phase: &'static str) -> Self {
        Self::memory_of("memory", phase)
    }

    pub(super) const fn memory_of(title: &'static str, phase: &'static str) -> Self {
        column(title, phase, What::At("/server/memory", Unit::Bytes))
    }

    pub(super) const fn peak(title: &'static str, phase: &'static str) -> Self {
        column(title, phase, What::At("/server/peak", Unit::Bytes))
    }

    pub(super) const fn per_stream(phase: &'static str) -> Self {
        let at = What::At("/memory_per_stream", Unit::Bytes);
        column("memory for each stream", phase, at)
    }

    pub(super) const fn seconds(title: &'static str, phase: &'static str) -> Self {
        column(title, phase, What::At("/seconds", Unit::Seconds))
    }

    pub(super) const fn cpu(phase: &'static str) -> Self {
        column("CPU", phase, What::Cpu)
    }

    /// Milliseconds of CPU for each request.
    pub(super) const fn cpu_for_each(
        title: &'static str,
        phase: &'static str,
        of: &'static str,
    ) -> Self {
        column(title, phase, What::At(of, Unit::Millis))
    }

    /// Microseconds of a client's CPU for each resource that it delivers.
    pub(super) const fn cpu_per_resource(title: &'static str, phase: &'static str) -> Self {
        column(title, phase, What::At("/cpu_per_resource", Unit::Micros))
    }

    pub(super) const fn client_cpu(title: &'static str, phase: &'static str) -> Self {
        column(title, phase, What::ClientCpu)
    }

    /// From a change at the server to the client that shows it.
    pub(super) const fn latency(title: &'static str, phase: &'static str) -> Self {
        column(title, phase, What::Quantiles("latency"))
    }

    pub(super) const fn client_memory(title: &'static str, phase: &'static str) -> Self {
        column(title, phase, What::At("/client/memory", Unit::Bytes))
    }

    pub(super) const fn client_peak(title: &'static str, phase: &'static str) -> Self {
        column(title, phase, What::At("/client/peak", Unit::Bytes))
    }

    pub(super) const fn received(phase: &'static str) -> Self {
        column("received", phase, What::At("/count/bytes", Unit::Bytes))
    }

    pub(super) const fn changed(phase: &'static str) -> Self {
        column("changed", phase, What::At("/changed_bytes", Unit::Bytes))
    }

    pub(super) const fn evaluated(phase: &'static str) -> Self {
        Self::work("constraints evaluated", phase, "evaluations")
    }

    pub(super) const fn evaluated_by_changes(phase: &'static str) -> Self {
        Self::work("and by changes", phase, "evaluations")
    }

    pub(super) const fn views(phase: &'static str) -> Self {
        Self::work("views", phase, "views")
    }

    const fn work(title: &'static str, phase: &'static str, of: &'static str) -> Self {
        column(title, phase, What::Work(of))
    }

    /// What stands above the column.
    pub(in super::super) fn head(self) -> String {
        match self.what {
            What::Quantiles(_) => format!("{} p50 / p99 / max", self.title),
            _ => self.title.to_owned(),
        }
    }

    /// The name of the number that counts.
    pub(in super::super) fn counts(self) -> String {
        match self.what {
            What::Quantiles(_) => format!("{}, p99", self.title),
            _ => self.title.to_owned(),
        }
    }

    /// The middle of the numbers that count; what a bar is as long as.
    pub(in super::super) fn median(self, reports: &[Value]) -> Option<f64> {
        let numbers = reports.iter().filter_map(|report| self.number(report));
        median(&numbers.collect::<Vec<_>>())
    }

    /// The number of a report that counts.
    fn number(self, report: &Value) -> Option<f64> {
        let phase = phase(report, self.phase)?;
        let at = |pointer: &str| phase.pointer(pointer)?.as_f64();
        match self.what {
            What::At(pointer, _) => at(pointer),
            What::Quantiles(of) => at(&format!("/{of}/p99")),
            What::Cpu => Some(at("/server/user")? + at("/server/system")?),
            What::ClientCpu => Some(at("/client/user")? + at("/client/system")?),
            What::Work(of) => phase["work"][of].as_f64(),
            What::Cold => {
                // What was put into a server that ran is no cold start.
                self::phase(report, "load")?
                    .get("server")
                    .is_none_or(Value::is_null)
                    .then_some(())?;
                Some(report["started_in"].as_f64()? + at("/seconds")?)
            }
        }
    }

    /// The middle of the reports and, of several, the least and the most.
    pub(in super::super) fn value(self, reports: &[Value]) -> String {
        self.read(reports).unwrap_or_else(|| "–".to_owned())
    }

    fn read(self, reports: &[Value]) -> Option<String> {
        let numbers: Vec<f64> = reports.iter().filter_map(|r| self.number(r)).collect();
        let middle = median(&numbers)?;
        let (per, name, digits) = self.unit().scaled(middle);
        let spread = spread(&numbers).map(|(least, most)| {
            let (least, most) = (least / per, most / per);
            format!("{least:.digits$}–{most:.digits$}")
        });
        let What::Quantiles(of) = self.what else {
            let spread = spread.map_or_else(String::new, |spread| format!(" ({spread})"));
            return Some(format!("{:.digits$}{name}{spread}", middle / per));
        };
        let at = |quantile: &str| {
            let pointer = format!("/{of}/{quantile}");
            let one = |report| phase(report, self.phase)?.pointer(&pointer)?.as_f64();
            median(&reports.iter().filter_map(one).collect::<Vec<_>>())
        };
        let (p50, max) = (at("p50")?, at("max")?);
        let spread = spread.map_or_else(String::new, |spread| format!(" (p99 {spread})"));
        let [p50, p99, max] = [p50, middle, max].map(millis);
        Some(format!("{p50} / {p99} / {max} ms{spread}"))
    }

    fn unit(self) -> Unit {
        match self.what {
            What::At(_, unit) => unit,
            What::Quantiles(_) => Unit::Millis,
            What::Cold | What::Cpu | What::ClientCpu => Unit::Seconds,
            What::Work(_) => Unit::Count,
        }
    }

    /// A number of this column, without its spread.
    pub(in super::super) fn shown(self, number: f64) -> String {
        let (per, name, digits) = self.unit().scaled(number);
        format!("{:.digits$}{name}", number / per)
    }
}

impl Unit {
    /// What to divide by, what the rest is called, and with how many digits.
    fn scaled(self, number: f64) -> (f64, &'static str, usize) {
        match (self, number.abs()) {
            (Self::Count, _) => (1.0, "", 0),
            (Self::Micros, _) => (1.0, " µs", 1),
            (Self::Millis, n) if n < 1.0 => (1.0, " ms", 2),
            (Self::Millis, _) => (1.0, " ms", 1),
            (Self::Seconds, _) => (1.0, " s", 2),
            (Self::Bytes, n) if n < 1e3 => (1.0, " B", 0),
            (Self::Bytes, n) if n < 1e6 => (1e3, " kB", 1),
            (Self::Bytes, n) if n < 1e9 => (1e6, " MB", 1),
            (Self::Bytes, _) => (1e9, " GB", 2),
        }
    }
}

/// Milliseconds without their unit.
fn millis(number: f64) -> String {
    let (_, _, digits) = Unit::Millis.scaled(number);
    format!("{number:.digits$}")
}

fn phase<'a>(report: &'a Value, name: &str) -> Option<&'a Value> {
    let phases = report["phases"].as_array()?;
    phases.iter().find(|one| one["name"] == name)
}

/// The one in the middle, or between the two that are.
fn median(numbers: &[f64]) -> Option<f64> {
    let mut sorted = numbers.to_vec();
    sorted.sort_by(f64::total_cmp);
    let half = sorted.len() / 2;
    match sorted.len() % 2 {
        1 => Some(sorted[half]),
        _ => Some((sorted.get(half.checked_sub(1)?)? + sorted[half]) / 2.0),
    }
}

/// The least and the most, where there are two.
fn spread(numbers: &[f64]) -> Option<(f64, f64)> {
    (numbers.len() > 1).then_some(())?;
    let least = numbers.iter().copied().min_by(f64::total_cmp)?;
    let most = numbers.iter().copied().max_by(f64::total_cmp)?;
    Some((least, most))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn report(cpu: f64, p99: f64) -> Value {
        json!({"started_in": 1.0, "phases": [
            {"name": "load", "server": null},
            {"name": "connect", "seconds": 2.0, "server": {"peak": 2_500_000}},
            {"name": "changes", "cpu_per_update": cpu, "server": {"memory": 900},
             "convergence": {"p50": 1.0, "p99": p99, "max": 3.26}},
        ]})
    }

    #[test]
    fn a_column_is_read_from_its_phase() {
        let one = [report(12.34, 2.0)];
        let short = Column::CONVERGENCE.value(&[report(1.0, 0.123)]);
        assert_eq!(short, "1.0 / 0.12 / 3.3 ms");
        assert_eq!(Column::CPU_PER_UPDATE.value(&one), "12.3 µs");
        assert_eq!(Column::CONVERGENCE.value(&one), "1.0 / 2.0 / 3.3 ms");
        assert_eq!(Column::CONNECT_PEAK.value(&one), "2.5 MB");
        assert_eq!(Column::memory("changes").value(&one), "900 B");
        assert_eq!(Column::memory("idle").value(&one), "–");
        assert_eq!(Column::COLD.value(&one), "3.00 s");
    }

    #[test]
    fn of_several_the_middle_counts_and_the_spread_is_told() {
        let three = [report(30.0, 9.0), report(10.0, 2.0), report(11.0, 4.0)];
        assert_eq!(Column::CPU_PER_UPDATE.value(&three), "11.0 µs (10.0–30.0)");
        assert_eq!(
            Column::CONVERGENCE.value(&three),
            "1.0 / 4.0 / 3.3 ms (p99 2.0–9.0)"
        );
        assert_eq!(median(&[1.0, 4.0, 2.0, 3.0]), Some(2.5));
        assert_eq!(median(&[]), None);
    }

    #[test]
    fn a_server_that_was_filled_while_it_ran_did_not_start_cold() {
        let mut warm = report(1.0, 1.0);
        warm["phases"][0]["server"] = json!({"memory": 1});
        assert_eq!(Column::COLD.value(&[warm]), "–");
    }
}
