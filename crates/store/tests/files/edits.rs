//! Every way in which a file changes, and the resulting updates.

use std::fs;
use std::os::unix::fs::symlink;
use std::time::Duration;

use crate::place::{Place, Watched, clusters, options, said};

#[tokio::test]
async fn the_first_update_is_everything() {
    let place = Place::new();
    place.write("a.yaml", clusters([("a", 1)]));
    place.write("b.yaml", clusters([("b", 1)]));
    let mut watched = place.watch();
    let update = watched.next().await;
    assert_eq!(said(&update), ["+a", "+b"]);
    assert_eq!(update.files.split(", ").count(), 2);
    assert!(watched.good().await.loaded);
}

#[tokio::test]
async fn an_empty_directory_is_loaded_and_files_appear_in_it() {
    let place = Place::new();
    let mut watched = place.watch();
    watched.loaded().await;
    assert!(watched.held.is_empty());
    place.write("a.yaml", clusters([("a", 1)]));
    assert_eq!(said(&watched.next().await), ["+a"]);
}

#[tokio::test]
async fn an_edit_is_one_transaction_of_what_differs() {
    let place = Place::new();
    place.write(
        "a.yaml",
        clusters([("same", 1), ("changed", 1), ("gone", 1)]),
    );
    let mut watched = place.watch();
    watched.next().await;
    place.write(
        "a.yaml",
        clusters([("changed", 2), ("same", 1), ("new", 1)]),
    );
    assert_eq!(said(&watched.next().await), ["+changed", "+new", "-gone"]);
}

#[tokio::test]
async fn a_file_is_replaced() {
    let place = Place::new();
    place.write("a.yaml", clusters([("a", 1)]));
    let mut watched = place.watch();
    watched.next().await;
    place.replace("a.yaml", &clusters([("a", 2)]));
    assert_eq!(said(&watched.next().await), ["+a"]);
}

#[tokio::test]
async fn a_file_that_is_gone_takes_its_resources_with_it() {
    let place = Place::new();
    place.write("a.yaml", clusters([("a", 1)]));
    place.write("b.yaml", clusters([("b", 1)]));
    let mut watched = place.watch();
    watched.next().await;
    place.remove("a.yaml");
    let update = watched.next().await;
    assert_eq!(said(&update), ["-a"]);
    assert!(update.files.ends_with("/a.yaml"), "{}", update.files);
    watched.status(|status| status.files.len() == 1).await;
}

#[tokio::test]
async fn a_file_that_is_renamed_changes_nothing_but_its_name() {
    let place = Place::new();
    place.write("a.yaml", clusters([("a", 1)]));
    let mut watched = place.watch();
    watched.next().await;
    fs::rename(place.path("a.yaml"), place.path("b.yaml")).unwrap();
    let renamed = |status: &trunkline_store::FilesStatus| {
        status.files.len() == 1 && status.files[0].path.ends_with("b.yaml")
    };
    watched.status(renamed).await;
}

#[tokio::test]
async fn directories_below_count_and_may_go() {
    let place = Place::new();
    let mut watched = place.watch();
    watched.loaded().await;
    fs::create_dir_all(place.path("sub/deep")).unwrap();
    place.write("sub/deep/a.yaml", clusters([("a", 1)]));
    assert_eq!(said(&watched.next().await), ["+a"]);
    place.write("sub/deep/a.yaml", clusters([("a", 2)]));
    assert_eq!(said(&watched.next().await), ["+a"]);
    // Links that lead back are not followed without end.
    symlink(place.0.path(), place.path("sub/back")).unwrap();
    fs::remove_dir_all(place.path("sub/deep")).unwrap();
    assert_eq!(said(&watched.next().await), ["-a"]);
}

/// The layout that a kubelet makes.
fn mount(place: &Place, edition: usize, names: &[&str]) {
    let data = format!("..2024_{edition}");
    fs::create_dir(place.path(&data)).unwrap();
    for name in names {
        let text = clusters([(*name, edition)]);
        place.write(&format!("{data}/{name}.yaml"), text);
    }
    symlink(&data, place.path("..data_tmp")).unwrap();
    fs::rename(place.path("..data_tmp"), place.path("..data")).unwrap();
    for name in names {
        let link = place.path(&format!("{name}.yaml"));
        if fs::symlink_metadata(&link).is_err() {
            symlink(format!("..data/{name}.yaml"), link).unwrap();
        }
    }
}

