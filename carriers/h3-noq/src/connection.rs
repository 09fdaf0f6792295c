//! Connections: accepting and opening streams.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Buf;
use h3::error::Code;
use h3::quic::{self, ConnectionErrorIncoming, StreamErrorIncoming};
use noq::{ConnectionError, VarInt};

use crate::error::{connection_error, lost};
use crate::stream::{BidiStream, RecvStream, SendStream};

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
}

impl Connection {
    /// The connection on which HTTP/3 is to be spoken. Its handshake is over.
    pub fn new(connection: noq::Connection) -> Self {
        Self { opener: Opener::new(connection), accepting_bidi: None, accepting_recv: None }
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
        Poll::Ready(accepted.map(RecvStream::new).map_err(connection_error))
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
        Poll::Ready(accepted.map(BidiStream::new).map_err(connection_error))
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
        Poll::Ready(opened.map(BidiStream::new).map_err(lost))
    }

    fn poll_open_send(&mut self, cx: &mut Context<'_>) -> Poll<Result<SendStream<B>, StreamErrorIncoming>> {
        let connection = &self.connection;
        let opened = ready!(poll(&mut self.opening_send, cx, || {
            let connection = connection.clone();
            async move { connection.open_uni().await }
        }));
        Poll::Ready(opened.map(SendStream::new).map_err(lost))
    }

    fn close(&mut self, code: Code, reason: &[u8]) {
        // Codes of HTTP/3 are small (RFC 9114, 8.1).
        self.connection.close(VarInt::from_u64(code.value()).unwrap_or(VarInt::MAX), reason);
    }
}
