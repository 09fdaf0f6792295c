//! The receiver of the data: measures, and reports.

use std::fmt;
use std::io::{self, IoSliceMut};
use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Instant;

use noq::udp::RecvMeta;
use noq::{AsyncUdpSocket, Connection, PathId, SendDatagramError, UdpSender};
use ranpace_cc::{Algorithm, RadioHint, Received, ReceiverHalf, ReceiverReport};
use ranpace_quic::Clock;
use ranpace_quic::reports::NumberedReport;
use ranpace_units::{Bytes, Span, Time};
use tokio::sync::Notify;

use super::{ACCEPTED, INTERVAL, REPEAT, has_half, reporting};

/// Headers of UDP and of IPv4 without options, and of IPv6 without extensions.
const UDP: u64 = 8;
const IPV4: u64 = 20;
const IPV6: u64 = 40;

/// This control's receivers measure nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the receiver of {control} reports nothing; those of {} do", reporting().collect::<Vec<_>>().join(", "))]
pub struct Unreported {
    control: String,
}

/// What was sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sent {
    /// Packets that were measured.
    pub packets: u64,
    /// Reports that left.
    pub reports: u64,
}

/// The receiver's half of a client-driven control, for one connection: measures the packets that arrive at the socket, before they are
/// decrypted, and reports to the sender.
///
/// ```no_run
/// # async fn download(client: noq::ClientConfig, to: std::net::SocketAddr) -> Result<(), Box<dyn std::error::Error>> {
/// use std::sync::Arc;
/// use noq::{Endpoint, EndpointConfig, Runtime as _, TokioRuntime};
/// use ranpace_noq::reports::Meter;
///
/// let meter = Meter::new(&"cdbev2".parse()?)?;
/// let socket = TokioRuntime.wrap_udp_socket(std::net::UdpSocket::bind("0.0.0.0:0")?)?;
/// let endpoint =
///     Endpoint::new_with_abstract_socket(EndpointConfig::default(), None, meter.socket(socket), Arc::new(TokioRuntime))?;
/// let connection = endpoint.connect_with(client, to, "localhost")?.await?;
/// // A request offers `meter.offer()`, and its answer accepts it; then:
/// let reporting = tokio::spawn(async move { meter.report(&connection).await });
/// # drop(reporting);
/// # Ok(())
/// # }
/// ```
///
/// The socket shows all packets of its endpoint, so an endpoint that measures has one connection. A packet counts with the bytes of
/// its UDP payload, as the sender's window counts it. The packets that the kernel hands over together arrive at one time, that of
/// their reading. QUIC has no timestamps of the sender: where CDBE compares these, it finds the arrivals. The RTT is noq's.
#[derive(Clone)]
pub struct Meter(Arc<Shared>);

struct Shared {
    control: String,
    clock: Clock,
    state: Mutex<State>,
    /// A report waits to be sent.
    news: Notify,
}

struct State {
    half: Box<dyn ReceiverHalf>,
    rtt: Option<Span>,
    /// The newest report, and when it was made.
    newest: Option<(ReceiverReport, Time)>,
    /// It has not been sent.
    waits: bool,
    sent: Sent,
}

impl State {
    /// Asks the half for a report, unless the last one is too young; returns true if there is one to send.
    fn look(&mut self, now: Time) -> bool {
        let age = self.newest.map(|(_, made_at)| now - made_at);
        if age.is_some_and(|age| age < INTERVAL) {
            return false;
        }
        let Some(report) = self.half.report(now) else { return false };
        if self.newest.is_some_and(|(newest, _)| newest == report) && age < Some(REPEAT) {
            return false;
        }
        (self.newest, self.waits) = (Some((report, now)), true);
        true
    }
}

impl fmt::Debug for Meter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.0.state();
        f.debug_struct("Meter").field("half", &state.half).field("sent", &state.sent).finish_non_exhaustive()
    }
}

impl Shared {
    /// A half that has panicked is in some state that it can go on from.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn now(&self) -> Time {
        self.clock.time(Instant::now())
    }

    fn on_arrivals(&self, arrived: &[RecvMeta]) {
        let now = self.now();
        let mut state = self.state();
        let rtt = state.rtt;
        for buffer in arrived {
            let headers = UDP + if buffer.addr.is_ipv4() { IPV4 } else { IPV6 };
            // The kernel joins packets of the same size, of which the last may be shorter.
            let (mut left, stride) = (buffer.len, buffer.stride.max(1));
            while left > 0 {
                let bytes = Bytes::new(left.min(stride) as u64);
                left -= left.min(stride);
                state.sent.packets += 1;
                state.half.on_data(&Received {
                    now,
                    number: None,
                    bytes,
                    wire: bytes + Bytes::new(headers),
                    sent_at: now,
                    time_to_next: Span::ZERO,
                    rtt,
                });
            }
        }
        self.look(state, now);
    }

    fn look(&self, mut state: MutexGuard<'_, State>, now: Time) {
        let is_new = state.look(now);
        drop(state);
        if is_new {
            self.news.notify_one();
        }
    }
}

