//! What is to be said of one name: the difference between what the peer wants
//! by it and what it will hold once it has accepted all that was sent.
//!
//! Everything of a name is decided at once: variants that take each other's
//! place go together, and so does what a host led to before and leads to now.

use std::sync::Arc;

use super::holdings::{Answer, Held, Say, State, same_variant, variant};
use super::{AskKey, Context, Conversation, Heard, Want};
use crate::database::{Choice, Database, same};
use crate::kind::Absent;
use crate::name::Name;
use crate::resource::Resource;

/// One reason to speak of a name: a want, or a view that covers it.
struct Subject {
    want: Option<(AskKey, Want)>,
    choice: Choice,
    forced: bool,
}

/// What is to be said of one name.
#[derive(Debug, Default)]
pub(super) struct Part {
    pub(super) says: Vec<Say>,
    pub(super) answers: Vec<Answer>,
    /// What is not said now, and why.
    pub(super) waits: Waits,
}

/// Why something is not said now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Waits {
    /// Nothing waits.
    #[default]
    No,
    /// What is referred to comes first: not for ever (S73).
    Addition,
    /// Something still uses what goes, for as long as that takes (S73, S81).
    Removal,
    /// It needs a response of its own, or must not be in one.
    Apart,
}

impl Conversation {
    /// Works out what is to be said of a name now; `apart` is whether in a
    /// response that is meant to be rejected.
    pub(super) fn look(
        &mut self,
        db: &mut Database,
        context: &Context<'_>,
        name: &Name,
        apart: bool,
    ) -> Part {
        let subjects = self.subjects(db, name);
        let mut part = Part::default();
        if subjects.iter().any(|s| s.choice == Choice::Unknown) {
            // A view that turns out not to list a name says nothing of it: what
            // the peer came back with is looked at until that is known (S51).
            let by_view = subjects.iter().all(|s| s.want.is_none());
            if by_view && !self.holdings.after(db, name).is_empty() {
                part.waits = Waits::Removal;
            }
            return part;
        }
        let wanted = wanted_by(&subjects);
        self.end_rejections(name, &wanted);
        let mut blocked = false;
        for resource in &wanted {
            let leading = subjects.iter().filter(|s| leads_to(s, resource));
            let leading: Vec<&Subject> = leading.collect();
            blocked |= self.look_at_resource(db, context, name, resource, &leading, &mut part);
        }
        if part.waits != Waits::No {
            part.says.clear();
            part.answers.clear();
            return part;
        }
        let drops = self.rest(db, name, &subjects, &wanted, &part);
        match blocked {
            true => self.keep_one_variant(db, &subjects, &drops, &mut part),
            false => self.look_at_rest(db, context, name, &subjects, drops, &mut part),
        }
        self.look_at_absent(db, context, name, &subjects, &mut part);
        self.keep_apart(apart, &mut part);
        part
    }

    fn subjects(&self, db: &mut Database, name: &Name) -> Vec<Subject> {
        let mut subjects = Vec::new();
        for (key, want) in self.wants_of(db, name) {
            let choice = match self.target(db, key) {
                // A failure that is not about the data leaves what is held alone (S61).
                Choice::Failed(error, None)
                    if !self.speaks_errors && !error.code.is_data_error() =>
                {
                    Choice::Unknown
                }
                Choice::Failed(_, None) if !self.speaks_errors => Choice::Absent,
                choice => choice,
            };
            subjects.push(Subject {
                want: Some((key, want)),
                choice,
                forced: want.forced,
            });
        }
        if let Some(choice) = self.brought(db, name) {
            let own = subjects.iter().any(|s| {
                let (key, _) = s.want.unzip();
                key.is_some_and(|key| key.params == self.params)
            });
            // A plain name asks for what the view brings of it.
            if !own {
                subjects.push(Subject {
                    want: None,
                    choice,
                    forced: self.again.contains(name),
                });
            }
        }
        subjects
    }

