//! One pass over encoded bytes that finds most bodies canonical and valid, with
//! their facts.
//!
//! Everything that is not plain, above all every mistake, is left to the
//! descriptors: those have the words and the place for it. So there is one
//! place that judges, and this is a short way past it, some twenty times as
//! fast, for the million bodies in which there is nothing to judge. Its tables
//! are made of the same descriptors and the same rules.
//!
//! ```
//! use trunkline_proto::{descriptor::types, quick};
//!
//! // name: "r/v", domains: ["d"]
//! let facts = quick::look(types::VIRTUAL_HOST, b"\x0a\x03r/v\x12\x01d").unwrap();
//! assert_eq!(facts.domains, ["d"]);
//! // No domain: a mistake, of which others speak.
//! assert_eq!(quick::look(types::VIRTUAL_HOST, b"\x0a\x03r/v"), None);
//! ```

mod plan;
#[cfg(test)]
mod tests;
mod value;
mod walk;

use crate::descriptor::{full_name, types};
use crate::facts::{Facts, name_field};
use crate::vhosts::{self, VHDS};

/// `VirtualHost.domains`.
const DOMAINS: u32 = 2;
/// `RouteConfiguration.ignore_port_in_host_matching`.
const IGNORE_PORT: u32 = 14;

/// Returns the facts of a body that is canonical and valid. Returns `None` if
/// this is not certain, or the type is unknown: then the caller has to use the
/// descriptors.
#[must_use]
pub fn look(type_url: &str, body: &[u8]) -> Option<Facts> {
    let plans = plan::all();
    let message = full_name(type_url);
    let plan = plans.find(message)?;

    let mut walk = walk::Walk::new(plans);
    walk.walk_message(plan, body, 0)?;

    let mut facts = Facts {
        references: walk.into_references(),
        ..Facts::default()
    };
    let name_number = name_field(message).and_then(|field| plan.number(field));
    read_own_facts(message, name_number, body, &mut facts)?;
    Some(facts)
}

/// Adds the facts in the body's own fields: name, domains, VHDS. The body must
/// be canonical. `message` is the full name of its type, and `name_number` the
/// number of its name field. Returns `None` if a field cannot be read.
fn read_own_facts(
    message: &str,
    name_number: Option<u32>,
    body: &[u8],
    facts: &mut Facts,
) -> Option<()> {
    let is_host = message == full_name(types::VIRTUAL_HOST);
    let is_route = message == full_name(types::ROUTE_CONFIGURATION);

    for field in vhosts::fields(body) {
        let field = field.ok()?;
        match field.number {
            number if Some(number) == name_number => {
                facts.name = Some(text(field.value)?).filter(|name| !name.is_empty());
            }
            DOMAINS if is_host => facts.domains.push(text(field.value)?),
            VHDS if is_route => facts.vhds = Some(field.value.to_vec()),
            // The canonical form leaves `false` out, so the field means true.
            IGNORE_PORT if is_route => facts.ignores_port = true,
            _ => {}
        }
    }
    Some(())
}

fn text(bytes: &[u8]) -> Option<String> {
    std::str::from_utf8(bytes).ok().map(str::to_owned)
}
