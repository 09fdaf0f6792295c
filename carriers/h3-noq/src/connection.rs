//! Connections: accepting and opening streams.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Buf;
use h3::error::Code;
use h3::quic::{self, ConnectionErrorIncoming, StreamErrorIncoming};
use noq::{ConnectionError, VarInt};

use crate::error::{connection_error, lost};
use crate::stream::{BidiStream, Finish, RecvStream, SendStream};

/// Both halves of a stream, as noq accepts and opens it.
type Both = (noq::SendStream, noq::RecvStream);

/// A call of noq that has not returned. It is kept between polls, because it holds its place in noq's queue of those who wait.
type Call<T> = Option<Pin<Box<dyn Future<Output = Result<T, ConnectionError>> + Send + Sync>>>;

/// Polls a call, which `begin` makes if none is under way.
fn poll<T, F>(
    call: &mut Call<T>,
    cx: &mut Context<'_>,
    begin: impl FnOnce() -> F,
) -> Poll<Result<T, ConnectionError>>
where
    F: Future<Output = Result<T, ConnectionError>> + Send + Sync + 'static,
{
    let pending = call.get_or_insert_with(|| Box::pin(begin()));
    let done = ready!(pending.as_mut().poll(cx));
    *call = None;
    Poll::Ready(done)
}

/// A QUIC connection of noq's, for h3.
pub struct Connection {
    opener: Opener,
    accepting_bidi: Call<Both>,
    accepting_recv: Call<noq::RecvStream>,
    most_received: u64,
    finish: Finish,
}

impl Connection {
    /// The connection on which HTTP/3 is to be spoken. Its handshake is over.
    pub fn new(connection: noq::Connection) -> Self {
        Self {
            opener: Opener::new(connection),
            accepting_bidi: None,
            accepting_recv: None,
            most_received: u64::MAX,
            finish: Finish::AtOnce,
        }
    }

    /// Stops each stream that the peer opens after this many bytes. h3 keeps a frame of headers until it is whole, however long it is, so
    /// a server that takes no bodies sets this to a few times the longest headers.
    pub fn receive_at_most(self, bytes: u64) -> Self {
        Self { most_received: bytes, ..self }
    }

    /// On streams that the peer opens, `finish` is over when the peer has acknowledged everything, so that the connection can be closed
    /// after it. Otherwise it is over when noq knows that there is nothing more to send.
    pub fn finish_when_acknowledged(self) -> Self {
        Self { finish: Finish::WhenAcknowledged, ..self }
    }
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection").field("connection", &self.opener.connection).finish_non_exhaustive()
    }
}

impl<B: Buf> quic::Connection<B> for Connection {
    type RecvStream = RecvStream;
    type OpenStreams = Opener;

    fn poll_accept_recv(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<RecvStream, ConnectionErrorIncoming>> {
        let connection = &self.opener.connection;
        let accepted = ready!(poll(&mut self.accepting_recv, cx, || {
            let connection = connection.clone();
            async move { connection.accept_uni().await }
        }));
        let most = self.most_received;
        Poll::Ready(accepted.map(|stream| RecvStream::new(stream, most)).map_err(connection_error))
    }

    fn poll_accept_bidi(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Self::BidiStream, ConnectionErrorIncoming>> {
        let connection = &self.opener.connection;
        let accepted = ready!(poll(&mut self.accepting_bidi, cx, || {
            let connection = connection.clone();
            async move { connection.accept_bi().await }
        }));
        let (most, finish) = (self.most_received, self.finish);
        Poll::Ready(accepted.map(|both| BidiStream::new(both, most, finish)).map_err(connection_error))
    }

    fn opener(&self) -> Opener {
        self.opener.clone()
    }
}

impl<B: Buf> quic::OpenStreams<B> for Connection {
    type BidiStream = BidiStream<B>;
    type SendStream = SendStream<B>;

    fn poll_open_bidi(&mut self, cx: &mut Context<'_>) -> Poll<Result<BidiStream<B>, StreamErrorIncoming>> {
        self.opener.poll_open_bidi(cx)
    }

    fn poll_open_send(&mut self, cx: &mut Context<'_>) -> Poll<Result<SendStream<B>, StreamErrorIncoming>> {
        self.opener.poll_open_send(cx)
    }

    fn close(&mut self, code: Code, reason: &[u8]) {
        quic::OpenStreams::<B>::close(&mut self.opener, code, reason);
    }
}

/// Opens streams of a connection, and closes it.
pub struct Opener {
    connection: noq::Connection,
    opening_bidi: Call<Both>,
    opening_send: Call<noq::SendStream>,
}

impl Opener {
    fn new(connection: noq::Connection) -> Self {
        Self { connection, opening_bidi: None, opening_send: None }
    }
}

impl fmt::Debug for Opener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Opener").field("connection", &self.connection).finish_non_exhaustive()
    }
}

impl Clone for Opener {
    fn clone(&self) -> Self {
        Self::new(self.connection.clone())
    }
}

impl<B: Buf> quic::OpenStreams<B> for Opener {
    type BidiStream = BidiStream<B>;
    type SendStream = SendStream<B>;

    fn poll_open_bidi(&mut self, cx: &mut Context<'_>) -> Poll<Result<BidiStream<B>, StreamErrorIncoming>> {
        let connection = &self.connection;
        let opened = ready!(poll(&mut self.opening_bidi, cx, || {
            let connection = connection.clone();
            async move { connection.open_bi().await }
        }));
        Poll::Ready(opened.map(|both| BidiStream::new(both, u64::MAX, Finish::AtOnce)).map_err(lost))
    }

    fn poll_open_send(&mut self, cx: &mut Context<'_>) -> Poll<Result<SendStream<B>, StreamErrorIncoming>> {
        let connection = &self.connection;
        let opened = ready!(poll(&mut self.opening_send, cx, || {
            let connection = connection.clone();
            async move { connection.open_uni().await }
        }));
        Poll::Ready(opened.map(|stream| SendStream::new(stream, Finish::AtOnce)).map_err(lost))
    }

    fn close(&mut self, code: Code, reason: &[u8]) {
        // Codes of HTTP/3 are small (RFC 9114, 8.1).
        self.connection.close(VarInt::from_u64(code.value()).unwrap_or(VarInt::MAX), reason);
    }
}
