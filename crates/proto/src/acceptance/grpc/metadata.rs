//! Metadata of known types (A83, A86).

use super::{address, decode_body};
use crate::acceptance::findings::Findings;
use crate::acceptance::place::Place;
use crate::acceptance::problem::Problem;
use crate::descriptor::full_name;
use crate::envoy::envoy::config::core::v3::{Address, Metadata};
use crate::envoy::envoy::extensions::filters::http::gcp_authn::v3::Audience;

const AUDIENCE: &str = "envoy.extensions.filters.http.gcp_authn.v3.Audience";
const ADDRESS: &str = "envoy.config.core.v3.Address";

/// Checks the typed metadata of the part at `place`. Unknown types are ignored.
pub(super) fn check_metadata(
    metadata: Option<&Metadata>,
    place: &Place<'_>,
    findings: &mut Findings<'_>,
) {
    let Some(metadata) = metadata else { return };
    if metadata.typed_filter_metadata.is_empty() {
        return;
    }

    let place = place.field("metadata");
    // The order of a hash map varies, but that of the reasons must not.
    let mut entries: Vec<_> = metadata.typed_filter_metadata.iter().collect();
    entries.sort_by_key(|(key, _)| *key);
    for (key, any) in entries {
        let place = place.entry("typed_filter_metadata", key);
        match full_name(&any.type_url) {
            AUDIENCE => {
                let audience: Option<Audience> =
                    decode_body(AUDIENCE, &any.value, &place, findings);
                if audience.is_some_and(|audience| audience.url.is_empty()) {
                    findings.reject(&place.field("url"), Problem::Missing);
                }
            }
            ADDRESS => {
                let address: Option<Address> = decode_body(ADDRESS, &any.value, &place, findings);
                if address.is_some() {
                    address::check_ip(address.as_ref(), &place, findings);
                }
            }
            _ => {}
        }
    }
}
