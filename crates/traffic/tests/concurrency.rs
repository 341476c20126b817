//! Adaptive concurrency (57), by numbers.

#![allow(clippy::expect_used, clippy::unwrap_used)]

use std::time::Duration;

use serde_json::{Value, json};
use trunkline_proto::envoy::envoy::extensions::filters::http::adaptive_concurrency::v3::AdaptiveConcurrency;
use trunkline_proto::text::{Format, Options, read_message};
use trunkline_traffic::Findings;
use trunkline_traffic::concurrency::{ConcurrencyConfig, ConcurrencyController};

fn compile(config: &Value) -> Result<ConcurrencyConfig, Findings> {
    use prost::Message;
    let of = "envoy.extensions.filters.http.adaptive_concurrency.v3.AdaptiveConcurrency";
    let text = config.to_string();
    let read = read_message(of, Format::Json, "case", &text, None, &Options::default());
    let bytes = read.unwrap().message.encode_to_vec();
    ConcurrencyConfig::compile(&AdaptiveConcurrency::decode(&*bytes).unwrap())
}

/// A window of 100 ms, and a measurement each minute.
fn gradient(limits: Value, least: Value) -> Value {
    let mut limit_params = json!({"concurrency_update_interval": "0.1s"});
    let mut least_params = json!({"interval": "60s"});
    for (params, more) in [(&mut limit_params, limits), (&mut least_params, least)] {
        for (key, value) in more.as_object().unwrap() {
            params[key] = value.clone();
        }
    }
    json!({"gradient_controller_config": {
        "concurrency_limit_params": limit_params,
        "min_rtt_calc_params": least_params,
    }})
}

const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// A controller and the time.
struct World {
    controller: ConcurrencyController,
    now: Duration,
}

impl World {
    fn new(config: &Value) -> Self {
        let config = compile(config).expect("a configuration");
        Self {
            controller: ConcurrencyController::new(config, Duration::ZERO),
            now: Duration::ZERO,
        }
    }

    /// Makes requests one after the other, which all take as long.
    fn requests(&mut self, count: u32, latency: Duration) {
        for _ in 0..count {
            assert!(self.controller.try_start());
            let started = self.now;
            self.now += latency;
            self.controller.end(started, self.now, 0);
        }
    }

    /// Goes to the next deadline.
    fn wait(&mut self) {
        self.now = self.controller.next_deadline().expect("a deadline");
        self.controller.handle_timeout(self.now);
    }

    /// A window whose requests take as long as said. Returns the limit after it.
    fn window(&mut self, latency: Duration) -> u32 {
        let started = self.now;
        assert!(self.controller.try_start());
        self.controller.end(started, started + latency, 0);
        self.wait();
        self.controller.limit()
    }
}

#[test]
fn d57_at_first_few_are_let_in_until_the_least_latency_is_known() {
    let mut world = World::new(&gradient(json!({}), json!({})));
    let controller = &mut world.controller;
    assert_eq!(controller.limit(), 3);
    assert!((0..3).all(|_| controller.try_start()));
    assert!(!controller.try_start(), "the limit holds");
    assert_eq!(controller.under_way(), 3);
    (0..3).for_each(|_| controller.cancel());
    assert_eq!(controller.next_deadline(), None, "requests end it");

    world.requests(49, ms(10));
    assert_eq!(world.controller.next_deadline(), None);
    world.requests(1, ms(10));
    // Half of the samples are below the middle of their bucket.
    assert_eq!(
        world.controller.least_latency(),
        Duration::from_micros(10_500)
    );
    assert_eq!(world.controller.next_deadline(), Some(world.now + ms(100)));
}

#[test]
fn d57_the_limit_follows_the_latency() {
    let mut world = World::new(&gradient(json!({}), json!({})));
    world.requests(50, ms(10));
    // As fast as ever: 12.5 / 10 of 3, and the root of it.
    assert_eq!(world.window(ms(10)), 5);
    assert_eq!(world.window(ms(10)), 8);
    // Twice as slow or slower: half of it, and the root of it.
    assert_eq!(world.window(ms(100)), 6);
    // A window without requests says nothing.
    world.wait();
    assert_eq!(world.controller.limit(), 6);
    for _ in 0..40 {
        world.window(ms(1));
    }
    assert_eq!(world.controller.limit(), 1000, "the greatest");
}

