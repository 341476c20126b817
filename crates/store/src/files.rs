//! The files: what each says, what of it is served, and what is wrong.
//!
//! Nothing here waits or watches: [`Files::refresh`] looks at the files once
//! and says what has to change.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Instant, SystemTime};

use trunkline::{ApplyError, Change, Name, Resource, TypeUrl};

use crate::diff;
use crate::index::Index;
use crate::options::{Dangling, Options};
use crate::problem::{Fault, Problem};
use crate::read::{Outcome, Parsed};
use crate::read_all::read_all;
use crate::scan::{Found, Scan, Stamp, absolute, scan};
use crate::settle::{Settled, settle};
use crate::status::{FileStatus, FilesStatus};

/// Which file: the order is that of the paths, then by name.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct FileKey {
    pub(crate) root: usize,
    pub(crate) path: PathBuf,
    pub(crate) name: Arc<str>,
}

pub(crate) type FileId = Arc<FileKey>;

/// One file.
#[derive(Default)]
pub(crate) struct File {
    stamp: Option<Stamp>,
    /// Of what was last read.
    hash: Option<u128>,
    /// Since when it looks half written; after a while that counts.
    suspect: Option<Instant>,
    /// What it says, if that is not what is served.
    pub(crate) wish: Option<Wish>,
    /// Its wish was turned down before.
    pub(crate) lost: bool,
    /// What it last said without a mistake. In the index, except while files
    /// are settled.
    pub(crate) served: Option<Arc<Parsed>>,
    errors: Vec<Problem>,
    warnings: Vec<Problem>,
    dangling: Vec<Problem>,
    since: Option<SystemTime>,
}

/// What a file wants to become.
pub(crate) enum Wish {
    New(Arc<Parsed>),
    Gone,
}

impl File {
    /// What is to be served instead.
    pub(crate) fn candidate(&self) -> Option<&Arc<Parsed>> {
        match &self.wish {
            Some(Wish::New(parsed)) => Some(parsed),
            _ => None,
        }
    }

    fn fail(&mut self, errors: Vec<Problem>) {
        if self.errors.is_empty() {
            self.since = Some(SystemTime::now());
        }
        self.errors = errors;
    }

    fn take(&mut self, parsed: Arc<Parsed>) {
        self.served = Some(parsed);
        self.errors.clear();
        self.lost = false;
        self.since = Some(SystemTime::now());
    }
}

/// A change of one file, to be taken back if it is refused.
struct Step {
    id: FileId,
    before: Option<Arc<Parsed>>,
    after: Option<Arc<Parsed>>,
}

/// All files below some paths.
pub struct Files {
    pub(crate) roots: Vec<PathBuf>,
    pub(crate) options: Options,
    files: BTreeMap<FileId, File>,
    /// What is served of all files.
    index: Index,
    /// Paths that could not be looked at, and since when.
    failed: BTreeMap<PathBuf, (Problem, SystemTime)>,
    loaded: bool,
    /// What the last update consists of.
    steps: Vec<Step>,
}

/// What files hold, read once.
#[derive(Debug)]
pub struct Loaded {
    /// The resources of good files.
    pub resources: Vec<(TypeUrl, Arc<Resource>)>,
    /// How many files there are.
    pub files: usize,
    /// Everything that is wrong.
    pub errors: Vec<Problem>,
    /// Everything that may be wrong.
    pub warnings: Vec<Problem>,
}

/// What a look at the files found.
pub(crate) struct Refresh {
    /// What has to change, if anything.
    pub(crate) changes: Option<Vec<Change>>,
    /// Everything is good for the first time.
    pub(crate) first: bool,
    /// Some file looks half written and should be read again soon.
    pub(crate) retry: bool,
}

impl Files {
    /// Files and directories; nothing is read yet.
    pub fn new<P: Into<PathBuf>>(paths: impl IntoIterator<Item = P>, options: Options) -> Self {
        Self {
            roots: paths.into_iter().map(Into::into).collect(),
            options,
            files: BTreeMap::new(),
            index: Index::default(),
            failed: BTreeMap::new(),
            loaded: false,
            steps: Vec::new(),
        }
    }

    /// Reads everything there is, once.
    pub fn load(&mut self) -> Loaded {
        self.refresh(scan(&self.roots), &HashSet::new(), true);
        let status = self.status();
        Loaded {
            resources: self.resources(),
            files: self.files.len(),
            errors: status.errors().cloned().collect(),
            warnings: status.warnings().cloned().collect(),
        }
    }

