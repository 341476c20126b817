//! Files in a server: not ready until they are good, then watched.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "all of this is a test"
)]

use std::time::Duration;

use trunkline::{Server, kind};
use trunkline_store::{FileContents, Files, Options};

const PATIENCE: Duration = Duration::from_secs(20);

fn cluster(name: &str) -> String {
    format!("resources:\n- \"@type\": {}\n  name: {name}\n", kind::CDS)
}

fn clusters(server: &Server) -> Vec<String> {
    server.read(|db| {
        let found = db.find_type(&kind::CDS.into());
        let all = found.into_iter().flat_map(|id| db.resources(id));
        all.map(|r| r.name.to_string()).collect()
    })
}

#[tokio::test]
async fn s51_a_server_is_ready_when_its_files_are_good() {
    let place = tempfile::tempdir().unwrap();
    let file = place.path().join("c.yaml");
    std::fs::write(&file, "resources: [").unwrap();
    let files = Files::new([place.path()], Options::default());
    let contents = FileContents::watch(files).unwrap();
    let mut status = contents.status();
    let server = Server::builder().contents(contents).build();
    server.start();
    let bad = status.wait_for(|status| status.bad().count() == 1);
    tokio::time::timeout(PATIENCE, bad).await.unwrap().unwrap();
    assert!(!server.is_ready());

    std::fs::write(&file, cluster("a")).unwrap();
    tokio::time::timeout(PATIENCE, server.ready())
        .await
        .unwrap();
    assert_eq!(clusters(&server), ["a"]);

    std::fs::write(&file, cluster("b")).unwrap();
    let follow = async {
        while clusters(&server) != ["b"] {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(PATIENCE, follow).await.unwrap();
}
