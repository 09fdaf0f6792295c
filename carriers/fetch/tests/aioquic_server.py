"""A server of HTTP/3 by aioquic, an implementation of QUIC by others: aioquic_server.py CERTIFICATE KEY prints its port, and serves N bytes
at /N with the entity tag "v1", and what a range leaves of them. /N?cut=K resets the stream after K bytes, the first time."""

import asyncio
import hashlib
import sys
from base64 import b64encode

from aioquic.asyncio import QuicConnectionProtocol, serve
from aioquic.h3.connection import H3_ALPN, ErrorCode, H3Connection
from aioquic.h3.events import HeadersReceived
from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.events import ProtocolNegotiated

CUT = set()


def content(length):
    return bytes((place * 0x9E3779B9 & 0xFFFFFFFF) >> 24 for place in range(length))


class Server(QuicConnectionProtocol):
    http = None

    def quic_event_received(self, event):
        if isinstance(event, ProtocolNegotiated):
            self.http = H3Connection(self._quic)
        if self.http is None:
            return
        for http_event in self.http.handle_event(event):
            if isinstance(http_event, HeadersReceived):
                self.answer(http_event.stream_id, dict(http_event.headers))

    def answer(self, stream, fields):
        path = fields[b":path"].decode()
        length, _, query = path[1:].partition("?")
        whole = content(int(length))
        begin = 0
        if fields.get(b"if-range") == b'"v1"':
            begin = int(fields[b"range"].removeprefix(b"bytes=").removesuffix(b"-"))
        head = [
            (b":status", b"206" if begin else b"200"),
            (b"content-length", str(len(whole) - begin).encode()),
            (b"etag", b'"v1"'),
            (b"repr-digest", b"sha-256=:" + b64encode(hashlib.sha256(whole).digest()) + b":"),
        ]
        if begin:
            head.append((b"content-range", f"bytes {begin}-{len(whole) - 1}/{len(whole)}".encode()))
        self.http.send_headers(stream, head)
        if query and path not in CUT:
            CUT.add(path)
            self.http.send_data(stream, whole[: int(query.removeprefix("cut="))], end_stream=False)
            # What was sent is to arrive before the reset.
            asyncio.get_running_loop().call_later(0.3, self.cut, stream)
        else:
            self.http.send_data(stream, whole[begin:], end_stream=True)
        self.transmit()

    def cut(self, stream):
        self._quic.reset_stream(stream, ErrorCode.H3_INTERNAL_ERROR)
        self.transmit()


async def main():
    settings = QuicConfiguration(alpn_protocols=H3_ALPN, is_client=False)
    settings.load_cert_chain(sys.argv[1], sys.argv[2])
    server = await serve("127.0.0.1", 0, configuration=settings, create_protocol=Server)
    print(server._transport.get_extra_info("sockname")[1], flush=True)
    await asyncio.Event().wait()


asyncio.run(main())