    fn resources(&self) -> Vec<(TypeUrl, Arc<Resource>)> {
        let served = self.files.values().filter_map(|file| file.served.as_ref());
        served
            .flat_map(|parsed| &parsed.items)
            .map(|item| (item.type_url.clone(), Arc::clone(&item.resource)))
            .collect()
    }

    /// Looks at the files. Those at `touched`, as absolute paths, are read even if they look the
    /// same. If it is the last try, a file that looks half written is bad.
    pub(crate) fn refresh(
        &mut self,
        scan: Scan,
        touched: &HashSet<PathBuf>,
        last_try: bool,
    ) -> Refresh {
        self.note_failed(&scan);
        self.note_gone(&scan);
        let changed = self.note_found(scan.files, touched);
        let jobs = changed.into_iter().map(|id| {
            let before = self.files.get(&id).and_then(|file| file.hash);
            (id, before)
        });
        let mut retry = false;
        for (id, outcome) in read_all(jobs.collect(), &self.options.text) {
            retry |= self.note_read(&id, outcome, last_try);
        }
        self.settle();
        let first = !self.loaded && self.all_good();
        self.loaded |= first;
        let changes = match (self.loaded, first) {
            (false, _) => None,
            (true, true) => Some(diff::all(self.resources())),
            (true, false) => Some(self.changes()).filter(|changes| !changes.is_empty()),
        };
        Refresh {
            changes,
            first,
            retry,
        }
    }

    fn all_good(&self) -> bool {
        let bad = |file: &File| !self.errors(file).is_empty() || file.served.is_none();
        self.failed.is_empty() && !self.files.values().any(bad)
    }

    fn changes(&self) -> Vec<Change> {
        let before = self.steps.iter().filter_map(|step| step.before.as_deref());
        let after = self.steps.iter().filter_map(|step| step.after.as_deref());
        diff::between(before, after)
    }

    fn note_failed(&mut self, scan: &Scan) {
        let now = SystemTime::now();
        let mut before = std::mem::take(&mut self.failed);
        for (path, fault) in &scan.failed {
            let since = before.remove(path).map_or(now, |(_, since)| since);
            let name = path.display().to_string().into();
            let problem = Problem::whole(&name, fault.clone());
            self.failed.insert(path.clone(), (problem, since));
        }
    }

    /// A file that is not there, and would have been seen, is gone.
    fn note_gone(&mut self, scan: &Scan) {
        let found: HashSet<_> = scan.files.iter().map(|f| (f.root, &f.path)).collect();
        let blind = |id: &FileKey| {
            let below = |(path, fault): &(PathBuf, Fault)| {
                id.path.starts_with(path) || matches!(fault, Fault::TooManyFiles { .. })
            };
            scan.failed.iter().any(below)
        };
        for (id, file) in &mut self.files {
            if !found.contains(&(id.root, &id.path)) && !blind(id) {
                file.wish = Some(Wish::Gone);
            }
        }
    }

    /// The files that have to be read.
    fn note_found(&mut self, found: Vec<Found>, touched: &HashSet<PathBuf>) -> BTreeSet<FileId> {
        let mut changed = BTreeSet::new();
        for Found { root, path, stamp } in found {
            let touched = touched.contains(&absolute(&path));
            let name = path.display().to_string().into();
            let id = FileId::new(FileKey { root, path, name });
            let file = self.files.entry(Arc::clone(&id)).or_default();
            if matches!(file.wish, Some(Wish::Gone)) {
                // It was to go and could not, and is back.
                file.wish = None;
                file.hash = None;
            }
            let same = file.stamp.as_ref() == Some(&stamp);
            file.stamp = Some(stamp);
            if touched || !same || file.suspect.is_some() || file.hash.is_none() {
                changed.insert(id);
            }
        }
        changed
    }

    /// Whether the file should be read once more.
    fn note_read(&mut self, id: &FileId, outcome: Option<Outcome>, last_try: bool) -> bool {
        let Some(file) = self.files.get_mut(id) else {
            return false;
        };
        let suspect = file.suspect.take();
        let Some(outcome) = outcome else {
            return false;
        };
        let had = file.served.as_ref().is_some_and(|p| !p.items.is_empty());
        let emptied = had && outcome.parsed.items.is_empty();
        let long = suspect.is_some_and(|since| since.elapsed() >= self.options.retry);
        if !last_try && !long && (emptied || !outcome.errors.is_empty()) {
            file.suspect = suspect.or_else(|| Some(Instant::now()));
            return true;
        }
        file.hash = outcome.hash;
        file.warnings = outcome.warnings;
        let (parsed, mut errors) = (Arc::new(outcome.parsed), outcome.errors);
        if errors.is_empty() {
            file.wish = Some(Wish::New(parsed));
        } else {
            // What it contradicts itself in is said with the rest.
            let inside = Index::default().insert(id, &parsed);
            errors.extend(inside.err().into_iter().flat_map(|clash| clash.problems));
            file.wish = None;
            file.fail(errors);
        }
        false
    }

