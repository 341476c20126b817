//! The fault filter: calls are delayed or fail on purpose (A33).

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use prost::Message as _;
use tonic::{Code, Status};
use trunkline_proto::envoy::envoy::extensions::filters::common::fault::v3::fault_delay::FaultDelaySecifier;
use trunkline_proto::envoy::envoy::extensions::filters::http::fault::v3::HttpFault;
use trunkline_proto::envoy::envoy::extensions::filters::http::fault::v3::fault_abort::ErrorType;
use trunkline_proto::envoy::envoy::r#type::v3::{FractionalPercent, fractional_percent};
use trunkline_proto::envoy::google::protobuf::Any;
use trunkline_traffic::Fraction;
use trunkline_traffic::headers::Headers;

const TYPE: &str = "envoy.extensions.filters.http.fault.v3.HTTPFault";

const DELAY: &str = "x-envoy-fault-delay-request";
const DELAY_PERCENTAGE: &str = "x-envoy-fault-delay-request-percentage";
const ABORT_GRPC: &str = "x-envoy-fault-abort-grpc-request";
const ABORT_HTTP: &str = "x-envoy-fault-abort-request";
const ABORT_PERCENTAGE: &str = "x-envoy-fault-abort-request-percentage";

/// The faults of one filter.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Fault {
    delay: Option<(Delay, Fraction)>,
    abort: Option<(Abort, Fraction)>,
    /// The most calls that have a fault at once.
    max: u64,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Delay {
    Fixed(Duration),
    /// A header of the call says it.
    Header,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Abort {
    Fixed(Code),
    /// A header of the call says it.
    Header,
}

/// The faults that are injected into one call.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Injection {
    pub(super) delay: Option<Duration>,
    pub(super) abort: Option<Code>,
}

impl Fault {
    /// Reads the configuration of a filter; `None` if it is another filter, or
    /// cannot be read.
    pub(super) fn read(any: &Any) -> Option<Self> {
        let (_, name) = any.type_url.rsplit_once('/')?;
        if name != TYPE {
            return None;
        }
        let message = HttpFault::decode(&*any.value).ok()?;

        let delay = message.delay.and_then(|fault_delay| {
            let delay = match fault_delay.fault_delay_secifier? {
                FaultDelaySecifier::FixedDelay(fixed) => Delay::Fixed(duration(&fixed)),
                FaultDelaySecifier::HeaderDelay(_) => Delay::Header,
            };
            Some((delay, fraction(fault_delay.percentage.as_ref())))
        });

        let abort = message.abort.and_then(|fault_abort| {
            let abort = match fault_abort.error_type? {
                ErrorType::HttpStatus(status) => Abort::Fixed(code_of_http(status)),
                ErrorType::GrpcStatus(code) => Abort::Fixed(code_of(code)),
                ErrorType::HeaderAbort(_) => Abort::Header,
            };
            Some((abort, fraction(fault_abort.percentage.as_ref())))
        });

        Some(Self {
            delay,
            abort,
            max: message
                .max_active_faults
                .map_or(u64::MAX, |max| max.value.into()),
        })
    }

    /// Decides which faults are injected into a call with these headers, by a
    /// random number for each kind.
    pub(super) fn decide(&self, headers: &Headers, mut random: impl FnMut() -> u64) -> Injection {
        let header_number = |name: &str| headers.text(name)?.parse::<u64>().ok();
        // A header may make a fault rarer, not more frequent.
        let limit_by_header = |fraction: Fraction, name: &str| Fraction {
            numerator: header_number(name)
                .map_or(fraction.numerator, |asked| asked.min(fraction.numerator)),
            ..fraction
        };

        let delay = self.delay.and_then(|(delay, fraction)| {
            let (delay, fraction) = match delay {
                Delay::Fixed(delay) => (delay, fraction),
                Delay::Header => (
                    Duration::from_millis(header_number(DELAY)?),
                    limit_by_header(fraction, DELAY_PERCENTAGE),
                ),
            };
            fraction.includes(random()).then_some(delay)
        });

        let abort = self.abort.and_then(|(abort, fraction)| {
            let by_header = || {
                let grpc = header_number(ABORT_GRPC).map(|code| code_of(clamp(code)));
                grpc.or_else(|| Some(code_of_http(clamp(header_number(ABORT_HTTP)?))))
            };
            let (code, fraction) = match abort {
                Abort::Fixed(code) => (code, fraction),
                Abort::Header => (by_header()?, limit_by_header(fraction, ABORT_PERCENTAGE)),
            };
            fraction.includes(random()).then_some(code)
        });

        Injection { delay, abort }
    }
}

/// The number of calls of a channel that have a fault now.
#[derive(Debug, Default)]
pub(super) struct ActiveFaults(Arc<AtomicU64>);

/// A call that has a fault, until this is dropped.
struct ActiveFault(Arc<AtomicU64>);

impl Drop for ActiveFault {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl ActiveFaults {
    /// Counts a call that has a fault, until the guard is dropped; returns
    /// `None` if `max` calls have one already.
    fn enter(&self, max: u64) -> Option<ActiveFault> {
        let previous_count = self.0.fetch_add(1, Ordering::Relaxed);
        let active = ActiveFault(Arc::clone(&self.0));
        (previous_count < max).then_some(active)
    }

    /// Delays a call, or makes it fail with a status, as a filter says. Does
    /// nothing while the filter has as many faults as it may.
    pub(super) async fn inject(
        &self,
        fault: &Fault,
        headers: &Headers,
        random: impl FnMut() -> u64,
    ) -> Result<(), Status> {
        let injection = fault.decide(headers, random);
        if injection == Injection::default() {
            return Ok(());
        }
        let Some(_active) = self.enter(fault.max) else {
            return Ok(());
        };
        if let Some(delay) = injection.delay {
            tokio::time::sleep(delay).await;
        }
        match injection.abort {
            Some(code) => Err(Status::new(code, "the fault filter made this call fail")),
            None => Ok(()),
        }
    }
}

/// Returns a percentage as a fraction; one that is left out is zero.
fn fraction(percentage: Option<&FractionalPercent>) -> Fraction {
    use fractional_percent::DenominatorType;
    let Some(percentage) = percentage else {
        return Fraction {
            numerator: 0,
            denominator: 100,
        };
    };
    let denominator = match percentage.denominator() {
        DenominatorType::Hundred => 100,
        DenominatorType::TenThousand => 10_000,
        DenominatorType::Million => 1_000_000,
    };
    Fraction {
        numerator: percentage.numerator.into(),
        denominator,
    }
}

/// Returns a message as a duration. Negative parts become zero.
pub(super) fn duration(message: &trunkline_proto::envoy::google::protobuf::Duration) -> Duration {
    let seconds = u64::try_from(message.seconds).unwrap_or(0);
    Duration::new(seconds, u32::try_from(message.nanos).unwrap_or(0))
}

/// Returns a number as one of 32 bits; a larger one becomes the largest.
fn clamp(number: u64) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

/// Returns the gRPC status of a number; [`Code::Unknown`] if it is none.
fn code_of(number: u32) -> Code {
    i32::try_from(number).map_or(Code::Unknown, Code::from_i32)
}

/// Returns the gRPC status that stands for one of HTTP.
pub(super) fn code_of_http(status: u32) -> Code {
    match status {
        400 => Code::Internal,
        401 => Code::Unauthenticated,
        403 => Code::PermissionDenied,
        404 => Code::Unimplemented,
        429 | 502..=504 => Code::Unavailable,
        _ => Code::Unknown,
    }
}
