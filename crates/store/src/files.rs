//! All files: scans them, reads those that changed, and computes the changes.
//!
//! Nothing here waits or watches.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Instant, SystemTime};

use trunkline::checked::{Document, Fault, Finding, Index};
use trunkline::{Change, Resource, TypeUrl};

use crate::diff;
use crate::file::{File, FileId, FileKey, Wish};
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
const MOST_LOOKS: usize = 4;

/// The result of one scan.
struct Absorbed {
    /// Whether some file had to be read.
    changed: bool,
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
    /// The files of some paths, each a file or a directory; nothing is read
    /// yet.
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

    /// Reads all files, once. A file that looks half written is bad.
    pub fn load(&mut self) -> Loaded {
        let roots = self.roots.clone();
        self.refresh(&mut || scan(&roots), &HashSet::new(), true);
        let status = self.status();
        let resources = self.served().flat_map(|parsed| &parsed.items);
        let resources = resources.map(|item| (item.type_url.clone(), Arc::clone(&item.resource)));
        Loaded {
            resources: resources.collect(),
            files: self.files.len(),
            errors: status.errors().cloned().collect(),
            warnings: status.warnings().cloned().collect(),
        }
    }

    /// The contents of good files.
    fn served(&self) -> impl Iterator<Item = &Document> {
        let files = self.files.values();
        files.filter_map(|file| file.served.as_deref())
    }

    /// Reads the files that changed, settles all files, and computes the
    /// changes since the last refresh. Files are scanned with `look`. Those at
    /// `touched`, as absolute paths, are read even if they look the same. On
    /// the last try, a file that looks half written is bad.
    pub(crate) fn refresh(
        &mut self,
        look: &mut dyn FnMut() -> Scan,
        touched: &HashSet<PathBuf>,
        last_try: bool,
    ) -> Refresh {
        let retry = self.absorb_all(look, touched, last_try);
        self.settle();
        let first = !self.loaded && self.all_good();
        self.loaded |= first;
        let changes = match (self.loaded, first) {
            (false, _) => None,
            (true, true) => Some(diff::all(self.served())),
            (true, false) => Some(self.changes()).filter(|changes| !changes.is_empty()),
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

    /// Scans the files until none changes meanwhile, so that a swap of several
    /// files is seen as one change and not in parts. Returns whether some file
    /// should be read again soon.
    fn absorb_all(
        &mut self,
        look: &mut dyn FnMut() -> Scan,
        touched: &HashSet<PathBuf>,
        last_try: bool,
    ) -> bool {
        let mut retry = self.absorb(look(), Some(touched), last_try).retry;
        for _ in 0..MOST_LOOKS {
            let more = self.absorb(look(), None, last_try);
            retry |= more.retry;
            if !more.changed {
                break;
            }
        }
        retry
    }

    /// Reads the files that changed by a scan; `touched` is `None` on a second
    /// scan.
    fn absorb(
        &mut self,
        scan: Scan,
        touched: Option<&HashSet<PathBuf>>,
        last_try: bool,
    ) -> Absorbed {
        self.note_failed(&scan);
        self.note_gone(&scan);
        let changed = self.note_found(scan.files, touched);
        let mut absorbed = Absorbed {
            changed: !changed.is_empty(),
            retry: false,
        };
        let jobs = changed.into_iter().map(|id| {
            let before = self.files.get(&id).and_then(|file| file.hash);
            (id, before)
        });
        for (id, outcome) in read_all(jobs.collect(), &self.options.text) {
            absorbed.retry |= self.note_read(&id, outcome, last_try);
        }
        absorbed
    }

    /// Whether every path could be scanned, and every file is good.
    fn all_good(&self) -> bool {
        let bad = |file: &File| !self.errors(file).is_empty() || file.served.is_none();
        self.failed.is_empty() && !self.files.values().any(bad)
    }

    /// Replaces the paths that could not be scanned; the time of one that
    /// failed before stays.
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

    /// Marks files that are missing, and would have been found, as removed.
    fn note_gone(&mut self, scan: &Scan) {
        let found: HashSet<_> = scan.files.iter().map(|f| (f.root, &f.path)).collect();
        let is_unknown = |id: &FileKey| {
            let hides = |(path, fault): &(PathBuf, Fault)| {
                id.path.starts_with(path) || matches!(fault, Fault::TooManyFiles { .. })
            };
            scan.failed.iter().any(hides)
        };
        for (id, file) in &mut self.files {
            if !found.contains(&(id.root, &id.path)) && !is_unknown(id) {
                file.wish = Some(Wish::Gone);
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
            let touched = touched.map(|touched| touched.contains(&absolute(&path)));
            let name = path.display().to_string().into();
            let id = FileId::new(FileKey { root, path, name });
            let file = self.files.entry(Arc::clone(&id)).or_default();
            if matches!(file.wish, Some(Wish::Gone)) {
                // Its removal was turned down, and it is back.
                file.wish = None;
                file.hash = None;
            }
            let same = file.stamp.as_ref() == Some(&stamp);
            file.stamp = Some(stamp);
            let doubtful = file.suspect.is_some() || file.hash.is_none();
            if !same || touched.is_some_and(|touched| touched || doubtful) {
                changed.insert(id);
            }
        }
        changed
    }

    /// Records the outcome of reading a file; `None` if its bytes are the same
    /// as before. Returns whether the file looks half written, so that it
    /// should be read once more and nothing was recorded.
    fn note_read(&mut self, id: &FileId, outcome: Option<Outcome>, last_try: bool) -> bool {
        let Some(file) = self.files.get_mut(id) else {
            return false;
        };
        let suspect = file.suspect.take();
        let Some(outcome) = outcome else {
            return false;
        };
        let waited = suspect.is_some_and(|since| since.elapsed() >= self.options.retry);
        if !last_try && !waited && looks_half_written(file, &outcome) {
            file.suspect = suspect.or_else(|| Some(Instant::now()));
            return true;
        }
        file.hash = outcome.hash;
        let decoded = outcome.decoded;
        file.warnings = decoded.warnings;
        let (parsed, mut errors) = (Arc::new(decoded.document), decoded.errors);
        if errors.is_empty() {
            file.wish = Some(Wish::New(parsed));
        } else {
            // Contradictions within the file are reported with its other
            // mistakes.
            let inside = Index::default().insert(id, &parsed);
            errors.extend(inside.err().into_iter().flat_map(|clash| clash.findings));
            file.wish = None;
            file.fail(errors);
        }
        false
    }
}

/// Whether a file may be read in the middle of being written: it has a mistake,
/// or has lost all of its resources.
fn looks_half_written(file: &File, outcome: &Outcome) -> bool {
    let had_items = file.served.as_ref().is_some_and(|p| !p.items.is_empty());
    let emptied = had_items && outcome.decoded.document.items.is_empty();
    emptied || !outcome.decoded.errors.is_empty()
}
