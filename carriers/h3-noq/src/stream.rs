//! Streams: sending and receiving.

use std::fmt;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes};
use h3::error::Code;
use h3::quic::{self, ConnectionErrorIncoming, StreamErrorIncoming, StreamId, WriteBuf};
use noq::VarInt;

use crate::error::{read_error, stopped_error, write_error};

fn stream_id(id: noq::StreamId) -> StreamId {
    u64::from(id).try_into().expect("a stream's number has 62 bits in both (RFC 9000, 2.1)")
}

/// Codes come from h3, which takes them from HTTP/3 or from its user; none has more than 62 bits on the wire.
fn code(code: u64) -> VarInt {
    VarInt::from_u64(code).unwrap_or(VarInt::MAX)
}

/// When finishing a stream is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Finish {
    AtOnce,
    WhenAcknowledged,
}

/// How far a stream has been sent.
#[derive(Debug)]
enum Progress {
    Sending,
    /// Finished; the peer may not have everything.
    Finishing(Pin<Box<noq::Stopped>>),
    /// Finished or reset.
    Over,
}

/// The sending half of a stream. It is reset if it is dropped before it is finished: what is sent by halves is not taken for whole.
pub struct SendStream<B: Buf> {
    stream: noq::SendStream,
    /// What h3 has given and noq has not taken.
    waiting: Option<WriteBuf<B>>,
    finish: Finish,
    progress: Progress,
}

impl<B: Buf> fmt::Debug for SendStream<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let waiting = self.waiting.as_ref().map_or(0, Buf::remaining);
        f.debug_struct("SendStream").field("stream", &self.stream).field("waiting", &waiting).finish()
    }
}

impl<B: Buf> SendStream<B> {
    pub(crate) fn new(stream: noq::SendStream, finish: Finish) -> Self {
        Self { stream, waiting: None, finish, progress: Progress::Sending }
    }

    fn poll_write(
        &mut self,
        cx: &mut Context<'_>,
        content: &[u8],
    ) -> Poll<Result<usize, StreamErrorIncoming>> {
        Pin::new(&mut self.stream).poll_write(cx, content).map_err(write_error)
    }
}

impl<B: Buf> quic::SendStream<B> for SendStream<B> {
    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), StreamErrorIncoming>> {
        if let Some(waiting) = &mut self.waiting {
            while waiting.has_remaining() {
                let stream = Pin::new(&mut self.stream);
                let taken = ready!(stream.poll_write(cx, waiting.chunk())).map_err(write_error)?;
                waiting.advance(taken);
            }
        }
        self.waiting = None;
        Poll::Ready(Ok(()))
    }

    fn send_data<T: Into<WriteBuf<B>>>(&mut self, data: T) -> Result<(), StreamErrorIncoming> {
        if self.waiting.is_some() {
            let message = "h3 gave a stream more data before it was ready".to_owned();
            let connection_error = ConnectionErrorIncoming::InternalError(message);
            return Err(StreamErrorIncoming::ConnectionErrorIncoming { connection_error });
        }
        self.waiting = Some(data.into());
        Ok(())
    }

    fn poll_finish(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), StreamErrorIncoming>> {
        ready!(self.poll_ready(cx))?;
        if matches!(self.progress, Progress::Sending) {
            self.stream.finish().map_err(|error| StreamErrorIncoming::Unknown(Box::new(error)))?;
            self.progress = match self.finish {
                Finish::AtOnce => Progress::Over,
                Finish::WhenAcknowledged => Progress::Finishing(Box::pin(self.stream.stopped())),
            };
        }
        if let Progress::Finishing(stopped) = &mut self.progress {
            let outcome = ready!(stopped.as_mut().poll(cx));
            self.progress = Progress::Over;
            match outcome {
                Ok(None) => {}
                Ok(Some(code)) => {
                    return Poll::Ready(Err(StreamErrorIncoming::StreamTerminated {
                        error_code: code.into_inner(),
                    }));
                }
                Err(error) => return Poll::Ready(Err(stopped_error(error))),
            }
        }
        Poll::Ready(Ok(()))
    }

    fn reset(&mut self, reset_code: u64) {
        self.progress = Progress::Over;
        // A stream that is over needs no reset, and that is all that noq refuses.
        let _closed = self.stream.reset(code(reset_code));
    }

    fn send_id(&self) -> StreamId {
        stream_id(self.stream.id())
    }
}

