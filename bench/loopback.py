"""A server on loopback that answers every prompt of ours in its form, at once or after a latency.

`python bench/loopback.py --latency 0.05` prints its port and ends when its standard input closes; then it prints how
many calls a second it answered in the middle eight tenths of all calls, and when it answered the first.
"""

import argparse
import asyncio
import contextlib
import math
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

import orjson

from bench_client import Answering

TEXT = "Ill-defined hyperdense lesion in the right lobe with mass effect on the adjacent vessels. " * 4
# By the name of the schema that is asked for; whoever asks for none gets a letter in words.
CONTENTS = {
    b'"name":"answer"': {"explanation": TEXT, "answer": "A"},
    b'"name":"findings"': {"findings": TEXT},
    b'"name":"summary"': {"summary": TEXT},
}


class Latent(Answering):
    """Answers in the form that is asked for, `latency_s` after the request is complete."""

    latency_s = 0.0
    answered_at: ClassVar[list[float]] = []

    def answer(self) -> None:
        # The schema stands before the messages in what we send, so the start of a body tells which one it is.
        reply = next((reply for name, reply in REPLIES.items() if name in self.start), PLAIN)
        if self.latency_s:
            asyncio.get_running_loop().call_later(self.latency_s, self._write, reply)
        else:
            self._write(reply)

    def _write(self, reply: bytes) -> None:
        if not self.transport.is_closing():
            self.answered_at.append(time.time())
            self.transport.write(reply)


def http_reply(content: str) -> bytes:
    choice = {"index": 0, "message": {"role": "assistant", "content": content}, "finish_reason": "stop"}
    usage = {"prompt_tokens": 9000, "completion_tokens": 90, "total_tokens": 9090}
    body = orjson.dumps(
        {"id": "1", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice], "usage": usage}
    )
    return b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body) + body


REPLIES = {name: http_reply(orjson.dumps(content).decode()) for name, content in CONTENTS.items()}
PLAIN = http_reply("ANSWER: A")


class Loopback:
    """A server in a process of its own; its rate and the time of its first answer are known when it has ended."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.calls_a_second = self.first_at = math.nan


@contextlib.contextmanager
def loopback(latency_s: float = 0.0) -> Iterator[Loopback]:
    """A server that ends with the block, or with us."""
    command = [sys.executable, str(Path(__file__)), "--latency", str(latency_s)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        server = Loopback(f"http://127.0.0.1:{int(process.stdout.readline())}/v1")
        yield server
        process.stdin.close()
        server.calls_a_second, server.first_at = map(float, process.stdout.readline().split())


async def serve(latency_s: float) -> None:
    Latent.latency_s = latency_s
    loop = asyncio.get_running_loop()
    server = await loop.create_server(Latent, "127.0.0.1", 0, backlog=1024)
    print(server.sockets[0].getsockname()[1], flush=True)
    closed = asyncio.Event()
    loop.add_reader(sys.stdin, lambda: sys.stdin.read(1) or closed.set())
    await closed.wait()
    middle = Latent.answered_at[len(Latent.answered_at) // 10 : len(Latent.answered_at) * 9 // 10]
    rate = (len(middle) - 1) / (middle[-1] - middle[0]) if len(middle) > 1 else math.nan
    print(rate, Latent.answered_at[0] if Latent.answered_at else math.nan)


def main() -> None:
    parser = argparse.ArgumentParser(description="a server that answers at once, or after a latency")
    parser.add_argument("--latency", type=float, default=0.0, help="seconds")
    asyncio.run(serve(parser.parse_args().latency))


if __name__ == "__main__":
    main()
