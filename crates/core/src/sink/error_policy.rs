//! The table of A88: the effect of an error, in one place (C40, C41).
//!
//! | error | nothing held | held |
//! |---|---|---|
//! | transient | the value is the error | beside the value |
//! | data, [`DataErrors::Keep`] | the value is the error | beside the value |
//! | data, [`DataErrors::Fail`] | the value is the error | drop, then the value is the error |
//! | data, [`DataErrors::Obey`] | the value is the error | drop if the server removed it, else beside the value |

use super::config::DataErrors;
use super::event::{Cause, ErrorClass};

/// The effect of an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    /// The error is the value of a name that has none.
    Value,
    /// The error is beside the value.
    Ambient,
    /// The value is dropped, and the error replaces it.
    Drop,
}

/// Looks up the effect of an error with this cause in the table; `is_cached`
/// is whether a resource is cached.
pub(super) fn fate(cause: Cause, is_cached: bool, policy: DataErrors) -> Fate {
    let drops = match policy {
        DataErrors::Keep => false,
        DataErrors::Fail => cause.class() == ErrorClass::Data,
        DataErrors::Obey => cause.is_withdrawal(),
    };
    if !is_cached {
        Fate::Value
    } else if drops {
        Fate::Drop
    } else {
        Fate::Ambient
    }
}

/// Returns whether an error with this cause ends the use of a resource.
pub(crate) fn drops_value(cause: Cause, policy: DataErrors) -> bool {
    fate(cause, true, policy) == Fate::Drop
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resource::ErrorCode;

    const CAUSES: [(Cause, ErrorClass, bool); 10] = {
        use ErrorClass::{Data, Transient};
        use ErrorCode::{NotFound, Other, PermissionDenied, Unavailable};
        [
            (Cause::Unreachable, Transient, false),
            (Cause::TimedOut, Transient, false),
            (Cause::Source(Unavailable), Transient, false),
            (Cause::Source(Other(13)), Transient, false),
            (Cause::Rejected, Data, false),
            (Cause::Deleted, Data, true),
            (Cause::Silent, Data, true),
            (Cause::Expired, Data, true),
            (Cause::Source(NotFound), Data, true),
            (Cause::Source(PermissionDenied), Data, true),
        ]
    };

    #[test]
    fn c40_c41_causes_have_their_nature() {
        for (cause, nature, withdraws) in CAUSES {
            assert_eq!(cause.class(), nature, "{cause:?}");
            assert_eq!(cause.is_withdrawal(), withdraws, "{cause:?}");
        }
    }

    #[test]
    fn c40_c41_the_table() {
        for (cause, nature, withdraws) in CAUSES {
            for policy in [DataErrors::Obey, DataErrors::Keep, DataErrors::Fail] {
                assert_eq!(fate(cause, false, policy), Fate::Value);
            }
            let (obey, fail) = match (nature, withdraws) {
                (ErrorClass::Transient, _) => (Fate::Ambient, Fate::Ambient),
                (ErrorClass::Data, false) => (Fate::Ambient, Fate::Drop),
                (ErrorClass::Data, true) => (Fate::Drop, Fate::Drop),
            };
            assert_eq!(fate(cause, true, DataErrors::Keep), Fate::Ambient);
            assert_eq!(fate(cause, true, DataErrors::Obey), obey, "{cause:?}");
            assert_eq!(fate(cause, true, DataErrors::Fail), fail, "{cause:?}");
        }
    }
}
