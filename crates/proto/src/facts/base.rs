//! The base sets of a virtual host, by which clients are subscribed to it
//! without asking. Its author names them in the virtual host's own metadata.

use prost_reflect::{DynamicMessage, MapKey, Value};

use super::{BASE_SETS, FactsError, NAMESPACE};

/// Reads the base sets in `metadata.filter_metadata["trunkline"].base_sets`,
/// sorted and without duplicates. A virtual host without the key is in no base
/// set.
///
/// # Errors
/// The value is not a list of texts, or one of the texts is empty.
pub(super) fn read_base_sets(host: &DynamicMessage) -> Result<Vec<String>, FactsError> {
    let Some(value) = base_sets_value(host) else {
        return Ok(Vec::new());
    };
    let mut names = read_texts(&value).ok_or(FactsError::BaseSets)?;
    names.sort();
    names.dedup();
    Ok(names)
}

/// Reads a `google.protobuf.Value` that is a list of texts. `None` if it is no
/// list, or if an item is no text or an empty one.
fn read_texts(value: &DynamicMessage) -> Option<Vec<String>> {
    let list = get_message(value, "list_value")?;
    let values = list.get_field_by_name("values");
    let values = values.as_deref().and_then(Value::as_list);
    values.unwrap_or_default().iter().map(read_text).collect()
}

/// Reads a `google.protobuf.Value` that is a text. `None` if it is none, or if
/// it is empty.
fn read_text(value: &Value) -> Option<String> {
    let text = value.as_message()?.get_field_by_name("string_value")?;
    let text = text.as_str().filter(|text| !text.is_empty());
    text.map(str::to_owned)
}

/// Finds the `google.protobuf.Value` of the base sets in the metadata of a
/// virtual host; `None` if its author wrote none.
fn base_sets_value(host: &DynamicMessage) -> Option<DynamicMessage> {
    let metadata = get_message(host, "metadata")?;
    let namespace = get_entry(&metadata, "filter_metadata", NAMESPACE)?;
    get_entry(&namespace, "fields", BASE_SETS)
}

/// Returns the message in a field; `None` if it is not set.
fn get_message(message: &DynamicMessage, field: &str) -> Option<DynamicMessage> {
    if !message.has_field_by_name(field) {
        return None;
    }
    message.get_field_by_name(field)?.as_message().cloned()
}

/// Returns the message at a key of a map; `None` if the map has no such key.
fn get_entry(message: &DynamicMessage, field: &str, key: &str) -> Option<DynamicMessage> {
    let map = message.get_field_by_name(field)?;
    let value = map.as_map()?.get(&MapKey::String(key.to_owned()));
    value?.as_message().cloned()
}

#[cfg(test)]
mod tests {
    use super::super::of_message;
    use super::*;
    use crate::text;

    fn base_sets(metadata: &str) -> Result<Vec<String>, FactsError> {
        let host = format!(
            "\"@type\": type.googleapis.com/envoy.config.route.v3.VirtualHost\n\
             name: v\ndomains: [d]\nmetadata: {{filter_metadata: {{{metadata}}}}}"
        );
        let read = text::read("v.yaml", &host, &text::Options::default());
        assert_eq!(read.errors, [], "{host}");
        of_message(&read.resources[0].message).map(|facts| facts.base_sets)
    }

    #[test]
    fn a_virtual_host_says_to_which_sets_it_belongs() {
        let said = base_sets("trunkline: {base_sets: [b, a, b], more: 1}, other: {base_sets: [x]}");
        assert_eq!(said.unwrap(), ["a", "b"]);
        for none in [
            "",
            "trunkline: {}",
            "trunkline: {base_sets: []}",
            "other: {base_sets: 1}",
        ] {
            assert_eq!(base_sets(none).unwrap(), [""; 0], "{none}");
        }
    }

    #[test]
    fn what_is_no_list_of_names_is_a_mistake() {
        for wrong in [
            "a",
            "null",
            "[a, 1]",
            "[a, \"\"]",
            "{a: b}",
            "[[a]]",
            "true",
        ] {
            let said = base_sets(&format!("trunkline: {{base_sets: {wrong}}}"));
            assert_eq!(said, Err(FactsError::BaseSets), "{wrong}");
        }
    }
}
