//! Every metric: its name, its help, its kind.

use std::sync::atomic::AtomicU64;
use std::time::{SystemTime, UNIX_EPOCH};

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::Registry;
use trunkline::Limit;

use crate::{kinds, version};

/// One label; its values are constants of this program.
pub(super) type Label = [(&'static str, &'static str); 1];

/// A count for each value of a label.
pub(super) type Counters = Family<Label, Counter>;
/// A state for each value of a label.
pub(super) type Gauges = Family<Label, Gauge>;
/// Times for each value of a label.
pub(super) type Histograms = Family<Label, Histogram, fn() -> Histogram>;
type Seconds = Gauge<f64, AtomicU64>;

/// The buckets of a histogram: from a tenth of a millisecond to a minute,
/// loopback to a slow fleet.
const SECONDS: [f64; 17] = [
    0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5,
    5.0, 15.0, 60.0,
];

/// The buckets of the time that a change takes inside this program, finest
/// between one and twenty milliseconds, where it is with and without load.
const PUSH_SECONDS: [f64; 28] = [
    0.00005, 0.0001, 0.0002, 0.0005, 0.001, 0.0015, 0.002, 0.0025, 0.003, 0.004, 0.005, 0.0065,
    0.008, 0.01, 0.0125, 0.015, 0.02, 0.03, 0.05, 0.075, 0.1, 0.2, 0.5, 1.0, 2.0, 3.0, 5.0, 10.0,
];

/// All metrics but the constant ones.
pub(super) struct Table {
    pub(super) connected_clients: Gauge,
    pub(super) streams: Gauge,
    pub(super) ready: Gauge,
    pub(super) resident: Gauge,
    pub(super) memory_limit: Gauge,
    pub(super) longest_wait: Seconds,
    pub(super) largest_slice: Gauge,
    pub(super) requests: Counters,
    pub(super) pushes: Counters,
    pub(super) resources_sent: Counters,
    pub(super) oversized: Counters,
    pub(super) acks: Counters,
    pub(super) nacks: Counters,
    pub(super) parked: Gauges,
    pub(super) resources: Gauges,
    pub(super) subscriptions: Gauges,
    pub(super) changes: Counters,
    pub(super) missing: Counters,
    pub(super) denied: Counters,
    pub(super) refused_names: Counters,
    pub(super) limits: Counters,
    pub(super) received_bytes: Counter,
    pub(super) sent_bytes: Counter,
    pub(super) convergence: Histogram,
    pub(super) push: Histograms,
    pub(super) first_config: Histogram,
    pub(super) leases: Gauge,
    pub(super) lease_expiries: Counters,
    pub(super) config_errors: Gauge,
    pub(super) config_bad_files: Gauge,
    pub(super) config_held: Gauge,
    pub(super) mcp_streams: Gauge,
    pub(super) mcp_nacks: Counter,
    pub(super) mcp_stale: Counter,
    pub(super) mcp_rejected: Gauge,
    pub(super) mcp_stopped: Gauge,
    pub(super) log_dropped: Counter,
    pub(super) audit_failures: Counter,
    pub(super) admin_refusals: Counters,
}

