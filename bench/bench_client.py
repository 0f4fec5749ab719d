"""CPU per call of our HTTP client against bare aiohttp, on the same bytes, in one run.

A server in a process of its own answers at once. Every client reads 8 image files of 50 KB, encodes them and posts one
Chat Completions request; clients take turns in alternating order, each round in a fresh process, so that import and
start-up count for all.

    python bench/bench_client.py [--calls 200] [--images 8] [--rounds 5] [--concurrency 32]
"""

import argparse
import asyncio
import base64
import os
import random
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

TEXT = "A 54-year-old patient with chest pain. " * 20
SYSTEM = "You are a radiologist. Answer with a letter."
IMAGE_BYTES = 50_000


def read_images(folder: Path, call: int, count: int) -> list[bytes]:
    return [(folder / f"{(call * count + number) % 64}.jpg").read_bytes() for number in range(count)]


async def run_calls(calls: int, concurrency: int, call_once) -> None:
    numbers = iter(range(calls))

    async def work() -> None:
        for number in numbers:
            await call_once(number)

    await asyncio.gather(*(work() for _ in range(concurrency)))


async def bare_joined(url: str, folder: Path, options: argparse.Namespace) -> None:
    """Bare aiohttp: base64 joined into a prepared body."""
    import aiohttp
    import orjson

    head = orjson.dumps({"model": "m", "max_tokens": 500})[:-1] + b',"messages":[{"role":"system","content":'
    head += orjson.dumps(SYSTEM) + b'},{"role":"user","content":[' + orjson.dumps({"type": "text", "text": TEXT})
    before, after = b',{"type":"image_url","image_url":{"url":"data:image/jpeg;base64,', b'"}}'
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:

        async def call_once(number: int) -> None:
            images = [base64.b64encode(data) for data in read_images(folder, number, options.images)]
            body = b"".join([head, *(piece for image in images for piece in (before, image, after)), b"]}]}"])
            del images
            headers = {"Content-Type": "application/json"}
            async with session.post(url + "/chat/completions", data=body, headers=headers) as response:
                reply = orjson.loads(await response.read())
                assert reply["choices"][0]["message"]["content"]

        await run_calls(options.calls, options.concurrency, call_once)


