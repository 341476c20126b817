//! The table of attacks.
//!
//! Each is a function in a file of its kind. The number is that of the weakness
//! it was written for; `+` is beside those.

mod bombs;
mod loads;
pub(crate) mod mcp;
mod names;
mod params;
mod questions;
mod readers;
mod silent;
mod storm;
mod texts;
mod types;
mod unfinished;

use std::pin::Pin;

use crate::field::Field;
use crate::server::Setup;

type Running = Pin<Box<dyn Future<Output = ()> + Send>>;

/// One attack.
pub(crate) struct Attack {
    pub(crate) name: &'static str,
    pub(crate) number: &'static str,
    /// What attackers do.
    pub(crate) about: &'static str,
    pub(crate) setup: Setup,
    /// Whether it goes beyond a bound even when it is small, so that the server
    /// must refuse something, and count it or say so.
    pub(crate) is_refused: bool,
    pub(crate) run: fn(Field) -> Running,
}

impl std::fmt::Debug for Attack {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

macro_rules! attacks {
    ($($number:literal $name:literal $run:path, $setup:expr, $refused:literal, $about:literal;)*) => {
        /// Every attack; a new one is a function and a line here.
        pub(crate) const ATTACKS: &[Attack] = &[$(Attack {
            name: $name,
            number: $number,
            about: $about,
            setup: $setup,
            is_refused: $refused,
            run: |field| Box::pin($run(field)),
        },)*];
    };
}

const FEW: Setup = Setup::Flags(&["--max-connections", "200", "--max-streams", "200"]);
const FEW_PARAMS: Setup = Setup::Flags(&["--max-all-params", "500"]);

attacks! {
    "1" "explain-huge" texts::huge, Setup::Plain, true, "questions to explain with 60 MB of YAML";
    "1" "explain-deep" texts::deep, Setup::Plain, true, "questions to explain whose YAML is nested 100 000 deep";
    "1" "explain-aliases" texts::aliases, Setup::Plain, true, "questions to explain whose aliases multiply to billions";
    "2" "loads-empty" loads::empty, Setup::Plain, true, "load reports of 4 and of 16 MiB, made of empty ClusterStats";
    "2" "loads-random" loads::random, Setup::Plain, false, "load reports on clusters with random names";
    "3" "tiny-windows" readers::tiny_windows, Setup::Plain, false, "one connection with windows of one byte that subscribes to everything on many streams";
    "3" "never-read" readers::never_read, Setup::Plain, false, "300 connections that subscribe to everything and read nothing";
    "4" "status-regex" questions::regexes, Setup::Plain, false, "CSDS questions with regexes that are costly to compile";
    "4" "status-unread" questions::status_unread, Setup::Plain, false, "CSDS questions whose answers are not read";
    "4" "dump-unread" questions::dump_unread, Setup::Plain, false, "config_dump and lists of resources that are not read";
    "4" "rest-unread" questions::rest_unread, Setup::Plain, false, "polls by REST whose answers are not read";
    "4" "status-flood" questions::status_flood, Setup::Plain, false, "CSDS questions without end";
    "4" "status-names" questions::status_names, Setup::Plain, false, "CSDS questions about a client with a million names";
    "4" "reflection-flood" questions::reflection_flood, Setup::Plain, false, "reflection questions without end";
    "5" "half-messages" unfinished::messages, Setup::Plain, false, "gRPC messages of 64 MiB that lack their last byte";
    "5" "half-bodies" unfinished::bodies, Setup::Plain, false, "admin bodies of 60 MB that lack their last byte";
    "5" "slow-bodies" unfinished::slow_bodies, Setup::Plain, false, "REST and admin bodies, a byte at a time";
    "6" "names-million" names::million, Setup::Plain, false, "a million names on a stream, which then leaves";
    "6" "names-sotw" names::sotw, Setup::Plain, false, "a million clusters by name in the state of the world, by a client that then leaves";
    "6" "names-long" names::long, Setup::Plain, false, "248 000 names of 4 KiB on a stream";
    "6" "node-changes" names::node_changes, Setup::Plain, false, "many names on a stream whose node changes with each request";
    "6" "globs" names::globs, Setup::Plain, true, "millions of globs";
    "6" "locators" names::locators, Setup::Plain, true, "millions of locators, each with parameters of its own";
    "7" "types" types::unknown, Setup::Plain, true, "200 000 type URLs that nobody knows";
    "8" "silent-connections" silent::connections, Setup::Plain, false, "thousands of connections that say nothing, at both addresses";
    "8" "silent-streams" silent::streams, Setup::Plain, false, "thousands of streams that say nothing";
    "8" "silent-full" silent::full, FEW, true, "more silent connections and streams than the server takes";
    "10" "params-full" params::full, FEW_PARAMS, true, "parameters until the table of all clients is full";
    "+" "tls-half" silent::half_handshakes, Setup::Tls, false, "TLS handshakes that stop, or go a byte at a time";
    "+" "bombs" bombs::compressed, Setup::Plain, true, "messages and bodies that are small until they are decompressed";
    "+" "storm" storm::reconnect, Setup::Plain, false, "clients that reconnect without end, with versions of 10 000 names";
    "11" "mcp-silent" mcp::silent, Setup::Source, true, "more sinks than a source takes, which say nothing";
    "11" "mcp-collections" mcp::collections, Setup::Source, true, "sinks that ask for 20 000 collections each";
    "11" "mcp-claims" mcp::claims, Setup::Source, true, "sinks that say they hold millions of resources";
    // Only requests that are too fast are refused, and a slow machine makes none.
    "11" "mcp-nacks" mcp::nacks, Setup::Source, false, "sinks that reject everything with 60 KB of text, without end";
    "11" "mcp-unread" mcp::unread, Setup::Source, false, "sinks that ask for everything over MCP and xDS, and read nothing";
    "11" "mcp-half" mcp::half, Setup::Source, false, "requests to a source of 8 MiB that lack their last byte";
    "11" "mcp-sources" mcp::sources, Setup::Sink, true, "sources of a control plane that bring 60 MB of nothing, a million removals, garbage and half a message";
    "9" "full-pipe" storm::chatter, Setup::FullPipe, false, "clients that make the log long, while nobody reads it";
}

/// The attacks whose name is, or begins with, one of these; all if there are
/// none.
pub(crate) fn chosen(only: &[String]) -> Vec<&'static Attack> {
    let is_chosen = |attack: &&Attack| {
        let mut names = only.iter();
        only.is_empty() || names.any(|name| attack.name.starts_with(name.as_str()))
    };
    ATTACKS.iter().filter(is_chosen).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_every_weakness_is_attacked() {
        let mut names: Vec<_> = ATTACKS.iter().map(|attack| attack.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), ATTACKS.len());
        for number in 1..=11 {
            let number = number.to_string();
            assert!(ATTACKS.iter().any(|attack| attack.number == number));
        }
    }

    #[test]
    fn a_name_chooses_by_its_beginning() {
        let names = chosen(&["explain".to_owned()]);
        assert_eq!(names.len(), 3);
        assert_eq!(chosen(&[]).len(), ATTACKS.len());
    }
}
