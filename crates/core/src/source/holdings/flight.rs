//! A response that has no answer yet.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::held::{Held, Variant};
use super::step::{Step, join};
use crate::database::{CursorId, Position};
use crate::message::ErrorDetail;
use crate::moment::Moment;
use crate::name::Name;
use crate::resource::{Nonce, Resource, ResourceError, Version};
use crate::source::wants::{AskKey, Heard};

/// What a response says of one variant: the peer holds it from now on, or it is
/// gone.
#[derive(Clone, Debug)]
pub(crate) struct Say {
    pub(crate) variant: Variant,
    pub(crate) to: Option<Arc<Resource>>,
    /// The asked name on account of which it is said, where that is another.
    pub(crate) topic: Option<Name>,
    /// It was gone in between: a response that became one with a later one took
    /// it away.
    pub(crate) renewed: bool,
    /// What such a response brought of it.
    pub(crate) brought: Option<Arc<Resource>>,
}

impl Say {
    /// A resource comes, or comes anew.
    pub(crate) fn brings(resource: &Arc<Resource>, topic: Option<Name>) -> Self {
        Self {
            variant: super::variant(resource),
            to: Some(Arc::clone(resource)),
            topic,
            renewed: false,
            brought: None,
        }
    }

    /// A variant goes.
    pub(crate) fn drops(variant: Variant, topic: Option<Name>) -> Self {
        Self {
            variant,
            to: None,
            topic,
            renewed: false,
            brought: None,
        }
    }

    pub(crate) fn name(&self) -> &Name {
        &self.variant.0
    }

    /// The name that was looked at when it was said.
    pub(crate) fn topic(&self) -> &Name {
        self.topic.as_ref().unwrap_or(&self.variant.0)
    }

    /// Makes of what was held before it what is held after it.
    pub(crate) fn change(&self, held: &mut Vec<Held>) {
        let unknown = |held: &Held| self.to.is_some() && held.is_unknown();
        held.retain(|held| !held.is(&self.variant) && !unknown(held));
        held.extend(self.to.as_ref().map(Held::accepted));
    }
}

/// What a response answers to one want beside what it says of resources.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    pub(crate) want: AskKey,
    /// The asked name.
    pub(crate) name: Name,
    pub(crate) heard: Heard,
    /// The resource that the want leads to, where that has another name.
    pub(crate) lead: Option<Name>,
    pub(crate) error: Option<Arc<ResourceError>>,
    /// It is not written: something else in the response says it, or silence.
    pub(crate) silent: bool,
}

/// See the module's documentation.
#[derive(Debug)]
pub(crate) struct Flight {
    pub(crate) nonce: Nonce,
    /// State of the world only: the version that an ACK repeats.
    pub(crate) version: Option<Version>,
    pub(crate) sent_at: Moment,
    /// Sorted by variant.
    pub(crate) says: Vec<Say>,
    pub(crate) answers: Vec<Answer>,
    pub(crate) steps: Vec<Step>,
    /// Earlier responses that became one with it, since the peer was silent.
    pub(crate) absorbed: Vec<Nonce>,
    /// Whether a rejection is what it is meant to get, and says nothing of what
    /// is in it (S35, S82).
    pub(crate) bait: bool,
}

impl Flight {
    /// What it says of resources of one name.
    pub(crate) fn says_of(&self, name: &Name) -> &[Say] {
        says_of(&self.says, name)
    }

    /// Makes of what was held of a name before it what is held after it.
    pub(crate) fn change(&self, follow: Option<CursorId>, name: &Name, held: &mut Vec<Held>) {
        change(&self.steps, &self.says, follow, name, held);
    }

    /// Whether it takes away something of a name, be it that this comes again.
    pub(crate) fn removes(&self, name: &Name) -> bool {
        let mut said = self.says_of(name).iter();
        let mut steps = self.steps.iter();
        let goes = |step: &Step| match step.item(name) {
            Some(Some(_)) => step.left_of(name).is_some(),
            Some(None) => true,
            None => false,
        };
        said.any(|say| say.to.is_none() || say.renewed) || steps.any(goes)
    }

    pub(crate) fn answer(&self, want: AskKey) -> Option<&Answer> {
        self.answers.iter().find(|answer| answer.want == want)
    }

    /// All resources that it brings.
    pub(crate) fn resources(&self) -> impl Iterator<Item = &Arc<Resource>> {
        let single = self.says.iter().filter_map(|say| say.to.as_ref());
        let items = self.steps.iter().flat_map(Step::items);
        single.chain(items.filter_map(|(_, item)| item.as_ref()))
    }
}

