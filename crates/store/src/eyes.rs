//! What the system tells of changes: directories are watched, never files,
//! because a file that is replaced is another file.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;

use notify::event::{AccessKind, AccessMode};
use notify::{Config, Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher as _};

use crate::mailbox::Mailbox;
use crate::problem::{Fault, Problem};
use crate::scan::directory;

/// Which directory a path led to when it was watched.
type Watched = BTreeMap<PathBuf, Option<(u64, u64)>>;

pub(crate) struct Eyes {
    watcher: Option<RecommendedWatcher>,
    watched: Watched,
    /// What cannot be watched.
    pub(crate) blind: Vec<Problem>,
}

impl Eyes {
    pub(crate) fn open(mailbox: &Arc<Mailbox>, notify: bool) -> Self {
        let mut eyes = Self {
            watcher: None,
            watched: Watched::new(),
            blind: Vec::new(),
        };
        let mailbox = Arc::clone(mailbox);
        let tell = move |event: notify::Result<Event>| match event {
            Ok(event) if event.need_rescan() => mailbox.touch(Vec::new()),
            Ok(event) if is_change(&event.kind) => mailbox.touch(event.paths),
            Ok(_) => {}
            Err(error) => mailbox.touch(error.paths),
        };
        if notify {
            match RecommendedWatcher::new(tell, Config::default()) {
                Ok(watcher) => eyes.watcher = Some(watcher),
                Err(error) => eyes.blind.push(unwatched(&"files", &error)),
            }
        }
        eyes
    }

    /// Watches these directories and no others; whether one of them is new, so
    /// that something may have happened there unseen.
    pub(crate) fn turn_to<'a>(&mut self, paths: impl Iterator<Item = &'a PathBuf>) -> bool {
        let Some(watcher) = &mut self.watcher else {
            return false;
        };
        let paths: BTreeSet<_> = paths.collect();
        self.watched.retain(|path, was| {
            let same = paths.contains(path) && *was == directory(path);
            if !same {
                // It may be gone, and the watch with it.
                let _ = watcher.unwatch(path);
            }
            same
        });
        self.blind.clear();
        let mut new = false;
        for path in paths {
            if self.watched.contains_key(path) {
                continue;
            }
            let place = directory(path);
            match watcher.watch(path, RecursiveMode::NonRecursive) {
                Ok(()) => {
                    self.watched.insert(path.clone(), place);
                    new = true;
                }
                // It has just gone; its parent tells.
                Err(_) if place.is_none() => {}
                Err(error) => self.blind.push(unwatched(&path.display(), &error)),
            }
        }
        new
    }
}

/// Reading is no change, least of all our own.
fn is_change(kind: &EventKind) -> bool {
    match kind {
        EventKind::Access(AccessKind::Close(AccessMode::Write)) => true,
        EventKind::Access(_) => false,
        _ => true,
    }
}

fn unwatched(path: &impl ToString, error: &notify::Error) -> Problem {
    let reason = error.to_string();
    Problem::whole(&path.to_string().into(), Fault::Unwatched { reason })
}
