//! What a peer asks for by name, and which answers it has heard.
//!
//! A want is not what the peer holds: that is in `holdings`. One resource may
//! satisfy several wants, by its name, by an alias, or as the virtual host of
//! several hosts; and a want that nothing satisfies has an answer all the same.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use hashbrown::HashMap;

use crate::database::EntryId;
use crate::name::Name;
use crate::params::ParamsId;
use crate::resource::ResourceError;

/// One named subscription.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct AskKey {
    pub(crate) entry: EntryId,
    pub(crate) params: ParamsId,
}

/// Which answer to a want the peer has accepted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Heard {
    /// None yet.
    #[default]
    Nothing,
    /// There is no such resource.
    Absent,
    /// The resource that the want leads to, by another name than the asked one.
    Given,
    /// It cannot be given; why is in [`Wants::error`] (S61).
    Failed,
}

/// The state of one named subscription. There is one of these for every name
/// of every stream, so it is small.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Want {
    pub(crate) heard: Heard,
    /// The peer asked (again): it is answered even if nothing changed (S28, S30, S53).
    pub(crate) forced: bool,
    /// It is a host, and nothing limits how many there are of its kind (S72).
    pub(crate) strange: bool,
    /// It was in the first request of a client that came back (S82).
    pub(crate) resumed: bool,
}

/// See the module's documentation.
#[derive(Debug)]
pub(crate) struct Wants {
    /// The parameters of plain names.
    own: ParamsId,
    names: HashMap<AskKey, Want>,
    /// Names that are asked for with other parameters than `own` (TP2).
    located: BTreeMap<EntryId, Vec<ParamsId>>,
    /// The resource that a want led to when it was last answered, where that
    /// has another name than the asked one.
    leads: HashMap<AskKey, Name>,
    /// How many wants lead to each of these names.
    led: HashMap<Name, u32>,
    errors: HashMap<AskKey, Arc<ResourceError>>,
    /// Wants that both a plain name and one with these parameters ask for (TP2).
    twice: BTreeSet<AskKey>,
    /// Wants with the parameters of plain names that no plain name asks for: they
    /// stay when those change.
    fixed: BTreeSet<AskKey>,
    strangers: usize,
}

