//! Options and state of TCP sockets that no safe library offers: the window clamp, the largest pacing rate, and `TCP_INFO`.
#![cfg(target_os = "linux")]

use std::ffi::c_int;
use std::io;
use std::mem::{MaybeUninit, size_of};
use std::os::fd::{AsFd, AsRawFd as _};

/// Limits the window that the socket advertises, in bytes (`TCP_WINDOW_CLAMP`). The kernel raises values below 1152, and may replace
/// the clamp when the sizes of arriving segments change.
///
/// # Errors
///
/// The socket is not TCP.
pub fn set_window_clamp(socket: impl AsFd, bytes: u32) -> io::Result<()> {
    // A value above what the kernel's signed type holds would read as negative.
    set(socket, libc::IPPROTO_TCP, libc::TCP_WINDOW_CLAMP, &bytes.min(i32::MAX as u32))
}

/// The socket counts as readable from this many bytes on, from its end, and when its window is full (`SO_RCVLOWAT`).
///
/// # Errors
///
/// The system refuses it.
pub fn set_least_readable(socket: impl AsFd, bytes: u32) -> io::Result<()> {
    set(socket, libc::SOL_SOCKET, libc::SO_RCVLOWAT, &bytes.min(i32::MAX as u32))
}

/// Limits the pace of the socket, in bytes per second (`SO_MAX_PACING_RATE`); `None` removes the limit.
///
/// # Errors
///
/// The system refuses it.
pub fn set_max_pacing_rate(socket: impl AsFd, bytes_per_s: Option<u64>) -> io::Result<()> {
    set(socket, libc::SOL_SOCKET, libc::SO_MAX_PACING_RATE, &bytes_per_s.unwrap_or(u64::MAX))
}

/// The beginning of Linux' `struct tcp_info`, as Linux has had it since version 4.9.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct TcpInfo {
    state: u8,
    ca_state: u8,
    retransmits: u8,
    probes: u8,
    backoff: u8,
    options: u8,
    window_scales: u8,
    flags: u8,
    rto: u32,
    ato: u32,
    /// Largest payload of a segment that is sent, in bytes.
    pub send_mss: u32,
    receive_mss: u32,
    /// Segments that are sent and not acknowledged.
    pub unacked: u32,
    sacked: u32,
    lost: u32,
    retrans: u32,
    fackets: u32,
    last_data_sent: u32,
    last_ack_sent: u32,
    last_data_received: u32,
    last_ack_received: u32,
    path_mtu: u32,
    /// Largest window that the socket advertises for now, in bytes.
    pub receive_threshold: u32,
    /// Smoothed RTT, in microseconds; 0 before the first sample.
    pub rtt: u32,
    rtt_variation: u32,
    send_threshold: u32,
    /// Congestion window, in segments.
    pub send_window: u32,
    advertised_mss: u32,
    reordering: u32,
    receive_rtt: u32,
    receive_space: u32,
    total_retrans: u32,
    pacing_rate: u64,
    max_pacing_rate: u64,
    /// Payload that the peer has acknowledged, in bytes.
    pub bytes_acked: u64,
    /// Payload received in order, in bytes.
    pub bytes_received: u64,
    segments_out: u32,
    segments_in: u32,
    /// Payload that waits to be sent for the first time, in bytes.
    pub unsent: u32,
    /// Smallest RTT of the last minutes, in microseconds; [`u32::MAX`] before the first sample.
    pub min_rtt: u32,
    data_segments_in: u32,
    data_segments_out: u32,
}

impl TcpInfo {
    /// Reads it from the socket (`TCP_INFO`).
    ///
    /// # Errors
    ///
    /// The socket is not TCP, or the kernel is older than Linux 4.9.
    pub fn read(socket: impl AsFd) -> io::Result<Self> {
        let mut info = MaybeUninit::<Self>::zeroed();
        let mut size = size_of::<Self>() as libc::socklen_t;
        // SAFETY: the kernel writes at most `size` bytes to `info`, which has that many.
        let result = unsafe {
            libc::getsockopt(
                socket.as_fd().as_raw_fd(),
                libc::IPPROTO_TCP,
                libc::TCP_INFO,
                info.as_mut_ptr().cast(),
                &raw mut size,
            )
        };
        if result != 0 {
            return Err(io::Error::last_os_error());
        }
        if (size as usize) < size_of::<Self>() {
            return Err(io::Error::new(io::ErrorKind::Unsupported, "TCP_INFO: needs Linux 4.9"));
        }
        // SAFETY: all fields are integers, so every content is valid, and all bytes were initialised.
        Ok(unsafe { info.assume_init() })
    }

    /// Shift of the windows that the socket advertises.
    pub const fn receive_window_scale(&self) -> u8 {
        // Two fields of four bits; the one of the peer comes first, in the machine's own order.
        if cfg!(target_endian = "little") { self.window_scales >> 4 } else { self.window_scales & 15 }
    }
}

fn set<T: Copy>(socket: impl AsFd, level: c_int, name: c_int, value: &T) -> io::Result<()> {
    // SAFETY: the kernel reads `size_of::<T>()` bytes from `value`, which has that many; both callers pass integers.
    let result = unsafe {
        libc::setsockopt(
            socket.as_fd().as_raw_fd(),
            level,
            name,
            std::ptr::from_ref(value).cast(),
            size_of::<T>() as libc::socklen_t,
        )
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a panic is a failed test")]
mod tests {
    use super::*;
    use std::io::{Read as _, Write as _};
    use std::net::{TcpListener, TcpStream, UdpSocket};

    #[test]
    fn a_connection_says_what_it_has_received_and_others_are_refused() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut far, _) = listener.accept().unwrap();
        near.write_all(&[7; 1000]).unwrap();
        far.read_exact(&mut [0; 1000]).unwrap();
        let info = TcpInfo::read(&far).unwrap();
        assert_eq!((info.bytes_received, info.unsent), (1000, 0));
        assert!(info.send_mss > 500 && info.receive_window_scale() <= 14, "{info:?}");
        set_window_clamp(&far, 20_000).unwrap();
        set_max_pacing_rate(&far, Some(1_000_000)).unwrap();
        assert_eq!(TcpInfo::read(&far).unwrap().max_pacing_rate, 1_000_000);
        set_max_pacing_rate(&far, None).unwrap();
        assert_eq!(TcpInfo::read(&far).unwrap().max_pacing_rate, u64::MAX);
        let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
        assert!(set_window_clamp(&udp, 1).is_err() && TcpInfo::read(&udp).is_err());
    }
}
