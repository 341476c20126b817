//! A change of a variant, in the forms of `get --watch`.

use serde_json::{Value, json};

use crate::cli::Output;
use crate::command::get::{file_form, typed_name};
use crate::failure::Result;
use crate::output;

/// A variant: its type, its name and its constraints.
pub(super) type Key = (String, String, Option<String>);

/// What happened to a variant.
pub(super) struct VariantEvent<'a> {
    pub(super) key: &'a Key,
    /// The new version; `None` if it is deleted.
    pub(super) version: Option<&'a str>,
    /// `added`, `changed`, `deleted`, or `present` when the command begins.
    pub(super) event: &'static str,
    pub(super) revision: u64,
}

impl VariantEvent<'_> {
    /// Writes the event of a variant in an output format. The name has its type
    /// before it if several types are watched.
    pub(super) fn write(
        &self,
        output: Output,
        has_types: bool,
        contents: Option<&Value>,
    ) -> Result<String> {
        let (type_url, name, constraints) = self.key;
        let label = typed_name(&json!({"type": type_url, "name": name}));
        let event_text = format!("{} at revision {}", self.event, self.revision);
        let variant = match constraints {
            Some(constraints) => format!(" [{constraints}]"),
            None => String::new(),
        };

        Ok(match output {
            Output::Table | Output::Wide => {
                let shown_name = if has_types { &label } else { name };
                let version = self.version.unwrap_or("-");
                output::printable(&format!("{shown_name}{variant}  {version}  {event_text}")) + "\n"
            }
            Output::Name => format!("{label}\n"),
            Output::Yaml => {
                let file = contents.map(|one| file_form(std::slice::from_ref(one)));
                let file = file.map(|file| output::to_yaml(&file)).transpose()?;
                let title = output::printable(&format!("# {label}{variant} {event_text}"));
                format!("---\n{title}\n{}", file.unwrap_or_default())
            }
            Output::Json => {
                let line = json!({
                    "event": self.event, "revision": self.revision, "type": type_url,
                    "name": name, "constraints": constraints, "version": self.version,
                    "resource": contents.map(|resource| &resource["resource"]),
                });
                format!("{line}\n")
            }
        })
    }
}

/// Returns the key of the variant in a listed resource or in a change.
pub(super) fn variant_key(value: &Value) -> Key {
    let text = |key: &str| value[key].as_str().map(str::to_owned);
    (
        text("type").unwrap_or_default(),
        text("name").unwrap_or_default(),
        text("constraints"),
    )
}

/// Returns the variant of a listed resource, with its version.
pub(super) fn entry_of(resource: &Value) -> (Key, String) {
    let version = resource["version"].as_str().unwrap_or_default();
    (variant_key(resource), version.to_owned())
}
