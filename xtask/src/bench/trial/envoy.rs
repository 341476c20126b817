//! A real Envoy with very many virtual hosts behind it: how long the first
//! request for a host takes, and what Envoy's memory is.

use std::net::SocketAddr;
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use super::config::{Hosts, bootstrap};
use super::hosts::Serving;
use super::http::{self, Client};
use super::process::Process;
use super::{Lab, Routes, because};
use crate::failure::{Failure, Result};

/// An Envoy that takes longer is not coming.
const PATIENCE: Duration = Duration::from_secs(120);
/// Until freed memory is given back, and late responses have arrived.
const SETTLE: Duration = Duration::from_secs(1);
const SETTLE_QUICKLY: Duration = Duration::from_millis(10);
/// Connections for requests to many hosts: the more wait at once, the fewer
/// responses Envoy has to take.
const AT_ONCE: usize = 128;
/// The status of Envoy where a route leads to a cluster that it does not have:
/// the host was found. Without a host it is 404.
const NO_CLUSTER: u16 = 503;

/// How much of everything.
struct Sizes {
    hosts: Hosts,
    /// Hosts that are requested one after the other, to see how long that
    /// takes.
    samples: usize,
    /// Hosts that are held before the next ones are requested.
    few: usize,
    many: usize,
}

impl Sizes {
    fn of(lab: &Lab<'_>, routes: Routes) -> Self {
        let (all, clusters, samples, few, many) = match (lab.quick, routes) {
            (true, _) => (2_000, 4, 10, 30, 100),
            (false, Routes::OnDemand) => (1_000_000, 60, 200, 1_000, 10_000),
            (false, Routes::Whole) => (100_000, 60, 200, 1_000, 10_000),
        };
        Self {
            hosts: Hosts { all, clusters },
            samples,
            few,
            many,
        }
    }
}

/// A server with hosts, and an Envoy that takes all from it.
struct World {
    envoy: Process,
    ingress: SocketAddr,
    ready: Duration,
    serving: Serving,
    settle: Duration,
}

impl World {
    fn start(lab: &Lab<'_>, hosts: Hosts, form: &[&str]) -> Result<Self> {
        let (ingress, admin) = (http::free()?, http::free()?);
        let backend = http::backend().map_err(because("the backend does not listen"))?;
        let file = lab.write_hosts(hosts.all, form)?;
        let rest = lab.write("rest.yaml", &hosts.resources(ingress, backend))?;
        let serving = Serving::start(lab, &[&file, &rest])?;
        let program = lab.envoy.as_ref();
        let program = program.ok_or_else(|| Failure::new("there is no Envoy"))?;
        let config = lab.write("envoy.yaml", &bootstrap(admin, serving.xds))?;
        let mut command = lab.workspace.program(program);
        command.args(["--concurrency", "1", "--disable-hot-restart"]);
        command.arg("--config-path").arg(config);
        let mut envoy = Process::start("Envoy", &mut command, &lab.folder.join("envoy.txt"))?;
        let ready = envoy.wait("it is not ready", PATIENCE, || {
            http::is_ready(admin, "/ready")
        })?;
        Ok(Self {
            envoy,
            ingress,
            ready,
            serving,
            settle: match lab.quick {
                true => SETTLE_QUICKLY,
                false => SETTLE,
            },
        })
    }

    fn client(&self) -> Result<Client> {
        Client::connect(self.ingress).map_err(because("Envoy takes no connection"))
    }

    /// Asks for hosts that are new: how long that takes, and what it costs Envoy
    /// and the server for each, in milliseconds of CPU.
    fn new_hosts(&self, client: &mut Client, held: &str, hosts: &[String]) -> Result<Value> {
        let cpu = || -> Result<_> { Ok((self.envoy.cpu()?, self.serving.process.cpu()?)) };
        let before = cpu()?;
        let mut phase = times(format!("new, {held}"), asked(client, hosts)?);
        let after = cpu()?;
        let each = |before: f64, after: f64| (after - before) * 1e3 / hosts.len() as f64;
        phase["cpu"] = json!({
            "envoy": each(before.0, after.0),
            "server": each(before.1, after.1),
        });
        Ok(phase)
    }

    /// Envoy's memory when it has come to rest.
    fn memory(&self, name: &str) -> Result<Value> {
        thread::sleep(self.settle);
        let (memory, peak) = self.envoy.memory()?;
        Ok(json!({"name": name, "server": {"memory": memory, "peak": peak}}))
    }
}

