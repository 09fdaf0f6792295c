//! Queries the kernel for links, routes, qdiscs and filters (rtnetlink(7)).

use std::convert::Infallible;
use std::io;

use netlink_packet_core::{
    NLM_F_ACK, NLM_F_REQUEST, NetlinkDeserializable, NetlinkHeader, NetlinkMessage, NetlinkPayload,
};
use netlink_packet_route::RouteNetlinkMessage;
use netlink_sys::{Socket, SocketAddr, protocols::NETLINK_ROUTE};

/// Room for the kernel's answer, which consists of an error number and the request.
const ANSWER: usize = 4096;

/// Content other than errors is not parsed.
struct Content;

impl NetlinkDeserializable for Content {
    type Error = Infallible;

    fn deserialize(_: &NetlinkHeader, _: &[u8]) -> Result<Self, Infallible> {
        Ok(Self)
    }
}

/// Executes a request in the calling thread's namespace. `flags` are NLM_F_CREATE and the like.
pub fn request(message: RouteNetlinkMessage, flags: u16) -> io::Result<()> {
    let mut header = NetlinkHeader::default();
    header.flags = NLM_F_REQUEST | NLM_F_ACK | flags;
    let mut packet = NetlinkMessage::new(header, message.into());
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
    let answer = NetlinkMessage::<Content>::deserialize(answer).map_err(io::Error::other)?;
    match answer.payload {
        // An error without a number is the acknowledgement.
        NetlinkPayload::Error(error) if error.code.is_some() => Err(error.to_io()),
        _ => Ok(()),
    }
}
