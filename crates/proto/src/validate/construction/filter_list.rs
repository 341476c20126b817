//! A list of filters, of any kind: each has a configuration of that kind, and
//! the last one, and no other, is terminal.

use prost_reflect::DynamicMessage;

use super::read::{Part, has, inner, is_true, report_at, text};
use super::rejected::Rejected;
use crate::canonical::any_parts;
use crate::descriptor::{self, full_name};
use crate::validate::walk::Walk;

const FILTERS: &str = "envoy.extensions.filters.";

/// A kind of filters.
pub(super) struct Kind {
    /// Its name.
    pub(super) name: &'static str,
    /// The packages of other kinds, within that of all filters.
    pub(super) other_packages: &'static [&'static str],
    /// Terminal filters, by the type of their configuration within the package
    /// of all filters.
    pub(super) terminal: &'static [&'static str],
    /// Filters that Envoy knows as not terminal. Those in neither list may be
    /// either.
    pub(super) not_terminal: &'static [&'static str],
    /// A terminal filter to add.
    pub(super) remedy: &'static str,
}

/// Reports the mistakes in a list of filters, which is at `list_place` in the
/// message where the walk is.
pub(super) fn check_filters(
    walk: &mut Walk,
    message: &DynamicMessage,
    list_place: &[Part],
    kind: &Kind,
    filters: &[&DynamicMessage],
) {
    let count = filters.len();
    // A terminal filter that comes too early was reported: the list has one.
    let mut lacks_terminal = true;

    for (index, filter) in filters.iter().enumerate() {
        let is_last = index + 1 == count;
        let Some((field, rejected)) = find_mistake(filter, kind, is_last) else {
            continue;
        };
        match rejected {
            Rejected::NotLast { .. } => lacks_terminal = false,
            Rejected::NotTerminal { .. } if !lacks_terminal => continue,
            _ => {}
        }

        let mut filter_place = list_place.to_vec();
        filter_place.push(Part::Index(index));
        filter_place.extend(field.map(Part::Field));
        report_at(walk, message, &filter_place, rejected);
    }
}

/// A mistake, and the field of the filter that has it; without a field, the
/// filter itself.
type Mistake = (Option<&'static str>, Rejected);

/// Returns the mistake of a filter. Returns `None` if it has none, or its
/// configuration comes from a server.
fn find_mistake(filter: &DynamicMessage, kind: &Kind, is_last: bool) -> Option<Mistake> {
    if has(filter, "config_discovery") {
        return None;
    }
    // Envoy skips an optional filter that it does not know, or that it was built
    // without.
    let is_optional = is_true(filter, "is_optional");
    let name = || text(filter, "name").to_owned();

    let Some(message) = config_type(filter) else {
        let rejected = Rejected::NoConfiguration { name: name() };
        return (!is_optional).then_some((None, rejected));
    };

    let own_type = message.strip_prefix(FILTERS)?;

    let is_other = |package: &&str| own_type.starts_with(package);
    if kind.other_packages.iter().any(is_other) {
        let expected_name = kind.name;
        let rejected = Rejected::OtherKind {
            message,
            wanted: expected_name,
        };
        return (!is_optional).then_some((Some("typed_config"), rejected));
    }

    if kind.terminal.contains(&own_type) {
        return match is_last {
            false => Some((None, Rejected::NotLast { name: name() })),
            true if is_true(filter, "disabled") => Some((Some("disabled"), Rejected::Disabled)),
            true => None,
        };
    }
    let lacks_terminal = is_last && !is_optional && kind.not_terminal.contains(&own_type);
    lacks_terminal.then(|| {
        let (name, remedy) = (name(), kind.remedy);
        (None, Rejected::NotTerminal { name, remedy })
    })
}

/// Returns the full name of the type of a filter's configuration, also of one
/// inside a `TypedStruct`. Returns `None` if the filter has none.
fn config_type(filter: &DynamicMessage) -> Option<String> {
    let (type_url, body) = any_parts(inner(filter, "typed_config")?)?;
    let name = full_name(&type_url);
    let is_typed_struct = ["xds.type.v3.TypedStruct", "udpa.type.v1.TypedStruct"].contains(&name);
    if !is_typed_struct {
        return Some(name.to_owned()).filter(|name| !name.is_empty());
    }
    let descriptor = descriptor::message(&type_url);
    let typed_struct =
        descriptor.and_then(|descriptor| DynamicMessage::decode(descriptor, body).ok());
    let inner_type = typed_struct.map(|typed| full_name(text(&typed, "type_url")).to_owned());
    // The walk reports a `TypedStruct` that cannot be decoded.
    Some(inner_type.unwrap_or_default())
}