#[tokio::test]
async fn a_mounted_configmap_is_swapped_as_one() {
    let place = Place::new();
    mount(&place, 1, &["a", "b"]);
    let mut watched = place.watch();
    assert_eq!(said(&watched.next().await), ["+a", "+b"]);
    mount(&place, 2, &["a", "b"]);
    assert_eq!(said(&watched.next().await), ["+a", "+b"]);
    fs::remove_dir_all(place.path("..2024_1")).unwrap();
    // A removed key: the link dangles first, and is removed then.
    mount(&place, 3, &["a"]);
    place.remove("b.yaml");
    assert_eq!(said(&watched.next().await), ["+a", "-b"]);
}

#[tokio::test]
async fn one_file_of_a_mounted_configmap_may_be_named() {
    let place = Place::new();
    mount(&place, 1, &["a", "b"]);
    let mut watched = Watched::new([place.path("a.yaml")], options());
    assert_eq!(said(&watched.next().await), ["+a"]);
    mount(&place, 2, &["a", "b"]);
    assert_eq!(said(&watched.next().await), ["+a"]);
}

#[tokio::test]
async fn a_directory_that_is_a_link_may_be_swapped() {
    let place = Place::new();
    fs::create_dir(place.path("r1")).unwrap();
    fs::create_dir(place.path("r2")).unwrap();
    place.write("r1/a.yaml", clusters([("a", 1)]));
    symlink("r1", place.path("current")).unwrap();
    let mut watched = Watched::new([place.path("current")], options());
    watched.next().await;
    symlink("r2", place.path("next")).unwrap();
    fs::rename(place.path("next"), place.path("current")).unwrap();
    assert_eq!(said(&watched.next().await), ["-a"]);
    // The link's new target is watched.
    place.write("r2/b.yaml", clusters([("b", 1)]));
    assert_eq!(said(&watched.next().await), ["+b"]);
}

#[tokio::test]
async fn what_the_system_does_not_tell_is_found_by_looking() {
    let place = Place::new();
    place.write("a.yaml", clusters([("a", 1)]));
    let looking = trunkline_store::Options {
        notify: false,
        rescan: Duration::from_millis(20),
        ..options()
    };
    let mut watched = Watched::new([place.0.path()], looking);
    watched.next().await;
    place.write("a.yaml", clusters([("a", 2)]));
    assert_eq!(said(&watched.next().await), ["+a"]);
}

#[tokio::test]
async fn a_resource_may_move_to_another_file() {
    let place = Place::new();
    place.write("a.yaml", clusters([("a", 1), ("m", 1)]));
    place.write("b.yaml", clusters([("b", 1)]));
    let mut watched = place.watch();
    watched.next().await;
    // Both are seen at once, or the second when the first lost the name; either
    // way no resource is removed that should stay.
    place.replace("b.yaml", &clusters([("b", 2), ("m", 1)]));
    place.replace("a.yaml", &clusters([("a", 2)]));
    let mut changes = said(&watched.next().await);
    while changes.len() < 2 {
        changes.extend(said(&watched.next().await));
    }
    changes.sort();
    assert_eq!(changes, ["+a", "+b"]);
    watched.good().await;
}

#[cfg(target_os = "linux")] // only there the system tells of a close
#[tokio::test]
async fn a_file_is_not_read_while_it_is_written() {
    use std::io::Write as _;
    let place = Place::new();
    place.write("a.yaml", clusters([("a", 1), ("x", 1)]));
    place.write("b.yaml", clusters([("b", 1)]));
    let mut watched = place.watch();
    watched.next().await;
    // As a shell does with `generator > a.yaml`: the first part is good.
    let mut file = fs::File::create(place.path("a.yaml")).unwrap();
    let first = clusters([("w", 1)]);
    let second = clusters([("z", 1)]).replace("resources:\n", "");
    for (part, edition) in [("", 2), (&*first, 3), (&*second, 4)] {
        file.write_all(part.as_bytes()).unwrap();
        // Others are read meanwhile.
        place.write("b.yaml", clusters([("b", edition)]));
        assert_eq!(said(&watched.next().await), ["+b"]);
    }
    drop(file);
    assert_eq!(said(&watched.next().await), ["+w", "+z", "-a", "-x"]);
    watched.good().await;
}

#[tokio::test]
async fn a_file_that_is_missing_for_a_moment_stays() {
    let place = Place::new();
    place.write("a.yaml", clusters([("a", 1)]));
    place.write("b.yaml", clusters([("b", 1)]));
    let patient = trunkline_store::Options {
        retry: Duration::from_secs(3600),
        ..options()
    };
    let mut watched = Watched::new([place.0.path()], patient);
    watched.next().await;
    // As some editors write a file.
    fs::rename(place.path("a.yaml"), place.path("a.yaml~")).unwrap();
    place.write("b.yaml", clusters([("b", 2)]));
    assert_eq!(said(&watched.next().await), ["+b"]);
    place.write("a.yaml", clusters([("a", 2)]));
    assert_eq!(said(&watched.next().await), ["+a"]);
}
