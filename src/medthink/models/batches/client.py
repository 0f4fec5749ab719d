"""Batch dialogues over HTTP: uploads from disk, results to disk, and no job started twice by a retry."""

import asyncio
import random
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

import aiohttp
from aiohttp.abc import AbstractStreamWriter

from medthink.models.batches import (
    BatchJob,
    BatchLimits,
    BatchRequest,
    BatchWire,
    BodyTemplate,
    Dialogue,
    RequestFile,
    UnconfirmedJob,
)
from medthink.models.limits import find_proxy, next_wait_s
from medthink.models.request import ErrorKind, ModelError
from medthink.models.transport import Target, Transport, read_body
from medthink.models.wires import HttpReply
from medthink.models.wires.failures import failure_of

Result = TypeVar("Result")
_CHUNK_BYTES = 256 * 1024
# Such a reply, or none at all, does not say whether the job was started.
_UNCLEAR: frozenset[ErrorKind] = frozenset({"timeout", "connection", "server", "invalid_reply", "oversized"})


class UnclearStart(Exception):
    """It is unclear whether a job was started, so it must be searched for."""

    def __init__(self, error: ModelError) -> None:
        self.error = error
        super().__init__(error.detail)


class BatchClient:
    """The batches of one model at its provider."""

    is_manual = False

    def __init__(self, target: Target, wire: BatchWire, transport: Transport | None = None) -> None:
        self.limits: BatchLimits = wire.LIMITS
        self.has_marks = wire.HAS_MARKS
        self.line = wire.line
        self.read_row = wire.read_row
        self._target = target
        self._wire = wire
        self._transport = transport or Transport()
        self.first_wait_s = self._transport.backoff.first_s
        self.patience_s = self._transport.backoff.patience_s
        key_headers = {} if target.key is None else target.wire.sign(target.key.reveal())
        self._headers: dict[str, str] = target.wire.HEADERS | key_headers
        self._session: aiohttp.ClientSession | None = None
        self._chance = random.Random()

    def work_in(self, folder: Path) -> None:
        """Nothing to do: the provider keeps its own files."""

    async def submit(self, spool: RequestFile, file: Path, mark: str) -> BatchJob:
        """Start the job; UnclearStart if it is unknown whether it was started."""
        try:
            return await self._take(self._wire.submit(spool, mark), file)
        except ModelError as error:
            if error.kind in _UNCLEAR:
                raise UnclearStart(error) from None
            raise

    async def look(self, job_id: str) -> BatchJob:
        """The state of the job."""
        return await self._take(self._wire.look(job_id))

    async def latest(self) -> str:
        """The newest job, before one is started; empty if jobs have tags."""
        return await self._take(self._wire.latest())

    async def find(self, sought: UnconfirmedJob) -> list[BatchJob]:
        """The jobs that may be the unconfirmed one."""
        return await self._take(self._wire.find(sought))

    async def cancel(self, job_id: str) -> None:
        """Cancel the job; results so far are kept."""
        await self._take(self._wire.cancel(job_id))

    async def fetch(self, path: str, into: Path) -> None:
        """Write a file of results to disk."""
        await self._insist(lambda: self._download(BatchRequest("GET", path), into))

    async def close(self) -> None:
        """Close the connections."""
        if self._session is not None:
            session, self._session = self._session, None
            await session.close()

    async def _take(self, dialogue: Dialogue[Result], file: Path | None = None) -> Result:
        """Run the requests of a dialogue one after the other until it has its result."""
        try:
            errand = next(dialogue)
            while True:
                errand = dialogue.send(await self._carry_out(errand, file))
        except StopIteration as end:
            result: Result = end.value
            return result
        except ModelError as error:
            raise self._redact(error) from None

    async def _carry_out(self, errand: BatchRequest, file: Path | None) -> HttpReply:
        if errand.starts_job:
            return await self._send(errand, file)
        return await self._insist(lambda: self._send_well(errand, file))

    async def _insist(self, action: Callable[[], Awaitable[Result]]) -> Result:
        """Retry as the errors' kinds allow."""
        history: list[ModelError] = []
        while True:
            try:
                return await action()
            except ModelError as error:
                history.append(error)
                wait_s = next_wait_s(history, self._transport.backoff, self._chance)
                if wait_s is None:
                    raise self._redact(error) from None
                await asyncio.sleep(wait_s)

    async def _send_well(self, errand: BatchRequest, file: Path | None) -> HttpReply:
        reply = await self._send(errand, file)
        if reply.status >= 300:
            raise failure_of(reply)
        return reply

    async def _send(self, errand: BatchRequest, file: Path | None) -> HttpReply:
        async with _translated(), self._request(errand, file) as response:
            body, key = await read_body(response), self._target.key
            return HttpReply(response.status, response.headers, body if key is None else key.mask(body))

    async def _download(self, errand: BatchRequest, into: Path) -> None:
        async with _translated(), self._request(errand, None) as response:
            if response.status >= 300:
                raise failure_of(HttpReply(response.status, response.headers, await read_body(response)))
            with into.open("wb") as stream:
                async for chunk in response.content.iter_chunked(_CHUNK_BYTES):
                    stream.write(chunk)

    def _request(self, errand: BatchRequest, file: Path | None) -> "aiohttp.client._RequestContextManager":
        if self._session is None:
            # A file of hundreds of megabytes takes long: only silence counts as a timeout.
            timeout = aiohttp.ClientTimeout(
                total=None, sock_connect=self._transport.connect_timeout_s, sock_read=self._transport.timeout_s
            )
            self._session = aiohttp.ClientSession(timeout=timeout)
        base = self._target.urls[0]
        data = errand.body or None if errand.frame is None or file is None else _SpoolBody(file, errand.frame)
        return self._session.request(
            errand.method,
            base + errand.path,
            data=data,
            headers=self._headers | dict(errand.headers),
            # A redirect would carry the key and the images to another place.
            allow_redirects=False,
            proxy=find_proxy(base),
        )

    def _redact(self, error: ModelError) -> ModelError:
        """The error without the key."""
        key = self._target.key
        detail = key.redact(error.detail) if key else error.detail
        remedy = f"check {self._target.key_variable}" if error.kind == "auth" else error.remedy
        return ModelError(error.kind, detail, status=error.status, retry_after_s=error.retry_after_s, remedy=remedy)


