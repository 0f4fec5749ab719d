"""Batches run by a person: a file for `vllm run-batch`, and its output next to it."""

import shutil
from pathlib import Path

import orjson

from medthink.core.errors import DataError
from medthink.models.batches import BatchJob, BatchLimits, RequestFile, UnconfirmedJob, openai
from medthink.models.batches.replies import read_line

OUTPUT = ".output.jsonl"
# vLLM reads the whole file into memory.
LIMITS = BatchLimits(rows=1_000_000, size_bytes=4_000_000_000)


class FileBatches:
    """Jobs in a folder: the requests as MARK.jsonl, the results as MARK.output.jsonl."""

    limits = LIMITS
    has_marks = True
    is_manual = True
    first_wait_s = 0.0
    patience_s = 0.0
    # vLLM reads and writes the lines of OpenAI's batches.
    line = staticmethod(openai.line)
    read_row = staticmethod(openai.read_row)

    def __init__(self) -> None:
        self._folder = Path()

    def work_in(self, folder: Path) -> None:
        """Set the folder of the files."""
        self._folder = folder

    async def submit(self, spool: RequestFile, file: Path, mark: str) -> BatchJob:  # noqa: ARG002
        """Nothing to send: the file exists."""
        return await self.look(mark)

    async def look(self, job_id: str) -> BatchJob:
        """Ended as soon as the output exists."""
        output = self._folder / f"{job_id}{OUTPUT}"
        if not output.is_file():
            return BatchJob(id=job_id, state="working", word="to be run", mark=job_id)
        return BatchJob(id=job_id, state="ended", word="completed", mark=job_id, results=(str(output),))

    async def latest(self) -> str:
        """Not needed: a file has its name."""
        return ""

    async def find(self, sought: UnconfirmedJob) -> list[BatchJob]:
        """The job exists if its file does."""
        return [await self.look(sought.mark)] if (self._folder / f"{sought.mark}.jsonl").is_file() else []

    async def cancel(self, job_id: str) -> None:
        """Write an output that marks every request as not run."""
        error = {"code": "batch_cancelled", "message": "the file was never run"}
        with (self._folder / f"{job_id}.jsonl").open("rb") as stream:
            keys = [read_line(one, "custom_id")[0] for one in stream]
        lines = [orjson.dumps({"custom_id": key, "response": None, "error": error}) + b"\n" for key in keys]
        (self._folder / f"{job_id}{OUTPUT}").write_bytes(b"".join(lines))

    async def fetch(self, path: str, into: Path) -> None:
        """Copy the output."""
        shutil.copyfile(path, into)

    async def close(self) -> None:
        """Nothing to close."""


def gather_requests(folder: Path, marks: list[str], into: Path) -> int:
    """Write the requests of several jobs as one file; returns how many there are."""
    count = 0
    with into.open("wb") as stream:
        for mark in marks:
            with (folder / f"{mark}.jsonl").open("rb") as source:
                for one in source:
                    stream.write(one)
                    count += 1
    return count


def distribute_results(output: Path, folder: Path, keys: dict[str, set[str]]) -> int:
    """Distribute the rows of an output to the jobs that asked them, `keys` by mark; returns how many were found.

    DataError for a truncated file: vLLM writes it in one go, at the end.
    """
    rows = _read_output(output)
    found = 0
    for mark, wanted in keys.items():
        own = [rows[key] for key in wanted if key in rows]
        if own:
            (folder / f"{mark}{OUTPUT}").write_bytes(b"".join(own))
            found += len(own)
    return found


def _read_output(output: Path) -> dict[str, bytes]:
    rows: dict[str, bytes] = {}
    with output.open("rb") as stream:
        for number, one in enumerate(stream, start=1):
            if not one.strip():
                continue
            try:
                key, _ = read_line(one, "custom_id")
            except ValueError:
                remedy = "wait until vllm run-batch has finished writing it"
                raise DataError("not a line of a batch's output", file=output, row=number, remedy=remedy) from None
            rows[key] = one if one.endswith(b"\n") else one + b"\n"
    return rows
