"""Requests of aioquic, an implementation of QUIC and HTTP/3 by others: aioquic_client.py PORT prints a JSON object for each answer."""

import asyncio
import hashlib
import json
import ssl
import sys

from aioquic.asyncio.client import connect
from aioquic.asyncio.protocol import QuicConnectionProtocol
from aioquic.h3.connection import H3_ALPN, H3Connection
from aioquic.h3.events import DataReceived, HeadersReceived
from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.events import StreamReset


class Client(QuicConnectionProtocol):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.http = H3Connection(self._quic)
        self.answers = {}

    def quic_event_received(self, event):
        if isinstance(event, StreamReset) and event.stream_id in self.answers:
            self.answers[event.stream_id]["end"].set_result("reset")
            return
        for http_event in self.http.handle_event(event):
            answer = self.answers.get(http_event.stream_id)
            if isinstance(http_event, HeadersReceived):
                answer["fields"] |= {name.decode(): value.decode() for name, value in http_event.headers}
            if isinstance(http_event, DataReceived):
                answer["content"] += http_event.data
            if isinstance(http_event, (HeadersReceived, DataReceived)) and http_event.stream_ended:
                answer["end"].set_result("whole")

    async def request(self, method, path, **fields):
        number = self._quic.get_next_available_stream_id()
        answer = {"fields": {}, "content": b"", "end": asyncio.get_running_loop().create_future()}
        self.answers[number] = answer
        head = {":method": method, ":scheme": "https", ":authority": "localhost", ":path": path} | fields
        self.http.send_headers(number, [(name.encode(), value.encode()) for name, value in head.items()], end_stream=True)
        self.transmit()
        try:
            end = await asyncio.wait_for(answer["end"], 20)
        except TimeoutError:
            end = "late"
        return {
            "method": method,
            "path": path,
            "status": int(answer["fields"].get(":status", 0)),
            "length": len(answer["content"]),
            "sha256": hashlib.sha256(answer["content"]).hexdigest(),
            "end": end,
        }


async def main():
    settings = QuicConfiguration(alpn_protocols=H3_ALPN, is_client=True, verify_mode=ssl.CERT_NONE)
    # No HEAD: aioquic takes an announced length without content for an error of any request.
    async with connect("127.0.0.1", int(sys.argv[1]), configuration=settings, create_protocol=Client) as client:
        answers = await asyncio.gather(
            client.request("GET", "/file"),
            client.request("GET", "/file", range="bytes=100000-199999"),
            client.request("POST", "/file"),
            client.request("GET", "/../../etc/passwd"),
            client.request("GET", "/bytes/3000000"),
        )
    for answer in answers:
        print(json.dumps(answer))


asyncio.run(main())
