"""Connections that send nothing are closed, so that they do not use up what the server may hold open.

uvicorn limits the pause between two requests of a connection. These limits are on the rest: a connection that never
sends a request, one that stops in the head of a request, and one that stops in its body.
"""

import asyncio

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

WAIT_S = 20.0


class LimitedConnection(H11Protocol):
    """A connection that is closed if the head of a request takes longer than `WAIT_S`, or its body pauses so long."""

    _deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Wait for the first request."""
        super().connection_made(transport)
        self._wait()

    def data_received(self, data: bytes) -> None:
        """Wait for the rest of a request: a head has one deadline, a body one after each piece."""
        super().data_received(data)
        if self.conn.their_state is h11.IDLE:
            self._wait()
        else:
            self._stop_waiting()
        if self.conn.their_state is h11.SEND_BODY:
            self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the deadline."""
        self._stop_waiting()
        super().connection_lost(exc)

    def _wait(self) -> None:
        if self._deadline is None:
            self._deadline = self.loop.call_later(WAIT_S, self._give_up)

    def _stop_waiting(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _give_up(self) -> None:
        self._deadline = None
        if self.flow.read_paused:
            # It is the server that has not yet read what was sent.
            self._wait()
        else:
            self.transport.abort()