    /// One resource that the peer is meant to hold. Returns whether it is not to
    /// be had, so that what it would replace stays.
    fn look_at_resource(
        &mut self,
        db: &mut Database,
        context: &Context<'_>,
        name: &Name,
        resource: &Arc<Resource>,
        leading: &[&Subject],
        part: &mut Part,
    ) -> bool {
        let key = variant(resource);
        if self.suspects.contains_key(&key) {
            return true;
        }
        if self.is_parked(resource) {
            self.answer_parked(db, name, resource, leading, part);
            return true;
        }
        let held = self.holdings.after(db, &resource.name);
        let forced = leading.iter().any(|s| s.forced);
        // Who waits for a host, or asked by another name, waits to be told.
        let told = self.kind.on_demand || resource.name != *name;
        let lead = (resource.name != *name).then_some(&resource.name);
        let unheard = |s: &&Subject| match told {
            true => !self.has_heard(s, lead),
            false => self.has_failed(s),
        };
        let unheard: Vec<_> = leading.iter().copied().filter(unheard).collect();
        let failed = self.look_at_failures(name, leading, part);
        if !forced && unheard.is_empty() && is_held(self.kind.on_demand, &held, resource) {
            return false;
        }
        // What stays although it cannot be had anew is held already, mostly (S61).
        if failed && is_held(self.kind.on_demand, &held, resource) {
            return false;
        }
        let until = self.waiting.get(name);
        let overdue = until.is_some_and(|until| *until <= context.now);
        if !overdue && context.order.addition_waits(db, &self.kind, resource) {
            part.waits = Waits::Addition;
            return false;
        }
        let topic = (resource.name != *name).then(|| name.clone());
        let wants = leading.iter().filter_map(|s| s.want);
        let answers = wants.filter(|(key, want)| {
            let other = !matches!(want.heard, Heard::Nothing | Heard::Given);
            told || other || self.wants.lead_of(*key).is_some()
        });
        part.answers.extend(answers.map(|(want, _)| Answer {
            want,
            name: name.clone(),
            heard: Heard::Given,
            lead: topic.as_ref().map(|_| resource.name.clone()),
            error: None,
            silent: true,
        }));
        part.says.push(Say::brings(resource, topic));
        false
    }

    /// Whether a want has heard, or will have, that it leads to this resource.
    fn has_heard(&self, subject: &Subject, lead: Option<&Name>) -> bool {
        let Some((key, want)) = subject.want else {
            return true;
        };
        let mut flights = self.holdings.flights().iter().rev();
        let (heard, to) = match flights.find_map(|flight| flight.answer(key)) {
            Some(answer) => (answer.heard, answer.lead.as_ref()),
            None => (want.heard, self.wants.lead_of(key)),
        };
        heard == Heard::Given && to == lead
    }

    /// Whether a want heard that it cannot be had, and can now: only the
    /// resource itself says so (S61).
    fn has_failed(&self, subject: &Subject) -> bool {
        let Some((key, want)) = subject.want else {
            return false;
        };
        let mut flights = self.holdings.flights().iter().rev();
        let answer = flights.find_map(|flight| flight.answer(key));
        let heard = answer.map_or(want.heard, |answer| answer.heard);
        heard == Heard::Failed && !matches!(subject.choice, Choice::Failed(..))
    }

