//! Notifications of the system: directories are watched, never files, because a
//! file that is replaced is another file.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;

use notify::event::{AccessKind, AccessMode};
use notify::{Config, Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher as _};

use crate::mailbox::Mailbox;
use crate::problem::{Fault, Problem};
use crate::scan::directory;

/// The identity of each directory when it was watched.
type Watched = BTreeMap<PathBuf, Option<(u64, u64)>>;

pub(crate) struct Notifications {
    watcher: Option<RecommendedWatcher>,
    watched: Watched,
    /// Directories that cannot be watched.
    pub(crate) unwatched: Vec<Problem>,
}

impl Notifications {
    pub(crate) fn open(mailbox: &Arc<Mailbox>, notify: bool) -> Self {
        let mut new = Self {
            watcher: None,
            watched: Watched::new(),
            unwatched: Vec::new(),
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
                Ok(watcher) => new.watcher = Some(watcher),
                Err(error) => new.unwatched.push(unwatched(&"files", &error)),
            }
        }
        new
    }

    /// Watches these directories and no others. True if one of them is new, so
    /// that a change in it may have been missed.
    pub(crate) fn watch_only<'a>(&mut self, paths: impl Iterator<Item = &'a PathBuf>) -> bool {
        let Some(watcher) = &mut self.watcher else {
            return false;
        };
        let paths: BTreeSet<_> = paths.collect();
        self.watched.retain(|path, was| {
            let same = paths.contains(path) && *was == directory(path);
            if !same {
                // It may be removed, and the watch with it.
                let _ = watcher.unwatch(path);
            }
            same
        });
        self.unwatched.clear();
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
                // It was just removed; its parent notifies.
                Err(_) if place.is_none() => {}
                Err(error) => self.unwatched.push(unwatched(&path.display(), &error)),
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