impl Meter {
    /// The half of this control's receiver.
    ///
    /// # Errors
    ///
    /// If the control is not client-driven.
    pub fn new(control: &Algorithm) -> Result<Self, Unreported> {
        let half = control.receiver().filter(|_| has_half(control.entry()));
        let mut half = half.ok_or_else(|| Unreported { control: control.to_string() })?;
        half.on_start(Time::ZERO);
        Ok(Self(Arc::new(Shared {
            control: control.to_string(),
            clock: Clock::new(Instant::now()),
            state: Mutex::new(State { half, rtt: None, newest: None, waits: false, sent: Sent::default() }),
            news: Notify::new(),
        })))
    }

    /// Returns whether this is the same meter.
    pub fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// A socket that measures what arrives at the given one.
    pub fn socket(&self, socket: Box<dyn AsyncUdpSocket>) -> Box<dyn AsyncUdpSocket> {
        Box::new(MeasuredSocket { socket, shared: self.0.clone() })
    }

    /// What a request offers: the value of [`super::HEADER`].
    pub fn offer(&self) -> String {
        format!("{ACCEPTED} {}", self.0.control)
    }

    /// Returns whether the half needs [`Self::on_radio`].
    pub fn wants_radio(&self) -> bool {
        self.0.state().half.wants_radio()
    }

    /// Passes on what the device's modem says: a downlink grant, or a channel quality. [`RadioHint::measured_at`] is a time of
    /// [`Self::time`].
    pub fn on_radio(&self, hint: &RadioHint) {
        let now = self.0.now();
        let mut state = self.0.state();
        state.half.on_radio(now, hint);
        self.0.look(state, now);
    }

    /// The time of an instant on the clock of this meter; instants before it was made are [`Time::ZERO`].
    pub fn time(&self, instant: Instant) -> Time {
        self.0.clock.time(instant)
    }

    /// What was measured and sent.
    pub fn sent(&self) -> Sent {
        self.0.state().sent
    }

    /// Reports until the connection ends. Call it when the sender has accepted the offer.
    ///
    /// # Errors
    ///
    /// If the sender takes no DATAGRAM frames, or this end has switched them off. The end of the connection is none.
    pub async fn report(&self, connection: &Connection) -> Result<(), SendDatagramError> {
        let mut closed = pin!(connection.closed());
        let mut number = 0_u32;
        loop {
            // Before the lock: noq has locks of its own, and calls the socket while it holds one.
            let rtt = connection.rtt(PathId::ZERO).map(|rtt| Span::from_secs_f64(rtt.as_secs_f64()));
            let content = {
                let mut state = self.0.state();
                state.rtt = rtt;
                let waiting = state.newest.filter(|_| state.waits);
                state.waits = false;
                waiting.map(|(report, made_at)| NumberedReport { number, made_at, report }.encode())
            };
            if let Some(content) = content {
                match connection.send_datagram(content.into()) {
                    Ok(()) => {}
                    Err(SendDatagramError::ConnectionLost(_)) => return Ok(()),
                    Err(error) => return Err(error),
                }
                // 4,294,967,295 reports take more than a year; the sender refuses what comes after them.
                number = number.saturating_add(1);
                self.0.state().sent.reports += 1;
            }
            tokio::select! {
                _ = &mut closed => return Ok(()),
                () = self.0.news.notified() => {}
            }
        }
    }
}

/// A socket whose arrivals are measured.
#[derive(Debug)]
struct MeasuredSocket {
    socket: Box<dyn AsyncUdpSocket>,
    shared: Arc<Shared>,
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared").field("control", &self.control).finish_non_exhaustive()
    }
}

impl AsyncUdpSocket for MeasuredSocket {
    fn create_sender(&self) -> Pin<Box<dyn UdpSender>> {
        self.socket.create_sender()
    }

    fn poll_recv(
        &mut self,
        cx: &mut Context<'_>,
        buffers: &mut [IoSliceMut<'_>],
        meta: &mut [RecvMeta],
    ) -> Poll<io::Result<usize>> {
        let received = ready!(self.socket.poll_recv(cx, buffers, meta));
        if let Ok(filled) = received {
            self.shared.on_arrivals(&meta[..filled]);
        }
        Poll::Ready(received)
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    fn max_receive_segments(&self) -> NonZeroUsize {
        self.socket.max_receive_segments()
    }

    fn may_fragment(&self) -> bool {
        self.socket.may_fragment()
    }
}
