//! Files with mistakes, and paths that do not exist.

use std::fs;
use std::sync::Arc;

use trunkline::{Change, Resource, kind};

use crate::place::{BROKEN, Place, Watched, cluster, clusters, errors, options, said};

#[tokio::test]
async fn a_bad_file_keeps_its_last_good_contents_while_others_go_on() {
    let place = Place::new();
    place.write("a.yaml", clusters([("a", 1)]));
    place.write("b.yaml", clusters([("b", 1)]));
    let mut watched = place.watch();
    watched.next().await;
    place.write("a.yaml", BROKEN);
    let status = watched.bad().await;
    let [bad] = &status.bad().collect::<Vec<_>>()[..] else {
        panic!("one bad file");
    };
    assert!(bad.path.ends_with("a.yaml"));
    assert_eq!(bad.resources, 1);
    place.write("b.yaml", clusters([("b", 2)]));
    assert_eq!(said(&watched.next().await), ["+b"]);
    let still = watched.bad().await;
    let since = still.bad().next().unwrap().since;
    assert_eq!(since, bad.since, "bad for as long as it is bad");
    place.write("a.yaml", clusters([("a", 3)]));
    assert_eq!(said(&watched.next().await), ["+a"]);
    watched.good().await;
}

#[tokio::test]
async fn a_bad_file_that_becomes_what_it_was_is_good_again() {
    let place = Place::new();
    place.write("a.yaml", clusters([("a", 1)]));
    let mut watched = place.watch();
    watched.next().await;
    place.write("a.yaml", BROKEN);
    watched.bad().await;
    place.write("a.yaml", clusters([("a", 1)]));
    watched.good().await;
}

#[tokio::test]
async fn a_bad_file_that_is_removed_takes_what_was_last_good_with_it() {
    let place = Place::new();
    place.write("a.yaml", clusters([("a", 1)]));
    let mut watched = place.watch();
    watched.next().await;
    place.write("a.yaml", BROKEN);
    watched.bad().await;
    place.remove("a.yaml");
    assert_eq!(said(&watched.next().await), ["-a"]);
    watched.good().await;
}

#[tokio::test]
async fn s51_nothing_is_handed_out_before_every_file_is_good() {
    let place = Place::new();
    place.write("a.yaml", clusters([("a", 1)]));
    place.write("b.yaml", BROKEN);
    let mut watched = place.watch();
    let status = watched.bad().await;
    assert!(!status.loaded);
    // An edit of the good one does not make it ready either.
    place.write("a.yaml", clusters([("a", 2), ("x", 1)]));
    let status = watched.status(|status| status.resources() == 2).await;
    assert!(!status.loaded);
    place.write("b.yaml", clusters([("b", 1)]));
    assert_eq!(said(&watched.next().await), ["+a", "+b", "+x"]);
    watched.good().await;
}

#[tokio::test]
async fn a_path_that_was_named_and_is_gone_is_an_error_and_no_removal() {
    let place = Place::new();
    fs::create_dir(place.path("dir")).unwrap();
    place.write("dir/a.yaml", clusters([("a", 1)]));
    place.write("b.yaml", clusters([("b", 1)]));
    let paths = [place.path("dir"), place.path("b.yaml")];
    let mut watched = Watched::new(paths, options());
    watched.next().await;
    place.remove("b.yaml");
    let status = watched.bad().await;
    assert_eq!(
        errors(&status, &place),
        ["b.yaml: does not exist; create it, or name another path"]
    );
    fs::remove_dir_all(place.path("dir")).unwrap();
    let status = watched.status(|status| status.bad().count() == 2).await;
    assert_eq!(status.resources(), 2, "both are served still");
    fs::create_dir(place.path("dir")).unwrap();
    place.write("dir/a.yaml", clusters([("a", 2)]));
    assert_eq!(said(&watched.next().await), ["+a"]);
    place.write("b.yaml", clusters([("b", 2)]));
    assert_eq!(said(&watched.next().await), ["+b"]);
    watched.good().await;
}

#[tokio::test]
async fn a_path_that_is_not_there_yet_is_waited_for() {
    let place = Place::new();
    let mut watched = Watched::new([place.path("sub/a.yaml")], options());
    assert!(!watched.bad().await.loaded);
    fs::create_dir(place.path("sub")).unwrap();
    place.write("sub/a.yaml", clusters([("a", 1)]));
    assert_eq!(said(&watched.next().await), ["+a"]);
}