async def ready(url: str, folder: Path, options: argparse.Namespace) -> None:
    """Bare aiohttp with one body made beforehand: it reads and encodes nothing, so no client on aiohttp is faster."""
    import aiohttp

    encoded = sum(4 * -(-len(data) // 3) for data in read_images(folder, 0, options.images))
    body = b"x" * (len(SYSTEM) + len(TEXT) + encoded)
    headers = {"Content-Type": "application/json"}
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:

        async def call_once(number: int) -> None:  # noqa: ARG001
            async with session.post(url + "/chat/completions", data=body, headers=headers) as response:
                assert await response.read()

        await run_calls(options.calls, options.concurrency, call_once)


async def bare_orjson(url: str, folder: Path, options: argparse.Namespace) -> None:
    """Bare aiohttp: the whole body through orjson."""
    import aiohttp
    import orjson

    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:

        async def call_once(number: int) -> None:
            content: list[dict] = [{"type": "text", "text": TEXT}]
            for data in read_images(folder, number, options.images):
                image_url = {"url": "data:image/jpeg;base64," + base64.b64encode(data).decode()}
                content.append({"type": "image_url", "image_url": image_url})
            messages = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": content}]
            body = orjson.dumps({"model": "m", "max_tokens": 500, "messages": messages})
            headers = {"Content-Type": "application/json"}
            async with session.post(url + "/chat/completions", data=body, headers=headers) as response:
                reply = orjson.loads(await response.read())
                assert reply["choices"][0]["message"]["content"]

        await run_calls(options.calls, options.concurrency, call_once)


async def ours(url: str, folder: Path, options: argparse.Namespace) -> None:
    """HttpModel: digests, keys, limits, retries and typed replies included."""
    from medthink.models import ImagePart, Request, TextPart
    from medthink.models.catalog import open_model
    from medthink.models.limits import RateLimits
    from medthink.models.transport import Transport

    transport = Transport(pace=RateLimits(concurrency=options.concurrency))
    async with open_model("server/m", base_urls=(url,), transport=transport, env={}) as model:

        async def call_once(number: int) -> None:
            parts = [ImagePart.from_bytes(data, "image/jpeg") for data in read_images(folder, number, options.images)]
            reply = await model.generate(
                Request(system=SYSTEM, parts=(TextPart(TEXT), *parts), max_tokens=500, sample=number)
            )
            assert reply.text

        await run_calls(options.calls, options.concurrency, call_once)


async def openai_sdk(url: str, folder: Path, options: argparse.Namespace) -> None:
    """The official openai client."""
    import openai

    client = openai.AsyncOpenAI(base_url=url, api_key="none", max_retries=0)

    async def call_once(number: int) -> None:
        content: list[dict] = [{"type": "text", "text": TEXT}]
        for data in read_images(folder, number, options.images):
            image_url = {"url": "data:image/jpeg;base64," + base64.b64encode(data).decode()}
            content.append({"type": "image_url", "image_url": image_url})
        messages = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": content}]
        reply = await client.chat.completions.create(model="m", max_tokens=500, messages=messages)
        assert reply.choices[0].message.content

    await run_calls(options.calls, options.concurrency, call_once)


CLIENTS = {
    "bare-joined": bare_joined,
    "bare-orjson": bare_orjson,
    "ours": ours,
    "openai-sdk": openai_sdk,
    "ready": ready,
}
REPLY = (
    b'{"id":"1","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":{"role":"assistant",'
    b'"content":"A"},"finish_reason":"stop"}],"usage":{"prompt_tokens":900,"completion_tokens":5,"total_tokens":905}}'
)
MODELS = b'{"object":"list","data":[{"id":"m"}]}'
# How much of a body's start is kept, for a server that wants to see what is asked.
LOOK_BYTES = 2048


class Answering(asyncio.Protocol):
    """Counts body bytes and answers; parses nothing else, so that the server is never what is measured."""

    def connection_made(self, transport) -> None:
        self.transport, self.head, self.left, self.start = transport, b"", 0, b""

    def data_received(self, data: bytes) -> None:
        if self.left == 0:
            self.head += data
            head, found, rest = self.head.partition(b"\r\n\r\n")
            if not found:
                return
            if head.startswith(b"GET"):  # the preflight asks which models there are
                self.head = rest
                self.write(MODELS)
                return
            length = head.lower().partition(b"content-length:")[2].partition(b"\r\n")[0]
            self.head, self.left, data = b"", int(length), rest
            self.start = b""
        if len(self.start) < LOOK_BYTES:
            self.start += data[:LOOK_BYTES]
        self.left -= len(data)
        if self.left == 0:
            self.answer()

    def answer(self) -> None:
        self.write(REPLY)

    def write(self, body: bytes) -> None:
        head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body)
        self.transport.write(head + body)


async def serve() -> None:
    server = await asyncio.get_running_loop().create_server(Answering, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await asyncio.sleep(3600)


def measure(name: str, port: int, folder: Path, options: argparse.Namespace) -> tuple[float, float, float]:
    command = [sys.executable, __file__, "--client", name, "--port", str(port), "--folder", str(folder)]
    command += ["--calls", str(options.calls), "--images", str(options.images)]
    command += ["--concurrency", str(options.concurrency)]
    output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    cpu_s, wall_s, peak_mb = map(float, output.split())
    return cpu_s, wall_s, peak_mb


def run_client(options: argparse.Namespace) -> None:
    started = time.perf_counter()
    asyncio.run(CLIENTS[options.client](f"http://127.0.0.1:{options.port}/v1", Path(options.folder), options))
    usage = resource.getrusage(resource.RUSAGE_SELF)
    print(usage.ru_utime + usage.ru_stime, time.perf_counter() - started, usage.ru_maxrss / 1024)


def compare(options: argparse.Namespace) -> None:
    names = options.clients.split(",")
    results: dict[str, list[tuple[float, float, float]]] = {name: [] for name in names}
    with tempfile.TemporaryDirectory() as folder:
        chance = random.Random(0)
        for number in range(64):
            (Path(folder) / f"{number}.jpg").write_bytes(chance.randbytes(IMAGE_BYTES))
        with subprocess.Popen([sys.executable, __file__, "--serve"], stdout=subprocess.PIPE, text=True) as server:
            try:
                port = int(server.stdout.readline())
                for turn in range(options.rounds):
                    for name in names if turn % 2 == 0 else reversed(names):
                        results[name].append(measure(name, port, Path(folder), options))
            finally:
                server.terminate()
    show(results, options)


def show(results: dict[str, list[tuple[float, float, float]]], options: argparse.Namespace) -> None:
    base = statistics.median(cpu_s for cpu_s, _, _ in next(iter(results.values())))
    print(f"{options.calls} calls × {options.images} images of 50 KB, {options.concurrency} in flight, "
          f"median of {options.rounds}, Python {sys.version.split()[0]}, {os.cpu_count()} cores")  # fmt: skip
    print(f"{'client':<12} {'CPU s':>7} {'wall s':>7} {'peak MB':>8} {'ms a call':>10} {'× bare':>7}")
    for name, rounds in results.items():
        cpu_s, wall_s, peak_mb = (statistics.median(column) for column in zip(*rounds, strict=True))
        ms = 1000 * cpu_s / options.calls
        print(f"{name:<12} {cpu_s:7.2f} {wall_s:7.2f} {peak_mb:8.0f} {ms:10.2f} {cpu_s / base:7.2f}")


def main() -> None:
    parser = argparse.ArgumentParser(description="CPU per call: ours against bare aiohttp")
    parser.add_argument("--calls", type=int, default=200)
    parser.add_argument("--images", type=int, default=8)
    parser.add_argument("--concurrency", type=int, default=32)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--clients", default="bare-joined,bare-orjson,ours,openai-sdk")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--client", choices=CLIENTS, help=argparse.SUPPRESS)
    parser.add_argument("--port", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--folder", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        asyncio.run(serve())
    elif options.client:
        run_client(options)
    else:
        compare(options)


if __name__ == "__main__":
    main()
