//! Why Envoy rejects a bootstrap, out of its log.

use std::process::ExitStatus;

use trunkline_proto::redact;

/// The words before the reason; the path of the bootstrap and a quote follow.
const REASON: &str = "error initializing configuration '";
/// The beginning of a reason that dumps the whole bootstrap first.
const DUMP: &str = "goo.gle/debug";
/// The end of a dump.
const DUMP_END: &str = "\n: ";
/// The path from a bootstrap to one of its resources, in a broken rule; the list
/// and an index follow, and then [`INSIDE`].
const RESOURCE: &str = "BootstrapValidationError.StaticResources: embedded message failed \
    validation | caused by StaticResourcesValidationError.";
/// The words between the steps of a path.
const INSIDE: &str = ": embedded message failed validation | caused by ";

/// Returns why Envoy rejects the bootstrap at a path, by its log, in one line
/// and without secrets. If the log does not say why, its last line is returned
/// with how Envoy ended.
pub(super) fn reason(status: ExitStatus, log: &str, path: &str) -> String {
    let found = log.split(REASON).nth(1);
    let found = found.and_then(|rest| rest.strip_prefix(path)?.strip_prefix("': "));
    let words = match found {
        // Lines of the log that follow begin with a time in brackets.
        Some(rest) => without_dump(rest.split("\n[").next().unwrap_or(rest)),
        None => {
            let last = log.lines().rev().find(|line| !line.trim().is_empty());
            format!("{} ({status})", last.unwrap_or("nothing"))
        }
    };
    let words = words.split_whitespace().collect::<Vec<_>>().join(" ");
    redact::quoted(&words).into_owned()
}

/// Returns a reason without the bootstrap that it dumps, which is not the
/// user's, and without the way from there to a resource.
fn without_dump(words: &str) -> String {
    let words = match words.rsplit_once(DUMP_END) {
        Some((dump, words)) if dump.starts_with(DUMP) => words,
        _ => words,
    };
    let Some((before, path)) = words.split_once(RESOURCE) else {
        return words.to_owned();
    };
    match path.split_once(INSIDE) {
        Some((_, inside)) => format!("{before}{inside}"),
        None => words.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt as _;

    use super::*;

    fn of(log: &str) -> String {
        reason(ExitStatus::from_raw(1 << 8), log, "/tmp/b.pb")
    }

    #[test]
    fn a_reason_is_told_without_the_dump_of_the_bootstrap() {
        let log = "[2026-11-18 01:20:39.881][1][critical][main] [server.cc:76] error initializing \
             configuration '/tmp/b.pb': goo.gle/debugonly    \nstatic_resources {\n  clusters {\n    \
             name: \"c\"\n  }\n}\n: Proto constraint validation failed \
             (BootstrapValidationError.StaticResources: embedded message failed validation | \
             caused by StaticResourcesValidationError.Clusters[0]: embedded message failed \
             validation | caused by ClusterValidationError.ConnectTimeout: value must be greater \
             than 0s)\n[2026-11-18 01:20:39.882][1][info] exiting\n";
        assert_eq!(
            of(log),
            "Proto constraint validation failed (ClusterValidationError.ConnectTimeout: value \
             must be greater than 0s)"
        );
        let log = "[x] error initializing configuration '/tmp/b.pb': two\nlines\n[y] z\n";
        assert_eq!(of(log), "two lines");
        assert_eq!(of("something\nelse\n\n"), "else (exit status: 1)");
    }
}
