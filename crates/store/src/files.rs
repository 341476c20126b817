//! All files: scans them, reads those that changed, and computes the changes.
//!
//! Nothing here waits or watches.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Instant, SystemTime};

use trunkline::checked::{Decoded, Document, Fault, Finding, Index};
use trunkline::{Change, Resource, TypeUrl};

use crate::diff;
use crate::file::{File, FileId, FileKey, NewState};
use crate::options::Options;
use crate::read::Outcome;
use crate::read_all::read_all;
use crate::scan::{Found, Scan, absolute, scan};
use crate::steps::Step;

/// All files below some paths.
pub struct Files {
    pub(crate) roots: Vec<PathBuf>,
    pub(crate) options: Options,
    pub(crate) files: BTreeMap<FileId, File>,
    /// The served resources of all files.
    pub(crate) index: Index<FileId>,
    /// Paths that could not be scanned, and since when.
    pub(crate) failed: BTreeMap<PathBuf, (Finding, SystemTime)>,
    pub(crate) loaded: bool,
    /// The steps of the last update.
    pub(crate) steps: Vec<Step>,
}

/// The resources of files, read once.
#[derive(Debug)]
pub struct Loaded {
    /// The resources of good files.
    pub resources: Vec<(TypeUrl, Arc<Resource>)>,
    /// The number of files.
    pub files: usize,
    /// All mistakes.
    pub errors: Vec<Finding>,
    /// All warnings.
    pub warnings: Vec<Finding>,
}

/// How often files are scanned again because one changes meanwhile.
const MOST_RESCANS: usize = 4;

/// The result of reading the files that changed by one scan.
struct Reread {
    /// Whether some file had to be read.
    any_changed: bool,
    /// Whether some file looks half written.
    retry: bool,
}

/// The result of a refresh.
pub(crate) struct Refresh {
    /// The changes to apply, if any.
    pub(crate) changes: Option<Vec<Change>>,
    /// The files that changed.
    pub(crate) files: Vec<Arc<str>>,
    /// Whether everything is good for the first time.
    pub(crate) first: bool,
    /// Whether some file looks half written and should be read again soon.
    pub(crate) retry: bool,
}

impl Files {
    /// Makes the files of some paths, each a file or a directory; nothing is
    /// read yet.
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

    /// Reads all files, once, and does not wait for one that looks half
    /// written: that one is bad. The mistakes of bad files come with the
    /// resources of the good ones.
    pub fn load(&mut self) -> Loaded {
        let roots = self.roots.clone();
        let last_try = true;
        self.refresh(&mut || scan(&roots), &HashSet::new(), last_try);

        let status = self.status();
        let items = self.served_documents().flat_map(|document| &document.items);
        let resources = items.map(|item| (item.type_url.clone(), Arc::clone(&item.resource)));
        Loaded {
            resources: resources.collect(),
            files: self.files.len(),
            errors: status.errors().cloned().collect(),
            warnings: status.warnings().cloned().collect(),
        }
    }

    /// Returns the served contents of each file that has some: those of a good
    /// file, and the last good ones of a bad file.
    fn served_documents(&self) -> impl Iterator<Item = &Document> {
        let files = self.files.values();
        files.filter_map(|file| file.served.as_deref())
    }

    /// Reads the files that changed, settles all files, and computes the
    /// changes since the last refresh. Before every file has been good once,
    /// there are none; then they create all resources. Files are scanned with
    /// `scan_files`. Those at `touched`, as absolute paths, are read even if
    /// they look the same. On the last try, a file that looks half written is
    /// bad.
    pub(crate) fn refresh(
        &mut self,
        scan_files: &mut dyn FnMut() -> Scan,
        touched: &HashSet<PathBuf>,
        last_try: bool,
    ) -> Refresh {
        let retry = self.scan_until_stable(scan_files, touched, last_try);
        self.settle();

        let first = !self.loaded && self.is_all_good();
        self.loaded |= first;
        let changes = if first {
            Some(diff::upserts(self.served_documents()))
        } else if self.loaded {
            Some(self.changes()).filter(|changes| !changes.is_empty())
        } else {
            None
        };

        let changed: Vec<_> = match first {
            true => self.files.keys().collect(),
            false => self.steps.iter().map(|step| &step.id).collect(),
        };
        Refresh {
            changes,
            files: changed.iter().map(|id| Arc::clone(&id.name)).collect(),
            first,
            retry,
        }
    }

    /// Scans and reads the files until none changes meanwhile, so that a swap
    /// of several files is seen as one change and not in parts. After
    /// [`MOST_RESCANS`] it goes on all the same. Returns whether some file
    /// looks half written and should be read again soon.
    fn scan_until_stable(
        &mut self,
        scan_files: &mut dyn FnMut() -> Scan,
        touched: &HashSet<PathBuf>,
        last_try: bool,
    ) -> bool {
        let mut retry = self.reread(scan_files(), Some(touched), last_try).retry;
        for _ in 0..MOST_RESCANS {
            let rescan = self.reread(scan_files(), None, last_try);
            retry |= rescan.retry;
            if !rescan.any_changed {
                break;
            }
        }
        retry
    }

