//! How contents get into a server.
//!
//! A driver has made a change when [`Driver::put`] returns; that time counts as
//! part of the time that the change takes to arrive.

mod admin;
mod command;
mod files;
mod http;
mod put;

use bytes::Bytes;
use trunkline::BoxFuture;
use trunkline_proto::descriptor;
use trunkline_proto::prost_reflect::DynamicMessage;
use trunkline_proto::text::{to_json, to_yaml};

use crate::contents::Kind;
use crate::error::{Error, Result};

/// One resource to be put.
#[derive(Clone, Debug)]
pub(crate) struct Put {
    pub(crate) kind: Kind,
    pub(crate) name: String,
    pub(crate) body: Bytes,
}

/// Gives a server its contents.
pub(crate) trait Driver: Send {
    /// Puts resources, all at once where the server can do that.
    fn put<'a>(&'a mut self, resources: &'a [Put]) -> BoxFuture<'a, Result<()>>;

    /// Whether it works while no server runs.
    fn needs_no_server(&self) -> bool {
        false
    }

    /// How many are best put at once when there are very many.
    fn batch(&self) -> usize {
        1000
    }
}

/// The driver that a flag names; none if nothing is to be put.
pub(crate) fn parse(text: &str) -> Result<Option<Box<dyn Driver>>> {
    let usage = || {
        Error::Usage(format!(
            "--driver {text}: expected admin=URL, files=DIR, command=COMMAND, put=URL or none"
        ))
    };
    if text == "none" {
        return Ok(None);
    }
    let (how, to) = text.split_once('=').ok_or_else(usage)?;
    Ok(Some(match how {
        "admin" => Box::new(admin::Admin::new(to)?),
        "put" => Box::new(put::ByHttp::new(to)?),
        "files" => Box::new(files::Files::new(to)?),
        "command" => Box::new(command::Command::new(to)),
        _ => return Err(usage()),
    }))
}

/// Resources as JSON that people and servers read.
fn json(resources: &[Put]) -> Result<String> {
    let messages = messages(resources)?;
    Ok(to_json(
        messages.iter().map(|(url, message)| (*url, message)),
    ))
}

/// Resources as YAML that people and servers read.
fn yaml(resources: &[Put]) -> Result<String> {
    let messages = messages(resources)?;
    Ok(to_yaml(
        messages.iter().map(|(url, message)| (*url, message)),
    ))
}

fn messages(resources: &[Put]) -> Result<Vec<(&'static str, DynamicMessage)>> {
    let bad =
        |what: String| Error::Driver(format!("the tool made a resource it cannot read: {what}"));
    let one = |put: &Put| {
        let url = put.kind.url();
        let of = descriptor::message(url).ok_or_else(|| bad(url.to_owned()))?;
        let message =
            DynamicMessage::decode(of, put.body.clone()).map_err(|e| bad(e.to_string()))?;
        Ok((url, message))
    };
    resources.iter().map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contents::Recipe;

    #[test]
    fn what_is_written_as_text_is_what_was_made() {
        let recipe = Recipe {
            kinds: Kind::ALL.to_vec(),
            prefix: "bench".into(),
            size: 300,
        };
        let puts: Vec<Put> = Kind::ALL
            .into_iter()
            .map(|kind| Put {
                kind,
                name: recipe.name(3),
                body: recipe.body(kind, 3, 9),
            })
            .collect();
        for (file, text) in [("a.json", json(&puts)), ("a.yaml", yaml(&puts))] {
            let read = trunkline_proto::text::read(file, &text.unwrap(), &Default::default());
            assert_eq!(read.errors, []);
            for (put, read) in puts.iter().zip(&read.resources) {
                assert!(crate::contents::same(put.kind, &put.body, &read.body));
                assert_eq!(read.validate(), []);
            }
        }
    }

    #[test]
    fn a_flag_names_a_driver() {
        assert!(parse("none").unwrap().is_none());
        assert!(parse("put=http://127.0.0.1:1").unwrap().is_some());
        assert!(parse("admin=127.0.0.1:1").unwrap().is_some());
        for bad in ["", "admin", "ftp=x", "put=https://x"] {
            assert!(parse(bad).is_err(), "{bad}");
        }
    }
}
