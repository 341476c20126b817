//! Field numbers of Envoy's `discovery.proto`, for code that reads or writes
//! single fields of an encoded message.

/// `google.protobuf.Any`.
pub(super) mod any {
    pub(crate) const TYPE_URL: u32 = 1;
    pub(crate) const VALUE: u32 = 2;
}

/// `envoy.config.core.v3.ControlPlane`.
pub(super) mod control_plane {
    pub(crate) const IDENTIFIER: u32 = 1;
}

/// `Resource`.
pub(super) mod resource {
    pub(crate) const VERSION: u32 = 1;
    /// `Resource.resource`.
    pub(crate) const BODY: u32 = 2;
    pub(crate) const NAME: u32 = 3;
}

/// The fields that have the same number in both responses.
pub(super) mod response {
    /// `version_info` in SotW, `system_version_info` in delta.
    pub(crate) const VERSION: u32 = 1;
    pub(crate) const RESOURCES: u32 = 2;
    pub(crate) const TYPE_URL: u32 = 4;
    pub(crate) const NONCE: u32 = 5;
}

/// `DiscoveryResponse`.
pub(super) mod sotw_response {
    pub(crate) const CONTROL_PLANE: u32 = 6;
}

/// `DeltaDiscoveryResponse`.
pub(super) mod delta_response {
    pub(crate) const REMOVED_RESOURCES: u32 = 6;
    pub(crate) const CONTROL_PLANE: u32 = 7;
}

/// `DiscoveryRequest`.
pub(super) mod sotw_request {
    pub(crate) const VERSION: u32 = 1;
    pub(crate) const NODE: u32 = 2;
    pub(crate) const TYPE_URL: u32 = 4;
    pub(crate) const RESPONSE_NONCE: u32 = 5;
}

/// `DeltaDiscoveryRequest`.
pub(super) mod delta_request {
    pub(crate) const NODE: u32 = 1;
    pub(crate) const TYPE_URL: u32 = 2;
    pub(crate) const INITIAL_RESOURCE_VERSIONS: u32 = 5;
    pub(crate) const RESPONSE_NONCE: u32 = 6;
}