    /// A rejected body is not sent again: a peer that asks gets what it accepted
    /// before, or hears that there is nothing, unless it may hold something of
    /// which the body is not known (S12).
    fn answer_parked(
        &self,
        db: &mut Database,
        name: &Name,
        resource: &Arc<Resource>,
        leading: &[&Subject],
        part: &mut Part,
    ) {
        let led = leading.iter().filter_map(|s| s.want);
        let led = led.filter_map(|(key, _)| self.wants.lead_of(key).cloned());
        let mut held = self.holdings.after(db, &resource.name);
        for other in led {
            held.extend(self.holdings.after(db, &other));
        }
        if resource.name != *name {
            held.extend(self.holdings.after(db, name));
        }
        for subject in leading {
            let unheard = subject
                .want
                .is_some_and(|(_, want)| want.heard == Heard::Nothing);
            let from_before = |held: &&Held| held.state == State::Before && !held.is_unknown();
            let stands_in = held.iter().find(from_before).filter(|_| self.is_whole());
            if !subject.forced && !(unheard && held.is_empty()) && stands_in.is_none() {
                continue;
            }
            let good = |held: &&Held| held.is_accepted() && !self.is_parked(&held.resource);
            let own = |held: &&Held| good(held) && same_variant(&held.resource, resource);
            let accepted = held.iter().find(own).or_else(|| held.iter().find(good));
            let accepted = accepted.or(stands_in);
            if let Some(accepted) = accepted {
                let to = Arc::clone(&accepted.resource);
                let variant = variant(&to);
                if !part.says.iter().any(|say| say.variant == variant) {
                    let topic = (to.name != *name).then(|| name.clone());
                    part.says.push(Say::brings(&to, topic));
                }
            } else if !held.iter().any(Held::is_unknown) {
                match subject.want {
                    Some((key, _)) => part.answers.push(absent(key, name, false)),
                    None => part.says.push(Say::drops(variant(resource), None)),
                }
            }
        }
    }

    /// Tells why something cannot be had, to who reads of it (S61). Returns
    /// whether there is such a reason.
    fn look_at_failures(&self, name: &Name, leading: &[&Subject], part: &mut Part) -> bool {
        let mut any = false;
        for subject in leading {
            let (Some((want, state)), Choice::Failed(error, _)) = (subject.want, &subject.choice)
            else {
                continue;
            };
            any = true;
            let mut flights = self.holdings.flights().iter().rev();
            let told = match flights.find_map(|flight| flight.answer(want)) {
                Some(answer) => answer.error.as_ref(),
                None => self.wants.error(want),
            };
            if told != Some(error) || state.forced {
                part.answers.push(Answer {
                    want,
                    name: name.clone(),
                    heard: Heard::Failed,
                    lead: None,
                    error: Some(Arc::clone(error)),
                    silent: false,
                });
            }
        }
        any
    }

    /// What the peer holds by this name and is not meant to, as what goes.
    fn rest(
        &self,
        db: &mut Database,
        name: &Name,
        subjects: &[Subject],
        wanted: &[Arc<Resource>],
        part: &Part,
    ) -> Vec<Say> {
        let keys = subjects.iter().filter_map(|s| Some(s.want?.0));
        let leads = keys.filter_map(|key| self.wants.lead_of(key));
        let mut names: Vec<Name> = leads.cloned().collect();
        names.sort();
        names.dedup();
        names.retain(|other| other != name);
        names.push(name.clone());
        let mut drops: Vec<Say> = Vec::new();
        for other in &names {
            let replaced = wanted.iter().any(|new| new.name == *other);
            for held in self.holdings.after(db, other) {
                let kept = wanted.iter().any(|new| same_variant(new, &held.resource));
                let unknown = replaced && held.is_unknown();
                let key = variant(&held.resource);
                if !kept
                    && !unknown
                    && !drops.iter().any(|say| say.variant == key)
                    && !self.is_target_elsewhere(db, name, &held.resource)
                {
                    let topic = (other != name).then(|| name.clone());
                    drops.push(Say::drops(key, topic));
                }
            }
        }
        self.drop_what_is_under_way(db, &names, wanted, part, &mut drops);
        drops
    }

    /// While something that is wanted is not to be had, what it would replace
    /// stays; and with it all that would be a second variant for somebody (TP2).
    fn keep_one_variant(&self, db: &Database, subjects: &[Subject], kept: &[Say], part: &mut Part) {
        let is_for = |subject: &Subject, say: &Say| {
            let key = subject.want.map(|(key, _)| key);
            let params = key.map_or(self.params, |key| key.params);
            let constraints = say.variant.1.as_ref();
            constraints.is_none_or(|c| c.matches(db.params(params)))
        };
        let twice = |new: &Arc<Resource>| {
            let mut leading = subjects.iter().filter(|s| leads_to(s, new));
            leading.any(|subject| kept.iter().any(|old| is_for(subject, old)))
        };
        if !self.kind.on_demand {
            part.says.retain(|say| !say.to.as_ref().is_some_and(twice));
        }
    }

