//! All files: scans them, reads those that changed, and proposes what they hold.
//!
//! Nothing here waits or watches.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use trunkline::checked::{Decoded, Edit, Effect, Fault, Finding, Guard, Proposal, Rejection};

use crate::file::{File, FileId, FileKey, NewState, Settled};
use crate::locate::Locator;
use crate::mailbox::Touched;
use crate::options::Options;
use crate::read::Outcome;
use crate::read_all::read_all;
use crate::recall::Keeper;
use crate::scan::{FoundFile, Scan};
use crate::target::Target;

/// All files below some paths.
pub struct Files {
    pub(crate) roots: Vec<PathBuf>,
    pub(crate) options: Options,
    pub(crate) files: BTreeMap<FileId, File>,
    /// Where the files are settled.
    pub(crate) target: Target,
    /// Paths that could not be scanned, and since when.
    pub(crate) failures: BTreeMap<PathBuf, (Finding, SystemTime)>,
    pub(crate) loaded: bool,
    /// Keeps what is served of the files; `None` if nobody does.
    pub(crate) keeper: Option<Keeper>,
    /// Since when changes are put off because files go on changing.
    put_off_since: Option<Instant>,
}

/// The most scans that follow because a file changes during one.
const MOST_RESCANS: usize = 4;

/// The result of reading the files that changed by one scan.
#[derive(Default)]
pub(crate) struct Reread {
    /// Whether some file had to be read.
    any_changed: bool,
    /// Whether some file looks half written.
    half_written: bool,
    /// Whether some file has just changed, or is missing since just now.
    unstable: bool,
}

/// The files that a scan found.
#[derive(Default)]
struct FoundFiles {
    /// Those that have to be read.
    due: BTreeSet<FileId>,
    /// Whether some file has just changed, and is to be read later.
    unstable: bool,
}

/// The name of the origin that all files are.
pub const ORIGIN: &str = "files";

impl Files {
    /// Makes the files at these paths, each a file or a directory. Nothing is
    /// read yet.
    pub fn new<P: Into<PathBuf>>(paths: impl IntoIterator<Item = P>, options: Options) -> Self {
        Self {
            roots: paths.into_iter().map(Into::into).collect(),
            options,
            files: BTreeMap::new(),
            target: Target::Set(Box::default()),
            failures: BTreeMap::new(),
            loaded: false,
            keeper: None,
            put_off_since: None,
        }
    }

    /// Reads the files that changed, and settles them. Nothing is applied until
    /// every file has been good, unless what was served before the start was
    /// recalled. `scan_files` scans the files; it gets the paths of all
    /// attachments. Files at `touched`, which are absolute paths, are read even
    /// if they look unchanged. On the last try nothing is put off, and a file
    /// that looks half written is bad. Returns after how long to read files
    /// again, if something was put off.
    pub(crate) fn refresh(
        &mut self,
        scan_files: &mut dyn FnMut(&[PathBuf]) -> Scan,
        touched: &Touched,
        last_try: bool,
    ) -> Option<Duration> {
        let reread = self.scan_until_stable(scan_files, touched, last_try);
        if self.update_put_off(reread.unstable) {
            return Some(self.options.quiet);
        }

        self.settle();
        match (self.loaded, self.is_recalled()) {
            (false, true) if self.is_servable() => {
                self.target.declare_loaded();
                self.loaded = true;
            }
            (false, false) if self.is_all_good() => self.apply_first(),
            _ => {}
        }

        match reread {
            Reread { unstable: true, .. } => Some(self.options.quiet),
            Reread {
                half_written: true, ..
            } => Some(self.options.retry),
            _ => None,
        }
    }

    /// Records whether files are unstable now. Returns whether to put off
    /// changes for that reason, so that a swap of several files is one change:
    /// for as long as `patience` at most, after which the stable files are
    /// settled all the same.
    fn update_put_off(&mut self, unstable: bool) -> bool {
        if !unstable {
            self.put_off_since = None;
            return false;
        }
        let start = *self.put_off_since.get_or_insert_with(Instant::now);
        let puts_off = start.elapsed() < self.options.patience;
        if !puts_off {
            self.put_off_since = None;
        }
        puts_off
    }

