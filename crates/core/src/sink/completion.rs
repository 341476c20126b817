//! Works out when the server has sent all of a wildcard or a glob.
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
    /// The server got the request.
    Requested {
        /// Whether no answer to an earlier request of the stream can be on its
        /// way.
        is_first: bool,
    },
    /// A response came, and more may.
    Receiving {
        /// As in [`Stage::Requested`].
        is_first: bool,
    },
    /// The server has sent all.
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
    /// The subscriptions of the present stream.
    stages: BTreeMap<Subscription, Stage>,
    /// The subscriptions that were complete on an earlier stream.
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
        let complete_stages = stages.filter(|(_, stage)| *stage == Stage::Complete);
        self.formerly_complete
            .extend(complete_stages.map(|(subscription, _)| subscription));
    }

    /// Forgets a subscription that has ended.
    pub(super) fn remove(&mut self, subscription: &Subscription) {
        self.stages.remove(subscription);
        self.formerly_complete.remove(subscription);
    }

    /// Adds a subscription with the stage of another one that has the same
    /// selector and other parameters, which the server does not tell apart.
    /// Returns whether the subscription is complete with that. Nothing is added
    /// if the server has no request for the selector.
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

    /// Selects, among subscriptions that have become complete just now, those
    /// that are news for the owner: they were not complete on an earlier
    /// stream. What is remembered of the earlier stream is used up by the call.
    pub(super) fn take_news(
        &mut self,
        complete_subscriptions: &[Subscription],
    ) -> Vec<Subscription> {
        let news = complete_subscriptions
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
        let mut complete_subscriptions = Vec::new();
        let mut longest_wait = None;
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
                complete_subscriptions.push(subscription.clone());
                continue;
            }

            let shortest_wait = if is_first { Duration::ZERO } else { IN_FLIGHT };
            longest_wait = longest_wait.max(Some(silence.max(shortest_wait)));
            *stage = Stage::Receiving { is_first };
        }
        (complete_subscriptions, longest_wait)
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
        let selected_stages =
            stages.filter(|(subscription, stage)| is_selected(subscription, **stage));
        let subscriptions = selected_stages.map(|(subscription, stage)| {
            *stage = Stage::Complete;
            subscription.clone()
        });
        subscriptions.collect()
    }
}
