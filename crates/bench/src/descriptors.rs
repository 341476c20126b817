//! How many connections a process may have open.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Lets this process, and the servers that it starts, have as many open as the
/// system allows it: what it has by default is often a thousand, which is not
/// enough for clients by the thousand. Where it cannot, connections that cannot
/// be made are counted and told of.
pub(crate) fn raise() {
    let limit = getrlimit(Resource::Nofile);
    let _ = setrlimit(
        Resource::Nofile,
        Rlimit {
            current: limit.maximum,
            ..limit
        },
    );
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
        raise();
        assert_eq!(getrlimit(Resource::Nofile).current, before.maximum);
    }
}
