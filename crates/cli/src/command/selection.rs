//! The resources that the words of a command name.

use trunkline::TypeUrl;

use crate::failure::{Failure, Result};
use crate::kinds;

/// Resources of one type.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Selection {
    pub(super) type_url: TypeUrl,
    /// Their names; without any, all of the type.
    pub(super) names: Vec<String>,
}

/// Parses the arguments of a command: a type and then names, or words such as
/// `cds/backend`. Names of one type become one selection. Returns none without
/// arguments.
///
/// # Errors
/// A type is unknown, or a word is not in the form of the first one.
pub(super) fn parse_words(words: &[String]) -> Result<Vec<Selection>> {
    let Some((first_word, names)) = words.split_first() else {
        return Ok(Vec::new());
    };
    if let (type_url, None) = kinds::parse_with_name(first_word).map_err(Failure::usage)? {
        let names = names.to_vec();
        return Ok(vec![Selection { type_url, names }]);
    }

    let mut selections: Vec<Selection> = Vec::new();
    for word in words {
        let (type_url, name) = match kinds::parse_with_name(word) {
            Ok((type_url, Some(name))) if !name.is_empty() => (type_url, name.to_owned()),
            Err(error) if word.contains('/') => return Err(Failure::usage(error)),
            _ => {
                return Err(Failure::usage(format!(
                    "{word:?}: expected TYPE/NAME such as cds/backend; or give a type, and then \
                     names only"
                )));
            }
        };
        match selections
            .iter_mut()
            .find(|selection| selection.type_url == type_url)
        {
            Some(selection) => selection.names.push(name),
            None => selections.push(Selection {
                type_url,
                names: vec![name],
            }),
        }
    }
    Ok(selections)
}

#[cfg(test)]
mod tests {
    use super::*;
    use trunkline::kind;

    fn parse(words: &str) -> Result<Vec<Selection>> {
        let words: Vec<String> = words.split_whitespace().map(str::to_owned).collect();
        parse_words(&words)
    }

    #[test]
    fn a_type_is_given_once_or_with_each_name() {
        let selected = |type_url: &str, names: &[&str]| Selection {
            type_url: TypeUrl::new(type_url),
            names: names.iter().map(|&name| name.to_owned()).collect(),
        };
        for (words, expected) in [
            ("", vec![]),
            ("clusters", vec![selected(kind::CDS, &[])]),
            ("cds a eds/b", vec![selected(kind::CDS, &["a", "eds/b"])]),
            (
                "cds/a eds/b clusters/c",
                vec![
                    selected(kind::CDS, &["a", "c"]),
                    selected(kind::EDS, &["b"]),
                ],
            ),
        ] {
            assert_eq!(parse(words).unwrap(), expected, "{words}");
        }
        for words in ["cds/a b", "cds/", "cds/a eds", "cdx/a", "cdx a"] {
            assert!(parse(words).is_err(), "{words}");
        }
    }
}
