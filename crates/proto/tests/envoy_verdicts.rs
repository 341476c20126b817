//! The verdicts of Envoy 1.40 on 109 small resources (`envoy --mode validate`,
//! recorded in `data/envoy-1.40-verdicts.txt`) against ours.
//!
//! Each line of the file is a verdict, a name and a resource.

use trunkline_proto::text::{Format, Options, read_as};

const VERDICTS: &str = include_str!("data/envoy-1.40-verdicts.txt");

#[test]
fn s12_every_verdict_is_envoys() {
    let mut wrong = Vec::new();
    for line in VERDICTS.lines() {
        let mut parts = line.splitn(3, ' ');
        let (verdict, name) = (parts.next().unwrap(), parts.next().unwrap());
        let read = read_as(
            Format::Json,
            name,
            parts.next().unwrap(),
            &Options::default(),
        );
        assert_eq!(read.errors, [], "{name} can be read");
        let found: Vec<_> = read.resources.iter().flat_map(|r| r.validate()).collect();
        if found.is_empty() != (verdict == "accept") {
            wrong.push(format!("{name}: Envoy says {verdict}, here: {found:?}"));
        }
    }
    assert_eq!(wrong, Vec::<String>::new());
    assert_eq!(VERDICTS.lines().count(), 109);
}
