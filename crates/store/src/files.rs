//! All files: scans them, reads those that changed, and proposes what they hold.
//!
//! Nothing here waits or watches.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Instant, SystemTime};

use trunkline::checked::{Decoded, Edit, Effect, Fault, Finding, Guard, Proposal, Rejection};
use trunkline::{Resource, TypeUrl};

use crate::file::{File, FileId, FileKey, NewState};
use crate::options::Options;
use crate::read::Outcome;
use crate::read_all::read_all;
use crate::scan::{Found, Scan, absolute, scan};
use crate::target::Target;

/// All files below some paths.
pub struct Files {
    pub(crate) roots: Vec<PathBuf>,
    pub(crate) options: Options,
    pub(crate) files: BTreeMap<FileId, File>,
    /// Where the files are settled.
    pub(crate) target: Target,
    /// Paths that could not be scanned, and since when.
    pub(crate) failed: BTreeMap<PathBuf, (Finding, SystemTime)>,
    pub(crate) loaded: bool,
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

/// The name of the origin that all files are.
pub const ORIGIN: &str = "files";

impl Files {
    /// Makes the files of some paths, each a file or a directory; nothing is
    /// read yet.
    pub fn new<P: Into<PathBuf>>(paths: impl IntoIterator<Item = P>, options: Options) -> Self {
        Self {
            roots: paths.into_iter().map(Into::into).collect(),
            options,
            files: BTreeMap::new(),
            target: Target::Set(Box::default()),
            failed: BTreeMap::new(),
            loaded: false,
        }
    }

    /// Reads all files, once, and does not wait for one that looks half
    /// written: that one is bad. The mistakes of bad files come with the
    /// resources of the good ones.
    pub fn load(&mut self) -> Loaded {
        let roots = self.roots.clone();
        let last_try = true;
        self.refresh(&mut |_| scan(&roots), &HashSet::new(), last_try);

        let status = self.status();
        Loaded {
            resources: self.target.read(|set| set.resources(ORIGIN)),
            files: self.files.len(),
            errors: status.errors().cloned().collect(),
            warnings: status.warnings().cloned().collect(),
        }
    }

    /// Reads the files that changed, and settles them. Until every file has
    /// been good once, nothing is applied. Files are scanned with `scan_files`,
    /// which is given the paths of all attachments. Those at `touched`, as
    /// absolute paths, are read even if they look the same. On the last try, a
    /// file that looks half written is bad. Returns whether one looks so, and
    /// should be read again soon.
    pub(crate) fn refresh(
        &mut self,
        scan_files: &mut dyn FnMut(&[PathBuf]) -> Scan,
        touched: &HashSet<PathBuf>,
        last_try: bool,
    ) -> bool {
        let retry = self.scan_until_stable(scan_files, touched, last_try);
        self.settle();
        if !self.loaded && self.is_all_good() {
            self.apply_first();
        }
        retry
    }

    /// Scans and reads the files until none changes meanwhile, so that a swap
    /// of several files is seen as one change and not in parts. After
    /// [`MOST_RESCANS`] it goes on all the same. Returns whether some file
    /// looks half written and should be read again soon.
    fn scan_until_stable(
        &mut self,
        scan_files: &mut dyn FnMut(&[PathBuf]) -> Scan,
        touched: &HashSet<PathBuf>,
        last_try: bool,
    ) -> bool {
        let scan = scan_files(&self.attachments());
        let mut retry = self.reread(scan, Some(touched), last_try).retry;
        for _ in 0..MOST_RESCANS {
            let scan = scan_files(&self.attachments());
            let rescan = self.reread(scan, None, last_try);
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
            let known = self.files.get(&id).and_then(File::known);
            (id, known)
        });
        let mut retry = false;
        for (id, outcome) in read_all(jobs.collect(), &self.options.text) {
            retry |= self.note_read(&id, outcome, last_try);
        }
        Reread { any_changed, retry }
    }

    /// Proposes the new states of files. One that is rejected is bad, and is
    /// proposed again the next time.
    fn settle(&mut self) {
        let mut changed: Vec<_> = self
            .files
            .iter()
            .filter(|(_, file)| file.new_state.is_some())
            .map(|(id, file)| (file.was_turned_down, FileId::clone(id)))
            .collect();
        // The first of two that contradict each other wins: a file that was
        // turned down before comes last.
        changed.sort();
        let ids: Vec<FileId> = changed.into_iter().map(|(_, id)| id).collect();

        let edits = ids.iter().filter_map(|id| self.take_edit(id)).collect();
        let effect = match self.loaded {
            true => Effect::Applied,
            false => Effect::Held,
        };
        let names: Vec<&Arc<str>> = ids.iter().map(|id| &id.name).collect();
        let proposal = Proposal {
            origin: ORIGIN,
            edits,
            dangling: self.options.dangling,
            is_complete: self.failed.is_empty() && self.is_all_known(&ids),
            effect,
            // Of what was there before the start, nothing is known.
            guard: match self.loaded && self.options.guard {
                true => Guard::On,
                false => Guard::Off,
            },
        };
        let settlement = self.target.settle(&names, proposal);
        self.note_settlement(&ids, settlement.rejections);
        self.update_findings();
    }

