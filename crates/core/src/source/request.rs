//! What one request changes, name by name: in slices if it names many (S85).

use std::collections::VecDeque;

use super::ask::GivenUp;
use super::{Conversation, InitialVersions, forms};
use crate::database::{Database, Scope};
use crate::name::Name;
use crate::params::ParamsId;
use crate::resource::Version;

/// One step of reading a request.
#[derive(Debug)]
pub(super) enum Act {
    Subscribe(Name, ParamsId),
    Unsubscribe(Name, ParamsId),
    Follow(Scope),
    Unfollow(Scope),
}

/// A request that is being read.
#[derive(Debug, Default)]
pub(crate) struct Reading {
    pub(super) acts: VecDeque<Act>,
    pub(super) initial: InitialVersions,
    /// State of the world: the version that the first request names.
    pub(super) version: Option<Version>,
    /// What the peer held by names that it gives up.
    pub(crate) given_up: GivenUp,
}

impl Conversation {
    /// Takes so many steps; whether all are taken.
    pub(crate) fn read_on(
        &mut self,
        db: &mut Database,
        reading: &mut Reading,
        steps: usize,
    ) -> bool {
        for _ in 0..steps {
            let Some(act) = reading.acts.pop_front() else {
                break;
            };
            match act {
                Act::Subscribe(name, params) => self.ask(db, &name, params, &reading.initial),
                Act::Unsubscribe(name, params) if self.kind.on_demand => {
                    self.unask_host(db, &name, params);
                }
                Act::Unsubscribe(name, params) => {
                    reading.given_up.extend(self.unask(db, &name, params));
                }
                Act::Follow(scope) => self.follow(db, &scope, &reading.initial),
                Act::Unfollow(scope) => self.unfollow(db, &scope),
            }
        }
        if !reading.acts.is_empty() {
            return false;
        }
        if self.kind.on_demand && !reading.initial.is_empty() {
            self.take_other_hosts(db, &reading.initial);
            let told = reading.initial.values().filter_map(forms::negative_number);
            self.negatives = told.max().unwrap_or(0).wrapping_add(1);
        }
        self.forgive_answer();
        if let Some(version) = &reading.version {
            self.resume_set(db, version);
        }
        self.end_first_request();
        self.explicit.clear();
        true
    }
}