    fn settle(&mut self) {
        let all_known = self.failed.is_empty();
        let dangling = self.options.dangling;
        let Settled {
            mut rejected,
            mut dangling,
        } = settle(&mut self.index, &self.files, all_known, dangling);
        self.steps.clear();
        for (id, file) in &mut self.files {
            file.dangling = dangling.remove(id).unwrap_or_default();
            if let Some(errors) = rejected.remove(id) {
                file.fail(errors);
                file.lost = true;
                continue;
            }
            let Some(wish) = file.wish.take() else {
                continue;
            };
            let before = file.served.take();
            let after = match wish {
                Wish::New(parsed) => {
                    file.take(Arc::clone(&parsed));
                    Some(parsed)
                }
                Wish::Gone => None,
            };
            let id = Arc::clone(id);
            self.steps.push(Step { id, before, after });
        }
        for step in self.steps.iter().filter(|step| step.after.is_none()) {
            self.files.remove(&step.id);
        }
    }

    /// Takes the last update back: the database does not want it. Files that
    /// have the name that it complains of are bad until they change.
    pub(crate) fn refused(&mut self, error: &ApplyError, first: bool) {
        let name = match error {
            ApplyError::Overlap { name, .. }
            | ApplyError::Undecided { name, .. }
            | ApplyError::NoBody { name } => name,
        };
        if first {
            self.loaded = false;
            let served = self.files.iter().filter_map(|(id, file)| {
                let after = Some(file.served.clone()?);
                let (id, before) = (Arc::clone(id), None);
                Some(Step { id, before, after })
            });
            self.steps = served.collect();
        }
        let steps = std::mem::take(&mut self.steps);
        let has = |parsed: &Parsed, name: &Name| {
            parsed.items.iter().any(|item| item.resource.name == *name)
        };
        let new = |step: &Step| step.after.as_ref().is_some_and(|after| has(after, name));
        let anyone = steps.iter().any(new);
        for step in &steps {
            if let Some(after) = &step.after {
                self.index.remove(&step.id, after);
            }
        }
        for step in steps {
            let guilty = step.after.is_some() && (!anyone || new(&step));
            let file = self.files.entry(Arc::clone(&step.id)).or_default();
            file.served = step.before;
            if let Some(before) = &file.served {
                // They stood together before.
                let _ = self.index.insert(&step.id, before);
            }
            file.wish = match step.after {
                _ if guilty => {
                    let fault = Fault::Refused(error.clone());
                    file.fail(vec![Problem::whole(&step.id.name, fault)]);
                    None
                }
                Some(after) => Some(Wish::New(after)),
                None => Some(Wish::Gone),
            };
        }
    }

    fn errors<'a>(&self, file: &'a File) -> &'a [Problem] {
        match self.options.dangling {
            Dangling::Refuse if file.errors.is_empty() => &file.dangling,
            _ => &file.errors,
        }
    }

    /// What is known of all files.
    pub(crate) fn status(&self) -> FilesStatus {
        let now = SystemTime::now();
        let failed = self.failed.values().map(|(problem, since)| FileStatus {
            path: Arc::clone(&problem.place.file),
            since: *since,
            resources: 0,
            errors: [problem.clone()].into(),
            warnings: [].into(),
        });
        let files = self.files.iter().map(|(id, file)| {
            let loose = match self.options.dangling {
                Dangling::Warn => &file.dangling[..],
                Dangling::Refuse => &[],
            };
            FileStatus {
                path: Arc::clone(&id.name),
                since: file.since.unwrap_or(now),
                resources: file.served.as_ref().map_or(0, |p| p.items.len()),
                errors: self.errors(file).into(),
                warnings: [&file.warnings, loose].concat().into(),
            }
        });
        FilesStatus {
            loaded: self.loaded,
            files: files.chain(failed).collect(),
            unwatched: Vec::new(),
        }
    }
}
