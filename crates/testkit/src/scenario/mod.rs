//! The scenario language: an exchange on a stream, as a protocol expert would
//! write it on paper.
//!
//! ```text
//! title: A changed EDS cluster gets its endpoints again
//! rules: S53 S9
//!
//! put cds c1@v1 -> eds/c1      # the operator: contents, and what they refer to
//! put eds c1@e1
//! stream delta envoy           # a client connects
//! > cds                        # client to server: first request, empty
//! < cds +c1@v1                 # server to client: exactly this
//! > eds sub c1
//! < eds +c1@e1
//! > cds ack
//! > eds ack
//! put cds c1@v2 -> eds/c1
//! < cds +c1@v2
//! < eds +c1@e1                 # although it did not change
//! < nothing
//! ```
//!
//! A file holds one or more scenarios; each begins with `title:` and `rules:`.
//! Arrows always point from client to server (`>`) or back (`<`), whichever of
//! the two is under test. `#` begins a comment. A line may begin with
//! `@label` to speak of another stream than the unnamed one.
//!
//! # Resources
//!
//! `c1@v1` is the resource `c1` with the body `v1`; its version is made from
//! the body and never written. `c1@empty` has its name and nothing else,
//! `c1@unreadable` is a resource that a client must reject, `c1@none` has no
//! body at all, `c1@standin` is an invalid cluster: of type EDS, and rejected
//! by Envoy.
//! More is said in parentheses, with commas:
//! `c1@v1(aka x y, ttl 5s, for env=prod, vhds 1)`. A virtual host with
//! `(domains a.com *.b.com)` has a body with its name and its domains; `base s`
//! puts it in a base set. A route configuration that is `portless` ignores ports.
//! A listener that `(leaves r1)` has that route configuration inside, with VHDS.
//!
//! # The operator
//!
//! | line | does |
//! |---|---|
//! | `put cds c1@v1 -> eds/c1 c2@v1` | sets contents, in one transaction; `->` lists the references of the resource before it |
//! | `remove cds c1 c2` | removes names |
//! | `remove cds c1(for env=prod)` | removes one variant |
//! | `replace cds c1@v1` | the type consists of these only |
//! | `fail cds c1=Unavailable` | the name cannot be given, and why |
//! | `begin` … `commit` | one transaction of all lines between |
//! | `cannot put …`, `cannot commit` | the database must refuse it |
//! | `cannot put … both{env=prod}` | … because a client with these parameters would match two variants |
//! | `cache`, `loaded` | the database is an empty cache, in which other names are unknown; it is complete, and other names do not exist |
//! | `known cds *`, `unknown cds *` | a cache is complete for a type or a glob, or no longer |
//! | `forget cds a` | a cache no longer knows of a name |
//! | `restart` | a new database with the same contents; every stream is lost |
//! | `restart kept` | the same, with the transactions that made them, as a store has kept them |
//! | `restart empty` | a new database that never knew those contents, as another replica: its contents are those of the next lines |
//! | `wait 5s` | time passes, and responses that become due meanwhile are sent |
//!
//! # The client
//!
//! | line | does |
//! |---|---|
//! | `stream delta envoy only cds hold=15s` | opens a stream (see below) |
//! | `close`, `reconnect` | ends it; ends it and opens another like it |
//! | `become env=test` | the client has other parameters |
//! | `> cds` | a request that names nothing |
//! | `> cds sub a b unsub c have a@v1` | delta: subscribe, unsubscribe, initial versions |
//! | `> cds [a b]` | state of the world: all the names. Without a list, the names are those of the request before |
//! | `> cds ack`, `> cds nack "text"` | acknowledges the newest response of the type; `ack=n1` the one labelled `n1` |
//! | `> cds nonce=n1 version=n1` | sets a field literally; `none` leaves it out, quotes take any text |
//! | `> cds node=other` | with a node: `same`, `other`, `none`, or that of another program |
//! | `> ? sub a` | without a type |
//! | `error no-type` | the request before broke the protocol |
//! | `talk` | ACKs every response until there is none |
//! | `talk rejecting a@bad keeping b` | … but NACKs a response as a whole for `a@bad`, which must not come alone twice, and must not lose `b` by a response that it ACKs |
//! | `talk partly rejecting a@bad` | … but takes the rest of such a response, removals too |
//! | `holds cds a@v1 b@v1` | the resources that it accepted and that were not removed since; `nothing` if there are none |
//!
//! A state-of-the-world request repeats version and nonce as real clients do:
//! the last version that it ACKed, the last nonce that it received. After
//! `reconnect` that is how the client resumes a type: `> cds` has the names and
//! the version from before.
//!
//! A name in a request may carry parameters: `a{env=prod}`.
//!
//! `stream` takes `sotw` or `delta`; a program, `envoy`, `grpc` or none; `only
//! TYPE` for a stream of one type; `errors` if the client reads resource
//! errors; `endpoints-once` if S53 is switched off; and `hold=`, `drain=`,
//! `patience=`, `resume=` (durations), `names=`, `subscriptions=`, `hosts=`,
//! `globs=`, `types=`, `response=`, `text=` (limits), `named=TYPE` (an empty
//! request for it means nothing), `feature=TEXT`, `param.KEY=VALUE`, `base=SET`
//! and `base-host=NAME` (base subscriptions).
//!
//! # The server
//!
//! | line | expects |
//! |---|---|
//! | `< cds +a@v1 -b` | the next response: these resources and removals, no more and no less |
//! | `< cds +a@v1(wrapped, ttl 5s)` | … in a `Resource` |
//! | `< cds ~a@v1(ttl 5s)` | … name, version and ttl only |
//! | `< cds -a(for env=prod)` | … a variant is removed; `for all` is the one without constraints |
//! | `< cds !a=NotFound` | … an error for a name |
//! | `< cds empty` | a response without parts |
//! | `< cds +a@v1 as n1` | labels the response |
//! | `< cds +a@v1 version=n1` | its version is that of `n1`; `version!=n1`: it is not |
//! | `< nothing` | there is no response |
//! | `! parked cds a@v2` | an event: `parked` (quarantined), `refused TYPE KIND`, `stale TYPE`, `node`, `acked TYPE [label]`, `nacked TYPE ["text"]` |
//! | `status cds sent=n2 acked=n1 waits=yes error="text" parked=a@v2 subscriptions=3 wildcard=no` | the status of the type stream; each clause may be left out, `none` is nothing |
//! | `! first cds a`, `! last cds a` | a name got its first, or lost its last subscriber |
//!
//! Every response must be expected. So must every event but `acked` and
//! `nacked`. After each line the database and every session prove their
//! invariants, and a response must never come at a moment that was not announced.

mod client;
mod contents;
mod fault;
mod held;
mod parse;
mod request;
mod script;
mod show;
mod source;
mod word;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

pub use fault::{Fault, Report};
pub use parse::parse;
pub use script::Script;

/// Every scenario file under a folder, by path.
///
/// # Errors
/// If the folder cannot be read.
pub fn files(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            found.extend(files(&path)?);
        } else if path.extension().is_some_and(|e| e == "txt") {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

/// Runs every scenario of a file; returns what failed, and how many ran.
#[must_use]
pub fn run_text(file: &str, text: &str) -> (usize, Vec<Report>) {
    let scripts = match parse(text) {
        Ok(scripts) => scripts,
        Err(fault) => return (0, vec![Report::unreadable(file, fault)]),
    };
    let failed = scripts.iter().filter_map(|script| {
        let mut stage = source::Stage::new();
        let fault = stage.play(script).err()?;
        Some(Report::new(file, script, fault, stage.transcript()))
    });
    (scripts.len(), failed.collect())
}
