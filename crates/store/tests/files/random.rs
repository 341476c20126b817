//! After any sequence of edits, the updates amount to a fresh load of the
//! files' last good contents.

use std::collections::{BTreeMap, BTreeSet};

use crate::place::{BROKEN, Place, clusters};

const FILES: [&str; 3] = ["a.yaml", "b.yaml", "c.yaml"];
const NAMES: [&str; 6] = ["n1", "n2", "n3", "n4", "n5", "n6"];

/// Writes random contents into a file; its last good state is in `good`. Each
/// file has names of its own, so that none contradict.
fn edit(file: usize, rng: &mut fastrand::Rng, place: &Place, good: &mut BTreeMap<usize, String>) {
    match rng.usize(..6) {
        0 if place.path(FILES[file]).exists() => {
            place.remove(FILES[file]);
            good.remove(&file);
        }
        1 if good.contains_key(&file) => place.replace(FILES[file], BROKEN),
        kind => {
            let mine = &NAMES[file * 2..file * 2 + 2];
            let mut some = Vec::new();
            for name in mine {
                some.extend(rng.bool().then(|| (*name, rng.usize(..4))));
            }
            let text = format!("# {}\n{}", rng.u32(..), clusters(some));
            match kind {
                2 => place.write(FILES[file], &text),
                _ => place.replace(FILES[file], &text),
            }
            good.insert(file, text);
        }
    }
}

#[tokio::test]
async fn what_is_held_is_what_the_files_last_said() {
    for seed in 0..6 {
        let mut rng = fastrand::Rng::with_seed(seed);
        let place = Place::new();
        let mut good = BTreeMap::new();
        let mut watched = place.watch();
        watched.loaded().await;
        for round in 0..6 {
            // Each once: a state that is overwritten unread was never good.
            for file in 0..FILES.len() {
                if rng.bool() {
                    edit(file, &mut rng, &place, &mut good);
                }
            }
            // Every round has a change.
            let marker = format!("marker{round}");
            place.replace("z.yaml", &clusters([(&*marker, round)]));
            good.insert(9, clusters([(&*marker, round)]));
            let fresh = Place::new();
            for (file, text) in &good {
                fresh.write(FILES.get(*file).unwrap_or(&"z.yaml"), text);
            }
            let loaded = fresh.load();
            assert!(loaded.errors.is_empty());
            let expected: BTreeSet<_> = loaded
                .resources
                .iter()
                .map(|(_, r)| (r.name.to_string(), r.version.to_string()))
                .collect();
            loop {
                let held = watched.held.iter();
                let held: BTreeSet<_> = held.map(|((n, _), v)| (n.clone(), v.clone())).collect();
                if held == expected {
                    break;
                }
                watched.next().await;
            }
        }
    }
}
