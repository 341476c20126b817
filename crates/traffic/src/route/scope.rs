//! Scoped routes: the route table of a request by a key from its headers (52;
//! facts 1.7).

use std::collections::HashMap;

use trunkline_proto::acceptance::{Place, Problem};
use trunkline_proto::envoy::envoy::config::route::v3::scoped_route_configuration::key::fragment;
use trunkline_proto::envoy::envoy::extensions::filters::network::http_connection_manager::v3::{
    ScopedRoutes as Message,
    scoped_routes::{
        ConfigSpecifier,
        scope_key_builder::{
            FragmentBuilder,
            fragment_builder::{self, header_value_extractor::ExtractType},
        },
    },
};

use super::criteria::compile_each;
use super::table::RouteTable;
use crate::findings::Findings;
use crate::headers::Headers;

/// Route tables by scope.
#[derive(Debug)]
pub struct ScopedRoutes {
    builders: Box<[Builder]>,
    tables: HashMap<Vec<String>, RouteTable>,
}

/// Takes one fragment of a key from a header.
#[derive(Debug)]
struct Builder {
    header: Box<str>,
    /// Empty if the header is one element.
    separator: Box<str>,
    element: Element,
}

#[derive(Debug)]
enum Element {
    Index(usize),
    /// The value behind a key and a separator.
    Keyed {
        key: Box<str>,
        separator: Box<str>,
    },
}

impl ScopedRoutes {
    /// Compiles the scopes that the message lists with their route
    /// configurations.
    ///
    /// # Errors
    /// A scope or a fragment cannot be compiled, or the scopes come by SRDS.
    pub fn compile(message: &Message) -> Result<Self, Findings> {
        let mut findings = Findings::default();
        let root = Place::ROOT;
        let fragments = message.scope_key_builder.as_ref();
        let fragments = fragments.map_or(&[][..], |builder| &builder.fragments);
        let builder_place = root.field("scope_key_builder");
        let builders = compile_each("fragments", fragments, &builder_place, |message, place| {
            Builder::compile(message, place, &mut findings)
        });

        let mut tables = HashMap::new();
        match &message.config_specifier {
            Some(ConfigSpecifier::ScopedRouteConfigurationsList(list)) => {
                let list_place = root.field("scoped_route_configurations_list");
                for (index, scope) in list.scoped_route_configurations.iter().enumerate() {
                    let place = list_place.item("scoped_route_configurations", index);
                    let configuration = scope.route_configuration.as_ref();
                    let Some(table) = configuration.map(RouteTable::compile) else {
                        findings.add(&place.field("route_configuration"), Problem::Missing);
                        continue;
                    };
                    let fragments = scope.key.iter().flat_map(|key| &key.fragments);
                    let key = fragments.map(|fragment| match &fragment.r#type {
                        Some(fragment::Type::StringKey(text)) => text.clone(),
                        None => String::new(),
                    });
                    match table {
                        Ok(table) => {
                            tables.insert(key.collect(), table);
                        }
                        Err(table_findings) => {
                            findings.extend(&place.field("route_configuration"), table_findings)
                        }
                    }
                }
            }
            _ => findings.add(&root.field("scoped_rds"), Problem::Unsupported),
        }
        findings.finish(Self { builders, tables })
    }

    /// Finds the route table of a request. Returns `None` if a fragment of the
    /// key is missing, or no scope has the key.
    #[must_use]
    pub fn find(&self, headers: &Headers) -> Option<&RouteTable> {
        let fragments = self
            .builders
            .iter()
            .map(|builder| builder.read_fragment(headers));
        let key: Vec<String> = fragments.collect::<Option<_>>()?;
        self.tables.get(&key)
    }
}

impl Builder {
    /// Compiles the builder of one fragment of the key. Returns `None` if it
    /// has no extractor, or the extractor has no element.
    fn compile(
        message: &FragmentBuilder,
        place: &Place<'_>,
        findings: &mut Findings,
    ) -> Option<Self> {
        let Some(fragment_builder::Type::HeaderValueExtractor(extractor)) = &message.r#type else {
            findings.add(place, Problem::Missing);
            return None;
        };

        let place = place.field("header_value_extractor");
        let element = match &extractor.extract_type {
            Some(ExtractType::Index(index)) => Element::Index(*index as usize),
            Some(ExtractType::Element(element)) => Element::Keyed {
                key: element.key.as_str().into(),
                separator: element.separator.as_str().into(),
            },
            None => {
                findings.add(&place, Problem::Missing);
                return None;
            }
        };

        Some(Self {
            header: extractor.name.to_ascii_lowercase().into(),
            separator: extractor.element_separator.as_str().into(),
            element,
        })
    }

    /// Reads the fragment from a request. As in Envoy, uses only the first line
    /// of the header, and trims nothing. Returns `None` if the element is
    /// missing.
    fn read_fragment(&self, headers: &Headers) -> Option<String> {
        let line = headers.text(&self.header)?;
        let mut elements = match self.separator.is_empty() {
            true => vec![line],
            false => line.split(&*self.separator).collect(),
        }
        .into_iter();

        let value = match &self.element {
            Element::Index(index) => elements.nth(*index)?,
            Element::Keyed { key, separator } => elements.find_map(|element| {
                let (name, value) = element.split_once(&**separator)?;
                (name == &**key).then_some(value)
            })?,
        };
        Some(value.to_owned())
    }
}
