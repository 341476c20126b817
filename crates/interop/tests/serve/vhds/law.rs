//! The law of on demand, asked of Envoy itself: one listener gets hosts on
//! demand, another has the whole route configuration, and they must agree.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use interop::bootstrap::ADS;
use interop::{Envoy, Gate};

use super::{
    OTHER_ADS, SOON, World, listener, on_demand, on_demand_with, say_together, says, vhost_of,
};
use crate::site::Site;
use crate::texts::listener as plain_listener;
use crate::way::DELTA;

const SEEDS: u64 = 3;
const STEPS: usize = 12;
const NAMES: [&str; 8] = [
    "v1",
    "v2",
    "v3",
    "v4",
    "v5",
    "a.foo.com",
    "c.foo.com",
    "foo.com:80",
];
const DOMAINS: [&str; 26] = [
    "a.foo.com",
    "b.foo.com",
    "x-bar.foo.com",
    "foo.com",
    "foo.com:80",
    "foo.net",
    "a.b.foo.com",
    "bar.org",
    "a.bar.org",
    "a.*.com",
    "com",
    "x",
    "*.foo.com",
    "*-bar.foo.com",
    "*bar.foo.com",
    "*.b.foo.com",
    "*.com",
    "*com",
    "*.bar.org",
    "*.foo.com:80",
    "foo.*",
    "foo.com:*",
    "a*",
    "a.b.*",
    "b*",
    "*",
];
const HOSTS: [&str; 40] = [
    "a.foo.com",
    "b.foo.com",
    "c.foo.com",
    "d.foo.com",
    "x-bar.foo.com",
    "y-bar.foo.com",
    "-bar.foo.com",
    "bar.foo.com",
    "rebar.foo.com",
    "foo.com",
    "foo.com:80",
    "foo.com:81",
    "FOO.com",
    "foo.net",
    "foo.org",
    "foo.",
    "a.b.foo.com",
    "c.b.foo.com",
    "d.c.b.foo.com",
    "b.com",
    "com",
    "icom",
    "x.com",
    "a.x.com",
    "a.*.com",
    "bar.org",
    "a.bar.org",
    "b.bar.org",
    "c.b.bar.org",
    "A.Bar.org",
    "a.foo.com:80",
    "e.foo.com:80",
    "a",
    "ab",
    "a.b.c",
    "b",
    "x",
    "v1",
    "127.0.0.1",
    "127.0.0.1:8080",
];

/// Numbers that a seed decides.
struct Dice(u64);

impl Dice {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) % limit as u64) as usize
    }

    fn pick<'a>(&mut self, from: &[&'a str]) -> &'a str {
        from[self.below(from.len())]
    }

    /// The first of some hosts, in an order of chance.
    fn hosts(&mut self, count: usize) -> Vec<&'static str> {
        let mut all = HOSTS;
        for place in 0..count {
            all.swap(place, place + self.below(HOSTS.len() - place));
        }
        all[..count].to_vec()
    }
}

/// Virtual hosts: their domains, and how often they changed.
#[derive(Default)]
struct Whole(BTreeMap<&'static str, (Vec<&'static str>, usize)>);

impl Whole {
    fn edit(&mut self, dice: &mut Dice) {
        let name = dice.pick(&NAMES);
        let domain = dice.pick(&DOMAINS);
        let owner = self
            .0
            .iter()
            .find(|(_, (domains, _))| domains.contains(&domain));
        let owner = owner.map(|(name, _)| *name);
        match dice.below(6) {
            0 => {
                self.0.remove(name);
            }
            1 => {
                if let Some((_, changed)) = self.0.get_mut(name) {
                    *changed += 1;
                }
            }
            // One domain less, be it the last.
            2 => self.take(owner, domain),
            // One more; it moves if another has it.
            _ => {
                self.take(owner, domain);
                let (domains, changed) = self.0.entry(name).or_default();
                domains.push(domain);
                *changed += 1;
            }
        }
    }

    fn take(&mut self, owner: Option<&str>, domain: &str) {
        for (name, (domains, _)) in &mut self.0 {
            if Some(*name) == owner {
                domains.retain(|other| *other != domain);
            }
        }
        self.0.retain(|_, (domains, _)| !domains.is_empty());
    }

