"""Provider batches: half the price, for runs that can wait.

A batch module is pure, like a wire: it opens no connection and keeps no state. An operation of several requests is a
*dialogue*, a generator that yields requests and is sent their replies; `client` runs it over HTTP.
"""

from collections.abc import Generator, Mapping
from pathlib import Path
from typing import Literal, NamedTuple, Protocol, TypeVar

import msgspec

from medthink.models.wires import Encoded, HttpReply

JobState = Literal["working", "ended", "rejected"]
Result = TypeVar("Result")


class BatchLimits(NamedTuple):
    """The limits of one batch."""

    rows: int
    size_bytes: int


class RequestFile(NamedTuple):
    """A file of requests, one per line; `path` is where each would be posted on its own."""

    rows: int
    size_bytes: int
    path: str


class BodyTemplate(NamedTuple):
    """The text around a request file in a request's body, and the separator of its lines."""

    head: bytes = b""
    tail: bytes = b""
    between: bytes = b"\n"


class BatchRequest(NamedTuple):
    """One HTTP request of a dialogue; `path` is relative to the base URL, `headers` are added to those of the wire.

    One that `starts_job` is not sent again if it is unclear whether it arrived.
    """

    method: Literal["GET", "POST"]
    path: str
    headers: Mapping[str, str] = {}
    body: bytes = b""
    frame: BodyTemplate | None = None
    starts_job: bool = False


class BatchJob(msgspec.Struct, frozen=True, kw_only=True):
    """A batch as reported by its provider; `word` is the provider's own name for its state.

    `results` are the paths of the files with its outcomes. `is_crowded`: rejected because too many tokens are queued,
    of which the account may have `token_cap`. `is_withheld`: it ended, something was done, and its results are not
    there (yet); of a rejected one, what was billed is unknown.
    """

    id: str
    state: JobState
    word: str = ""
    mark: str = ""
    rows: int | None = None
    done: int = 0
    results: tuple[str, ...] = ()
    problem: str = ""
    is_crowded: bool = False
    token_cap: int | None = None
    is_withheld: bool = False


class UnconfirmedJob(NamedTuple):
    """A job that may or may not have been started: its tag, its number of rows, and the newest job before it."""

    mark: str
    rows: int
    after: str


class BatchRow(NamedTuple):
    """The outcome of one request; without a reply it was neither run nor billed: `problem` says why."""

    key: str
    reply: HttpReply | None
    problem: str = ""


Dialogue = Generator[BatchRequest, HttpReply, Result]


class BatchWire(Protocol):
    """The interface of a batch module; `HAS_MARKS` says whether jobs can carry a tag of ours."""

    LIMITS: BatchLimits
    HAS_MARKS: bool

    def line(self, key: str, encoded: Encoded) -> list[bytes]:
        """The line of a request in a request file, in pieces that share the images' bytes."""
        ...

    def submit(self, spool: RequestFile, mark: str) -> Dialogue[BatchJob]:
        """Start the job; one refused at once is returned as rejected if waiting helps."""
        ...

    def look(self, job_id: str) -> Dialogue[BatchJob]:
        """The state of a job."""
        ...

    def latest(self) -> Dialogue[str]:
        """The id of the newest job, if needed to find the next one again."""
        ...

    def find(self, sought: UnconfirmedJob) -> Dialogue[list[BatchJob]]:
        """The candidates for an unconfirmed job; none means it was never started."""
        ...

    def cancel(self, job_id: str) -> Dialogue[None]:
        """Cancel the job; results so far are kept."""
        ...

    def read_row(self, line: bytes) -> BatchRow:
        """Read a line of the results, or raise ValueError."""
        ...


class BatchService(Protocol):
    """Runs batches: a provider, or a person if it `is_manual`."""

    limits: BatchLimits
    has_marks: bool
    is_manual: bool
    first_wait_s: float
    patience_s: float

    def work_in(self, folder: Path) -> None:
        """Set the folder of the request files."""

    def line(self, key: str, encoded: Encoded) -> list[bytes]:
        """The line of a request file for this request."""
        ...

    def read_row(self, line: bytes) -> BatchRow:
        """A line of results, or ValueError."""
        ...

    async def submit(self, spool: RequestFile, file: Path, mark: str) -> BatchJob:
        """Start the job; UnclearStart if it is unknown whether it was started."""
        ...

    async def look(self, job_id: str) -> BatchJob:
        """The state of the job."""
        ...

    async def latest(self) -> str:
        """The newest job, before one is started; empty if jobs have tags."""
        ...

    async def find(self, sought: UnconfirmedJob) -> list[BatchJob]:
        """The jobs that may be the unconfirmed one."""
        ...

    async def cancel(self, job_id: str) -> None:
        """Cancel the job; results so far are kept."""

    async def fetch(self, path: str, into: Path) -> None:
        """Write a file of results to disk."""

    async def close(self) -> None:
        """Close what is open."""