    /// Scans and reads the files until none changes in between, so that a swap
    /// of several files is seen as one change and not in parts. Gives up
    /// waiting after [`MOST_RESCANS`], and uses what was read.
    pub(crate) fn scan_until_stable(
        &mut self,
        scan_files: &mut dyn FnMut(&[PathBuf]) -> Scan,
        touched: &Touched,
        last_try: bool,
    ) -> Reread {
        let scan = scan_files(&self.attachments());
        let mut reread = self.reread(scan, Some(touched), last_try);
        for _ in 0..MOST_RESCANS {
            let scan = scan_files(&self.attachments());
            let rescan = self.reread(scan, None, last_try);
            reread.half_written |= rescan.half_written;
            reread.unstable |= rescan.unstable;
            if !rescan.any_changed {
                break;
            }
        }
        reread
    }

    /// Reads the files that changed by a scan. Records files that are gone, and
    /// paths that could not be scanned. `touched` is `None` on a second scan:
    /// then only files that changed after the first one are read.
    fn reread(&mut self, scan: Scan, touched: Option<&Touched>, last_try: bool) -> Reread {
        self.note_failures(&scan);
        let mut reread = Reread {
            unstable: self.note_missing(&scan, last_try),
            ..Reread::default()
        };
        let found_files = self.note_stamps(scan, touched, last_try);
        reread.unstable |= found_files.unstable;
        reread.any_changed = !found_files.due.is_empty();

        let jobs = found_files.due.into_iter().map(|id| {
            let known_content = self.files.get(&id).and_then(File::known);
            (id, known_content)
        });
        for (id, outcome) in read_all(jobs.collect(), &self.options.text) {
            reread.half_written |= self.note_read(&id, outcome, last_try);
        }
        reread
    }

    /// Proposes the new states of files. A file that is rejected is bad, and is
    /// proposed again by the next call.
    pub(crate) fn settle(&mut self) {
        let files = self.files.iter();
        let changed_files = files.filter(|(_, file)| file.new_state.is_some());
        let mut proposals: Vec<_> = changed_files
            .map(|(id, file)| (file.was_turned_down, FileId::clone(id)))
            .collect();
        // The first of two that contradict each other wins: a file that was
        // turned down before comes last.
        proposals.sort();
        let ids: Vec<FileId> = proposals.into_iter().map(|(_, id)| id).collect();

        let edits = ids.iter().filter_map(|id| self.take_edit(id)).collect();
        // Of what was there before the start, nothing is known but what was
        // recalled.
        let knows_earlier = self.loaded || self.is_recalled();
        let effect = match knows_earlier {
            true => Effect::Applied,
            false => Effect::Held,
        };
        let names: Vec<&Arc<str>> = ids.iter().map(|id| &id.name).collect();
        let proposal = Proposal {
            origin: ORIGIN,
            edits,
            dangling: self.options.dangling,
            is_complete: self.failures.is_empty() && self.is_all_known(&ids),
            effect,
            guard: match knows_earlier && self.options.guard {
                true => Guard::On,
                false => Guard::Off,
            },
        };
        let settlement = self.target.settle(&names, proposal);
        self.note_settlement(&ids, settlement.rejections);
        if knows_earlier {
            self.keep_served(&ids);
        }
        self.update_findings();
    }

    /// Takes the new state of a file as an edit, and remembers it as settled.
    /// Returns `None` if the file has no new state.
    fn take_edit(&mut self, id: &FileId) -> Option<Edit> {
        let file = self.files.get_mut(id)?;
        let document = match file.new_state.take()? {
            NewState::Contents(document) => Some(document),
            NewState::Removed => None,
        };
        file.settled = document.as_ref().map(|document| Settled {
            resources: document.items.len(),
            ends_line: document.ends_line,
        });
        Some(Edit::File {
            root: id.root,
            name: Arc::clone(&id.name),
            document,
        })
    }

    /// Returns whether the contents of all files are known: each file is
    /// served, or is among those that are about to be proposed.
    fn is_all_known(&self, proposed: &[FileId]) -> bool {
        let proposed: HashSet<&FileId> = proposed.iter().collect();
        let mut files = self.files.iter();
        files.all(|(id, file)| file.served.is_some() || proposed.contains(id))
    }