pub(super) fn measure(lab: &Lab<'_>, routes: Routes) -> Result<Value> {
    let sizes = Sizes::of(lab, routes);
    match routes {
        Routes::OnDemand => on_demand(lab, &sizes),
        Routes::Whole => whole(lab, &sizes),
    }
}

fn on_demand(lab: &Lab<'_>, sizes: &Sizes) -> Result<Value> {
    let world = World::start(lab, sizes.hosts, &["--inside"])?;
    let hosts = sizes.hosts.with_backend();
    let mut samples = hosts.chunks(sizes.samples);
    let others = sizes.hosts.without_backend(sizes.many);
    let mut others = others.iter();
    let mut phases = vec![
        json!({"name": "ready", "seconds": world.ready.as_secs_f64()}),
        world.serving.phase("served", world.serving.took)?,
        world.memory("none")?,
    ];
    let mut client = world.client()?;
    let mut held = 0;
    for (held_first, count) in [("none", 0), ("few", sizes.few), ("many", sizes.many)] {
        let more: Vec<_> = others.by_ref().take(count - held).collect();
        hold(&world, &more)?;
        if count > 0 {
            phases.push(world.memory(held_first)?);
        }
        let hosts = samples.next().unwrap_or_default();
        phases.push(world.new_hosts(&mut client, held_first, hosts)?);
        phases.push(times(
            format!("held, {held_first}"),
            asked(&mut client, hosts)?,
        ));
        held = count + hosts.len();
    }
    Ok(phases.into())
}

fn whole(lab: &Lab<'_>, sizes: &Sizes) -> Result<Value> {
    let world = World::start(lab, sizes.hosts, &["--whole"])?;
    let mut client = world.client()?;
    let hosts = sizes.hosts.with_backend();
    // A first round opens the connections to the backend.
    asked(&mut client, &hosts)?;
    let held = asked(&mut client, &hosts)?;
    Ok(json!([
        {"name": "ready", "seconds": world.ready.as_secs_f64()},
        world.serving.phase("served", world.serving.took)?,
        times("held, all".to_owned(), held),
        world.memory("all")?,
    ]))
}

/// The time to the first byte for each host, one after the other.
fn asked(client: &mut Client, hosts: &[String]) -> Result<Vec<Duration>> {
    hosts.iter().map(|host| ask(client, host)).collect()
}

fn ask(client: &mut Client, host: &str) -> Result<Duration> {
    let answer = client.get(host, "/");
    let answer = answer.map_err(|error| Failure::new(format!("{host}: {error}")))?;
    match answer.status {
        200 => Ok(answer.first_byte),
        status => Err(Failure::new(format!("{host} is answered with {status}"))),
    }
}

/// Has Envoy subscribe to many hosts, several at once.
fn hold(world: &World, hosts: &[&String]) -> Result<()> {
    let part = hosts.len().div_ceil(AT_ONCE).max(1);
    let one = |hosts: &[&String]| {
        let mut client = world.client()?;
        for host in hosts {
            let answer = client.get(host, "/");
            let answer = answer.map_err(|error| Failure::new(format!("{host}: {error}")))?;
            if answer.status != NO_CLUSTER {
                let status = answer.status;
                return Err(Failure::new(format!("{host} is answered with {status}")));
            }
        }
        Ok(())
    };
    thread::scope(|scope| {
        let all: Vec<_> = hosts
            .chunks(part)
            .map(|some| scope.spawn(move || one(some)))
            .collect();
        let ended = all.into_iter().map(|thread| {
            let broken = |_| Err(Failure::new("a client of the trial broke"));
            thread.join().unwrap_or_else(broken)
        });
        ended.collect()
    })
}

/// Quantiles, in milliseconds.
fn times(name: String, mut all: Vec<Duration>) -> Value {
    all.sort();
    let at = |part: f64| {
        let place = (all.len() as f64 * part).ceil() as usize;
        let time = all.get(place.saturating_sub(1));
        time.map_or(0.0, |time| time.as_secs_f64() * 1e3)
    };
    json!({"name": name, "answer": {
        "count": all.len(), "p50": at(0.5), "p90": at(0.9), "p99": at(0.99), "max": at(1.0),
    }})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_those_of_all() {
        let all: Vec<_> = (1..=200).rev().map(Duration::from_millis).collect();
        let found = times("new".to_owned(), all);
        let answer = &found["answer"];
        assert_eq!(answer["p50"], 100.0);
        assert_eq!(answer["p99"], 198.0);
        assert_eq!(answer["max"], 200.0);
    }
}
