//! A route to a host on which TCP begins with another window: `ip route add ADDRESS dev ran0 scope link initcwnd N`
//! (ip-route(8); rtnetlink(7)).

use std::io;
use std::net::Ipv4Addr;

use netconfig_rs::Interface;
use netlink_packet_core::{
    NLM_F_ACK, NLM_F_CREATE, NLM_F_REPLACE, NLM_F_REQUEST, NetlinkHeader, NetlinkMessage, NetlinkPayload,
};
use netlink_packet_route::route::{
    RouteAttribute, RouteHeader, RouteMessage, RouteMetric, RouteProtocol, RouteScope, RouteType,
};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};
use netlink_sys::{Socket, SocketAddr, protocols::NETLINK_ROUTE};

use crate::devices::NAME;

/// Length of the prefix of one address.
const WHOLE: u8 = 32;
/// Room for the kernel's answer, which is an error number and the request.
const ANSWER: usize = 4096;

/// From now on, connections of the calling thread's namespace to this address begin with so many segments.
pub fn set_initial_window(to: Ipv4Addr, segments: u32) -> io::Result<()> {
    let device = Interface::try_from_name(NAME).and_then(|device| device.index());
    let device = device.map_err(|error| io::Error::other(error.to_string()))?;
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
    let mut header = NetlinkHeader::default();
    header.flags = NLM_F_REQUEST | NLM_F_ACK | NLM_F_CREATE | NLM_F_REPLACE;
    let mut packet = NetlinkMessage::new(header, RouteNetlinkMessage::NewRoute(route).into());
    packet.finalize();
    let mut request = vec![0; packet.buffer_len()];
    packet.serialize(&mut request);
    let mut socket = Socket::new(NETLINK_ROUTE)?;
    socket.bind_auto()?;
    socket.connect(&SocketAddr::new(0, 0))?;
    socket.send(&request, 0)?;
    let mut answer = vec![0; ANSWER];
    let size = socket.recv(&mut &mut answer[..], 0)?;
    let answer = answer.get(..size).unwrap_or_default();
    let answer = NetlinkMessage::<RouteNetlinkMessage>::deserialize(answer).map_err(io::Error::other)?;
    match answer.payload {
        // Without a number it is the acknowledgement.
        NetlinkPayload::Error(error) if error.code.is_some() => Err(error.to_io()),
        _ => Ok(()),
    }
}
