//! The resource that is edited, as the server has it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use bytes::Bytes;
use serde_json::{Value, json};
use trunkline::TypeUrl;

use crate::cli;
use crate::client::{Call, Client};
use crate::command::selection::parse_words;
use crate::command::{encode_url, parse_body, parse_list};
use crate::failure::{Failure, Result};
use crate::kinds;
use crate::output;

/// The word for the variant that is for all clients.
const ALWAYS: &str = "always";

/// The name that is edited, with all of its variants or one of them.
#[derive(Debug)]
pub(super) struct Subject {
    pub(super) type_url: TypeUrl,
    pub(super) name: String,
    pub(super) variant: Option<String>,
}

/// A name as the server has it.
#[derive(Debug)]
pub(super) struct VariantList {
    pub(super) revision: u64,
    /// The versions of its variants, by their constraints.
    pub(super) versions: BTreeMap<Option<String>, String>,
    /// Its variants, as the server shows them.
    shown: Vec<Value>,
}

/// A name that can be edited.
#[derive(Debug)]
pub(super) struct Original {
    pub(super) revision: u64,
    pub(super) origin: String,
    pub(super) versions: BTreeMap<Option<String>, String>,
    /// Its variants as a file.
    pub(super) text: String,
}

impl Subject {
    /// Parses the name on the command line.
    ///
    /// # Errors
    /// The command line has no name, or more than one.
    pub(super) fn parse(args: &cli::Edit) -> Result<Self> {
        let mut selections = parse_words(&args.words)?;
        let selection = match (selections.pop(), selections.is_empty()) {
            (Some(selection), true) => selection,
            _ => return Err(one_name()),
        };
        let [name] = &selection.names[..] else {
            return Err(one_name());
        };
        Ok(Self {
            name: name.clone(),
            type_url: selection.type_url,
            variant: args.variant.clone(),
        })
    }

    /// Writes the type and the name.
    pub(super) fn name_label(&self) -> String {
        format!("{}/{}", kinds::short(&self.type_url), self.name)
    }

    /// Returns whether a variant with these constraints is edited.
    pub(super) fn has_variant(&self, constraints: Option<&str>) -> bool {
        let variant = self.variant.as_deref();
        variant.is_none_or(|variant| variant == constraints.unwrap_or(ALWAYS))
    }
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name_label())?;
        match &self.variant {
            Some(variant) => write!(f, " [{variant}]"),
            None => Ok(()),
        }
    }
}

/// Makes the failure of a command line that does not have one name.
fn one_name() -> Failure {
    Failure::usage("which resource? give one, such as trunkline edit cds/backend")
}

/// Lists the variants of a name that are edited. The list is empty if the name
/// does not exist.
///
/// # Errors
/// The server is not reached.
pub(super) async fn list_variants(client: &Client, subject: &Subject) -> Result<VariantList> {
    let path = format!(
        "/api/v1/resources/{}?name={}",
        encode_url(subject.type_url.as_str()),
        encode_url(&subject.name)
    );
    let body = client.call_if_found(Call::bare(http::Method::GET, &path));
    let Some(body) = body.await? else {
        return Ok(VariantList {
            revision: 0,
            versions: BTreeMap::new(),
            shown: Vec::new(),
        });
    };

    let head: Value = parse_body(&body)?;
    let mut resources = parse_list(&body, "resources")?;
    resources.retain(|resource| subject.has_variant(resource["constraints"].as_str()));
    let versions = resources.iter().map(|resource| {
        let text = |key: &str| resource[key].as_str().map(str::to_owned);
        (text("constraints"), text("version").unwrap_or_default())
    });
    Ok(VariantList {
        revision: head["revision"].as_u64().unwrap_or_default(),
        versions: versions.collect(),
        shown: resources,
    })
}

/// Fetches the variants of a name, as the text to edit.
///
/// # Errors
/// The name does not exist or cannot be edited here: it comes from a file, its
/// origin has a lease, or its variants have several origins.
pub(super) async fn fetch_subject(client: &Client, subject: &Subject) -> Result<Original> {
    let list = list_variants(client, subject).await?;
    if list.shown.is_empty() {
        return Err(missing_failure(client, subject).await);
    }
    let origin = editable_origin(subject, &list.shown)?;
    let leases = client.get("/api/v1/leases").await?;
    if has_lease(&leases, &origin)? {
        return Err(Failure::wrong(format!(
            "{subject} belongs to origin {origin:?}, whose writer has a lease, and would write it \
             again; change it there"
        )));
    }

    let bodies: Vec<&Value> = list
        .shown
        .iter()
        .map(|resource| &resource["resource"])
        .collect();
    Ok(Original {
        revision: list.revision,
        origin,
        text: output::to_yaml(&json!({"resources": bodies}))?,
        versions: list.versions,
    })
}

/// Makes the failure of a name, or a variant, that does not exist.
async fn missing_failure(client: &Client, subject: &Subject) -> Failure {
    let path = format!(
        "/api/v1/resources/{}?name={}&summary=true",
        encode_url(subject.type_url.as_str()),
        encode_url(&subject.name)
    );
    let variants = match client.get(&path).await {
        // The message of the server suggests a similar name.
        Err(failure) => return failure,
        Ok(body) => parse_list(&body, "resources").unwrap_or_default(),
    };
    let variants = variants.iter();
    let variants = variants.map(|resource| resource["constraints"].as_str().unwrap_or(ALWAYS));
    let variants: Vec<&str> = variants.collect();
    Failure::wrong(format!(
        "there is no {subject}; its variants are: {}",
        variants.join("; ")
    ))
}

/// Returns the origin of all variants.
///
/// # Errors
/// A variant comes from a file or from the program, or the variants have
/// several origins.
fn editable_origin(subject: &Subject, resources: &[Value]) -> Result<String> {
    let file_resource = resources
        .iter()
        .find(|resource| resource["origin"] == trunkline_store::ORIGIN);
    if let Some(resource) = file_resource {
        let place = resource["place"]
            .as_str()
            .unwrap_or("the files of --config");
        return Err(Failure::wrong(format!(
            "{subject} comes from a file; edit it there: {place}"
        )));
    }

    let origins = resources
        .iter()
        .filter_map(|resource| resource["origin"].as_str());
    let origins: BTreeSet<&str> = origins.collect();
    let mut origins = origins.into_iter();
    match (origins.next(), origins.next()) {
        (Some(origin), None) => Ok(origin.to_owned()),
        (Some(first), Some(second)) => Err(Failure::wrong(format!(
            "variants of {subject} belong to origins {first:?} and {second:?}; edit one with \
             --variant"
        ))),
        // A resource without an origin is held by the program that embeds the
        // server, which would overwrite an edit.
        (None, _) => Err(Failure::wrong(format!(
            "{subject} was put there by the program that serves it, and can be changed there only"
        ))),
    }
}

/// Returns whether an origin is in a list of leases.
fn has_lease(leases: &Bytes, origin: &str) -> Result<bool> {
    let leases = parse_list(leases, "leases")?;
    Ok(leases.iter().any(|lease| lease["origin"] == origin))
}
