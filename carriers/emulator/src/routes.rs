//! Sets a route to a host with another initial window of TCP: `ip route add ADDRESS dev ran0 scope link initcwnd N`
//! (ip-route(8); rtnetlink(7)).

use std::io;
use std::net::Ipv4Addr;

use netlink_packet_core::{NLM_F_CREATE, NLM_F_REPLACE};
use netlink_packet_route::route::{
    RouteAttribute, RouteHeader, RouteMessage, RouteMetric, RouteProtocol, RouteScope, RouteType,
};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};

use crate::devices;
use crate::netlink;

/// Length of the prefix of one address.
const WHOLE: u8 = 32;

/// From now on, connections from the calling thread's namespace to this address begin with this many segments.
pub fn set_initial_window(to: Ipv4Addr, segments: u32) -> io::Result<()> {
    let device = devices::index(devices::NAME)?;
    let mut route = RouteMessage::default();
    route.header = RouteHeader {
        address_family: AddressFamily::Inet,
        destination_prefix_length: WHOLE,
        table: RouteHeader::RT_TABLE_MAIN,
        protocol: RouteProtocol::Static,
        scope: RouteScope::Link,
        kind: RouteType::Unicast,
        ..RouteHeader::default()
    };
    route.attributes = vec![
        RouteAttribute::Destination(to.into()),
        RouteAttribute::Oif(device),
        RouteAttribute::Metrics(vec![RouteMetric::InitCwnd(segments)]),
    ];
    netlink::request(RouteNetlinkMessage::NewRoute(route), NLM_F_CREATE | NLM_F_REPLACE)
}