    /// What goes, now or when nothing uses it any more.
    fn look_at_rest(
        &self,
        db: &mut Database,
        context: &Context<'_>,
        name: &Name,
        subjects: &[Subject],
        drops: Vec<Say>,
        part: &mut Part,
    ) {
        let named = subjects.iter().any(|s| s.want.is_some());
        let wanted = subjects.iter().any(|s| s.choice.resource().is_some());
        let several = subjects.len() > 1;
        let goes = !wanted && !self.kind.on_demand && !several && !drops.is_empty();
        // Only a name that is gone altogether can be missed; and who came back
        // and holds what leads to it waits for a word on it (S82).
        let resumed = |s: &Subject| s.want.is_some_and(|(_, want)| want.resumed);
        let dangles =
            goes && subjects.iter().any(resumed) && context.order.refers_to(db, &self.url, name);
        let order = context.order;
        let refused = self.stands_in() && self.holdings.now(db, name).iter().all(Held::is_unknown);
        let waits = |db| order.removal_waits(db, &self.url, name, (named, refused));
        if goes && !dangles && waits(db) {
            part.waits = Waits::Removal;
            self.answer_withheld(db, name, subjects, part);
            return;
        }
        part.says.extend(drops);
    }

    /// A peer that asks for what is about to go gets it, while it stays (S23).
    fn answer_withheld(
        &self,
        db: &mut Database,
        name: &Name,
        subjects: &[Subject],
        part: &mut Part,
    ) {
        let held = self.holdings.after(db, name);
        let forced = subjects.iter().any(|s| s.forced);
        // A set lists what a client has from before, and so says it (S82).
        let listed = |held: &Held| self.is_whole() && held.state == State::Before;
        let said =
            |held: &&Held| !held.is_unknown() && ((held.is_accepted() && forced) || listed(held));
        if let Some(held) = held.iter().find(said) {
            part.says.push(Say::brings(&held.resource, None));
        }
    }

    /// A peer that is silent may hold what a response without an answer takes
    /// away or brings: where something is said of a name, that goes, too.
    fn drop_what_is_under_way(
        &self,
        db: &mut Database,
        names: &[Name],
        wanted: &[Arc<Resource>],
        part: &Part,
        drops: &mut Vec<Say>,
    ) {
        if self.holdings.flights().is_empty() || (part.says.is_empty() && drops.is_empty()) {
            return;
        }
        for name in names {
            for held in self.holdings.may(db, name) {
                let key = variant(&held);
                let kept = wanted.iter().any(|new| same_variant(new, &held));
                let said = drops.iter().chain(&part.says).any(|say| say.variant == key);
                if !kept && !said && held.constraints.is_some() {
                    drops.push(Say::drops(key, None));
                }
            }
        }
    }

    /// Whether another name that the peer asks by brings a resource. Hosts that
    /// a virtual host does not name may lead to it by a wildcard.
    fn is_target_elsewhere(&self, db: &mut Database, but: &Name, held: &Resource) -> bool {
        let name = &held.name;
        let own = self.wants_of(db, but).into_iter().map(|(key, _)| key);
        let own: Vec<AskKey> = own.collect();
        let wide = held.facts().domains.have_wildcards() || held.body.is_none();
        let keys: Vec<AskKey> = match self.kind.on_demand && wide {
            true => self.wants.keys().collect(),
            false => {
                let names = held.other_names().chain([name.clone()]);
                let wants = names.flat_map(|name| self.wants_of(db, &name));
                let wants = wants.map(|(key, _)| key);
                wants.chain(self.wants.leading_to(name)).collect()
            }
        };
        let others = keys.into_iter().filter(|key| !own.contains(key));
        let mut targets = others.map(|key| self.target(db, key));
        let led = targets.any(|target| {
            let resource = target.resource();
            resource
                .is_some_and(|r| same_variant(r, held) || (held.body.is_none() && r.name == *name))
        });
        led || (name != but && self.holdings.covering(name).is_some())
    }