    /// On its own under one route configuration, and as a whole in another.
    fn write(&self, site: &Site, seed: u64, step: usize, source: &str) {
        let (route, whole) = names(seed);
        let all = self.0.iter().map(|(name, (domains, changed))| {
            vhost_of(&route, name, domains, &format!("{name} {changed}"))
        });
        let mut all: Vec<_> = all.collect();
        let step = vhost_of(&whole, "step", &["step.test"], &step.to_string());
        let inside = all.iter().chain([&step]).map(|text| inline(text));
        let inside = inside.collect::<Vec<_>>().join(", ");
        // Some look at hosts without their ports.
        let ports = format!("ignore_port_in_host_matching: {}", seed % 3 == 1);
        let inside = format!("virtual_hosts: [{inside}]");
        let vhds = format!("vhds: {{config_source: {source}}}");
        all.push(on_demand_with(&whole, &format!("{ports}, {inside}")));
        all.push(on_demand_with(&route, &format!("{ports}, {vhds}")));
        site.write(&format!("{route}.yaml"), &all);
    }
}

/// A resource as a field of another: it says its type nowhere.
fn inline(text: &str) -> String {
    let (_, fields) = text.split_once("VirtualHost, ").expect("a virtual host");
    format!("{{{fields}")
}

/// Two route configurations, and listeners of the same names.
fn names(seed: u64) -> (String, String) {
    (format!("demand{seed}"), format!("whole{seed}"))
}

struct Pair {
    demand: SocketAddr,
    whole: SocketAddr,
}

impl Pair {
    fn of(envoy: &Envoy, seed: u64) -> Self {
        let (demand, whole) = names(seed);
        let at = |name: &str| envoy.listener(name).expect("the listener");
        Self {
            demand: at(&demand),
            whole: at(&whole),
        }
    }

    /// Waits until hosts on demand are answered as the whole answers them.
    fn agree(&self, envoy: &Envoy, step: usize, hosts: &[&str], what: &str) {
        envoy.wait_for(&format!("the whole of {what}"), SOON, |_| {
            (says(self.whole, "step.test") == step.to_string()).then_some(())
        });
        let right = say_together(self.whole, hosts);
        let deadline = std::time::Instant::now() + SOON;
        loop {
            let given = say_together(self.demand, hosts);
            if given == right {
                return;
            }
            let all = hosts.iter().zip(given.iter().zip(&right));
            let differ: Vec<_> = all.filter(|(_, (given, right))| given != right).collect();
            assert!(
                std::time::Instant::now() < deadline,
                "{what}: (host, (on demand, as a whole)): {differ:?}"
            );
        }
    }
}

/// Envoy disconnects before a change and reconnects after it.
fn change_while_away(world: &World, gate: &Gate, change: impl FnOnce()) {
    let before = world.serving.journal.place();
    gate.shut();
    world
        .serving
        .journal
        .wait("Envoy to be gone", before, |entry| {
            matches!(entry, interop::Entry::Closed(_)).then_some(())
        });
    change();
    gate.open();
}

#[test]
fn s36_on_demand_routes_every_host_as_the_whole_would() {
    let all = (0..SEEDS).flat_map(|seed| {
        let (route, whole) = names(seed);
        [listener(&route, &route), plain_listener(&whole, &whole)]
    });
    let site = Site::new(&[
        ("all.yaml", &all.collect::<Vec<_>>()),
        ("http.yaml", &[listener("http", "r1"), on_demand("r1", ADS)]),
    ]);
    for seed in 0..SEEDS {
        Whole::default().write(&site, seed, 0, ADS);
    }
    let serving = site.serve();
    let gate = Gate::before(serving.port);
    let envoy = Envoy::start(&DELTA.bootstrap(gate.port));
    let world = World::with(site, serving, envoy);
    for seed in 0..SEEDS {
        let (mut dice, mut whole) = (Dice(seed), Whole::default());
        let pair = Pair::of(&world.envoy, seed);
        let mut source = ADS;
        for step in 1..=STEPS {
            for _ in 0..=dice.below(5) {
                whole.edit(&mut dice);
            }
            // Now and then hosts are found another way, which changes none.
            if dice.below(6) == 0 {
                source = if source == ADS { OTHER_ADS } else { ADS };
            }
            let write = || whole.write(&world.site, seed, step, source);
            match dice.below(4) {
                0 => change_while_away(&world, &gate, write),
                _ => write(),
            }
            // At first only some, so that Envoy subscribes to others late.
            let count = match step * 2 < STEPS {
                true => HOSTS.len() / 4,
                false => HOSTS.len(),
            };
            let hosts = dice.hosts(count);
            let what = format!("step {step} of seed {seed}");
            pair.agree(&world.envoy, step, &hosts, &what);
        }
    }
    world.is_sound();
}
