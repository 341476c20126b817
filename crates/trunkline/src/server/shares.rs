//! The shares that clients have of the process's memory.

use super::options::Options;
use crate::bounds::{ANSWERS_PART, MISSING_PART, UNFINISHED_PART};
use crate::memory::Memory;
use crate::questions::QuestionLimits;

/// Lowers the limits on what clients can make the process keep to parts of the
/// memory limit. Returns the limits of questions.
pub(super) fn take(memory: &Memory, options: &mut Options) -> QuestionLimits {
    let missing = &mut options.limits.missing_bytes;
    *missing = memory.share(*missing, MISSING_PART);
    let unfinished = &mut options.unfinished_bytes;
    *unfinished = memory.share(*unfinished, UNFINISHED_PART);

    let mut questions = QuestionLimits::default();
    questions.bytes = memory.share(questions.bytes, ANSWERS_PART);
    // One address leaves as much for others.
    questions.peer_bytes = questions.peer_bytes.min(questions.bytes / 2);
    questions
}

#[cfg(test)]
mod tests {
    use super::super::Server;
    use super::*;

    const LIMIT: u64 = 96 << 20;

    #[test]
    fn a_server_with_little_memory_lets_clients_keep_parts_of_it() {
        let builder = Server::builder();
        let server = builder.options(|options| options.memory_limit = Some(LIMIT));
        let shared = server.build().shared;
        let options = &shared.options;
        assert_eq!(options.limits.missing_bytes, 16 << 20);
        assert_eq!(options.unfinished_bytes, 12 << 20);
    }

    #[test]
    fn one_address_leaves_half_of_the_unread_answers_to_others() {
        let memory = Memory::new(Some(LIMIT));
        let questions = take(&memory, &mut Options::default());
        assert_eq!((questions.bytes, questions.peer_bytes), (12 << 20, 6 << 20));
        let plain = take(&Memory::new(None), &mut Options::default());
        assert_eq!(plain, QuestionLimits::default());
    }
}
