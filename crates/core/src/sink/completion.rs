//! When the server has spoken of all of a wildcard or a glob.
//!
//! ```text
//!            a whole set (SotW), or all in one response
//!   Asked ──────────────────────────────────────────────▶ Complete
//!     │  a response                   silence               ▲
//!     └──────────────────▶ Receiving ───────────────────────┘
//!                            ▲    │ a response
//!                            └────┘
//! ```
//!
//! A delta response does not say whether it is all of a wildcard, or the first
//! part of it (S44); silence after it does. Nor does any response say which
//! request it answers: if there were requests before, the first response may
//! have been on its way already, and silence decides then, too.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::interest::{InterestDiff, Subscription};
use crate::name::{Name, Selector};

/// The shortest silence that tells that a response was the newest one.
const IN_FLIGHT: Duration = Duration::from_secs(5);

/// How far the server has sent a wildcard or a glob.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// The server got the request. `is_first` if no earlier request of the
    /// stream can have an answer on its way.
    Requested {
        is_first: bool,
    },
    /// A response came, and more may.
    Receiving {
        is_first: bool,
    },
    Complete,
}

/// The contents of a response, as far as completeness goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Extent {
    /// All that is subscribed to.
    Whole,
    /// A part, or all.
    Part,
}

/// The wildcards and globs of one type that the server was asked for.
#[derive(Debug, Default)]
pub(super) struct Completion {
    /// Those of the present stream.
    stages: BTreeMap<Subscription, Stage>,
    /// Those that were complete on an earlier stream.
    formerly_complete: BTreeSet<Subscription>,
}

impl Completion {
    /// Records that a request with these changes is sent. `is_first` is whether
    /// it is the first of the type on the stream: no answer to an earlier one
    /// can be on its way. A subscription that is complete stays so if it is
    /// sent again.
    pub(super) fn record_sent(&mut self, diff: &InterestDiff, is_first: bool) {
        for subscription in diff.removed.scopes() {
            self.remove(&subscription);
        }
        for subscription in diff.added.scopes() {
            let requested = Stage::Requested { is_first };
            self.stages.entry(subscription).or_insert(requested);
        }
    }

    /// Forgets the requests of a stream that has ended. A complete subscription
    /// stays complete, and is reported again when the next stream has sent all
    /// of it.
    pub(super) fn restart(&mut self) {
        let stages = std::mem::take(&mut self.stages).into_iter();
        let complete = stages.filter(|(_, stage)| *stage == Stage::Complete);
        self.formerly_complete
            .extend(complete.map(|(subscription, _)| subscription));
    }

    /// Forgets a subscription that has ended.
    pub(super) fn remove(&mut self, subscription: &Subscription) {
        self.stages.remove(subscription);
        self.formerly_complete.remove(subscription);
    }

    /// Adds a subscription whose selector the server has a request for already,
    /// with other parameters that it does not tell apart: it gets the stage of
    /// that one. Returns whether it is complete with that. Without such a
    /// request nothing is added.
    pub(super) fn copy_stage(&mut self, subscription: &Subscription) -> bool {
        let mut stages = self.stages.iter();
        let has_selector =
            |(candidate, _): &(&Subscription, _)| candidate.selector == subscription.selector;
        let Some(stage) = stages.find(has_selector).map(|(_, stage)| *stage) else {
            return false;
        };
        self.stages.insert(subscription.clone(), stage);
        stage == Stage::Complete
    }

    /// Returns those of these subscriptions that were not complete on an
    /// earlier stream. They have become complete just now; for the owner, only
    /// the returned ones are news. The memory of the earlier stream is used up.
    pub(super) fn take_news(&mut self, complete: &[Subscription]) -> Vec<Subscription> {
        let news = complete
            .iter()
            .filter(|subscription| !self.formerly_complete.remove(*subscription));
        news.cloned().collect()
    }

    /// Returns whether a subscription is complete.
    pub(super) fn is_complete(&self, subscription: &Subscription) -> bool {
        let stage = self.stages.get(subscription);
        stage == Some(&Stage::Complete) || self.formerly_complete.contains(subscription)
    }

    /// Records a response. `silence` is how long the server has to send nothing
    /// until what it sent counts as all of a wildcard or a glob. Returns the
    /// subscriptions that are complete with this response, and how long others
    /// wait for silence; `None` if none does.
    pub(super) fn record_response(
        &mut self,
        extent: Extent,
        silence: Duration,
    ) -> (Vec<Subscription>, Option<Duration>) {
        let mut complete = Vec::new();
        let mut wait = None;
        for (subscription, stage) in &mut self.stages {
            let (is_first, is_newer) = match *stage {
                Stage::Requested { is_first } => (is_first, is_first),
                Stage::Receiving { is_first } => (is_first, true),
                Stage::Complete => continue,
            };
            let is_all = match extent {
                Extent::Whole => is_newer,
                Extent::Part => is_first && silence.is_zero(),
            };
            if is_all {
                *stage = Stage::Complete;
                complete.push(subscription.clone());
                continue;
            }
            let shortest = if is_first { Duration::ZERO } else { IN_FLIGHT };
            wait = wait.max(Some(silence.max(shortest)));
            *stage = Stage::Receiving { is_first };
        }
        (complete, wait)
    }

    /// Completes the subscriptions of which the server has sent something, and
    /// no more for as long as [`Self::record_response`] said. Returns them.
    pub(super) fn complete_silent(&mut self) -> Vec<Subscription> {
        self.complete(|_, stage| matches!(stage, Stage::Receiving { .. }))
    }

    /// Completes the subscriptions of a collection that the server has an error
    /// for, or that it says does not exist; an empty name is the wildcard.
    /// Returns those that were not complete.
    pub(super) fn complete_collection(&mut self, collection: &Name) -> Vec<Subscription> {
        let text = match collection.as_str() {
            "" => "*",
            text => text,
        };
        let is_meant = |selector: &Selector| selector.as_str() == text;
        self.complete(|subscription, stage| {
            is_meant(&subscription.selector) && stage != Stage::Complete
        })
    }

    /// Completes the subscriptions that `is_selected` holds for, and returns
    /// them.
    fn complete(
        &mut self,
        is_selected: impl Fn(&Subscription, Stage) -> bool,
    ) -> Vec<Subscription> {
        let stages = self.stages.iter_mut();
        let selected = stages.filter(|(subscription, stage)| is_selected(subscription, **stage));
        let subscriptions = selected.map(|(subscription, stage)| {
            *stage = Stage::Complete;
            subscription.clone()
        });
        subscriptions.collect()
    }
}
