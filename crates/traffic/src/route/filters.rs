//! Configuration of filters that a route, a virtual host, a weighted cluster or
//! the route configuration brings. The most specific one counts (28).

use std::collections::HashMap;

use prost::Message;
use trunkline_proto::acceptance::{Place, Problem};
use trunkline_proto::envoy::envoy::config::route::v3::FilterConfig as Wrapper;
use trunkline_proto::envoy::google::protobuf::Any;

use crate::findings::Findings;

const WRAPPER: &str = "envoy.config.route.v3.FilterConfig";

/// What a filter is told for some requests.
#[derive(Debug, Clone, PartialEq)]
pub enum FilterConfig {
    /// Its configuration.
    Config(Any),
    /// It is left out.
    Disabled,
}

/// Configurations by the names of filters.
#[derive(Debug, Clone, Default)]
pub(super) struct FilterConfigs(HashMap<String, FilterConfig>);

impl FilterConfigs {
    /// Compiles the configurations by filter name. One that cannot be decoded
    /// is a finding.
    pub(super) fn compile(
        map: &HashMap<String, Any>,
        place: &Place<'_>,
        findings: &mut Findings,
    ) -> Self {
        let mut configs = HashMap::with_capacity(map.len());
        for (name, any) in map {
            match unwrap_config(any) {
                Ok(Some(config)) => {
                    configs.insert(name.clone(), config);
                }
                Ok(None) => {}
                Err(problem) => {
                    findings.add(&place.entry("typed_per_filter_config", name), problem)
                }
            }
        }
        Self(configs)
    }

    /// Returns what a filter is told, by its name.
    pub(super) fn get(&self, filter: &str) -> Option<&FilterConfig> {
        self.0.get(filter)
    }
}

/// Returns the configuration inside the wrapper that can disable its filter.
/// Returns an unwrapped configuration unchanged, and `None` for an empty
/// wrapper.
fn unwrap_config(any: &Any) -> Result<Option<FilterConfig>, Problem> {
    if !any.type_url.ends_with(WRAPPER) {
        return Ok(Some(FilterConfig::Config(any.clone())));
    }
    let malformed = |source| Problem::Malformed {
        message: WRAPPER.to_owned(),
        source,
    };
    let wrapper = Wrapper::decode(&*any.value).map_err(malformed)?;
    Ok(match wrapper.disabled {
        true => Some(FilterConfig::Disabled),
        false => wrapper.config.map(FilterConfig::Config),
    })
}