impl Wants {
    pub(crate) fn new(own: ParamsId) -> Self {
        Self {
            own,
            names: HashMap::new(),
            located: BTreeMap::new(),
            leads: HashMap::new(),
            led: HashMap::new(),
            errors: HashMap::new(),
            twice: BTreeSet::new(),
            fixed: BTreeSet::new(),
            strangers: 0,
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.names.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    /// How many are hosts of which there may be any number (S72).
    pub(crate) fn strangers(&self) -> usize {
        self.strangers
    }

    pub(crate) fn get(&self, key: AskKey) -> Option<&Want> {
        self.names.get(&key)
    }

    pub(crate) fn get_mut(&mut self, key: AskKey) -> Option<&mut Want> {
        self.names.get_mut(&key)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (AskKey, &Want)> {
        self.names.iter().map(|(key, want)| (*key, want))
    }

    pub(crate) fn keys(&self) -> impl Iterator<Item = AskKey> + '_ {
        self.names.keys().copied()
    }

    /// Takes out some of the wants of a conversation that ends.
    pub(crate) fn take_some(&mut self, most: usize) -> Vec<AskKey> {
        let some = self.names.extract_if(|_, _| true).take(most);
        some.map(|(key, _)| key).collect()
    }

    pub(crate) fn insert(&mut self, key: AskKey, want: Want) {
        self.strangers += usize::from(want.strange);
        self.names.insert(key, want);
        if key.params != self.own {
            self.located.entry(key.entry).or_default().push(key.params);
        }
    }

    /// Ends a want. Returns it, and the resource to which no want leads now.
    pub(crate) fn remove(&mut self, key: AskKey) -> Option<(Want, Option<Name>)> {
        let want = self.names.remove(&key)?;
        self.strangers -= usize::from(want.strange);
        self.errors.remove(&key);
        self.twice.remove(&key);
        self.fixed.remove(&key);
        if let Some(all) = self.located.get_mut(&key.entry) {
            all.retain(|params| *params != key.params);
            if all.is_empty() {
                self.located.remove(&key.entry);
            }
        }
        let left = self.lead(key, None);
        if self.names.len() < self.names.capacity() / 4 {
            self.names.shrink_to_fit();
        }
        Some((want, left))
    }

    /// The wants of one name, with whatever parameters.
    pub(crate) fn of(&self, entry: EntryId) -> impl Iterator<Item = (AskKey, &Want)> {
        let located = self.located.get(&entry).into_iter().flatten().copied();
        let params = [self.own].into_iter().chain(located);
        let keys = params.map(move |params| AskKey { entry, params });
        keys.filter_map(|key| Some((key, self.names.get(&key)?)))
    }

    /// The resource that a want last led to, if that has another name.
    pub(crate) fn lead_of(&self, key: AskKey) -> Option<&Name> {
        self.leads.get(&key)
    }

    /// Takes note of what a want leads to; `None` for a resource of the asked
    /// name, or for nothing. Returns the resource to which no want leads now.
    pub(crate) fn lead(&mut self, key: AskKey, to: Option<Name>) -> Option<Name> {
        if self.leads.get(&key) == to.as_ref() {
            return None;
        }
        if let Some(new) = &to {
            *self.led.entry(new.clone()).or_default() += 1;
        }
        let old = match to {
            Some(new) => self.leads.insert(key, new),
            None => self.leads.remove(&key),
        }?;
        let count = self.led.get_mut(&old)?;
        *count -= 1;
        (*count == 0).then(|| {
            self.led.remove(&old);
            old
        })
    }

    /// How many wants lead to a resource of this name.
    pub(crate) fn led_to(&self, name: &Name) -> u32 {
        self.led.get(name).copied().unwrap_or_default()
    }

    /// The wants that lead to a resource of this name. Looks at all that lead
    /// anywhere.
    pub(crate) fn leading_to(&self, name: &Name) -> Vec<AskKey> {
        if self.led_to(name) == 0 {
            return Vec::new();
        }
        let leading = self.leads.iter().filter(|(_, to)| *to == name);
        leading.map(|(key, _)| *key).collect()
    }

    pub(crate) fn error(&self, key: AskKey) -> Option<&Arc<ResourceError>> {
        self.errors.get(&key)
    }

    /// The peer has accepted an answer.
    pub(crate) fn hear(&mut self, key: AskKey, heard: Heard, error: Option<Arc<ResourceError>>) {
        let Some(want) = self.names.get_mut(&key) else {
            return;
        };
        want.heard = heard;
        match error {
            Some(error) => _ = self.errors.insert(key, error),
            None => _ = self.errors.remove(&key),
        }
    }

    /// A name with parameters asks for what a plain name would: it stays when
    /// plain names are asked for with others.
    pub(crate) fn fix(&mut self, key: AskKey) {
        if key.params == self.own && self.names.contains_key(&key) {
            self.fixed.insert(key);
        }
    }

    pub(crate) fn is_fixed(&self, key: AskKey) -> bool {
        self.fixed.contains(&key)
    }

    /// Whether some wants are asked for by names with parameters that plain names
    /// have, too.
    pub(crate) fn has_fixed(&self) -> bool {
        !self.fixed.is_empty() || !self.twice.is_empty()
    }

    /// Whether a plain name asks for this, by itself or as well.
    pub(crate) fn is_plain(&self, key: AskKey) -> bool {
        key.params == self.own && !self.fixed.contains(&key)
    }

    /// A list says by which names this is asked for from now on.
    pub(crate) fn relist(&mut self, key: AskKey, plain: bool, located: bool) {
        self.twice.remove(&key);
        self.fixed.remove(&key);
        match (plain, located) {
            (true, true) => self.join(key),
            (false, true) => self.fix(key),
            (_, false) => {}
        }
    }

    /// A plain name asks for what a name with these parameters asks for, too.
    pub(crate) fn join(&mut self, key: AskKey) {
        self.fixed.remove(&key);
        self.twice.insert(key);
    }

    /// The plain name asks for something else; whether the other stays.
    pub(crate) fn part(&mut self, key: AskKey) -> bool {
        self.twice.remove(&key)
    }

    /// From now on plain names are asked for with other parameters. Returns the
    /// plain wants, which are still asked for with the old ones.
    pub(crate) fn set_own(&mut self, params: ParamsId) -> Vec<AskKey> {
        let old = std::mem::replace(&mut self.own, params);
        let fixed = std::mem::take(&mut self.fixed);
        self.located.retain(|entry, all| {
            if all.contains(&params) {
                let entry = *entry;
                self.fixed.insert(AskKey { entry, params });
            }
            all.retain(|other| *other != params);
            !all.is_empty()
        });
        let plain = self.names.keys().filter(|key| key.params == old);
        let mut plain: Vec<AskKey> = plain.copied().collect();
        for key in &plain {
            self.located.entry(key.entry).or_default().push(old);
        }
        plain.retain(|key| !fixed.contains(key));
        plain
    }

    /// Proves that counts and indices agree with the wants.
    pub(crate) fn check(&self) -> Result<(), String> {
        let strange = self.names.values().filter(|want| want.strange).count();
        if strange != self.strangers {
            return Err(format!(
                "{strange} strange hosts, counted {}",
                self.strangers
            ));
        }
        for key in self.leads.keys().chain(self.errors.keys()) {
            if !self.names.contains_key(key) {
                return Err(format!("{key:?} is not asked for and has an answer"));
            }
        }
        let fixed = |key: &AskKey| key.params == self.own && self.names.contains_key(key);
        if let Some(key) = self.fixed.iter().find(|key| !fixed(key)) {
            return Err(format!("{key:?} is fixed, and not where plain names are"));
        }
        let mut led: HashMap<&Name, u32> = HashMap::new();
        for name in self.leads.values() {
            *led.entry(name).or_default() += 1;
        }
        if led.len() != self.led.len() || led.iter().any(|(name, n)| self.led_to(name) != *n) {
            return Err(format!("wants lead to {led:?}, counted {:?}", self.led));
        }
        for key in self.names.keys().filter(|key| key.params != self.own) {
            let located = self.located.get(&key.entry);
            if !located.is_some_and(|all| all.contains(&key.params)) {
                return Err(format!(
                    "{key:?} has parameters of its own and is not found by its name"
                ));
            }
        }
        let located: usize = self.located.values().map(Vec::len).sum();
        let other = self
            .names
            .keys()
            .filter(|key| key.params != self.own)
            .count();
        match located == other {
            true => Ok(()),
            false => Err(format!(
                "{other} wants with parameters of their own, {located} found by name"
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// There is one for every named subscription: what it grows by, a large
    /// server pays a hundred million times.
    #[test]
    fn a_want_is_small() {
        assert!(size_of::<(AskKey, Want)>() <= 12);
    }

    #[test]
    fn what_does_not_add_up_is_found() {
        let mut db = crate::database::Database::new();
        let type_id = db.type_id(&"t".into());
        let stream = db.open_stream();
        let params = ParamsId::EMPTY;
        let subscriber = db.add_subscriber(stream, type_id, params);
        let key = |db: &mut crate::database::Database, name: &str| AskKey {
            entry: db.subscribe(subscriber, &name.into(), params),
            params,
        };
        let (asked, other) = (key(&mut db, "a"), key(&mut db, "b"));
        let faults: [fn(&mut Wants, AskKey, AskKey); 5] = [
            |wants, _, _| wants.strangers += 1,
            |wants, _, other| _ = wants.leads.insert(other, "c".into()),
            |wants, asked, _| _ = wants.leads.insert(asked, "c".into()),
            |wants, _, other| _ = wants.fixed.insert(other),
            |wants, asked, _| _ = wants.located.insert(asked.entry, vec![asked.params]),
        ];
        for (nth, fault) in faults.into_iter().enumerate() {
            let mut wants = Wants::new(params);
            wants.insert(asked, Want::default());
            assert_eq!(wants.check(), Ok(()));
            fault(&mut wants, asked, other);
            assert!(wants.check().is_err(), "{nth}");
        }
    }
}
