//! Flags that are one of a few words.

use clap::ValueEnum;
use serde::Serialize;

/// Which variant of the protocol clients speak.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Variant {
    /// Incremental.
    Delta,
    /// State of the world.
    Sotw,
}

/// What clients ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Asking {
    /// Everything; endpoints and routes by the names that clusters and
    /// listeners lead to.
    Wildcard,
    /// Some names each, chosen at random.
    Named,
    /// One name after another, popular ones more often.
    Demand,
}

/// How a client says which kind it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Told {
    /// With each name that it asks for (TP2).
    Locators,
    /// In the metadata of its node, as `category`.
    Metadata,
    /// In the dynamic parameters of its node, for each type.
    Parameters,
}

/// How the report looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Output {
    /// For people.
    Table,
    /// For programs.
    Json,
}

/// A server that is a process of this program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Child {
    /// The library's.
    Library,
    /// The one that only writes.
    Floor,
}
