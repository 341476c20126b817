//! The library's own server, with nothing around it.

use std::sync::Arc;

use prost::Message as _;
use tokio::net::TcpListener;
use trunkline::node::{ParamRule, ParamRules};
use trunkline::wire::{self, read_constraints};
use trunkline::{Change, Name, Server, TypeUrl};
use trunkline_core::database::Database;
use trunkline_core::params::Constraints;
use trunkline_proto::discovery::{
    Any, DeltaDiscoveryResponse, DiscoveryResponse, Resource, ResourceName,
};

use super::control::{self, Controlled};
use crate::contents::{KEY, Kind};
use crate::measure::Work;

/// Serves the library's own server until the process ends.
pub(super) async fn serve(xds: TcpListener, control: TcpListener) {
    let server = Server::builder().options(|options| options.params = rules());
    let server = server.build();
    tokio::spawn(control::serve(control, server.clone()));
    server.serve(xds).await;
}

/// Returns the rules by which clients may say their category in the metadata of
/// their nodes.
fn rules() -> ParamRules {
    let template = format!("{{metadata.{KEY}}}").parse();
    let set = template.map(|template| (KEY.to_owned(), template));
    let rule = ParamRule {
        set: set.into_iter().collect(),
        ..ParamRule::default()
    };
    // One rule of one key is below every limit.
    ParamRules::new(vec![rule]).unwrap_or_default()
}

impl Controlled for Server {
    fn put(&self, put: DiscoveryResponse) -> Result<(), String> {
        let type_url = put.type_url.as_str().into();
        let upsert = |any| {
            let resource = resource(&type_url, any)?;
            Ok(Change::Upsert(type_url.clone(), Arc::new(resource)))
        };
        let changes = put.resources.into_iter().map(upsert);
        let changes = changes.collect::<Result<Vec<_>, String>>()?;
        self.apply(changes).map_err(|error| error.to_string())?;
        Ok(())
    }

    fn remove(&self, gone: DeltaDiscoveryResponse) -> Result<(), String> {
        let type_url = TypeUrl::new(&gone.type_url);
        let plain = gone.removed_resources.iter();
        let plain = plain.map(|name| Ok(Change::Remove(type_url.clone(), Name::new(name))));
        let variants = gone.removed_resource_names.iter().map(|variant| {
            let (name, constraints) = (Name::new(&variant.name), constraints(Some(variant))?);
            Ok(Change::RemoveVariant(type_url.clone(), name, constraints))
        });
        let changes = plain.chain(variants).collect::<Result<Vec<_>, String>>()?;
        self.apply(changes).map_err(|error| error.to_string())?;
        Ok(())
    }

    fn work(&self) -> Option<Work> {
        let wait = self.take_longest_wait().as_micros();
        Some(Work {
            longest_wait: u64::try_from(wait).unwrap_or(u64::MAX),
            ..self.read(work)
        })
    }
}

/// Makes a resource of a message: the body itself, or a variant in its wrapper.
fn resource(type_url: &TypeUrl, any: Any) -> Result<trunkline::Resource, String> {
    let text = |error: &dyn std::fmt::Display| error.to_string();
    let accept = |body| wire::accept(type_url, body).map_err(|error| text(&error));
    if any.type_url != Resource::TYPE_URL {
        return accept(any.value);
    }
    let wrapper = Resource::decode(any.value).map_err(|error| text(&error))?;
    let mut resource = accept(wrapper.resource.unwrap_or_default().value)?;
    resource.constraints = constraints(wrapper.resource_name.as_ref())?;
    Ok(resource)
}

/// Reads the constraints in the name of a variant; `None` if there are none.
fn constraints(name: Option<&ResourceName>) -> Result<Option<Constraints>, String> {
    let said = name.and_then(|name| name.dynamic_parameter_constraints.as_ref());
    let Some(said) = said else { return Ok(None) };
    let read = read_constraints(said).map_err(|error| error.to_string())?;
    let read = Constraints::new(&read).map_err(|error| error.to_string())?;
    Ok(Some(read))
}

/// Returns what the engine did so far.
fn work(db: &Database) -> Work {
    let done = db.work();
    let kinds = Kind::ALL.into_iter();
    let types = kinds.filter_map(|kind| db.find_type(&kind.url().into()));
    Work {
        names: done.entries,
        views_told: done.views,
        subscribers_told: done.subscribers,
        evaluations: done.evaluations,
        largest_slice: done.largest_slice,
        longest_wait: 0,
        views: types.map(|id| db.memory_counts(id).views as u64).sum(),
    }
}