    /// Reads the files that changed by a scan, and records those that are gone
    /// and the paths that could not be scanned. `touched` is `None` on a second
    /// scan.
    fn reread(&mut self, scan: Scan, touched: Option<&HashSet<PathBuf>>, last_try: bool) -> Reread {
        self.note_failed(&scan);
        self.note_removed(&scan);
        let changed = self.note_found(scan.files, touched);
        let any_changed = !changed.is_empty();

        let jobs = changed.into_iter().map(|id| {
            let known_hash = self.files.get(&id).and_then(|file| file.hash);
            (id, known_hash)
        });
        let mut retry = false;
        for (id, outcome) in read_all(jobs.collect(), &self.options.text) {
            retry |= self.note_read(&id, outcome, last_try);
        }
        Reread { any_changed, retry }
    }

    /// Returns whether every path could be scanned, and every file is good and
    /// served.
    fn is_all_good(&self) -> bool {
        let is_bad = |file: &File| !self.errors(file).is_empty() || file.served.is_none();
        self.failed.is_empty() && !self.files.values().any(is_bad)
    }

    /// Replaces the paths that could not be scanned by those of this scan; the
    /// time of one that failed before stays.
    fn note_failed(&mut self, scan: &Scan) {
        let now = SystemTime::now();
        let mut before = std::mem::take(&mut self.failed);
        for (path, fault) in &scan.failed {
            let since = before.remove(path).map_or(now, |(_, since)| since);
            let name = path.display().to_string().into();
            let problem = Finding::whole(&name, fault.clone());
            self.failed.insert(path.clone(), (problem, since));
        }
    }

    /// Marks the files as removed that the scan did not find. A file below a
    /// path that could not be scanned stays: it may still be there. If there
    /// were too many files, that goes for all.
    fn note_removed(&mut self, scan: &Scan) {
        let found: HashSet<_> = scan.files.iter().map(|f| (f.root, &f.path)).collect();
        let may_exist = |id: &FileKey| {
            let hides_it = |(path, fault): &(PathBuf, Fault)| {
                id.path.starts_with(path) || matches!(fault, Fault::TooManyFiles { .. })
            };
            scan.failed.iter().any(hides_it)
        };
        for (id, file) in &mut self.files {
            if !found.contains(&(id.root, &id.path)) && !may_exist(id) {
                file.new_state = Some(NewState::Removed);
            }
        }
    }

    /// Records the stamps of the files that were found, and returns the files
    /// that have to be read: those that changed, were touched, or look half
    /// written. On a second scan, when `touched` is `None`, these are only
    /// those that changed since the first.
    fn note_found(
        &mut self,
        found: Vec<Found>,
        touched: Option<&HashSet<PathBuf>>,
    ) -> BTreeSet<FileId> {
        let mut changed = BTreeSet::new();
        for Found { root, path, stamp } in found {
            let is_touched = touched.map(|touched| touched.contains(&absolute(&path)));
            let name = path.display().to_string().into();
            let id = FileId::new(FileKey { root, path, name });
            let file = self.files.entry(Arc::clone(&id)).or_default();

            if matches!(file.new_state, Some(NewState::Removed)) {
                // Its removal was turned down, and it is back.
                file.new_state = None;
                file.hash = None;
            }

            let is_same = file.stamp.as_ref() == Some(&stamp);
            file.stamp = Some(stamp);
            let is_doubtful = file.half_written_since.is_some() || file.hash.is_none();
            // `None`, on a second scan, leaves it to the stamp alone.
            let is_due = is_touched.is_some_and(|is_touched| is_touched || is_doubtful);
            if !is_same || is_due {
                changed.insert(id);
            }
        }
        changed
    }

    /// Records the outcome of reading a file; an outcome of `None` means that
    /// its bytes are the same as before. A file that looks half written is
    /// given some time, unless this is the last try: then nothing is recorded
    /// but since when, and the result is true, for the file should be read
    /// again.
    fn note_read(&mut self, id: &FileId, outcome: Option<Outcome>, last_try: bool) -> bool {
        let Some(file) = self.files.get_mut(id) else {
            return false;
        };
        let half_written_since = file.half_written_since.take();
        let Some(outcome) = outcome else {
            return false;
        };

        let waited = half_written_since.is_some_and(|since| since.elapsed() >= self.options.retry);
        if !last_try && !waited && looks_half_written(file, &outcome) {
            file.half_written_since = half_written_since.or_else(|| Some(Instant::now()));
            return true;
        }

        file.hash = outcome.hash;
        take_decoded(id, file, outcome.decoded);
        false
    }
}

/// Makes the decoded contents the new state of a file. With mistakes in them
/// the file has no new state, and is bad.
fn take_decoded(id: &FileId, file: &mut File, decoded: Decoded) {
    file.warnings = decoded.warnings;
    let document = Arc::new(decoded.document);
    if decoded.errors.is_empty() {
        file.new_state = Some(NewState::Contents(document));
        return;
    }

    // Contradictions within the file are reported with its other mistakes.
    let mut errors = decoded.errors;
    if let Err(clash) = Index::default().insert(id, &document) {
        errors.extend(clash.findings);
    }
    file.new_state = None;
    file.mark_bad(errors);
}

/// Returns whether a file may have been read in the middle of being written: it
/// has a mistake, or has lost all of its resources.
fn looks_half_written(file: &File, outcome: &Outcome) -> bool {
    let served = file.served.as_ref();
    let had_items = served.is_some_and(|document| !document.items.is_empty());
    let is_emptied = had_items && outcome.decoded.document.items.is_empty();
    is_emptied || !outcome.decoded.errors.is_empty()
}
