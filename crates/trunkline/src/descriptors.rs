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
    // If it fails, connections beyond the limit wait to be accepted.
    let raised = Rlimit {
        current: limit.maximum,
        ..limit
    };
    let _ = setrlimit(Resource::Nofile, raised);
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
