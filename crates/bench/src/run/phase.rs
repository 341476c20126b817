//! What is counted while something happens.

use std::time::Instant;

use super::target::Target;
use crate::client::Shared;
use crate::measure::{Count, Process, Usage, Work};
use crate::report::Phase;

/// A phase that has begun.
pub(super) struct PhaseStart {
    name: &'static str,
    at: Instant,
    count: Count,
    server: Option<Usage>,
    work: Option<Work>,
    tool: Usage,
}

impl PhaseStart {
    /// Begins a phase: looks at what was counted and used before.
    pub(super) async fn new(name: &'static str, shared: &Shared, target: &mut Target) -> Self {
        target.reset_peak();
        Self {
            name,
            work: target.work().await,
            count: shared.counters.read(),
            server: target.usage(),
            tool: Process::own().usage().unwrap_or_default(),
            at: Instant::now(),
        }
    }

    /// Returns the server's memory when the phase began.
    pub(super) fn memory(&self) -> Option<u64> {
        self.server.map(|usage| usage.memory)
    }

    /// Ends the phase, and returns what was counted and used in it.
    pub(super) async fn end(self, shared: &Shared, target: &mut Target) -> Phase {
        let seconds = self.at.elapsed().as_secs_f64();
        let tool = Process::own().usage().unwrap_or_default();
        let server = target.usage();
        let server = match (server, &self.server) {
            (Some(now), Some(before)) => Some(now.since(before)),
            // It was started meanwhile.
            (now, None) => now,
            (None, _) => None,
        };
        let count = shared.counters.read() - self.count;
        let work = match (target.work().await, &self.work) {
            (Some(now), Some(before)) => Some(now.since(before)),
            (now, _) => now,
        };
        let some = |quantiles: crate::measure::Quantiles| {
            Some(quantiles).filter(|quantiles| quantiles.count > 0)
        };
        Phase {
            name: self.name,
            seconds,
            server,
            work,
            server_memory_before: self.memory(),
            tool: tool.since(&self.tool),
            first_configuration: some(shared.first.take()),
            convergence: some(shared.converged.take()),
            convergence_of_nackers: some(shared.converged_picky.take()),
            answer: some(shared.answered.take()),
            cpu_per_update: server
                .filter(|_| count.delivered > 0)
                .map(|server| server.cpu() * 1e6 / count.delivered as f64),
            count,
            ..Phase::default()
        }
    }
}