impl<B: Buf> Drop for SendStream<B> {
    fn drop(&mut self) {
        // noq would finish it.
        if matches!(self.progress, Progress::Sending) {
            quic::SendStream::reset(self, Code::H3_REQUEST_CANCELLED.value());
        }
    }
}

impl<B: Buf> quic::SendStreamUnframed<B> for SendStream<B> {
    fn poll_send<D: Buf>(
        &mut self,
        cx: &mut Context<'_>,
        buf: &mut D,
    ) -> Poll<Result<usize, StreamErrorIncoming>> {
        ready!(quic::SendStream::<B>::poll_ready(self, cx))?;
        let taken = ready!(self.poll_write(cx, buf.chunk()))?;
        buf.advance(taken);
        Poll::Ready(Ok(taken))
    }
}

/// The receiving half of a stream.
#[derive(Debug)]
pub struct RecvStream {
    stream: noq::RecvStream,
    /// Bytes that may still come.
    left: u64,
}

impl RecvStream {
    pub(crate) fn new(stream: noq::RecvStream, most: u64) -> Self {
        Self { stream, left: most }
    }
}

impl quic::RecvStream for RecvStream {
    type Buf = Bytes;

    fn poll_data(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Bytes>, StreamErrorIncoming>> {
        // A read that is dropped loses nothing: noq has registered who waits, and gives what comes to the next read.
        let piece = ready!(pin!(self.stream.read_chunk(usize::MAX)).poll(cx)).map_err(read_error)?;
        let length = piece.as_ref().map_or(0, Bytes::len) as u64;
        let Some(left) = self.left.checked_sub(length) else {
            let error_code = Code::H3_EXCESSIVE_LOAD.value();
            quic::RecvStream::stop_sending(self, error_code);
            return Poll::Ready(Err(StreamErrorIncoming::StreamTerminated { error_code }));
        };
        self.left = left;
        Poll::Ready(Ok(piece))
    }

    fn stop_sending(&mut self, error_code: u64) {
        // A stream that is over needs no stop, and that is all that noq refuses.
        let _closed = self.stream.stop(code(error_code));
    }

    fn recv_id(&self) -> StreamId {
        stream_id(self.stream.id())
    }
}

/// Both halves of a stream.
#[derive(Debug)]
pub struct BidiStream<B: Buf> {
    send: SendStream<B>,
    recv: RecvStream,
}

impl<B: Buf> BidiStream<B> {
    pub(crate) fn new((send, recv): (noq::SendStream, noq::RecvStream), most: u64, finish: Finish) -> Self {
        Self { send: SendStream::new(send, finish), recv: RecvStream::new(recv, most) }
    }
}

impl<B: Buf> quic::BidiStream<B> for BidiStream<B> {
    type SendStream = SendStream<B>;
    type RecvStream = RecvStream;

    fn split(self) -> (SendStream<B>, RecvStream) {
        (self.send, self.recv)
    }
}

impl<B: Buf> quic::SendStream<B> for BidiStream<B> {
    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), StreamErrorIncoming>> {
        self.send.poll_ready(cx)
    }

    fn send_data<T: Into<WriteBuf<B>>>(&mut self, data: T) -> Result<(), StreamErrorIncoming> {
        self.send.send_data(data)
    }

    fn poll_finish(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), StreamErrorIncoming>> {
        self.send.poll_finish(cx)
    }

    fn reset(&mut self, reset_code: u64) {
        self.send.reset(reset_code);
    }

    fn send_id(&self) -> StreamId {
        self.send.send_id()
    }
}

impl<B: Buf> quic::SendStreamUnframed<B> for BidiStream<B> {
    fn poll_send<D: Buf>(
        &mut self,
        cx: &mut Context<'_>,
        buf: &mut D,
    ) -> Poll<Result<usize, StreamErrorIncoming>> {
        self.send.poll_send(cx, buf)
    }
}

impl<B: Buf> quic::RecvStream for BidiStream<B> {
    type Buf = Bytes;

    fn poll_data(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Bytes>, StreamErrorIncoming>> {
        self.recv.poll_data(cx)
    }

    fn stop_sending(&mut self, error_code: u64) {
        self.recv.stop_sending(error_code);
    }

    fn recv_id(&self) -> StreamId {
        self.recv.recv_id()
    }
}
