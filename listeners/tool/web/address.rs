//! Decides whether an address is public on the internet. Addresses of this machine, of local
//! networks and of a cloud's metadata service are not public. A metadata service gives out keys.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// IPv4 networks that are not public, with the bits of their prefixes.
const PRIVATE_V4: [(Ipv4Addr, u32); 16] = [
    (Ipv4Addr::new(0, 0, 0, 0), 8),
    (Ipv4Addr::new(10, 0, 0, 0), 8),
    // Carriers' networks (RFC 6598), and the metadata service of one cloud.
    (Ipv4Addr::new(100, 64, 0, 0), 10),
    (Ipv4Addr::new(127, 0, 0, 0), 8),
    // The platform of Azure, on an address that looks public.
    (Ipv4Addr::new(168, 63, 129, 16), 32),
    // Link-local addresses, and the metadata service of most clouds.
    (Ipv4Addr::new(169, 254, 0, 0), 16),
    (Ipv4Addr::new(172, 16, 0, 0), 12),
    (Ipv4Addr::new(192, 0, 0, 0), 24),
    // Addresses for documentation.
    (Ipv4Addr::new(192, 0, 2, 0), 24),
    // Relays of 6to4.
    (Ipv4Addr::new(192, 88, 99, 0), 24),
    (Ipv4Addr::new(192, 168, 0, 0), 16),
    // Benchmarks within a network.
    (Ipv4Addr::new(198, 18, 0, 0), 15),
    // Addresses for documentation.
    (Ipv4Addr::new(198, 51, 100, 0), 24),
    (Ipv4Addr::new(203, 0, 113, 0), 24),
    // Multicast, and reserved addresses.
    (Ipv4Addr::new(224, 0, 0, 0), 4),
    (Ipv4Addr::new(240, 0, 0, 0), 4),
];

/// The one IPv6 network that is public.
const PUBLIC_V6: (Ipv6Addr, u32) = (Ipv6Addr::new(0x2000, 0, 0, 0, 0, 0, 0, 0), 3);
/// Networks within [`PUBLIC_V6`] that are not public.
const PRIVATE_V6: [(Ipv6Addr, u32); 4] = [
    // Teredo and other protocols. Some of these addresses contain an IPv4 address.
    (Ipv6Addr::new(0x2001, 0, 0, 0, 0, 0, 0, 0), 23),
    // Addresses for documentation.
    (Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 0), 32),
    (Ipv6Addr::new(0x3fff, 0, 0, 0, 0, 0, 0, 0), 20),
    // 6to4. These addresses contain an IPv4 address.
    (Ipv6Addr::new(0x2002, 0, 0, 0, 0, 0, 0, 0), 16),
];
/// IPv6 networks whose addresses have an IPv4 address in their last 32 bits. A connection really
/// goes to this IPv4 address. These networks are the IPv4-mapped addresses and NAT64.
const V4_IN_V6: [(Ipv6Addr, u32); 2] = [
    (Ipv6Addr::new(0, 0, 0, 0, 0, 0xffff, 0, 0), 96),
    (Ipv6Addr::new(0x64, 0xff9b, 0, 0, 0, 0, 0, 0), 96),
];

/// Returns whether an address is public on the internet.
pub(super) fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(it) => is_public_v4(it),
        IpAddr::V6(it) => is_public_v6(it),
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    let bits = address.to_bits();
    !PRIVATE_V4.iter().any(|(network, prefix)| (bits ^ network.to_bits()) >> (32 - prefix) == 0)
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    let bits = address.to_bits();
    let is_in =
        |(network, prefix): &(Ipv6Addr, u32)| (bits ^ network.to_bits()) >> (128 - prefix) == 0;
    if V4_IN_V6.iter().any(is_in) {
        let [.., a, b, c, d] = address.octets();
        return is_public_v4(Ipv4Addr::new(a, b, c, d));
    }
    is_in(&PUBLIC_V6) && !PRIVATE_V6.iter().any(is_in)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_this_machine_and_its_networks_are_not_public() {
        let private = "0.0.0.0 0.1.2.3 10.0.0.1 100.64.0.1 100.100.100.200 127.0.0.1 \
                       127.255.255.254 168.63.129.16 169.254.169.254 172.16.0.1 172.31.255.255 \
                       192.0.0.192 192.0.2.1 192.88.99.1 192.168.1.1 198.18.0.1 198.19.255.255 \
                       198.51.100.7 203.0.113.7 224.0.0.1 239.255.255.255 240.0.0.1 \
                       255.255.255.255 :: ::1 ::127.0.0.1 ::ffff:127.0.0.1 ::ffff:169.254.169.254 \
                       64:ff9b::10.0.0.1 64:ff9b::169.254.169.254 64:ff9b:1::8.8.8.8 100::1 \
                       2001::1 2001:db8::1 2002:7f00:1::1 3fff::1 5f00::1 fc00::1 fd00:ec2::254 \
                       fe80::1 fec0::1 ff02::1";
        for address in private.split_whitespace() {
            assert!(!is_public(address.parse().unwrap()), "{address}");
        }
    }

    #[test]
    fn addresses_of_the_internet_are_public() {
        let public = "1.1.1.1 8.8.8.8 93.184.216.34 100.63.255.255 100.128.0.1 168.63.129.17 \
                      172.15.255.255 172.32.0.1 192.0.1.1 198.17.255.255 198.20.0.1 \
                      223.255.255.255 2606:4700::1111 2a00:1450::1 2001:4860::8888 \
                      ::ffff:8.8.8.8 64:ff9b::8.8.8.8";
        for address in public.split_whitespace() {
            assert!(is_public(address.parse().unwrap()), "{address}");
        }
    }
}
