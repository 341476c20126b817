//! Files of bootstraps beside what is read from them: `good/NAME.txt` is the
//! value, `bad/NAME.txt` the mistakes. `TRUNKLINE_WRITE_EXPECTED=1` writes them.

use std::fs;
use std::path::{Path, PathBuf};

use trunkline::client::Bootstrap;

/// A text that no output may have: the bootstraps use it for secrets.
const SECRET: &str = "hunter2";

fn folder(name: &str) -> PathBuf {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/bootstrap");
    data.join(name)
}

/// Reads every bootstrap of a folder, and compares what `show` makes of it.
fn check(folder_name: &str, show: fn(&Path) -> Result<String, String>) {
    let entries = fs::read_dir(folder(folder_name)).unwrap();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|end| end != "txt"));
    paths.sort();
    assert!(paths.len() > 3, "{paths:?}");
    let mut wrong = Vec::new();
    for path in paths {
        let shown = show(&path).unwrap_or_else(|other| panic!("{}: {other}", path.display()));
        assert!(!shown.contains(SECRET), "{}: {shown}", path.display());
        let expected_path = path.with_extension("txt");
        if std::env::var_os("TRUNKLINE_WRITE_EXPECTED").is_some() {
            fs::write(&expected_path, &shown).unwrap();
        }
        let expected = fs::read_to_string(&expected_path).unwrap_or_default();
        if shown != expected {
            wrong.push(format!("{}:\n{shown}", path.display()));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Output without the folder of the file, which differs between machines.
fn without_folder(text: &str, path: &Path) -> String {
    let folder = path.parent().unwrap().display().to_string();
    text.replace(&format!("{folder}/"), "") + "\n"
}

#[test]
fn good_bootstraps_are_read() {
    check("good", |path| match Bootstrap::from_path(path) {
        Ok(bootstrap) => Ok(without_folder(&format!("{bootstrap:#?}"), path)),
        Err(error) => Err(error.to_string()),
    });
}

#[test]
fn bad_bootstraps_have_all_their_mistakes_reported() {
    check("bad", |path| match Bootstrap::from_path(path) {
        Ok(bootstrap) => Err(format!("has no mistakes: {bootstrap:?}")),
        Err(error) => Ok(without_folder(&error.to_string(), path)),
    });
}

#[test]
fn a_bootstrap_without_a_file_is_a_mistake() {
    let error = Bootstrap::from_path("/nowhere/b.yaml").unwrap_err();
    let error = error.to_string();
    assert!(
        error.starts_with("/nowhere/b.yaml: cannot be read: "),
        "{error}"
    );
}