#[tokio::test]
async fn a_file_that_is_written_in_two_steps_is_read_when_it_is_whole() {
    use std::io::Write;
    let place = Place::new();
    let text = clusters([("a", 1)]);
    place.write("a.yaml", &text);
    let mut watched = Watched::new(
        [place.0.path()],
        trunkline_store::Options {
            // Longer than the test, so that only a whole file can count.
            retry: std::time::Duration::from_secs(3600),
            ..options()
        },
    );
    watched.next().await;
    let mut file = fs::File::create(place.path("a.yaml")).unwrap();
    // Another change shows that the empty file has been seen.
    place.write("b.yaml", clusters([("b", 1)]));
    assert_eq!(said(&watched.next().await), ["+b"]);
    write!(file, "{text}{}", cluster("c", 1)).unwrap();
    drop(file);
    assert_eq!(said(&watched.next().await), ["+c"]);
}

#[tokio::test]
async fn what_the_database_refuses_is_a_mistake_of_its_file() {
    let place = Place::new();
    place.write("a.yaml", clusters([("a", 1)]));
    place.write("b.yaml", clusters([("b", 1)]));
    let mut watched = place.watch();
    watched.next().await;
    // A program has put a variant of `x` in, past the files.
    let variant = Resource {
        constraints: Some("env=prod".parse().unwrap()),
        ..Resource::new("x".into(), "...".into())
    };
    let change = Change::Upsert(kind::CDS.into(), Arc::new(variant));
    watched.server.apply(vec![change]).unwrap();
    watched.any_update().await;
    place.write("a.yaml", clusters([("a", 2), ("x", 1)]));
    place.write("b.yaml", clusters([("b", 2)]));
    // Only the file with `x` is at fault.
    assert_eq!(said(&watched.next().await), ["+b"]);
    let status = watched.bad().await;
    let bad: Vec<_> = status.bad().collect();
    assert_eq!(bad.len(), 1);
    assert!(bad[0].path.ends_with("a.yaml"));
    assert_eq!(bad[0].resources, 1, "its last good contents");
    place.write("a.yaml", clusters([("a", 3)]));
    assert_eq!(said(&watched.next().await), ["+a"]);
    watched.good().await;
}

#[tokio::test]
async fn a_change_that_empties_a_file_or_a_directory_is_held_until_it_is_confirmed() {
    let place = Place::new();
    place.write("a.yaml", clusters([("a", 1)]));
    place.write("b.yaml", clusters([("b", 1)]));
    let guarded = trunkline_store::Options {
        guard: true,
        ..options()
    };
    let mut watched = Watched::new([place.0.path()], guarded);
    watched.next().await;
    // An empty file is held, however long it stays so.
    place.write("a.yaml", "resources: []");
    let status = watched.bad().await;
    let reason = &errors(&status, &place)[0];
    assert!(
        reason.starts_with("a.yaml: has no resources any more"),
        "{reason}"
    );
    assert_eq!(status.resources(), 2, "both are served still");
    // Others go on meanwhile.
    place.write("b.yaml", clusters([("b", 2)]));
    assert_eq!(said(&watched.next().await), ["+b"]);
    place.write("a.yaml", clusters([("a", 2)]));
    assert_eq!(said(&watched.next().await), ["+a"]);
    // Unless it says so.
    place.write("a.yaml", "allow_removal: true");
    assert_eq!(said(&watched.next().await), ["-a"]);
    place.write("a.yaml", clusters([("a", 3)]));
    assert_eq!(said(&watched.next().await), ["+a"]);
    // Nor may it end in the middle of a line, and lack resources.
    let both = clusters([("a", 4), ("c", 1)]);
    place.write("a.yaml", &both);
    assert_eq!(said(&watched.next().await), ["+a", "+c"]);
    let second = both.rfind("- ").unwrap();
    place.write("a.yaml", both[..second].trim_end());
    let status = watched.bad().await;
    let reason = &errors(&status, &place)[0];
    assert!(reason.contains("in the middle of a line"), "{reason}");
    place.write("a.yaml", &both[..second]);
    assert_eq!(said(&watched.next().await), ["-c"]);
    // One file of several may go, and the last one not.
    place.remove("b.yaml");
    assert_eq!(said(&watched.next().await), ["-b"]);
    place.remove("a.yaml");
    let status = watched.status(|status| status.bad().count() == 1).await;
    let reason = errors(&status, &place)[0].clone();
    assert_eq!(status.resources(), 1, "it is served still");
    let hash = reason.rsplit(' ').next().unwrap();
    watched.server.confirm(hash);
    assert_eq!(said(&watched.next().await), ["-a"]);
    watched.good().await;
}