/// The part of sorted says that is about one name.
pub(crate) fn says_of<'s>(says: &'s [Say], name: &Name) -> &'s [Say] {
    let start = says.partition_point(|say| say.name() < name);
    let length = says[start..].partition_point(|say| say.name() == name);
    &says[start..start + length]
}

/// What steps and sorted says make of what was held of a name. Only steps along
/// the view that brings the name speak of it, and those along views that are
/// followed no longer.
pub(crate) fn change(
    steps: &[Step],
    says: &[Say],
    follow: Option<CursorId>,
    name: &Name,
    held: &mut Vec<Held>,
) {
    for step in steps {
        if step.follow.is_some() && step.follow != follow {
            continue;
        }
        if let Some(item) = step.item(name) {
            change_by_item(step, name, item.as_ref(), held);
        }
    }
    for say in says_of(says, name) {
        say.change(held);
    }
}

/// What an item of a step makes of what was held of its name.
pub(crate) fn change_by_item(
    step: &Step,
    name: &Name,
    item: Option<&Arc<Resource>>,
    held: &mut Vec<Held>,
) {
    let gone = step.left_of(name).cloned();
    let variant = (name.clone(), gone.unwrap_or_default());
    let replaced = |old: &Held| match item {
        Some(new) => old.is(&super::variant(new)) || old.is_unknown(),
        None => false,
    };
    let left = step.left_of(name).is_some() || item.is_none();
    let goes = |old: &Held| (left && old.is(&variant)) || replaced(old);
    held.retain(|old| !goes(old));
    held.extend(item.map(Held::accepted));
}

/// Responses that are remembered of those that became one.
const ABSORBED: usize = 64;

/// Puts an earlier response before a later one that its peer has not answered
/// either. What both say of a variant, the later says. Returns the positions
/// of views to which nobody will come back.
pub(crate) fn merge(later: &mut Flight, earlier: Flight) -> Vec<(CursorId, Position)> {
    let mut says: BTreeMap<Variant, Say> = BTreeMap::new();
    let mut between = Vec::new();
    let mut steps: Vec<Step> = Vec::new();
    let mut take = |own: Vec<Step>, single: Vec<Say>| {
        for mut step in own {
            for (name, item) in step.items() {
                if let Some(old) = step.left_of(name).filter(|_| item.is_some()) {
                    let variant = (name.clone(), old.clone());
                    says.insert(variant.clone(), Say::drops(variant, None));
                }
                let constraints = match item {
                    Some(new) => new.constraints.clone(),
                    None => step.left_of(name).cloned().unwrap_or_default(),
                };
                let say = match item {
                    Some(new) => Say::brings(new, None),
                    None => Say::drops((name.clone(), constraints), None),
                };
                put(&mut says, say);
            }
            step.batch = None;
            let follow = step.follow;
            let joined = join(&mut steps, step);
            between.extend(follow.zip(joined));
        }
        single.into_iter().for_each(|say| put(&mut says, say));
    };
    take(earlier.steps, earlier.says);
    take(
        std::mem::take(&mut later.steps),
        std::mem::take(&mut later.says),
    );
    let newer: Vec<AskKey> = later.answers.iter().map(|answer| answer.want).collect();
    let older = earlier.answers.into_iter();
    later
        .answers
        .extend(older.filter(|answer| !newer.contains(&answer.want)));
    later.says = says.into_values().collect();
    later.steps = steps;
    later.bait |= earlier.bait;
    let mut absorbed = earlier.absorbed;
    absorbed.push(earlier.nonce);
    absorbed.append(&mut later.absorbed);
    absorbed.drain(..absorbed.len().saturating_sub(ABSORBED));
    later.absorbed = absorbed;
    between
}

/// Adds what is said later.
fn put(says: &mut BTreeMap<Variant, Say>, mut say: Say) {
    let before = says.get(&say.variant);
    let gone = before.is_some_and(|before| before.to.is_none() || before.renewed);
    say.renewed |= gone && say.to.is_some();
    let brought = before.and_then(|before| before.to.as_ref().or(before.brought.as_ref()));
    say.brought = brought.cloned().or(say.brought);
    says.insert(say.variant.clone(), say);
}

/// Whether a peer's text names something.
pub(crate) fn names(error: &ErrorDetail, name: &Name) -> bool {
    error.message.contains(name.as_str())
}
