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
    /// The client says something else of itself.
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
    /// A type, and what is known of it, by key.
    Status(String, Vec<(String, String)>),
    Error(String),
    /// The client answers by itself.
    Talk(Talk),
    /// A type, and what the client holds of it.
    Holds(TypeUrl, Vec<String>),
}

/// How a client answers by itself.
#[derive(Clone, Debug, Default)]
pub(super) struct Talk {
    /// Resources for which it rejects a response.
    pub(super) rejecting: Vec<String>,
    /// Names that it may not lose.
    pub(super) keeping: Vec<String>,
    /// It takes what is good in a response that it rejects.
    pub(super) partly: bool,
}

/// What a process that begins anew has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Begins {
    /// The contents of the one before.
    Same,
    /// Nothing: it never knew them.
    Empty,
}

/// What must become of a transaction.
#[derive(Clone, Debug)]
pub(super) enum Fate {
    /// The database takes it.
    Taken,
    /// It is refused; if parameters are given, because a client that has them
    /// would match two things.
    Refused(Option<Params>),
}

/// What the database knows of what is not in it.
#[derive(Debug)]
pub(super) enum Knowledge {
    /// Nothing: it is an empty cache.
    Cache,
    /// Everything: its contents are complete.
    Loaded,
    /// Everything under a scope, or no longer.
    Scope(TypeUrl, Scope, bool),
    /// Nothing any more of a name.
    Forget(TypeUrl, Name),
}

/// How a stream is opened.
#[derive(Clone, Debug)]
pub(super) struct Opening {
    pub(super) config: Config,
    pub(super) program: String,
    pub(super) features: Vec<String>,
}

/// What the next response must be.
#[derive(Debug)]
pub(super) struct Expected {
    pub(super) type_url: TypeUrl,
    pub(super) parts: Vec<Part>,
    pub(super) label: Option<String>,
    /// A labelled response, and whether the versions are to be equal.
    pub(super) version: Option<(String, bool)>,
}

/// One thing that a response says.
#[derive(Debug)]
pub(super) enum Part {
    Resource(Item),
    Heartbeat(Item),
    Removed(String),
    RemovedVariant(Item),
    Error { name: String, code: String },
}
