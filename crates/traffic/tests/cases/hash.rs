//! `hash.json`: hashes, rings, maglev tables and the order of EDF.

use serde_json::Value;
use trunkline_traffic::balance::{Maglev, Ring, RingConfig, RingFunction};
use trunkline_traffic::hash::{combine, murmur2, xxh64, xxh64_seeded};

use crate::data::{list, text};

fn file() -> Value {
    serde_json::from_str(include_str!("../data/hash.json")).expect("the file is JSON")
}

fn hex(value: &Value) -> u64 {
    u64::from_str_radix(text(value), 16).expect("a hash")
}

fn number(value: &Value) -> u64 {
    value.as_u64().expect("a number")
}

/// Keys and weights that sum to 1.
fn hosts(value: &Value) -> Vec<(&str, f64)> {
    let weight = |host: &Value| host[1].as_f64().expect("a weight");
    let total: f64 = list(value).iter().map(weight).sum();
    let hosts = list(value).iter();
    hosts
        .map(|host| (text(&host[0]), weight(host) / total))
        .collect()
}

#[test]
fn d50_hashes_are_those_of_envoy() {
    let file = file();
    for case in list(&file["xxh64"]) {
        assert_eq!(xxh64(text(&case[0]).as_bytes()), hex(&case[1]), "{case}");
    }
    for case in list(&file["xxh64_seed1"]) {
        assert_eq!(
            xxh64_seeded(text(&case[0]).as_bytes(), 1),
            hex(&case[1]),
            "{case}"
        );
    }
    for case in list(&file["murmur2"]) {
        assert_eq!(
            murmur2(text(&case[0]).as_bytes(), 0xc70f_6907),
            hex(&case[1]),
            "{case}"
        );
    }
    for case in list(&file["combine"]) {
        let parts = list(&case[0])
            .iter()
            .map(|part| xxh64(text(part).as_bytes()));
        let hash = parts.fold(None, |before, new| Some(combine(before, new)));
        assert_eq!(hash, Some(hex(&case[1])), "{case}");
    }
}

#[test]
fn d62_rings_are_those_of_envoy() {
    for case in list(&file()["rings"]) {
        let config = RingConfig {
            min: number(&case["min"]),
            max: number(&case["max"]),
            function: match text(&case["hash"]) {
                "xx" => RingFunction::Xx,
                _ => RingFunction::Murmur2,
            },
        };
        let ring = Ring::new(&hosts(&case["hosts"]), &config);
        assert_eq!(ring.entries().len() as u64, number(&case["size"]), "{case}");
        for (index, first) in list(&case["first"]).iter().enumerate() {
            let (hash, host) = ring.entries()[index];
            assert_eq!((hash, u64::from(host)), (hex(&first[0]), number(&first[1])));
        }
        for pick in list(&case["pick"]) {
            let hash = xxh64(text(&pick[0]).as_bytes());
            let again = [ring.pick(hash, 0), ring.pick(hash, 1)];
            let expected = [&pick[1], &pick[2]].map(|host| usize::try_from(number(host)).ok());
            assert_eq!(again, expected, "{pick}");
        }
    }
}

#[test]
fn d62_maglev_tables_are_those_of_envoy() {
    for case in list(&file()["maglev"]) {
        let hosts = hosts(&case["hosts"]);
        let maglev = Maglev::new(&hosts, number(&case["size"]));
        let mut counts = vec![0; hosts.len()];
        maglev
            .table()
            .iter()
            .for_each(|host| counts[*host as usize] += 1);
        let expected: Vec<u64> = list(&case["per_host"]).iter().map(number).collect();
        assert_eq!(counts, expected, "{}", case["hosts"]);
        for (index, host) in list(&case["first"]).iter().enumerate() {
            assert_eq!(
                u64::from(maglev.table()[index]),
                number(host),
                "slot {index}"
            );
        }
        for pick in list(&case["pick"]) {
            let hash = xxh64(text(&pick[0]).as_bytes());
            let again = [maglev.pick(hash, 0), maglev.pick(hash, 1)];
            let expected = [&pick[1], &pick[2]].map(|host| usize::try_from(number(host)).ok());
            assert_eq!(again, expected, "{pick}");
        }
    }
}
