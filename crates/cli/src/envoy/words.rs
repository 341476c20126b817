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

/// Returns the reason that Envoy rejects the bootstrap at a path, from its log:
/// one line without secrets. If the log has no reason, returns its last line
/// and the exit status.
pub(super) fn rejection_reason(status: ExitStatus, log: &str, path: &str) -> String {
    let after_path = log.split(REASON).nth(1);
    let after_path = after_path.and_then(|text| text.strip_prefix(path)?.strip_prefix("': "));
    let message = match after_path {
        // The next line of the log begins with a time in brackets.
        Some(reason_text) => without_dump(reason_text.split("\n[").next().unwrap_or(reason_text)),
        None => {
            let last_line = log.lines().rev().find(|line| !line.trim().is_empty());
            format!("{} ({status})", last_line.unwrap_or("nothing"))
        }
    };
    let message = message.split_whitespace().collect::<Vec<_>>().join(" ");
    redact::quoted(&message).into_owned()
}

/// Removes the dump of the bootstrap from a reason, since the user did not
/// write the bootstrap. Also removes the path from the bootstrap to the
/// resource.
fn without_dump(message: &str) -> String {
    let message = match message.rsplit_once(DUMP_END) {
        Some((dump, message)) if dump.starts_with(DUMP) => message,
        _ => message,
    };
    let Some((prefix, path)) = message.split_once(RESOURCE) else {
        return message.to_owned();
    };
    match path.split_once(INSIDE) {
        Some((_, inside)) => format!("{prefix}{inside}"),
        None => message.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt as _;

    use super::*;

    fn of(log: &str) -> String {
        rejection_reason(ExitStatus::from_raw(1 << 8), log, "/tmp/b.pb")
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
