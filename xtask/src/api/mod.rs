//! The public API of the library and of core, one line for each item.
//!
//! The listings are files of the repository, so a change of the API is seen
//! where changes are reviewed. They come from the sources alone: no compiler
//! is asked, and every version of it gives the same lines.
//!
//! ```text
//!   load ─▶ tree ─▶ reach ─▶ listing ─▶ diff
//!            └─ resolve ─▶ names ─┘
//! ```
//!
//! A listing lacks:
//!
//! - items by procedural macros (of `thiserror::Error` the impls are known) and
//!   by `macro_rules!` of other crates; a call of the latter is a warning;
//! - impls inside of functions, and macro calls inside of impl blocks;
//! - variants by `pub use Enum::*`;
//! - auto traits such as `Send`, and the values of constants and discriminants.

mod alias;
mod attrs;
mod derive;
mod diff;
mod expand;
mod impls;
mod items;
mod lines;
mod listing;
mod load;
mod names;
mod reach;
mod resolve;
#[cfg(test)]
mod tests;
mod text;
mod tree;

use std::fs;

use crate::command;
use crate::failure::{Failure, Result};
use crate::workspace::Workspace;
use diff::Diff;
use listing::Listing;
use tree::Tree;

/// Every crate whose types may stand in a signature, with its folder and, if
/// its API is listed, the file.
const CRATES: &[(&str, &str, Option<&str>)] = &[
    (
        "trunkline",
        "crates/trunkline/src",
        Some("docs/api/trunkline.txt"),
    ),
    (
        "trunkline_core",
        "crates/core/src",
        Some("docs/api/trunkline-core.txt"),
    ),
    ("trunkline_proto", "crates/proto/src", None),
];

/// Writes the listings, or says whether they are current.
pub(crate) fn command(workspace: &Workspace, args: lexopt::Parser) -> Result<()> {
    listings(workspace, command::check_flag(args)?)
}

/// Whether the listings are those of the sources.
pub(crate) fn check(workspace: &Workspace) -> Result<()> {
    listings(workspace, true)
}

fn listings(workspace: &Workspace, check: bool) -> Result<()> {
    let read = |path: &str| fs::read_to_string(workspace.root().join(path)).ok();
    let mut tree = Tree::default();
    for (name, folder, _) in CRATES {
        load::load(&mut tree, name, folder, &read)?;
    }
    for call in &tree.unseen {
        println!("warning: the items of {call} are not seen");
    }
    let mut differ = 0;
    let mut unnamed = 0;
    for (name, _, file) in CRATES {
        let Some(file) = file else { continue };
        let listing = listing::list(&tree, name);
        let text = page(name, &listing);
        let old = read(file).unwrap_or_default();
        println!("{file}: {} lines", listing.lines.len());
        if old != text && check {
            differ += 1;
            print!("{}", Diff::new(&old, &text));
        } else if old != text {
            write(workspace, file, &text)?;
        }
        unnamed += tell_unnamed(name, &listing);
    }
    if differ > 0 {
        let what = "the public API is not the one that is listed";
        return Err(Failure::new(what).remedy(
            "if the change is meant, `cargo xtask api` writes the listings; commit them with it",
        ));
    }
    if unnamed > 0 {
        let what = format!("{unnamed} types of public signatures are not exported");
        return Err(Failure::new(what).remedy("re-export each, or the crate that it is of"));
    }
    Ok(())
}

/// Prints the types in signatures that the crate does not export: its users
/// cannot name them without another crate. Returns their number.
fn tell_unnamed(name: &str, listing: &Listing) -> usize {
    for (ty, places) in &listing.unnamed {
        let places = Vec::from_iter(places.iter().map(String::as_str)).join(", ");
        println!("{name} does not export {ty}, which is in {places}");
    }
    listing.unnamed.len()
}

fn page(name: &str, listing: &Listing) -> String {
    let lines = listing.lines.join("\n");
    format!(
        "# The public API of {name}, as `cargo xtask api` writes it.\n\
         # `{{ .. }}` is private fields of a struct, or the default of an item of a trait.\n\
         {lines}\n"
    )
}

fn write(workspace: &Workspace, file: &str, text: &str) -> Result<()> {
    let path = workspace.root().join(file);
    let folder = path.parent().map_or(Ok(()), fs::create_dir_all);
    folder
        .and_then(|()| fs::write(&path, text))
        .map_err(|error| Failure::new(format!("cannot write {file}: {error}")))
}
