//! Dynamic parameters and constraints (TP2).
#![allow(missing_docs)]
use std::fmt;
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Params(Box<[(Box<str>, Box<str>)]>);
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Keys(());
impl Keys {
    pub fn union(&self, _o: &Keys) -> Keys {
        Keys(())
    }
    pub fn is_subset(&self, _o: &Keys) -> bool {
        true
    }
}
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ParamsId(u32);
impl ParamsId {
    pub const EMPTY: ParamsId = ParamsId(0);
}
#[derive(Debug, Default)]
pub struct ParamsTable(());
impl ParamsTable {
    pub fn intern(&mut self, _p: Params) -> ParamsId {
        ParamsId(0)
    }
    pub fn get(&self, _p: ParamsId) -> &Params {
        static P: std::sync::LazyLock<Params> = std::sync::LazyLock::new(Params::default);
        &P
    }
    pub fn project(&mut self, p: ParamsId, _k: &Keys) -> ParamsId {
        p
    }
}
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Constraints(Keys);
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConstraintError {
    #[error("x")]
    X,
}
impl Constraints {
    pub fn matches(&self, _p: &Params) -> bool {
        true
    }
    pub fn witness(&self) -> Option<Params> {
        Some(Params::default())
    }
    pub fn keys(&self) -> &Keys {
        &self.0
    }
    pub fn overlap(&self, _o: &Constraints) -> Result<Option<Params>, ConstraintError> {
        Ok(None)
    }
}
impl fmt::Display for Params {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("")
    }
}
impl fmt::Display for Constraints {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("")
    }
}
