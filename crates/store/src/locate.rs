//! The places of dangling references in files.
//!
//! A file is read again for them, which is done only for one that has such a
//! reference, and once for each state of it.

use std::path::Path;

use trunkline::checked::{Finding, has_references, locate_references};
use trunkline_proto::text::{Format, is_binary};

use crate::file::FileId;

/// The bytes of files that are read again for one settlement. References in
/// others are found at their resources.
const MOST_BYTES: u64 = 16 << 20;

/// The findings of a file with the places of references, beside what they were
/// made of.
#[derive(Default)]
pub(crate) struct Located {
    hash: Option<u128>,
    raw: Vec<Finding>,
    findings: Vec<Finding>,
}

/// Locates references, within a budget.
pub(crate) struct Locator {
    bytes_left: u64,
}

impl Default for Locator {
    /// Makes a locator with the whole budget.
    fn default() -> Self {
        Self {
            bytes_left: MOST_BYTES,
        }
    }
}

impl Locator {
    /// Returns findings of a file with the places of their references. `hash`
    /// is that of the file, and `last_result` caches the last result.
    pub(crate) fn locate(
        &mut self,
        id: &FileId,
        hash: Option<u128>,
        findings: Vec<Finding>,
        last_result: &mut Located,
    ) -> Vec<Finding> {
        if !has_references(&findings) {
            *last_result = Located::default();
            return findings;
        }

        let is_same = last_result.raw == findings || last_result.findings == findings;
        let is_known = last_result.hash == hash && hash.is_some() && is_same;
        if !is_known {
            let mut located_findings = findings.clone();
            if let Some(text) = self.read(&id.path, &id.name) {
                locate_references(Format::of(&id.name), &text, &mut located_findings);
            }
            *last_result = Located {
                hash,
                raw: findings,
                findings: located_findings,
            };
        }
        last_result.findings.clone()
    }

    /// Reads a text again. Returns `None` if the file is no text, or if it is
    /// longer than the remaining budget.
    fn read(&mut self, path: &Path, name: &str) -> Option<String> {
        let metadata = std::fs::metadata(path).ok()?;
        if is_binary(name) || !metadata.is_file() || metadata.len() > self.bytes_left {
            return None;
        }
        self.bytes_left -= metadata.len();
        std::fs::read_to_string(path).ok()
    }
}
