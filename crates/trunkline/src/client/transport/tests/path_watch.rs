//! Files as sources.

use std::fs;
use std::io::Write as _;
use std::path::PathBuf;
use std::time::Duration;

use bytes::Bytes;
use prost::Message as _;
use tempfile::TempDir;
use tokio::time::timeout;
use trunkline_proto::discovery::DiscoveryResponse;

use crate::client::PathSource;
use crate::client::transport::path_watch::{PathError, PathWatch};

const SOON: Duration = Duration::from_secs(10);
const LIMIT: usize = 1 << 20;

fn source(dir: &TempDir, name: &str) -> PathSource {
    PathSource {
        path: dir.path().join(name),
        watched_directory: None,
    }
}

fn yaml(name: &str) -> String {
    format!(
        "version_info: '1'\nresources:\n- '@type': \
         type.googleapis.com/envoy.config.cluster.v3.Cluster\n  name: {name}\n"
    )
}

/// Puts a file in its place by a move.
fn replace(dir: &TempDir, name: &str, text: &str) -> PathBuf {
    let (new, path) = (dir.path().join("new.tmp"), dir.path().join(name));
    fs::write(&new, text).unwrap();
    fs::rename(&new, &path).unwrap();
    path
}

async fn next(watch: &mut PathWatch) -> Result<Bytes, PathError> {
    timeout(SOON, watch.next()).await.unwrap()
}

fn names(response: &Bytes) -> String {
    let response = DiscoveryResponse::decode(response.clone()).unwrap();
    let name = |any: &trunkline_proto::discovery::Any| {
        String::from_utf8_lossy(&any.value[2..]).into_owned()
    };
    response.resources.iter().map(name).collect()
}

async fn nothing_more(watch: &mut PathWatch) {
    let more = timeout(Duration::from_millis(300), watch.next()).await;
    assert!(more.is_err(), "{more:?}");
}

#[tokio::test]
async fn e19_a_file_that_is_replaced_by_a_move_is_read_again() {
    let dir = tempfile::tempdir().unwrap();
    replace(&dir, "cds.yaml", &yaml("one"));
    let mut watch = PathWatch::new(&source(&dir, "cds.yaml"), LIMIT);
    assert_eq!(names(&next(&mut watch).await.unwrap()), "one");
    nothing_more(&mut watch).await;
    replace(&dir, "cds.yaml", &yaml("two"));
    assert_eq!(names(&next(&mut watch).await.unwrap()), "two");
    // The same contents are not told twice.
    replace(&dir, "cds.yaml", &yaml("two"));
    nothing_more(&mut watch).await;
}

/// E19.
#[tokio::test]
async fn a_file_that_is_half_written_is_not_read() {
    let dir = tempfile::tempdir().unwrap();
    let path = replace(&dir, "cds.yaml", &yaml("one"));
    let mut watch = PathWatch::new(&source(&dir, "cds.yaml"), LIMIT);
    next(&mut watch).await.unwrap();
    let text = yaml("two");
    let mut file = fs::File::create(&path).unwrap();
    file.write_all(&text.as_bytes()[..30]).unwrap();
    // Something else in the directory moves meanwhile.
    replace(&dir, "other", "");
    nothing_more(&mut watch).await;
    file.write_all(&text.as_bytes()[30..]).unwrap();
    drop(file);
    assert_eq!(names(&next(&mut watch).await.unwrap()), "two");
}

#[tokio::test]
async fn a_mistake_has_its_line_and_the_file_is_awaited_again() {
    let dir = tempfile::tempdir().unwrap();
    let path = replace(&dir, "cds.yaml", &yaml("one").replace("name:", "name: ["));
    let mut watch = PathWatch::new(&source(&dir, "cds.yaml"), LIMIT);
    let error = next(&mut watch).await.unwrap_err().to_string();
    assert!(
        error.starts_with(&format!("{}:", path.display())),
        "{error}"
    );
    replace(
        &dir,
        "cds.yaml",
        &yaml("x").replace("name: x", "connect_timeout: x"),
    );
    let error = next(&mut watch).await.unwrap_err().to_string();
    assert!(error.contains(":4:"), "{error}");
    assert!(error.contains("connect_timeout"), "{error}");
    nothing_more(&mut watch).await;
    replace(&dir, "cds.yaml", &yaml("good"));
    assert_eq!(names(&next(&mut watch).await.unwrap()), "good");
}

#[tokio::test]
async fn a_file_may_be_json_or_binary_and_has_a_limit() {
    let dir = tempfile::tempdir().unwrap();
    let json = r#"{"resources": [{"@type":
        "type.googleapis.com/envoy.config.cluster.v3.Cluster", "name": "one"}]}"#;
    replace(&dir, "cds.json", json);
    let mut watch = PathWatch::new(&source(&dir, "cds.json"), LIMIT);
    let response = next(&mut watch).await.unwrap();
    assert_eq!(names(&response), "one");
    fs::write(dir.path().join("cds.pb"), &response).unwrap();
    let mut watch = PathWatch::new(&source(&dir, "cds.pb"), LIMIT);
    assert_eq!(next(&mut watch).await.unwrap(), response);
    let mut watch = PathWatch::new(&source(&dir, "cds.pb"), 10);
    let error = next(&mut watch).await.unwrap_err();
    assert!(matches!(error, PathError::TooLong { .. }), "{error}");
    replace(&dir, "cds.pbtxt", "");
    let mut watch = PathWatch::new(&source(&dir, "cds.pbtxt"), LIMIT);
    let error = next(&mut watch).await.unwrap_err();
    assert!(matches!(error, PathError::Text(_)), "{error}");
}

/// As Kubernetes mounts a volume: a link to a directory is moved.
#[cfg(unix)]
#[tokio::test]
async fn e19_a_move_in_the_watched_directory_announces_a_file() {
    use std::os::unix::fs::symlink;
    let dir = tempfile::tempdir().unwrap();
    for (version, name) in [("v1", "one"), ("v2", "two")] {
        fs::create_dir(dir.path().join(version)).unwrap();
        fs::write(dir.path().join(version).join("cds.yaml"), yaml(name)).unwrap();
    }
    symlink("v1", dir.path().join("data")).unwrap();
    let source = PathSource {
        path: dir.path().join("data/cds.yaml"),
        watched_directory: Some(dir.path().to_owned()),
    };
    let mut watch = PathWatch::new(&source, LIMIT);
    assert_eq!(names(&next(&mut watch).await.unwrap()), "one");
    symlink("v2", dir.path().join("data.tmp")).unwrap();
    fs::rename(dir.path().join("data.tmp"), dir.path().join("data")).unwrap();
    assert_eq!(names(&next(&mut watch).await.unwrap()), "two");
}

#[tokio::test]
async fn a_directory_that_is_not_there_yet_is_looked_for() {
    let dir = tempfile::tempdir().unwrap();
    let source = source(&dir, "later/cds.yaml");
    let mut watch = PathWatch::new(&source, LIMIT);
    let error = next(&mut watch).await.unwrap_err();
    assert!(matches!(error, PathError::Read { .. }), "{error}");
    fs::create_dir(dir.path().join("later")).unwrap();
    fs::write(&source.path, yaml("one")).unwrap();
    assert_eq!(names(&next(&mut watch).await.unwrap()), "one");
}
