//! gRPC statuses and response flags by their names.

/// How a gRPC status is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Style {
    Camel,
    Snake,
    Number,
}

/// The names of statuses from 0 on.
const STATUSES: &[(&str, &str)] = &[
    ("OK", "OK"),
    ("Canceled", "CANCELLED"),
    ("Unknown", "UNKNOWN"),
    ("InvalidArgument", "INVALID_ARGUMENT"),
    ("DeadlineExceeded", "DEADLINE_EXCEEDED"),
    ("NotFound", "NOT_FOUND"),
    ("AlreadyExists", "ALREADY_EXISTS"),
    ("PermissionDenied", "PERMISSION_DENIED"),
    ("ResourceExhausted", "RESOURCE_EXHAUSTED"),
    ("FailedPrecondition", "FAILED_PRECONDITION"),
    ("Aborted", "ABORTED"),
    ("OutOfRange", "OUT_OF_RANGE"),
    ("Unimplemented", "UNIMPLEMENTED"),
    ("Internal", "INTERNAL"),
    ("Unavailable", "UNAVAILABLE"),
    ("DataLoss", "DATA_LOSS"),
    ("Unauthenticated", "UNAUTHENTICATED"),
];

impl Style {
    /// Parses the argument of `GRPC_STATUS`, which chooses the form of the
    /// status.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        match text {
            "" | "CAMEL_STRING" => Ok(Self::Camel),
            "SNAKE_STRING" => Ok(Self::Snake),
            "NUMBER" => Ok(Self::Number),
            _ => Err(format!("cannot have {text:?}")),
        }
    }

    /// Formats the value of a `grpc-status` header. A status without a name is
    /// returned unchanged.
    pub(super) fn write(self, status: &str) -> String {
        let number: Option<usize> = status.parse().ok();
        match (self, number.and_then(|number| STATUSES.get(number))) {
            (Self::Camel, Some((camel, _))) => (*camel).to_owned(),
            (Self::Snake, Some((_, snake))) => (*snake).to_owned(),
            _ => status.to_owned(),
        }
    }
}

/// Response flags, short and long.
const FLAGS: &[(&str, &str)] = &[
    ("UH", "NoHealthyUpstream"),
    ("UF", "UpstreamConnectionFailure"),
    ("UO", "UpstreamOverflow"),
    ("NR", "NoRouteFound"),
    ("URX", "UpstreamRetryLimitExceeded"),
    ("NC", "NoClusterFound"),
    ("DT", "DurationTimeout"),
    ("DC", "DownstreamConnectionTermination"),
    ("LH", "FailedLocalHealthCheck"),
    ("UT", "UpstreamRequestTimeout"),
    ("LR", "LocalReset"),
    ("UR", "UpstreamRemoteReset"),
    ("UC", "UpstreamConnectionTermination"),
    ("DI", "DelayInjected"),
    ("FI", "FaultInjected"),
    ("RL", "RateLimited"),
    ("UAEX", "UnauthorizedExternalService"),
    ("RLSE", "RateLimitServiceError"),
    ("IH", "InvalidEnvoyRequestHeaders"),
    ("SI", "StreamIdleTimeout"),
    ("DPE", "DownstreamProtocolError"),
    ("UPE", "UpstreamProtocolError"),
    ("UMSDR", "UpstreamMaxStreamDurationReached"),
    ("RFCF", "ResponseFromCacheFilter"),
    ("NFCF", "NoFilterConfigFound"),
    ("OM", "OverloadManagerTerminated"),
    ("DF", "DnsResolutionFailed"),
    ("DO", "DropOverload"),
    ("DR", "DownstreamRemoteReset"),
    ("UDO", "UnconditionalDropOverload"),
];

/// Writes flags by their long names.
pub(super) fn long_flags(short: &str) -> String {
    let flags = short.split(',').map(|flag| {
        let entry = FLAGS.iter().find(|(short_flag, _)| *short_flag == flag);
        entry.map_or(flag, |(_, long)| long)
    });
    flags.collect::<Vec<_>>().join(",")
}
