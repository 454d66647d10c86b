"""A message with a large file: how long until the model has answered, and how long nothing else goes on.

Downloading, opening, encoding and sending megabytes must not hold up the event loop, in which everybody else
is answered. The file and the model are at a server in another process. The baseline is the same message
without a file. Nor may the files of one person hold up somebody else's picture.
"""

import asyncio
import random
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import Any

import aiohttp
from PIL import Image
from pypdf import PdfWriter

from bench.discord_payloads import connect, message_payload
from bench.figure import Figure, median, without_garbage
from bench.world import OWNER, EchoModel, fresh_folder, settings_in
from discoclaw.app import App, build
from discoclaw.core.message import FileRef, Picture
from discoclaw.models.anthropic import AnthropicProvider
from discoclaw.session.files.reading import Limits, Reader

TIMES = 5
BUSY = 6
LONGEST_PAUSE_MS = 20.0
_SERVER = """
import json, sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

START = {"id": "m", "type": "message", "role": "assistant", "model": "m", "content": [], "stop_reason": None,
         "stop_sequence": None, "usage": {"input_tokens": 1, "output_tokens": 1}}
EVENTS = [
    {"type": "message_start", "message": START},
    {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "ok"}},
    {"type": "content_block_stop", "index": 0},
    {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 1}},
    {"type": "message_stop"},
]
ANSWER = "".join(f"event: {one['type']}\\ndata: {json.dumps(one)}\\n\\n" for one in EVENTS).encode()

class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def do_GET(self):
        self.send("application/octet-stream", (Path(sys.argv[1]) / Path(self.path).name).read_bytes())
    def do_POST(self):
        self.rfile.read(int(self.headers["content-length"]))
        self.send("text/event-stream", ANSWER)
    def send(self, kind, body):
        self.send_response(200)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def log_message(self, *what):
        pass

server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
print(server.server_port, flush=True)
server.serve_forever()
"""


async def measure() -> list[Figure]:
    """Times and pauses of a picture and of a PDF, beside those of a message without a file."""
    with fresh_folder() as folder:
        (folder / "photo.png").write_bytes(_picture())
        (folder / "paper.pdf").write_bytes(_paper())
        with _server(folder) as address:
            bare = await _talk(folder, address, None)
            picture = await _talk(folder, address, "photo.png")
            paper = await _talk(folder, address, "paper.pdf")
    figures = []
    for what, (took, pause) in (("5 MB picture", picture), ("10 MB PDF", paper)):
        figures.append(Figure(f"message to answer, {what}", took, bare[0], "ms", "without a file"))
        target, met = f"<= {LONGEST_PAUSE_MS:g} ms", pause <= LONGEST_PAUSE_MS
        name = f"longest hold of the event loop, {what}"
        figures.append(Figure(name, pause, bare[1], "ms", "without a file", target, met))
    alone, beside = await _beside(0), await _beside(BUSY)
    name = f"a picture, beside {BUSY} busy PDFs of one other person"
    return [*figures, Figure(name, beside, alone, "ms", "alone", "<= 10 s", beside <= 10_000)]


class _Served:
    """Files that are there at once."""

    def __init__(self, **files: bytes) -> None:
        self._files = files

    async def download(self, file: FileRef, most: int) -> bytes:
        return self._files[file.id]


async def _beside(number: int) -> float:
    """How long (ms) a picture takes behind so many PDFs of 8 MB of object headers, of one other person."""
    busy = b"%PDF-1.4\n" + b"1 0 obj\n" * 1_000_000
    reader = Reader(_Served(paper=busy, photo=_picture()), Limits())
    many = [asyncio.create_task(reader.read(FileRef("paper", "1", "1", "busy", 1))) for _ in range(number)]
    await asyncio.sleep(0.5)
    began = time.perf_counter()
    assert isinstance(await reader.read(FileRef("photo", "2", "2", "photo", 1)), Picture)
    took = (time.perf_counter() - began) * 1e3
    for one in many:
        one.cancel()
    await asyncio.gather(*many, return_exceptions=True)
    return took


async def _talk(folder: Path, address: str, name: str | None) -> tuple[float, float]:
    """The median time from a message to its answer, and the median longest pause (ms)."""
    sent = asyncio.Event()
    provider = AnthropicProvider(base_url=address)
    settings = settings_in(
        folder / f"with-{name}", allow_users=frozenset({str(OWNER)}), discord_api=address, older_files=0
    )
    app = build(settings, model=provider.model("any"), small_model=EchoModel())
    times, pauses = list[float](), list[float]()
    async with app, aiohttp.ClientSession() as session:
        await connect(app.client, lambda text: sent.set())
        app.client.http._HTTPClient__session = session  # type: ignore[attr-defined]
        with without_garbage():
            for number in range(TIMES + 1):
                payload = message_payload(number, "what is this?")
                payload["attachments"] = [_attachment(folder, address, name, number)] if name else []
                sent.clear()
                began = time.perf_counter()
                watch = asyncio.create_task(_longest_pause(sent))
                app.client._connection.parse_message_create(payload)
                await asyncio.wait_for(sent.wait(), 30)
                times.append((time.perf_counter() - began) * 1e3)
                pauses.append(await watch)
                await _settled(app)
    return median(times[1:]), median(pauses[1:])


async def _settled(app: App) -> None:
    await app.talk.desk.settle()
    await app.settle()


async def _longest_pause(until: asyncio.Event) -> float:
    """The longest time (ms) that the event loop was held, until something has happened.

    It is processor time: on a busy machine a thread also waits for others, which is no fault of ours.
    """
    longest, last = 0.0, time.thread_time()
    while not until.is_set():
        await asyncio.sleep(0.001)
        now = time.thread_time()
        longest, last = max(longest, now - last), now
    return longest * 1e3


def _attachment(folder: Path, address: str, name: str, number: int) -> dict[str, Any]:
    size = (folder / name).stat().st_size
    url = f"{address}/{number}/{name}"
    return {"id": str(10**18 + number), "filename": name, "size": size, "url": url, "proxy_url": url}


@contextmanager
def _server(folder: Path) -> Iterator[str]:
    with subprocess.Popen(
        [sys.executable, "-c", _SERVER, str(folder)], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        try:
            yield f"http://127.0.0.1:{process.stdout.readline().strip()}"
        finally:
            process.terminate()


def _picture() -> bytes:
    """A PNG of about 5 MB."""
    out = BytesIO()
    side = 1_290
    pixels = random.Random(7).randbytes(side * side * 3)
    Image.frombytes("RGB", (side, side), pixels).save(out, "PNG")
    return out.getvalue()


def _paper() -> bytes:
    """A PDF of just under 10 MB."""
    out, writer = BytesIO(), PdfWriter()
    writer.add_blank_page(200, 200)
    writer.add_attachment("data.bin", random.Random(7).randbytes(9_900_000))
    writer.write(out)
    return out.getvalue()
