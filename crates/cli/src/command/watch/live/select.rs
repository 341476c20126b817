//! What the words of the command line subscribe to.

use trunkline::TypeUrl;
use trunkline::client::{Query, Raw};
use trunkline::kind::Kind;
use trunkline_core::name::Selector as Selects;

use crate::cli;
use crate::command::selection::parse_words;
use crate::failure::{Failure, Result};
use crate::kinds;

/// The longest name.
const NAME_BYTES: usize = 4096;
const ALL: &str = "*";

/// What is to be followed of one type.
pub(super) struct TypeSelection {
    pub(super) type_url: TypeUrl,
    pub(super) selectors: Vec<Selector>,
}

/// One name, collection or wildcard.
pub(super) struct Selector {
    pub(super) text: String,
    /// It stands for many names.
    pub(super) is_scope: bool,
}

impl TypeSelection {
    /// Makes a query for each selector.
    ///
    /// # Errors
    /// A selector is no name and no glob.
    pub(super) fn queries(&self) -> Result<Vec<Query<Raw>>> {
        let texts = self.selectors.iter().map(|one| one.text.as_str());
        texts.map(|text| self.query(text)).collect()
    }

    /// Makes the query of all resources of the type, which one watch sees whatever
    /// is subscribed to.
    pub(super) fn all(&self) -> Result<Query<Raw>> {
        self.query(ALL)
    }

    /// Makes the query of a selector.
    ///
    /// # Errors
    /// The text is no name and no glob.
    fn query(&self, text: &str) -> Result<Query<Raw>> {
        let wrong = |error| Failure::usage(format!("{text:?}: {error}"));
        Query::raw(self.type_url.as_str(), text).map_err(wrong)
    }

    /// Returns whether all of a type is wanted that many control planes send by
    /// name only.
    pub(super) fn is_doubtful(&self) -> bool {
        let is_all = self.selectors.iter().any(|one| one.text == ALL);
        is_all && !Kind::of(&self.type_url).legacy_wildcard
    }
}

/// Parses the arguments of the command.
///
/// # Errors
/// There are none, a type is unknown, or a type has no wildcard.
pub(super) fn parse_selections(args: &cli::Watch) -> Result<Vec<TypeSelection>> {
    let selections = parse_words(&args.words)?;
    if selections.is_empty() {
        return Err(Failure::usage(
            "which resources? Give a type, such as `trunkline watch cds --server ADDR`, and names \
             if not all of it",
        ));
    }

    let mut type_selections = Vec::new();
    for selection in selections {
        let names = match selection.names.is_empty() {
            true => vec![ALL.to_owned()],
            false => selection.names,
        };
        let selectors: Result<Vec<_>> = names.into_iter().map(parse_selector).collect();
        let type_selection = TypeSelection {
            type_url: selection.type_url,
            selectors: selectors?,
        };
        refuse_wildcard(&type_selection)?;
        type_selections.push(type_selection);
    }
    Ok(type_selections)
}

/// Parses a selector: a name, a collection or the wildcard.
fn parse_selector(text: String) -> Result<Selector> {
    let selects = Selects::parse(&text, NAME_BYTES);
    let selects = selects.map_err(|error| Failure::usage(format!("{text:?}: {error}")))?;
    Ok(Selector {
        is_scope: !matches!(selects, Selects::Name(_)),
        text,
    })
}

/// Refuses the wildcard of a type whose resources are sent by name only (S66).
/// Does nothing for a selection without a wildcard.
fn refuse_wildcard(selection: &TypeSelection) -> Result<()> {
    let has_wildcard = selection
        .selectors
        .iter()
        .any(|selector| selector.text == ALL);
    if !has_wildcard || !Kind::of(&selection.type_url).on_demand {
        return Ok(());
    }
    let short = kinds::short(&selection.type_url);
    Err(Failure::usage(format!(
        "{short} are sent by name only; give names, such as `trunkline watch {short} \
         routes/www.example.com --server ADDR`: the route configuration, a slash, the host"
    )))
}