impl Table {
    /// Registers every metric, one per line. The constant ones have their
    /// values; the others begin at zero.
    #[rustfmt::skip]
    pub(super) fn register(registry: &mut Registry) -> Self {
        let mut add = Adder(registry);
        add_constants(&mut add);
        Self {
            connected_clients: add.gauge("connected_clients", "Clients that have a stream, by node"),
            streams: add.gauge("streams", "Streams that have made a request"),
            ready: add.gauge("ready", "1 once the first contents are complete"),
            resident: add.gauge("resident_bytes", "Bytes of memory that the process has"),
            memory_limit: add.gauge("memory_limit_bytes", "Bytes of memory near which new streams are refused; 0 is no limit"),
            longest_wait: add.add("engine_longest_wait_seconds", "The longest that a stream or a change had to wait for the database since the start", Seconds::default()),
            largest_slice: add.gauge("engine_largest_slice", "The most names that were looked at while others had to wait for the database since the start"),
            requests: add.by_type("requests", "Requests received"),
            pushes: add.by_type("pushes", "Responses sent"),
            resources_sent: add.by_type("resources_sent", "Resources in responses sent"),
            oversized: add.by_type("oversized_responses", "Responses beyond the 4 MiB that gRPC takes by default, to clients that are not Envoy"),
            acks: add.by_type("acks", "Responses that clients accepted"),
            nacks: add.by_type("nacks", "Responses that clients rejected"),
            parked: add.gauges("parked_resources", "Resources that a client rejected on their own, which are not sent to it again unchanged"),
            resources: add.gauges("resources", "Names that have contents"),
            subscriptions: add.gauges("subscriptions", "Names, globs and wildcards that streams subscribe to"),
            changes: add.by_type("changes", "Resources that accepted changes added, changed or removed"),
            missing: add.by_type("missing_names", "Names that do not exist and got their first subscriber"),
            denied: add.by_type("denied", "Types that a client asked for and may not see"),
            refused_names: add.counters("refused_names", "Names that were taken out of requests, for want of sense or beyond a limit", "by", &["request", "subscription", "host", "subscription_bytes", "missing_bytes", "memory", "params", "type"]),
            limits: add.counters("limits", "Times that a limit was met", "limit", &Limit::ALL.map(Limit::as_str)),
            received_bytes: add.counter("received_bytes", "Bytes of requests"),
            sent_bytes: add.counter("sent_bytes", "Bytes of responses"),
            convergence: add.histogram("convergence_seconds", "From a change being accepted until every subscriber has answered"),
            push: add.pushes_by_type("push_seconds", "From a change being accepted until a response with it was given to the transport of a client"),
            first_config: add.histogram("first_config_seconds", "From a stream being let in until it accepted its first response"),
            leases: add.gauge("leases", "Origins whose resources stay only as long as they are renewed"),
            lease_expiries: add.counters("lease_expiries", "Leases that were not renewed in time, by whether their resources were removed or that is held", "outcome", &["removed", "held"]),
            config_errors: add.gauge("config_errors", "Mistakes in files of resources"),
            config_held: add.gauge("config_held", "Changes of files that remove so much that they are held until they are confirmed"),
            config_bad_files: add.gauge("config_bad_files", "Files of resources with a mistake; their last good contents stay"),
            mcp_streams: add.gauge("mcp_streams", "Streams of the Mesh Configuration Protocol, of a source to its sinks or of a sink to its source"),
            mcp_nacks: add.counter("mcp_nacks", "Responses of it that were rejected, here or by a sink"),
            mcp_stale: add.counter("mcp_stale_requests", "Requests of sinks that were ignored, because their nonce was not the newest"),
            mcp_rejected: add.gauge("mcp_rejected_collections", "Collections, of each stream, whose newest state is rejected; their last good state stays"),
            mcp_stopped: add.gauge("mcp_rollout_stopped", "1 while a canary rejects an update, which goes to no other sink"),
            log_dropped: add.counter("log_dropped_lines", "Lines of the log that were lost, because standard error did not take them in time"),
            audit_failures: add.counter("audit_failures", "Lines that could not be written to the audit log, or not in time"),
            admin_refusals: add.counters("admin_refusals", "Requests to the admin API that were refused for want of a right, and changes for any reason, by whether the audit has a line for each", "recorded", &["yes", "no"]),
        }
    }
}

/// Registers the metrics that never change: the build, and the start of the
/// process, which is the time of this call.
fn add_constants(add: &mut Adder<'_>) {
    let build = vec![("version", version::VERSION), ("commit", version::COMMIT)];
    let help = "What this program was built from";
    add.0.register("trunkline_build", help, Info::new(build));

    let start: Gauge = Gauge::default();
    // A clock before 1970 is shown as 1970, which is obviously wrong.
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH);
    let seconds = since_epoch.unwrap_or_default().as_secs();
    start.set(i64::try_from(seconds).unwrap_or(i64::MAX));
    let help = "When the process started, in seconds since 1970";
    add.0.register("process_start_time_seconds", help, start);
}

/// Registers metrics.
struct Adder<'a>(&'a mut Registry);

impl Adder<'_> {
    /// Registers a metric under its name with the prefix `trunkline_`, and
    /// returns it. The returned metric and the registered one share their
    /// value.
    fn add<M: prometheus_client::registry::Metric + Clone>(
        &mut self,
        name: &str,
        help: &str,
        metric: M,
    ) -> M {
        let full_name = format!("trunkline_{name}");
        self.0.register(full_name, help, metric.clone());
        metric
    }

    /// Adds a gauge that begins at zero.
    fn gauge(&mut self, name: &str, help: &str) -> Gauge {
        self.add(name, help, Gauge::default())
    }

    /// Adds a gauge for each type.
    fn gauges(&mut self, name: &str, help: &str) -> Gauges {
        self.add(name, help, Gauges::default())
    }

    /// Adds a counter that begins at zero.
    fn counter(&mut self, name: &str, help: &str) -> Counter {
        self.add(name, help, Counter::default())
    }

    /// Registers a counter for each type.
    fn by_type(&mut self, name: &str, help: &str) -> Counters {
        self.counters(name, help, "type", &kinds::LABELS)
    }

    /// Registers a counter for each value of a label. Each begins at zero: a
    /// scraper sees the first event as a step only if it has seen zero before.
    fn counters(
        &mut self,
        name: &str,
        help: &str,
        label: &'static str,
        values: &[&'static str],
    ) -> Counters {
        let counters = Counters::default();

        for value in values {
            drop(counters.get_or_create(&[(label, value)]));
        }
        self.add(name, help, counters)
    }

    /// Registers a histogram of pushes for each type.
    fn pushes_by_type(&mut self, name: &str, help: &str) -> Histograms {
        let histograms = Histograms::new_with_constructor(|| Histogram::new(PUSH_SECONDS));
        for value in &kinds::LABELS {
            drop(histograms.get_or_create(&[("type", value)]));
        }
        self.add(name, help, histograms)
    }

    /// Adds a histogram of durations in seconds.
    fn histogram(&mut self, name: &str, help: &str) -> Histogram {
        self.add(name, help, Histogram::new(SECONDS))
    }
}
