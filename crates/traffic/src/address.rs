//! Ranges of addresses.

use std::net::IpAddr;

use trunkline_proto::envoy::envoy::config::core::v3::CidrRange;

/// The addresses that begin with the same bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Range {
    is_v4: bool,
    bits: u128,
    length: u8,
}

impl Range {
    /// Reads a range; `None` if it is none.
    pub(crate) fn compile(message: &CidrRange) -> Option<Self> {
        let address: IpAddr = message.address_prefix.parse().ok()?;
        let length = message.prefix_len.map_or(0, |length| length.value);
        let length = u8::try_from(length).ok()?;
        let max_length = if address.is_ipv4() { 32 } else { 128 };
        (length <= max_length).then(|| Self::of(address, length))
    }

    /// Returns the range of a length that an address is in.
    pub(crate) fn of(address: IpAddr, length: u8) -> Self {
        let (is_v4, bits, width) = match address {
            IpAddr::V4(address) => (true, u128::from(address.to_bits()), 32),
            IpAddr::V6(address) => (false, address.to_bits(), 128),
        };
        let host_bits = u32::from(width - length.min(width));
        // A shift by all bits is none that the hardware knows.
        let mask = u128::MAX.checked_shl(host_bits).unwrap_or(0);
        Self {
            is_v4,
            bits: bits & mask,
            length,
        }
    }

    pub(crate) fn has(self, address: IpAddr) -> bool {
        address.is_ipv4() == self.is_v4 && Self::of(address, self.length) == self
    }

    /// Returns the first address.
    pub(crate) fn first(self) -> IpAddr {
        match self.is_v4 {
            // The bits come from an address of this length.
            #[expect(clippy::cast_possible_truncation, reason = "32 bits")]
            true => IpAddr::V4((self.bits as u32).into()),
            false => IpAddr::V6(self.bits.into()),
        }
    }

    /// Returns the number of bits that count.
    pub(crate) fn length(self) -> u8 {
        self.length
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(prefix: &str, length: u32) -> Option<Range> {
        use trunkline_proto::envoy::google::protobuf::UInt32Value;
        Range::compile(&CidrRange {
            address_prefix: prefix.to_owned(),
            prefix_len: Some(UInt32Value { value: length }),
        })
    }

    #[test]
    fn an_address_is_in_a_range_by_its_first_bits() {
        for (prefix, length, address, is_in) in [
            ("10.1.2.3", 8, "10.9.9.9", true),
            ("10.0.0.0", 8, "11.0.0.0", false),
            ("10.0.0.0", 0, "200.1.1.1", true),
            ("10.0.0.0", 0, "::1", false),
            ("10.0.0.1", 32, "10.0.0.1", true),
            ("10.0.0.1", 32, "10.0.0.2", false),
            ("fd00::", 8, "fd12::1", true),
            ("::", 0, "fd12::1", true),
            ("fd00::1", 128, "fd00::2", false),
        ] {
            let range = range(prefix, length).expect("a range");
            let address = address.parse().expect("an address");
            assert_eq!(range.has(address), is_in, "{prefix}/{length} {address}");
        }
        assert!(range("10.0.0.0", 33).is_none());
        assert!(range("::", 129).is_none());
        assert!(range("ten", 8).is_none());
    }
}
