"""Misbehaving servers, stopped when the test ends."""

from collections.abc import Callable, Iterator

import pytest

from processes import Server


@pytest.fixture
def start_server() -> Iterator[Callable[..., Server]]:
    servers: list[Server] = []

    def start(*flags: str) -> Server:
        servers.append(Server(*flags))
        return servers[-1]

    yield start
    for server in servers:
        server.stop()