class _translated:  # noqa: N801
    """A context that turns network errors into ModelError."""

    async def __aenter__(self) -> None:
        """Nothing."""

    async def __aexit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, TimeoutError):
            raise ModelError("timeout", "no reply in time") from None
        if isinstance(error, aiohttp.ClientError | ConnectionError):
            raise ModelError("connection", f"{type(error).__name__}: {error}") from None


class _SpoolBody(aiohttp.Payload):
    """A request body read from a spool while it is sent."""

    def __init__(self, file: Path, frame: BodyTemplate) -> None:
        super().__init__(file, content_type="application/octet-stream")
        self._file = file
        self._frame = frame
        # The end of the last line does not separate two lines.
        self._size = len(frame.head) + file.stat().st_size - 1 + len(frame.tail)

    def decode(self, encoding: str = "utf-8", errors: str = "strict") -> str:
        """The body as text, which aiohttp needs for its own error messages."""
        return self._file.read_text(encoding, errors)

    async def write(self, writer: AbstractStreamWriter) -> None:
        """Write the frame's head, the lines and the tail."""
        await writer.write(self._frame.head)
        with self._file.open("rb") as stream:
            left = self._file.stat().st_size - 1
            while left and (chunk := stream.read(min(left, _CHUNK_BYTES))):
                left -= len(chunk)
                # Lines contain no line feeds: JSON escapes them.
                await writer.write(chunk.replace(b"\n", self._frame.between))
        await writer.write(self._frame.tail)
