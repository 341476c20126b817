//! A scenario as read: what the lines mean, before anything is run.

use std::time::Duration;

use trunkline_core::params::Params;

use trunkline_core::database::Scope;
use trunkline_core::name::Name;
use trunkline_core::resource::TypeUrl;
use trunkline_core::session::Config;

use super::contents::{Item, Op};
use super::request::Request;

/// One scenario of a file.
#[derive(Debug)]
pub struct Script {
    /// What it shows, in one line.
    pub title: String,
    /// The rules that it proves: `S12`.
    pub rules: Vec<String>,
    /// Where it begins, counted from 1.
    pub line: usize,
    pub(super) steps: Vec<Step>,
}

/// One line.
#[derive(Debug)]
pub(super) struct Step {
    pub(super) line: usize,
    /// Which stream it speaks of; the empty name is the usual one.
    pub(super) stream: String,
    pub(super) action: Action,
}

#[derive(Debug)]
pub(super) enum Action {
    Open(Box<Opening>),
    Close,
    Reconnect,
    /// The client has other parameters.
    Become(Params),
    Restart(Begins),
    Knowledge(Knowledge),
    Wait(Duration),
    Begin,
    Commit(Fate),
    Change(Vec<Op>, Fate),
    Request(Box<Request>),
    Response(Expected),
    Nothing,
    Event(Vec<String>),
    /// A type, and its status by key.
    Status(String, Vec<(String, String)>),
    Error(String),
    /// The client acknowledges by itself.
    Talk(Talk),
    /// A type, and the resources of it that the client holds.
    Holds(TypeUrl, Vec<String>),
}

/// How a client acknowledges by itself.
#[derive(Clone, Debug, Default)]
pub(super) struct Talk {
    /// Resources for which it NACKs a response.
    pub(super) rejecting: Vec<String>,
    /// Names that it may not lose.
    pub(super) keeping: Vec<String>,
    /// It takes the good part of a response that it NACKs.
    pub(super) partly: bool,
}

/// The contents of a process that begins anew.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Begins {
    /// The contents of the one before.
    Same,
    /// Nothing: it never knew them.
    Empty,
    /// The contents of the one before, made by the same transactions: a store
    /// has kept them.
    Kept,
}

/// What must become of a transaction.
#[derive(Clone, Debug)]
pub(super) enum Fate {
    /// The database takes it.
    Taken,
    /// It is refused; if parameters are given, because a client that has them
    /// would match two resources.
    Refused(Option<Params>),
}

/// What the database knows of names that it does not hold.
#[derive(Debug)]
pub(super) enum Knowledge {
    /// Nothing: it is an empty cache.
    Cache,
    /// Everything: its contents are complete.
    Loaded,
    /// A scope is complete, or no longer.
    Scope(TypeUrl, Scope, bool),
    /// A name is forgotten.
    Forget(TypeUrl, Name),
}

/// How a stream is opened.
#[derive(Clone, Debug)]
pub(super) struct Opening {
    pub(super) config: Config,
    pub(super) program: String,
    pub(super) features: Vec<String>,
}

/// An expected response.
#[derive(Debug)]
pub(super) struct Expected {
    pub(super) type_url: TypeUrl,
    pub(super) parts: Vec<Part>,
    pub(super) label: Option<String>,
    /// A labelled response, and whether the versions are to be equal.
    pub(super) version: Option<(String, bool)>,
}

/// One part of a response.
#[derive(Debug)]
pub(super) enum Part {
    Resource(Item),
    Heartbeat(Item),
    Removed(String),
    RemovedVariant(Item),
    Error { name: String, code: String },
}