    /// Wants for which there is nothing.
    fn look_at_absent(
        &self,
        db: &mut Database,
        context: &Context<'_>,
        name: &Name,
        subjects: &[Subject],
        part: &mut Part,
    ) {
        let nothing = subjects.iter().filter(|s| s.choice.resource().is_none());
        let nothing: Vec<&Subject> = nothing.collect();
        if nothing.is_empty() || part.waits != Waits::No {
            return;
        }
        if self.look_at_failures(name, &nothing, part) {
            return;
        }
        // While another variant of it is left, the name itself is not gone (S41).
        let left = subjects.len() > nothing.len();
        let drops = part.says.iter().any(|say| say.to.is_none());
        let mut withheld = false;
        for subject in nothing {
            let Some((key, want)) = subject.want else {
                continue;
            };
            let mut flights = self.holdings.flights().iter().rev();
            let heard = flights.find_map(|flight| flight.answer(key));
            let heard = heard.map_or(want.heard, |answer| answer.heard);
            let owed = want.forced || heard != Heard::Absent;
            if !owed && !drops {
                continue;
            }
            if !left && self.is_withheld(db, context, name, want) {
                withheld = true;
                continue;
            }
            // Who asks for a host waits for more than the removal of what it had.
            if drops && want.forced && self.kind.on_demand {
                continue;
            }
            // Who never had one waits for an answer of its own.
            let had = !self.kind.on_demand || heard == Heard::Given;
            part.answers.push(absent(key, name, left || (drops && had)));
        }
        if withheld {
            part.says.clear();
            part.answers.clear();
            part.waits = Waits::Removal;
            self.answer_withheld(db, name, subjects, part);
        }
    }

    /// What a peer must reject goes alone, and nothing else with it.
    fn keep_apart(&self, apart: bool, part: &mut Part) {
        let unreadable =
            self.absence_as_error(false).is_none() && self.absent_form(false) == Absent::Unreadable;
        let bait = |answer: &Answer| unreadable && answer.heard == Heard::Absent && !answer.silent;
        let answers = std::mem::take(&mut part.answers).into_iter();
        let (baits, others): (Vec<_>, Vec<_>) = answers.partition(bait);
        let left = match apart {
            true => {
                let left = !part.says.is_empty() || !others.is_empty();
                part.says.clear();
                part.answers = baits;
                left
            }
            false => {
                part.answers = others;
                !baits.is_empty()
            }
        };
        if left {
            part.waits = Waits::Apart;
        }
    }
}

fn absent(want: AskKey, name: &Name, silent: bool) -> Answer {
    Answer {
        want,
        name: name.clone(),
        heard: Heard::Absent,
        lead: None,
        error: None,
        silent,
    }
}

/// Whether a want, or a view, is for this resource.
fn leads_to(subject: &Subject, resource: &Arc<Resource>) -> bool {
    let own = subject.choice.resource();
    own.is_some_and(|own| same_variant(own, resource))
}

/// The resources that are wanted, each variant once.
fn wanted_by(subjects: &[Subject]) -> Vec<Arc<Resource>> {
    let mut wanted: Vec<Arc<Resource>> = Vec::new();
    for resource in subjects.iter().filter_map(|s| s.choice.resource()) {
        if !wanted.iter().any(|other| same_variant(other, resource)) {
            wanted.push(Arc::clone(resource));
        }
    }
    wanted
}

/// Whether a resource is held, for sure and as it is. A virtual host answers to
/// other names for each host that leads to it; that makes it no other.
fn is_held(on_demand: bool, held: &[Held], resource: &Arc<Resource>) -> bool {
    let same = |held: &Arc<Resource>| match on_demand {
        true => held.version == resource.version && held.ttl == resource.ttl,
        false => same(held, resource),
    };
    let mut own = held
        .iter()
        .filter(|held| same_variant(&held.resource, resource));
    let sure = own
        .next()
        .is_some_and(|held| held.is_accepted() && same(&held.resource));
    sure && own.next().is_none() && !held.iter().any(Held::is_unknown)
}
