"""Provider wires: pure modules that encode a request and decode what comes back.

A wire module has two constants and three functions, the whole of `Wire`. It opens no connection, reads no environment
and keeps no state.
"""

from collections.abc import Mapping
from typing import NamedTuple, Protocol

from medthink.models.request import Reply, Request


class Encoded(NamedTuple):
    """A request ready to be posted; the body's chunks share the images' bytes with the request."""

    path: str
    headers: dict[str, str]
    chunks: list[bytes]

    @property
    def size_bytes(self) -> int:
        """The size of the body."""
        return sum(map(len, self.chunks))


class HttpReply(NamedTuple):
    """An HTTP reply; header names are lower-case, or the mapping ignores case."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class Wire(Protocol):
    """The interface of a wire module; `MODELS_PATH` is where the provider lists its models."""

    MODELS_PATH: str
    HEADERS: dict[str, str]

    def encode(self, request: Request, model: str) -> Encoded:
        """Encode the request for this model, or raise ModelError (unsupported)."""
        ...

    def decode(self, reply: HttpReply, *, wants_json: bool) -> Reply:
        """Read the reply, or raise ModelError."""
        ...

    def sign(self, key: str) -> dict[str, str]:
        """The headers that carry the key."""
        ...
