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
use prost::Message as _;
use trunkline::BoxFuture;
use trunkline::wire::write_constraints;
use trunkline_core::params::Constraints;
use trunkline_proto::descriptor;
use trunkline_proto::discovery::{Any, Resource, ResourceName};
use trunkline_proto::prost_reflect::DynamicMessage;
use trunkline_proto::text::{to_json, to_yaml};

pub(crate) use http::Http;

use crate::contents::{Place, Recipe};
use crate::error::{Error, Result};

/// One resource to be put.
#[derive(Clone, Debug)]
pub(crate) struct Put {
    pub(crate) place: Place,
    pub(crate) name: String,
    /// Which clients it is for; `None` is for all.
    pub(crate) constraints: Option<Constraints>,
    pub(crate) body: Bytes,
}

impl Put {
    /// Returns a revision of a resource, to be put.
    pub(crate) fn new(recipe: &Recipe, place: Place, revision: u32) -> Self {
        Self {
            place,
            name: recipe.name(place.index),
            constraints: recipe.variants.constraints(place.variant).cloned(),
            body: recipe.body(place, revision),
        }
    }

    /// Returns the name with the constraints of the variant; `None` if it is
    /// for all clients.
    fn variant_name(&self) -> Option<ResourceName> {
        let constraints = self.constraints.as_ref()?;
        Some(ResourceName {
            name: self.name.clone(),
            dynamic_parameter_constraints: Some(write_constraints(constraints.expr())),
        })
    }

    /// Returns the resource as a message: in its wrapper, if it is not for all
    /// clients.
    fn to_any(&self) -> Any {
        let bare = Any {
            type_url: self.place.kind.url().to_owned(),
            value: self.body.clone(),
        };
        let Some(variant) = self.variant_name() else {
            return bare;
        };
        let wrapper = Resource {
            name: self.name.clone(),
            resource: Some(bare),
            resource_name: Some(variant),
            ..Resource::default()
        };
        Any {
            type_url: Resource::TYPE_URL.to_owned(),
            value: wrapper.encode_to_vec().into(),
        }
    }
}

/// Gives a server its contents.
pub(crate) trait Driver: Send {
    /// Puts resources, all at once where the server can do that.
    fn put<'a>(&'a mut self, resources: &'a [Put]) -> BoxFuture<'a, Result<()>>;

    /// Removes resources, all at once where the server can do that.
    fn remove<'a>(&'a mut self, resources: &'a [Put]) -> BoxFuture<'a, Result<()>>;

    /// Returns whether the driver works while no server runs.
    fn needs_no_server(&self) -> bool {
        false
    }

    /// Returns how many resources are best put at once when there are very
    /// many.
    fn batch(&self) -> usize {
        1000
    }
}

/// Returns the driver that a flag names; `None` if nothing is to be put.
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
        "files" => Box::new(files::Files::create_in(to)?),
        "command" => Box::new(command::Command::new(to)),
        _ => return Err(usage()),
    }))
}

/// Writes resources as JSON for people and servers.
fn json(resources: &[Put]) -> Result<String> {
    let messages = messages(resources)?;
    let messages = messages.iter();
    Ok(to_json(messages.map(|(url, m)| (url.as_str(), m))))
}

/// Writes resources as YAML for people and servers.
fn yaml(resources: &[Put]) -> Result<String> {
    let messages = messages(resources)?;
    let messages = messages.iter();
    Ok(to_yaml(messages.map(|(url, m)| (url.as_str(), m))))
}

/// Decodes resources, each with its type URL.
fn messages(resources: &[Put]) -> Result<Vec<(String, DynamicMessage)>> {
    let bad =
        |what: String| Error::Driver(format!("the tool made a resource it cannot read: {what}"));
    let one = |put: &Put| {
        let any = put.to_any();
        let of = descriptor::message(&any.type_url).ok_or_else(|| bad(any.type_url.clone()))?;
        let message = DynamicMessage::decode(of, any.value).map_err(|e| bad(e.to_string()))?;
        Ok((any.type_url, message))
    };
    resources.iter().map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contents::{Kind, Variants};
    use trunkline::wire::accept_text;

    /// One of every type, of the only variant or of the second of two.
    fn puts(variants: usize) -> Vec<Put> {
        let recipe = Recipe {
            kinds: Kind::ALL.to_vec(),
            prefix: "route/bench".into(),
            size: 300,
            variants: Variants::new(variants, 4).unwrap(),
        };
        let place = |kind| Place {
            kind,
            index: 3,
            variant: variants - 1,
        };
        let put = |kind| Put::new(&recipe, place(kind), 9);
        Kind::ALL.into_iter().map(put).collect()
    }

    #[test]
    fn a_variant_is_written_with_those_it_is_for() {
        let text = yaml(&puts(2)).unwrap();
        let read = trunkline_proto::text::read("a.yaml", &text, &Default::default());
        assert_eq!(read.errors, [], "{text}");
        assert_eq!(read.resources.len(), Kind::ALL.len());
        for resource in &read.resources {
            let accepted = accept_text(resource).unwrap();
            let said = accepted.written.unwrap().to_string();
            assert_eq!(said, "category=c1 OR category=c3");
        }
    }

    #[test]
    fn what_is_written_as_text_is_what_was_made() {
        let puts = puts(1);
        for (file, text) in [("a.json", json(&puts)), ("a.yaml", yaml(&puts))] {
            let read = trunkline_proto::text::read(file, &text.unwrap(), &Default::default());
            assert_eq!(read.errors, []);
            for (put, read) in puts.iter().zip(&read.resources) {
                assert!(crate::contents::same(put.place.kind, &put.body, &read.body));
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
