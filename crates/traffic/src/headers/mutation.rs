//! Headers that a configuration adds and removes, compiled once (facts 2.3).

use trunkline_proto::acceptance::{Place, Problem};
use trunkline_proto::envoy::envoy::config::core::v3::{
    HeaderValueOption, header_value_option::HeaderAppendAction,
};

use super::Headers;
use super::format::{Format, FormatContext};
use crate::findings::Findings;
use crate::request::Request;

/// The mutations of one place: a route, a virtual host.
#[derive(Debug, Clone, Default)]
pub(crate) struct Mutations {
    removed: Box<[Box<str>]>,
    added: Box<[Addition]>,
}

#[derive(Debug, Clone)]
struct Addition {
    name: Box<str>,
    value: Format,
    action: Action,
    keeps_empty: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Action {
    Append,
    AddIfAbsent,
    OverwriteOrAdd,
    OverwriteIfExists,
}

impl Mutations {
    /// Compiles the fields `{kind}_headers_to_add` and `{kind}_headers_to_remove`.
    pub(crate) fn compile(
        added: &[HeaderValueOption],
        removed: &[String],
        [add_field, remove_field]: [&str; 2],
        place: &Place<'_>,
        findings: &mut Findings,
    ) -> Self {
        let added = crate::route::each(add_field, added, place, |option, place| {
            Addition::compile(option, place, findings)
        });
        for (index, name) in removed.iter().enumerate() {
            if is_fixed(name) {
                let problem = Problem::Other(format!("{name:?} may not be removed"));
                findings.add(&place.item(remove_field, index), problem);
            }
        }
        Self {
            removed: removed
                .iter()
                .map(|name| name.to_ascii_lowercase().into())
                .collect(),
            added,
        }
    }

    /// Applies the mutations. Headers are removed first; overwritten headers come
    /// before added ones. Formats see the headers without those removed.
    fn apply(&self, headers: &mut Headers, side: Side, context: &FormatContext<'_>) {
        self.removed.iter().for_each(|name| headers.remove(name));
        let context = side.seen(headers, context);
        let added = self.added.iter();
        let values = added.map(|addition| addition.value.write(&context, ""));
        let values: Vec<Vec<u8>> = values.collect();
        let mut overwritten = Vec::new();
        let mut appended = Vec::new();
        for (addition, value) in self.added.iter().zip(values) {
            if value.is_empty() && !addition.keeps_empty {
                continue;
            }
            let line = (addition.name.to_string(), value);
            let exists = headers.has(&addition.name);
            match addition.action {
                Action::Append => appended.push(line),
                Action::AddIfAbsent if !exists => appended.push(line),
                Action::OverwriteOrAdd => overwritten.push(line),
                Action::OverwriteIfExists if exists => overwritten.push(line),
                Action::AddIfAbsent | Action::OverwriteIfExists => {}
            }
        }
        for (name, value) in overwritten {
            headers.remove(&name);
            headers.append(name, value);
        }
        for (name, value) in appended {
            headers.append(name, value);
        }
    }
}

/// Whose headers are changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    Request,
    Response,
}

impl Side {
    /// What formats see: the headers as they are by now.
    fn seen<'h>(self, headers: &'h Headers, context: &FormatContext<'h>) -> FormatContext<'h> {
        let mut seen = *context;
        match self {
            Self::Request => {
                seen.request = seen.request.map(|request| Request { headers, ..request });
            }
            Self::Response => seen.response = Some(headers),
        }
        seen
    }
}

/// Applies several mutations of a request or a response, in order. Each sees
/// what those before it made.
pub(crate) fn apply_all<'m>(
    mutations: impl IntoIterator<Item = &'m Mutations>,
    headers: &mut Headers,
    side: Side,
    context: &FormatContext<'_>,
) {
    for mutations in mutations {
        mutations.apply(headers, side, context);
    }
}

impl Addition {
    #[expect(deprecated, reason = "Envoy still reads `append`")]
    fn compile(
        message: &HeaderValueOption,
        place: &Place<'_>,
        findings: &mut Findings,
    ) -> Option<Self> {
        let Some(header) = &message.header else {
            findings.add(&place.field("header"), Problem::Missing);
            return None;
        };
        if is_fixed(&header.key) {
            let problem = Problem::Other(format!("{:?} may not be added", header.key));
            findings.add(&place.field("header"), problem);
            return None;
        }
        let action = match (message.append, message.append_action()) {
            (Some(append), _) if !append.value => Action::OverwriteOrAdd,
            (_, HeaderAppendAction::AppendIfExistsOrAdd) => Action::Append,
            (_, HeaderAppendAction::AddIfAbsent) => Action::AddIfAbsent,
            (_, HeaderAppendAction::OverwriteIfExistsOrAdd) => Action::OverwriteOrAdd,
            (_, HeaderAppendAction::OverwriteIfExists) => Action::OverwriteIfExists,
        };
        match Format::new(&header.value) {
            Ok(value) => Some(Self {
                name: header.key.to_ascii_lowercase().into(),
                value,
                action,
                keeps_empty: message.keep_empty_value,
            }),
            Err(problem) => {
                let header = place.field("header");
                findings.add(&header.field("value"), Problem::Other(problem));
                None
            }
        }
    }
}

/// Returns whether a header has a place of its own, and may not be changed so.
fn is_fixed(name: &str) -> bool {
    name.starts_with(':') || name.eq_ignore_ascii_case("host")
}
