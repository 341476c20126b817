//! Versions depend on nothing but contents: what other processes, replicas and
//! releases wrote is still the same.

use trunkline_core::name::Name;
use trunkline_core::resource::{Resource, Version};

#[test]
fn s48_versions_are_those_of_every_process() {
    for (body, version) in [("", "99aa06d3014798d8"), ("v1", "64b3b2e89f274d11")] {
        assert_eq!(
            Version::of_body(body.as_bytes()).as_str(),
            version,
            "{body}"
        );
    }
}

#[test]
fn s48_the_version_of_a_set_depends_on_names_and_versions() {
    let resource = |name: &str, body: &'static str| Resource::new(Name::new(name), body.into());
    assert_eq!(
        resource("a", "v1").fingerprint(),
        93365212745633532899095481921464520074
    );
    assert_ne!(
        resource("a", "v1").fingerprint(),
        resource("b", "v1").fingerprint()
    );
    assert_ne!(
        resource("a", "v1").fingerprint(),
        resource("a", "v2").fingerprint()
    );
}
