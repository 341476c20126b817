//! Decides which servers of a source are connected to (C46-C49, E11).
//!
//! ```text
//!   gRPC (A71)          servers[..=current] are connected to
//!      current fails, something is missing ──▶ current + 1
//!      an earlier one sends a resource     ──▶ current = that one
//!
//!   Envoy (E11)         servers[current] only
//!      the first never answered and failed twice ──▶ the second
//!      the second fails                          ──▶ the first
//! ```

/// The rule by which a source chooses among its servers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum FallbackPolicy {
    /// The next server is connected to in addition to those before it, while it
    /// has resources that they have not sent; the first resource of a better
    /// server ends that (A71).
    #[default]
    Grpc,
    /// The second server is connected to in place of the first, until the first
    /// has answered once (E11).
    Envoy,
}

/// How often Envoy tries its first server before the second (E11).
const PRIMARY_ATTEMPTS: u32 = 2;

/// The choice among the servers of one source, by their places in its list.
#[derive(Clone, Debug)]
pub(super) struct Fallback {
    policy: FallbackPolicy,
    /// The number of servers.
    server_count: usize,
    /// The server that contents are expected from.
    current: usize,
    /// Whether the first server has answered at some time (E11).
    has_primary_answered: bool,
    /// Consecutive failures of the first server (E11).
    primary_failures: u32,
}

impl Fallback {
    /// Makes the choice of a source with this number of servers: the first is
    /// the current one.
    pub(super) fn new(policy: FallbackPolicy, server_count: usize) -> Self {
        Self {
            policy,
            server_count,
            current: 0,
            has_primary_answered: false,
            primary_failures: 0,
        }
    }

    /// Returns whether the source connects to the server.
    pub(super) fn is_open(&self, server: usize) -> bool {
        match self.policy {
            FallbackPolicy::Grpc => server <= self.current && server < self.server_count,
            FallbackPolicy::Envoy => server == self.current && server < self.server_count,
        }
    }

    /// Returns the server that contents are expected from.
    pub(super) fn current(&self) -> usize {
        self.current
    }

    /// Returns whether a server comes before the current one, so that the
    /// source prefers it as soon as it works (C48).
    pub(super) fn precedes_current(&self, server: usize) -> bool {
        server < self.current
    }

    /// Records that a stream to the server ended without a response (C36). By
    /// Envoy's policy, a failure of the current server may make the other one
    /// current (E11). By gRPC's it changes nothing: that needs a missing
    /// resource too; see [`Fallback::fall_back`].
    pub(super) fn note_failure(&mut self, server: usize) {
        if self.policy == FallbackPolicy::Grpc || server != self.current {
            return;
        }
        match server {
            0 if self.has_primary_answered => {}
            0 => {
                self.primary_failures = self.primary_failures.saturating_add(1);
                if self.primary_failures >= PRIMARY_ATTEMPTS && self.server_count > 1 {
                    self.current = 1;
                }
            }
            _ => self.current = 0,
        }
    }

    /// Makes the first server that has not failed current, from the current one
    /// on; the last one, if all have. Does nothing unless a resource
    /// `is_missing` (C46), nor by Envoy's policy. The servers that are passed
    /// stay connected (C47).
    pub(super) fn fall_back(&mut self, is_missing: bool, has_failed: impl Fn(usize) -> bool) {
        if self.policy == FallbackPolicy::Envoy || !is_missing {
            return;
        }
        while self.current + 1 < self.server_count && has_failed(self.current) {
            self.current += 1;
        }
    }

    /// Records a response of the server: if it is the first one, Envoy's policy
    /// never leaves it again (E11).
    pub(super) fn note_response(&mut self, server: usize) {
        self.has_primary_answered |= server == 0;
    }

    /// Makes a server current if it precedes the current one; does nothing
    /// otherwise. The caller has seen a resource of that server (C48).
    pub(super) fn return_to(&mut self, server: usize) {
        if self.precedes_current(server) {
            self.current = server;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grpc(servers: usize) -> Fallback {
        Fallback::new(FallbackPolicy::Grpc, servers)
    }

    #[test]
    fn c46_a_failure_alone_is_no_reason_to_fall_back() {
        let mut choice = grpc(2);
        choice.fall_back(false, |_| true);
        choice.fall_back(true, |_| false);
        assert_eq!(choice.current(), 0);
        choice.fall_back(true, |_| true);
        assert_eq!(choice.current(), 1);
    }

    #[test]
    fn c47_the_better_server_stays_connected() {
        let mut choice = grpc(3);
        choice.fall_back(true, |server| server == 0);
        assert!(choice.is_open(0) && choice.is_open(1) && !choice.is_open(2));
    }

    #[test]
    fn c47_servers_that_are_known_to_have_failed_are_passed() {
        let mut choice = grpc(3);
        choice.fall_back(true, |server| server < 2);
        assert_eq!(choice.current(), 2);
        choice.fall_back(true, |_| true);
        assert_eq!(choice.current(), 2, "there is no fourth");
    }

    #[test]
    fn c48_the_first_resource_of_a_better_server_ends_the_fallback() {
        let mut choice = grpc(3);
        choice.fall_back(true, |_| true);
        choice.return_to(1);
        assert!(choice.is_open(0) && choice.is_open(1) && !choice.is_open(2));
        choice.return_to(2);
        assert_eq!(choice.current(), 1, "the third is no better one");
    }

    #[test]
    fn e11_envoy_alternates_until_the_first_has_answered() {
        let mut choice = Fallback::new(FallbackPolicy::Envoy, 2);
        choice.note_failure(0);
        assert_eq!(choice.current(), 0, "two failures are needed");
        choice.note_failure(0);
        assert!(choice.is_open(1) && !choice.is_open(0));
        choice.note_failure(1);
        assert!(choice.is_open(0) && !choice.is_open(1));
        choice.note_failure(0);
        assert_eq!(choice.current(), 1);
        choice.note_failure(1);

        choice.note_response(0);
        for _ in 0..5 {
            choice.note_failure(0);
        }
        assert_eq!(choice.current(), 0, "the first has answered once");
    }

    #[test]
    fn e11_one_server_is_never_left() {
        let mut choice = Fallback::new(FallbackPolicy::Envoy, 1);
        for _ in 0..5 {
            choice.note_failure(0);
        }
        assert!(choice.is_open(0));
    }
}
