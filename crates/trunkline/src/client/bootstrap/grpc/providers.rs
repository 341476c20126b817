//! `certificate_providers`: certificates that resources name by an instance
//! (A29, C5).

use std::collections::BTreeMap;

use super::super::tree::Part;
use super::files;
use crate::client::FileWatcher;

const FILE_WATCHER: &str = "file_watcher";

/// Reads the providers. One of another plugin is left out with a warning, so
/// that a resource which names it is refused.
pub(super) fn read(root: &Part<'_, '_>) -> BTreeMap<String, FileWatcher> {
    let providers = root.entries("certificate_providers").into_iter();
    let watchers =
        providers.filter_map(|(name, part)| Some((name.to_owned(), read_provider(&part)?)));
    watchers.collect()
}

/// Reads one provider. Returns `None` after a warning or a mistake.
fn read_provider(part: &Part<'_, '_>) -> Option<FileWatcher> {
    match part.text_of("plugin_name")? {
        Some(FILE_WATCHER) => {}
        Some(plugin) => {
            let what = format!("the plugin {plugin:?}");
            part.scope.warn_ignored(what, "there is file_watcher");
            return None;
        }
        None => return part.scope.missing("plugin_name", "write file_watcher"),
    }

    let remedy = "name certificate_file and private_key_file, ca_certificate_file, or all three";
    let Some(config) = part.get("config") else {
        return part.scope.missing("config", remedy);
    };
    let watcher = files::read(&config)?;
    // C5: at least one of certificate and authority.
    if watcher.certificate.is_none() && watcher.ca.is_none() {
        return config.scope.missing("a file", remedy);
    }
    Some(watcher)
}
