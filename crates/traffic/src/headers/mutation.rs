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
    /// Names of headers to remove, in lower case.
    removals: Box<[Box<str>]>,
    additions: Box<[Addition]>,
}

/// A header to add, or to set.
#[derive(Debug, Clone)]
struct Addition {
    name: Box<str>,
    value: Format,
    action: Action,
    keeps_empty: bool,
}

/// What is done if the header exists already, or does not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Action {
    Append,
    AddIfAbsent,
    OverwriteOrAdd,
    OverwriteIfExists,
}

impl Mutations {
    /// Compiles the fields `{kind}_headers_to_add` and
    /// `{kind}_headers_to_remove`, whose names are given.
    pub(crate) fn compile(
        options: &[HeaderValueOption],
        removed_names: &[String],
        [add_field, remove_field]: [&str; 2],
        place: &Place<'_>,
        findings: &mut Findings,
    ) -> Self {
        let additions = crate::route::compile_each(add_field, options, place, |option, place| {
            Addition::compile(option, place, findings)
        });

        for (index, name) in removed_names.iter().enumerate() {
            if is_fixed(name) {
                let problem = Problem::Other(format!("{name:?} may not be removed"));
                findings.add(&place.item(remove_field, index), problem);
            }
        }

        let removals = removed_names.iter();
        Self {
            removals: removals
                .map(|name| name.to_ascii_lowercase().into())
                .collect(),
            additions,
        }
    }

    /// Applies the mutations. Removes headers first, then overwrites, then
    /// appends. Formats see the headers after the removals.
    fn apply(&self, headers: &mut Headers, side: Side, context: &FormatContext<'_>) {
        self.removals.iter().for_each(|name| headers.remove(name));
        let current_context = side.context_with(headers, context);
        let values = self
            .additions
            .iter()
            .map(|addition| addition.value.write(&current_context, ""));
        let values: Vec<Vec<u8>> = values.collect();

        let mut overwriting_lines = Vec::new();
        let mut appended_lines = Vec::new();
        for (addition, value) in self.additions.iter().zip(values) {
            if value.is_empty() && !addition.keeps_empty {
                continue;
            }
            let line = (addition.name.to_string(), value);
            let exists = headers.has(&addition.name);
            match addition.action {
                Action::Append => appended_lines.push(line),
                Action::AddIfAbsent if !exists => appended_lines.push(line),
                Action::OverwriteOrAdd => overwriting_lines.push(line),
                Action::OverwriteIfExists if exists => overwriting_lines.push(line),
                Action::AddIfAbsent | Action::OverwriteIfExists => {}
            }
        }

        for (name, value) in overwriting_lines {
            headers.remove(&name);
            headers.append(name, value);
        }
        for (name, value) in appended_lines {
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
    /// Returns the context for formats, with the present headers of this side.
    fn context_with<'h>(
        self,
        headers: &'h Headers,
        context: &FormatContext<'h>,
    ) -> FormatContext<'h> {
        let mut current = *context;
        match self {
            Self::Request => {
                current.request = current
                    .request
                    .map(|request| Request { headers, ..request });
            }
            Self::Response => current.response = Some(headers),
        }
        current
    }
}

/// Applies several mutations of a request or a response, in order. Each sees
/// the headers that those before it made.
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
    /// Compiles an added header. Returns `None` if it has no header, may not be
    /// added, or has an invalid format.
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
                let header_place = place.field("header");
                findings.add(&header_place.field("value"), Problem::Other(problem));
                None
            }
        }
    }
}

/// Returns whether a header has a place of its own, and may not be changed so.
fn is_fixed(name: &str) -> bool {
    name.starts_with(':') || name.eq_ignore_ascii_case("host")
}
