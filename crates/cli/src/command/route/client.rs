//! The client whose variants are looked at.

use std::path::Path;

use trunkline::core::params::Params;
use trunkline::core::resource::{Resource, TypeUrl};
use trunkline::node::{Described, NodeParams, ParamRules, Wanted};
use trunkline_proto::text::{Format, Options, read_node};

use crate::cli;
use crate::failure::{Failure, Result};

/// The client that resources are for.
pub(super) enum Client {
    /// Nobody in particular: all variants are looked at.
    Any,
    /// One with these parameters for every type.
    With(Params),
    /// One with this node.
    Node(NodeParams),
}

impl Client {
    /// Reads `--node` or `--params`.
    ///
    /// # Errors
    /// The file has no node, or the parameters cannot be parsed.
    pub(super) fn read(args: &cli::Route) -> Result<Self> {
        match (&args.node, &args.params) {
            (Some(file), _) => read_node_params(file).map(Self::Node),
            (None, Some(params)) => {
                let invalid_params = |error| Failure::usage(format!("--params {params}: {error}"));
                params.parse().map(Self::With).map_err(invalid_params)
            }
            (None, None) => Ok(Self::Any),
        }
    }

    /// Returns whether variants are told apart by the client, so that one is
    /// left.
    pub(super) fn is_any(&self) -> bool {
        matches!(self, Self::Any)
    }

    /// Returns whether the client receives a resource of a type: its parameters
    /// meet the constraints. A client without parameters receives every
    /// variant.
    pub(super) fn receives(&self, type_url: &TypeUrl, resource: &Resource) -> bool {
        let params = match self {
            Self::Any => return true,
            Self::With(params) => params,
            Self::Node(node) => node.of(type_url),
        };
        let constraints = resource.constraints.as_ref();
        constraints.is_none_or(|constraints| constraints.matches(params))
    }
}

/// Reads the node of a file, and returns the parameters that a server derives
/// from it.
fn read_node_params(file: &Path) -> Result<NodeParams> {
    let name = file.display().to_string();
    let text = std::fs::read_to_string(file)
        .map_err(|error| Failure::usage(format!("--node {name}: {error}")))?;
    let node = read_node(Format::of(&name), &name, &text, &Options::default());
    let node = node.map_err(|errors| {
        let lines = errors.iter().map(|error| format!("{error}\n"));
        let failure = Failure::wrong(format!("{name} has no node"));
        failure.with_findings(lines.collect::<String>())
    })?;
    let description = Described::new(&node, &Wanted::default());
    Ok(ParamRules::default().params(&description))
}