    /// Records which of the proposed files were accepted, and which were
    /// rejected. Removed files are dropped.
    fn note_settlement(&mut self, proposed: &[FileId], rejections: Vec<Rejection>) {
        let rejections = rejections.into_iter();
        let mut rejected: BTreeMap<usize, Rejection> = rejections
            .map(|rejection| (rejection.edit, rejection))
            .collect();

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
                (None, Some(settled)) => file.mark_good(settled),
                (None, None) => drop(self.files.remove(id)),
            }
        }
    }

    /// Replaces the findings that depend on all files: dangling references, and
    /// values that no variant serves.
    fn update_findings(&mut self) {
        let Self { files, target, .. } = self;
        target.read(|set| {
            for (id, file) in files.iter_mut() {
                file.dangling = set.dangling_of_file(ORIGIN, id.root, &id.name);
                file.unserved = set.unserved_of_file(ORIGIN, id.root, &id.name);
            }
        });

        // Locating reads files again, so it is done without the lock of the
        // set.
        let mut locator = Locator::default();
        for (id, file) in files {
            let dangling = std::mem::take(&mut file.dangling);
            let located = &mut file.located_dangling;
            file.dangling = locator.locate(id, file.hash, dangling, located);
            let errors = std::mem::take(&mut file.errors);
            let located = &mut file.located_errors;
            file.errors = locator.locate(id, file.hash, errors, located);
        }
    }

    /// Applies the contents of all files. The caller has seen that all are
    /// good, for the first time. Files without any resource are an error,
    /// unless the options allow that: clients would remove all that they have.
    pub(crate) fn apply_first(&mut self) {
        let mut served = self.files.values().filter_map(|file| file.served);
        if !self.options.allow_empty && served.all(|resources| resources == 0) {
            return self.fail_roots(&Fault::NoResources);
        }

        let names: Vec<&Arc<str>> = self.files.keys().map(|id| &id.name).collect();
        match self.target.apply_first(&names) {
            Ok(()) => {
                let ids: Vec<FileId> = self.files.keys().cloned().collect();
                self.keep_served(&ids);
                self.target.declare_loaded();
                self.loaded = true;
            }
            Err(error) => self.fail_roots(&Fault::Refused(error)),
        }
    }

    /// Marks all configured paths as failed, until the next scan.
    fn fail_roots(&mut self, fault: &Fault) {
        let now = SystemTime::now();
        for root in &self.roots {
            let name = root.display().to_string().into();
            let finding = Finding::whole(&name, fault.clone());
            self.failures.insert(root.clone(), (finding, now));
        }
    }

    /// Returns whether every path could be scanned, and every file is good and
    /// served.
    pub(crate) fn is_all_good(&self) -> bool {
        let is_bad = |file: &File| !self.errors(file).is_empty() || file.served.is_none();
        self.failures.is_empty() && !self.files.values().any(is_bad)
    }

    /// Records the paths that this scan could not scan. A path that failed
    /// before keeps its time.
    fn note_failures(&mut self, scan: &Scan) {
        let now = SystemTime::now();
        let mut earlier = std::mem::take(&mut self.failures);
        for (path, fault) in &scan.failures {
            let since = earlier.remove(path).map_or(now, |(_, since)| since);
            let name = path.display().to_string().into();
            let problem = Finding::whole(&name, fault.clone());
            self.failures.insert(path.clone(), (problem, since));
        }
    }

    /// Marks the files that the scan did not find as removed. A file below a
    /// path that could not be scanned stays, since it may still exist; after a
    /// scan with too many files, all stay. A file has to be missing for a
    /// while, unless this is the last try, because an editor may remove it
    /// before it writes it again. Returns whether that time is running for a
    /// file.
    fn note_missing(&mut self, scan: &Scan, last_try: bool) -> bool {
        let found_files = scan.files.iter().map(|found| (found.root, &found.path));
        let found_files: HashSet<_> = found_files.collect();
        let may_exist = |id: &FileKey| {
            let hides_it = |(path, fault): &(PathBuf, Fault)| {
                id.path.starts_with(path) || matches!(fault, Fault::TooManyFiles { .. })
            };
            scan.failures.iter().any(hides_it)
        };

        let mut any_waits = false;
        for (id, file) in &mut self.files {
            if found_files.contains(&(id.root, &id.path)) || may_exist(id) {
                file.missing_since = None;
                continue;
            }
            let missing_since = *file.missing_since.get_or_insert_with(Instant::now);
            if last_try || missing_since.elapsed() >= self.options.retry {
                file.new_state = Some(NewState::Removed);
            } else {
                any_waits = true;
            }
        }
        any_waits
    }

    /// Records the stamps of the files that were found. Returns the files that
    /// have to be read: those that changed, were touched, or look half written;
    /// on a second scan, when `touched` is `None`, only those that changed
    /// after the first. Files that are open for writing, or changed within
    /// `quiet`, are not read unless this is the last try. Attachments count as
    /// parts of their file.
    fn note_stamps(&mut self, scan: Scan, touched: Option<&Touched>, last_try: bool) -> FoundFiles {
        let mut files = FoundFiles::default();
        for found in scan.files {
            let is_open = scan.open.contains(&found.real);
            let own_touch = touched.map(|touched| found.last_touch(touched));
            let FoundFile {
                root, path, stamp, ..
            } = found;
            let name = path.display().to_string().into();
            let id = FileId::new(FileKey { root, path, name });
            let file = self.files.entry(Arc::clone(&id)).or_default();

            if matches!(file.new_state, Some(NewState::Removed)) {
                // The removal was rejected, and the file exists again.
                file.new_state = None;
                file.hash = None;
            }

            let attachment_touch = touched.and_then(|touched| file.attachments.last_touch(touched));
            let last_touch = own_touch.map(|touch| touch.max(attachment_touch));
            let is_open = !last_try && (is_open || file.attachments.has_any_of(&scan.open));
            file.note_stamp(stamp, last_touch.flatten());

            let is_changing = |since: Instant| since.elapsed() < self.options.quiet;
            let is_unstable = !last_try && file.unread_since.is_some_and(is_changing);
            if is_open || is_unstable {
                file.forget_read();
                files.unstable |= !is_open;
                continue;
            }

            // A second scan does not retry doubtful files, only changed ones.
            let is_doubtful = file.half_written_since.is_some() || file.hash.is_none();
            let is_due = last_touch.is_some() && is_doubtful;
            if file.unread_since.take().is_some() || is_due {
                files.due.insert(id);
            }
        }
        files
    }

    /// Records the outcome of reading a file; `None` is that its bytes are
    /// unchanged. Returns whether the file has to be read again: it looks half
    /// written, and is given some time before it counts as bad, unless this is
    /// the last try. Nothing else is recorded of it then.
    pub(crate) fn note_read(
        &mut self,
        id: &FileId,
        outcome: Option<Outcome>,
        last_try: bool,
    ) -> bool {
        let Some(file) = self.files.get_mut(id) else {
            return false;
        };
        let half_written_since = file.half_written_since.take();
        let Some(outcome) = outcome else {
            return false;
        };

        let patience = if outcome.is_pair_half_replaced() {
            self.options.pair
        } else {
            self.options.retry
        };
        let is_patience_over = half_written_since.is_some_and(|since| since.elapsed() >= patience);
        if !last_try && !is_patience_over && looks_half_written(file, &outcome) {
            file.half_written_since = half_written_since.or_else(|| Some(Instant::now()));
            return true;
        }

        file.hash = outcome.hash;
        file.attachments = outcome.attachments;
        take_decoded(file, outcome.decoded);
        false
    }
}

/// Makes the decoded contents the new state of a file, to be proposed. Contents
/// with mistakes are no new state: the file is bad, and what is served of it
/// stays.
fn take_decoded(file: &mut File, mut decoded: Decoded) {
    file.warnings = std::mem::take(&mut decoded.warnings);
    if decoded.errors.is_empty() {
        let mut document = decoded.document;
        document.is_cut = file.ends_line && !document.ends_line;
        file.new_state = Some(NewState::Contents(document));
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
