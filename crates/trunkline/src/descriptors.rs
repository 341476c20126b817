//! The limit of open descriptors of a process.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Raises the limit of file descriptors of this process, and of those that it
/// starts, to what the system allows. The default is often a thousand, too few
/// for thousands of clients. A limit that cannot be raised stays as it is.
///
/// Not for a program in which something calls `select`, which cannot handle
/// larger descriptors.
pub fn raise_descriptors() {
    let limit = getrlimit(Resource::Nofile);
    // If it fails, there can be fewer connections.
    let raised = Rlimit {
        current: limit.maximum,
        ..limit
    };
    let _ = setrlimit(Resource::Nofile, raised);
}

/// Returns how many descriptors the connections of one listener may have: three
/// quarters of those of the process. Its files, and its other listeners, need
/// some too.
pub(crate) fn for_connections() -> usize {
    let limit = getrlimit(Resource::Nofile).current;
    let most = limit.and_then(|limit| usize::try_from(limit).ok());
    most.map_or(usize::MAX, |most| most / 4 * 3)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_as_the_system_allows() {
        let before = getrlimit(Resource::Nofile);
        let few = Rlimit {
            current: before.current.map(|n| n - 1),
            ..before
        };
        setrlimit(Resource::Nofile, few).unwrap();
        raise_descriptors();
        assert_eq!(getrlimit(Resource::Nofile).current, before.maximum);
    }
}
