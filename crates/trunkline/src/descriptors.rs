//! How many connections a process may have open.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Lets this process, and those that it starts, have as many descriptors as the
/// system allows it: what it has by default is often a thousand, which is not
/// enough for clients by the thousand. Not for a program in which something
/// calls `select`, which knows no more than that.
pub fn raise_descriptors() {
    let limit = getrlimit(Resource::Nofile);
    // Where it cannot, connections wait, and that is told of when it happens.
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
        raise_descriptors();
        assert_eq!(getrlimit(Resource::Nofile).current, before.maximum);
    }
}
