//! What a peer was told of one name, as far as it answered.

use std::sync::Arc;

use crate::database::{Choice, EntryId, same};
use crate::name::Name;
use crate::params::ParamsId;
use crate::resource::{Resource, ResourceError};

/// One named subscription of a conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct AskKey {
    pub(crate) entry: EntryId,
    pub(crate) params: ParamsId,
}

/// One thing a conversation may speak of.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Key {
    /// A name that was asked for.
    Ask(AskKey),
    /// A name that a wildcard or glob brings, by the cursor that follows it.
    Member(usize, Name),
}

/// What the peer holds, as far as is known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Told {
    /// It was told nothing yet.
    #[default]
    Nothing,
    /// It may hold something that it rejected (S17).
    Doubt,
    /// It holds another version, from before this stream.
    Older,
    /// It knows that the name does not exist.
    Absent,
    /// It accepted this.
    Is(Arc<Resource>),
    /// It accepted this, and rejected something later: it may hold either (S17).
    Unsure(Arc<Resource>),
    /// It knows why the name cannot be given, and holds what it held (S61).
    /// In a box of its own: it is rare, and there is one of these for every
    /// subscription.
    Failed(Box<Failure>),
}

/// Why a name cannot be given, and what is held all the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Failure {
    error: Arc<ResourceError>,
    held: Option<Arc<Resource>>,
}

impl Told {
    /// Whether there is nothing more to say.
    pub(crate) fn same(&self, choice: &Choice) -> bool {
        match (self, choice) {
            (Self::Absent, Choice::Absent) => true,
            (Self::Is(a), Choice::Is(b)) => same(a, b),
            (Self::Failed(told), Choice::Failed(error, kept)) => {
                told.error == *error
                    && match (&told.held, kept) {
                        (Some(held), Some(kept)) => same(held, kept),
                        (None, None) => true,
                        _ => false,
                    }
            }
            _ => false,
        }
    }

    /// Whether the peer may hold contents under the name.
    pub(crate) fn may_hold(&self) -> bool {
        matches!(self, Self::Doubt | Self::Older) || self.resource().is_some()
    }

    /// What it holds for sure.
    pub(crate) fn certain(&self) -> Option<&Arc<Resource>> {
        match self {
            Self::Unsure(_) => None,
            told => told.resource(),
        }
    }

    /// What it accepted.
    pub(crate) fn resource(&self) -> Option<&Arc<Resource>> {
        match self {
            Self::Is(resource) | Self::Unsure(resource) => Some(resource),
            Self::Failed(failure) => failure.held.as_ref(),
            Self::Nothing | Self::Doubt | Self::Older | Self::Absent => None,
        }
    }

    /// After a response with this name was rejected, with or without reason:
    /// what was held before may stay held, or the new one may have been applied
    /// all the same (S17).
    pub(crate) fn after_rejection(self) -> Self {
        match self.resource() {
            Some(accepted) => Self::Unsure(Arc::clone(accepted)),
            None if self == Self::Older => self,
            None => Self::Doubt,
        }
    }
}

impl From<Choice> for Told {
    fn from(choice: Choice) -> Self {
        match choice {
            Choice::Absent => Self::Absent,
            Choice::Unknown => Self::Nothing,
            Choice::Is(resource) => Self::Is(resource),
            Choice::Failed(error, held) => Self::Failed(Box::new(Failure { error, held })),
        }
    }
}

impl From<Option<Arc<Resource>>> for Told {
    fn from(held: Option<Arc<Resource>>) -> Self {
        held.map_or(Self::Nothing, Self::Is)
    }
}

/// What is known of one name in one conversation.
#[derive(Clone, Debug, Default)]
pub(crate) struct Slot {
    pub(crate) told: Told,
    /// It must be said again even if nothing changed (S28, S30, S53).
    pub(crate) forced: bool,
    /// It is a host, and nothing limits how many there are of its kind (S72).
    pub(crate) strange: bool,
}

impl Slot {
    /// Nothing is to be said again.
    pub(crate) fn of(told: Told) -> Self {
        Self {
            told,
            ..Self::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resource::ErrorCode;

    #[test]
    fn s61_an_error_is_said_again_only_if_it_or_what_is_kept_differs() {
        let error = |code| {
            Arc::new(ResourceError {
                code,
                message: "down".into(),
            })
        };
        let resource = |body: &'static str| Arc::new(Resource::new(Name::new("a"), body.into()));
        let down = error(ErrorCode::Unavailable);
        let bare = Choice::Failed(Arc::clone(&down), None);
        let kept = Choice::Failed(Arc::clone(&down), Some(resource("x")));
        let other = Choice::Failed(error(ErrorCode::NotFound), Some(resource("x")));
        let newer = Choice::Failed(down, Some(resource("y")));
        assert!(Told::from(bare.clone()).same(&bare));
        assert!(Told::from(kept.clone()).same(&kept));
        for differs in [&bare, &other, &newer] {
            assert!(!Told::from(kept.clone()).same(differs));
        }
    }

    /// There is one for every named subscription: what it grows by, a large
    /// server pays a hundred million times.
    #[test]
    fn a_slot_is_small() {
        assert!(size_of::<Slot>() <= 24);
    }
}
