//! Limits the rate of requests (E6) by a bucket of tokens.

use std::time::Duration;

use crate::Moment;

/// The rate at which requests may be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RateLimit {
    /// The most requests at once.
    pub max_tokens: u32,
    /// The time in which one more request may be sent.
    pub token_time: Duration,
}

impl Default for RateLimit {
    /// Makes Envoy's limit: a hundred at once, ten a second.
    fn default() -> Self {
        Self {
            max_tokens: 100,
            token_time: Duration::from_millis(100),
        }
    }
}

/// The tokens for requests, of which each takes one.
#[derive(Clone, Debug)]
pub(super) struct TokenBucket {
    limit: RateLimit,
    tokens: u32,
    /// The moment up to which tokens were added.
    filled_until: Moment,
}

impl TokenBucket {
    /// Makes a full bucket.
    pub(super) fn new(limit: RateLimit) -> Self {
        Self {
            limit,
            tokens: limit.max_tokens.max(1),
            filled_until: Moment::START,
        }
    }

    /// Returns whether a request may be sent now.
    pub(super) fn has_token(&mut self, now: Moment) -> bool {
        self.fill(now);
        self.tokens > 0
    }

    /// Takes a token for a request that is sent. The caller has seen that there
    /// is one.
    pub(super) fn take(&mut self, now: Moment) {
        self.fill(now);
        self.tokens = self.tokens.saturating_sub(1);
    }

    /// Returns the moment at which there is a token; `None` if there is one
    /// already.
    pub(super) fn next_token(&self) -> Option<Moment> {
        (self.tokens == 0).then(|| self.filled_until + self.limit.token_time)
    }

    /// Adds the tokens of the time since the last call. The time of a part of a
    /// token is not used up: `filled_until` moves by whole tokens.
    fn fill(&mut self, now: Moment) {
        let capacity = self.limit.max_tokens.max(1);
        let elapsed_time = now
            .since_start()
            .saturating_sub(self.filled_until.since_start());
        let nanos_per_token = self.limit.token_time.as_nanos().max(1);
        let new_tokens = elapsed_time.as_nanos() / nanos_per_token;
        if u128::from(capacity - self.tokens) <= new_tokens {
            self.tokens = capacity;
            self.filled_until = now.max(self.filled_until);
            return;
        }

        // Fewer than fit into the bucket, whose size is a `u32`. Their time is
        // a part of `elapsed_time`, whose nanoseconds a `u64` holds for 584
        // years.
        self.tokens += new_tokens as u32;
        let token_time = Duration::from_nanos((new_tokens * nanos_per_token) as u64);
        self.filled_until = self.filled_until + token_time;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn e6_a_burst_is_bounded_and_tokens_come_back() {
        let mut bucket = TokenBucket::new(RateLimit {
            max_tokens: 2,
            token_time: Duration::from_millis(100),
        });
        for _ in 0..2 {
            assert!(bucket.has_token(Moment::START));
            bucket.take(Moment::START);
        }
        assert!(!bucket.has_token(Moment::from_millis(99)));
        assert_eq!(bucket.next_token(), Some(Moment::from_millis(100)));
        assert!(bucket.has_token(Moment::from_millis(100)));
        bucket.take(Moment::from_millis(150));
        assert_eq!(bucket.next_token(), Some(Moment::from_millis(200)));
        assert!(bucket.has_token(Moment::from_millis(10_000)));
        bucket.take(Moment::from_millis(10_000));
        assert!(bucket.has_token(Moment::from_millis(10_000)), "two at once");
        bucket.take(Moment::from_millis(10_000));
        assert!(
            !bucket.has_token(Moment::from_millis(10_050)),
            "and no more"
        );
    }

    #[test]
    fn e6_a_limit_of_nothing_is_one_at_a_time() {
        let mut bucket = TokenBucket::new(RateLimit {
            max_tokens: 0,
            token_time: Duration::ZERO,
        });
        assert!(bucket.has_token(Moment::START));
    }
}
