//! The variables that name gRPC's bootstrap (C1).

use std::ffi::OsString;
use std::path::Path;

use trunkline_proto::text::Format;

use super::super::error::{ConfigError, Mistake};
use super::super::problem::Problem;
use super::super::{Bootstrap, read_file};

const FILE: &str = "GRPC_XDS_BOOTSTRAP";
const CONFIG: &str = "GRPC_XDS_BOOTSTRAP_CONFIG";

/// Reads the bootstrap that the environment names: from the file, and without
/// the variable of a file from the text (C1). A file that cannot be read is a
/// mistake, and no reason to fall back on the text.
pub(in super::super) fn read_environment(
    variable: impl Fn(&str) -> Option<OsString>,
) -> Result<Bootstrap, ConfigError> {
    let non_empty = |name| variable(name).filter(|value| !value.is_empty());
    if let Some(path) = non_empty(FILE) {
        let path = Path::new(&path);
        let text = read_file(path)?;
        return super::read(Format::Json, &path.display().to_string(), &text);
    }

    let Some(text) = non_empty(CONFIG) else {
        let mistake = Mistake::about_file(FILE, Problem::NoVariable);
        return Err(mistake.into());
    };
    let text = text.into_string().map_err(|_| {
        let name = CONFIG.to_owned();
        Mistake::about_file(CONFIG, Problem::Variable { name })
    })?;
    super::read(Format::Json, CONFIG, &text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;

    fn bootstrap(id: &str) -> String {
        format!(
            r#"{{"node": {{"id": "{id}"}}, "xds_servers": [{{"server_uri": "a:1",
               "channel_creds": [{{"type": "insecure"}}]}}]}}"#
        )
    }

    fn read(file: Option<&str>, config: Option<&str>) -> Result<String, String> {
        let read = read_environment(|name| match name {
            FILE => file.map(OsString::from),
            _ => config.map(OsString::from),
        });
        read.map(|read| read.node.id).map_err(|e| e.to_string())
    }

    #[test]
    fn c1_the_file_comes_first_and_then_the_text() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(bootstrap("file").as_bytes()).unwrap();
        let path = file.path().to_str();
        let text = bootstrap("text");
        assert_eq!(read(path, Some(&text)).unwrap(), "file");
        assert_eq!(read(None, Some(&text)).unwrap(), "text");
        assert_eq!(read(Some(""), Some(&text)).unwrap(), "text");
    }

    #[test]
    fn c1_a_file_that_cannot_be_read_is_a_mistake() {
        let error = read(Some("/nowhere/b.json"), Some(&bootstrap("text"))).unwrap_err();
        assert!(
            error.starts_with("/nowhere/b.json: cannot be read: "),
            "{error}"
        );
        let error = read(None, None).unwrap_err();
        assert!(
            error.contains("set GRPC_XDS_BOOTSTRAP to a file"),
            "{error}"
        );
    }
}