    /// Takes the new state of a file as an edit, and marks the file as good.
    fn take_edit(&mut self, id: &FileId) -> Option<Edit> {
        let file = self.files.get_mut(id)?;
        let document = match file.new_state.take()? {
            NewState::Contents(document) => Some(document),
            NewState::Removed => None,
        };
        file.settled = document.as_ref().map(|document| document.items.len());
        Some(Edit::File {
            root: id.root,
            name: Arc::clone(&id.name),
            document,
        })
    }

    /// Returns whether the contents of all files are known: those that are not
    /// served so far are about to be proposed.
    fn is_all_known(&self, proposed: &[FileId]) -> bool {
        let proposed: HashSet<&FileId> = proposed.iter().collect();
        let mut files = self.files.iter();
        files.all(|(id, file)| file.served.is_some() || proposed.contains(id))
    }

    /// Records which of the proposed files were accepted, and which were
    /// rejected. Removed files are dropped.
    fn note_settlement(&mut self, proposed: &[FileId], rejections: Vec<Rejection>) {
        let mut rejected: BTreeMap<usize, Rejection> = BTreeMap::new();
        for rejection in rejections {
            rejected.insert(rejection.edit, rejection);
        }
        for (nth, id) in proposed.iter().enumerate() {
            let Some(file) = self.files.get_mut(id) else {
                continue;
            };
            match (rejected.remove(&nth), file.settled.take()) {
                (Some(rejection), _) => {
                    file.mark_bad(rejection.findings);
                    file.was_turned_down = true;
                    file.new_state = Some(match rejection.document {
                        Some(document) => NewState::Contents(document),
                        None => NewState::Removed,
                    });
                }
                (None, Some(resources)) => file.mark_good(resources),
                (None, None) => drop(self.files.remove(id)),
            }
        }
    }

    /// Replaces the findings about all files together: dangling references, and
    /// values that no variant serves.
    fn update_findings(&mut self) {
        let Self { files, target, .. } = self;
        target.read(|set| {
            for (id, file) in files {
                file.dangling = set.dangling_of_file(ORIGIN, id.root, &id.name);
                file.unserved = set.unserved_of_file(ORIGIN, id.root, &id.name);
            }
        });
    }

    /// Applies the contents of all files, which are all good for the first
    /// time.
    fn apply_first(&mut self) {
        let names: Vec<&Arc<str>> = self.files.keys().map(|id| &id.name).collect();
        match self.target.apply_first(&names) {
            Ok(()) => self.loaded = true,
            Err(error) => {
                let fault = Fault::Refused(error);
                let now = SystemTime::now();
                for root in &self.roots {
                    let name = root.display().to_string().into();
                    let finding = Finding::whole(&name, fault.clone());
                    self.failed.insert(root.clone(), (finding, now));
                }
            }
        }
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
            let own_path = absolute(&path);
            let name = path.display().to_string().into();
            let id = FileId::new(FileKey { root, path, name });
            let file = self.files.entry(Arc::clone(&id)).or_default();

            if matches!(file.new_state, Some(NewState::Removed)) {
                // Its removal was turned down, and it is back.
                file.new_state = None;
                file.hash = None;
            }

            let is_touched = touched
                .map(|touched| touched.contains(&own_path) || file.attachments.any_at(touched));
            let any_attached_changed = file.attachments.update_stamps();
            let is_same = file.stamp.as_ref() == Some(&stamp) && !any_attached_changed;
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

        let patience = match outcome.is_pair_half_replaced() {
            true => self.options.pair,
            false => self.options.retry,
        };
        let waited = half_written_since.is_some_and(|since| since.elapsed() >= patience);
        if !last_try && !waited && looks_half_written(file, &outcome) {
            file.half_written_since = half_written_since.or_else(|| Some(Instant::now()));
            return true;
        }

        file.hash = outcome.hash;
        file.attachments = outcome.attachments;
        take_decoded(file, outcome.decoded);
        false
    }
}

/// Makes the decoded contents the new state of a file. With mistakes in them
/// the file has no new state, and is bad.
fn take_decoded(file: &mut File, mut decoded: Decoded) {
    file.warnings = std::mem::take(&mut decoded.warnings);
    if decoded.errors.is_empty() {
        file.new_state = Some(NewState::Contents(decoded.document));
        return;
    }

    // Contradictions within the file are reported with its other mistakes.
    let errors = decoded.into_all_errors();
    file.new_state = None;
    file.mark_bad(errors);
}

/// Returns whether a file may have been read in the middle of being written: it
/// has a mistake, or has lost all of its resources.
fn looks_half_written(file: &File, outcome: &Outcome) -> bool {
    let had_items = file.served.is_some_and(|resources| resources > 0);
    let is_emptied = had_items && outcome.decoded.document.items.is_empty();
    is_emptied || !outcome.decoded.errors.is_empty()
}