#[test]
fn d57_the_least_latency_is_measured_again() {
    let mut world = World::new(&gradient(json!({}), json!({"jitter": {"value": 0}})));
    world.requests(50, ms(10));
    let measured = world.now;
    let mut windows = (0..=600).map(|_| world.window(ms(10)));
    assert!(windows.any(|limit| limit == 3), "it is measured again");
    assert_eq!(world.now, measured + Duration::from_secs(60));
    assert_eq!(world.controller.next_deadline(), None);
    // What began before is no sample of the measurement.
    let late = world.now - ms(1);
    for _ in 0..50 {
        assert!(world.controller.try_start());
        world.controller.end(late, world.now + ms(500), 0);
    }
    assert_eq!(world.controller.limit(), 3);
    world.requests(50, ms(20));
    assert_eq!(
        world.controller.least_latency(),
        Duration::from_micros(20_500)
    );
    assert_eq!(world.controller.limit(), 1000, "the limit before");
}

#[test]
fn d57_windows_at_the_least_limit_lead_to_a_measurement() {
    let mut world = World::new(&gradient(
        json!({"min_concurrency_limit": 2}),
        json!({"min_concurrency": 2}),
    ));
    world.requests(50, ms(1));
    for window in 1..=5 {
        assert!(
            world.controller.next_deadline().is_some(),
            "window {window}"
        );
        assert_eq!(world.window(ms(1_000)), 2);
    }
    assert_eq!(world.controller.next_deadline(), None, "it measures");
}

#[test]
fn d57_measurements_are_late_by_a_random_time() {
    let mut world = World::new(&gradient(
        json!({"concurrency_update_interval": "1000s"}),
        json!({"interval": "10s", "request_count": 1}),
    ));
    assert!(world.controller.try_start());
    world.controller.end(ms(0), ms(10), 1_499);
    let late = ms(10) + Duration::from_secs(10) + ms(1_499);
    assert_eq!(world.controller.next_deadline(), Some(late));
}

#[test]
fn d57_a_least_latency_that_is_said_is_not_measured() {
    let config = gradient(json!({}), json!({"interval": "0s", "fixed_value": "0.01s"}));
    let mut world = World::new(&config);
    assert_eq!(world.controller.least_latency(), ms(10));
    assert_eq!(world.window(ms(10)), 5);
}

#[test]
fn d57_settings() {
    let with = |key: &str, value: Value| {
        let mut config = gradient(json!({}), json!({}));
        config[key] = value;
        compile(&config)
    };
    let status = |code: u16| with("concurrency_limit_exceeded_status", json!({"code": code}));
    assert_eq!(
        compile(&gradient(json!({}), json!({}))).unwrap().status(),
        503
    );
    assert_eq!(status(429).unwrap().status(), 429);
    assert_eq!(status(200).unwrap().status(), 503, "no error");
    let off = json!({"default_value": false, "runtime_key": "x"});
    let mut off = ConcurrencyController::new(with("enabled", off).unwrap(), ms(0));
    assert!((0..10).all(|_| off.try_start()));

    let path = |config: &Value| {
        compile(config).expect_err("a finding").list()[0]
            .path
            .clone()
    };
    assert_eq!(path(&json!({})), "gradient_controller_config");
    assert_eq!(
        path(&gradient(
            json!({"concurrency_update_interval": "0s"}),
            json!({})
        )),
        "gradient_controller_config.concurrency_limit_params.concurrency_update_interval"
    );
    assert_eq!(
        path(&gradient(json!({}), json!({"interval": "0s"}))),
        "gradient_controller_config.min_rtt_calc_params.interval"
    );
    assert_eq!(
        path(&gradient(json!({"max_concurrency_limit": 2}), json!({}))),
        "gradient_controller_config.concurrency_limit_params.max_concurrency_limit"
    );
}
