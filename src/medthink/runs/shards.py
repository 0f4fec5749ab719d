"""A run in shards, each made on a machine of its own: the options each shard gets, and how its records are copied.

SQLite is not safe on a network file system. A shard is therefore worked on in a local folder and copied, every
half minute and at its end, to `RUN.shards`, which all machines can read. A worker that was killed is continued from its
own folder on the same machine, and from the copy on another.
"""

import os
import shutil
import sqlite3
import tempfile
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from secrets import token_hex
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from medthink.core.errors import LedgerError, MedThinkError, OutsideError, UsageError
from medthink.core.files import new_folder, open_for_writing, write_atomic
from medthink.core.jsonio import read_json, write_json
from medthink.runs.calls.budget import BudgetReached
from medthink.runs.ledger.ledger import Ledger
from medthink.runs.ledger.queries import LEDGER, LedgerQueries
from medthink.runs.manifest import Manifest, Progress, RunSpec, read_manifest, write_manifest
from medthink.runs.run import Run, write_results
from medthink.runs.selection import Shard
from medthink.runs.session import PLAN_FILE, run_session
from medthink.runs.survey import CASES_FILE

if TYPE_CHECKING:
    from medthink.models.transport import Transport


def merge_shards(out: Path, runs: list[Path]) -> Run:
    """Combine the shards' ledgers into one run; if anything is wrong with them, nothing is written."""
    manifests = [read_manifest(run) for run in runs]
    _refuse_strangers(runs, manifests)
    whole = replace(
        manifests[0].moved(runs[0], out),
        selection=replace(manifests[0].selection, shard=None),
        created_at=min(manifest.created_at for manifest in manifests),
        progress=None,
    )
    with new_folder(out) as folder, closing(Ledger(folder / LEDGER)) as ledger:
        for run in runs:
            ledger.take_in(run)
        if (runs[0] / CASES_FILE).is_file():
            # Each shard has those of the whole split: a repaired image must not keep the run from going on.
            shutil.copyfile(runs[0] / CASES_FILE, folder / CASES_FILE)
        write_results(folder, whole, ledger, sum(m.progress.cases for m in manifests if m.progress))
    return Run(out)


def _refuse_strangers(runs: list[Path], manifests: list[Manifest]) -> None:
    shards = [manifest.selection.shard for manifest in manifests]
    for run, manifest, shard in zip(runs, manifests, shards, strict=True):
        if shard is None:
            raise UsageError(
                f"{run} is a complete run, not a shard", remedy="merge runs made by medthink run with --shard i/n"
            )
        if _without_shard(manifest) != _without_shard(manifests[0]):
            raise UsageError(f"{run} is not a shard of the same run as {runs[0]}", remedy="merge shards of one command")
        if manifest.progress is None or not manifest.progress.is_complete:
            raise UsageError(f"{run} is not finished", remedy="run its command again until it is finished")
    _refuse_gaps([shard for shard in shards if shard])


def _refuse_gaps(shards: list[Shard]) -> None:
    count = shards[0].count
    numbers = sorted(shard.number for shard in shards)
    if any(shard.count != count for shard in shards) or numbers != list(range(1, count + 1)):
        given = ", ".join(map(str, shards))
        raise UsageError(f"the shards {given} are not complete", remedy=f"give 1/{count} to {count}/{count}, once each")


def _without_shard(manifest: Manifest) -> str:
    whole = replace(manifest.selection, shard=None)
    # The label may be another release's words for the same condition.
    return replace(manifest, selection=whole, condition_label="").digest()


COPY_EVERY_S = 30.0
_ROOM = "check that both folders can be reached and have room, then run the same command again"
_SHARDS_FILE = "shards.json"


class Shards(msgspec.Struct, frozen=True, kw_only=True):
    """The content of `RUN.shards/shards.json`: the number of shards, and the name of the scratch folders."""

    count: int
    token: str


class ShardEnd(msgspec.Struct, frozen=True, kw_only=True):
    """How a shard ended in this session: complete, at its share of the budget, or with an error."""

    shard: Shard
    progress: Progress | None = None
    calls_made: int = 0
    stopped_by: BudgetReached | None = None
    warnings: tuple[str, ...] = ()
    error: MedThinkError | None = None


def shards_folder(out: Path) -> Path:
    """The folder of a run's shards until they are merged."""
    return out.with_name(f"{out.name}.shards")


def begin_shards(out: Path, count: int) -> Shards:
    """Start the run in this many shards, or continue it; UsageError if it was started with another number."""
    if (out / "run.json").exists():
        raise UsageError(
            f"{out} is already complete", remedy="leave out --shards and --cluster to try failed cases again"
        )
    file = shards_folder(out) / _SHARDS_FILE
    if not file.exists():
        begun = Shards(count=count, token=token_hex(8))
        write_json(file, msgspec.to_builtins(begun))
        return begun
    begun = msgspec.convert(read_json(file), Shards)
    if begun.count != count:
        raise UsageError(
            f"{out} was started with {begun.count} shards", remedy=f"give --shards {begun.count}, or another --out"
        )
    return begun


def split_run(spec: RunSpec, count: int) -> list[RunSpec]:
    """The run as this many shards, each with its share of the calls and the money."""
    assert spec.out is not None
    shards = [Shard(number, count) for number in range(1, count + 1)]
    return [
        replace(
            spec,
            out=shards_folder(spec.out) / str(shard.number),
            selection=replace(spec.selection, shard=shard),
            max_usd=None if spec.max_usd is None else spec.max_usd / count,
            max_calls=None if spec.max_calls is None else _share(spec.max_calls, shard),
            plan=None,
        )
        for shard in shards
    ]


def _share(total: int, shard: Shard) -> int:
    return total // shard.count + (shard.number <= total % shard.count)


def share_pace(transport: "Transport", count: int) -> "Transport":
    """The rate limits of one of so many shards, so that together they stay within them; UsageError if they cannot."""
    pace = transport.pace
    rpm, tpm = pace.requests_per_minute, pace.tokens_per_minute
    if rpm is not None and rpm < count:
        raise UsageError(
            f"--rpm {rpm} cannot be divided among {count} shards: one each would be {count} requests a minute",
            remedy=f"use --shards {rpm} or fewer, or a higher --rpm",
        )
    shared = replace(
        pace,
        concurrency=max(1, pace.concurrency // count),
        requests_per_minute=None if rpm is None else rpm // count,
        tokens_per_minute=None if tpm is None else max(1, tpm // count),
    )
    return replace(transport, pace=shared)


def work_on_shard(spec: RunSpec, transport: "Transport", token: str, *, every_s: float = COPY_EVERY_S) -> ShardEnd:
    """Make or continue a shard in a local folder, copying it to the shared folder regularly and at the end."""
    shard, place = spec.selection.shard, spec.out
    assert shard is not None and place is not None
    try:
        scratch = _scratch_folder(token) / str(shard.number)
        _bring(place, scratch)
        with _copying(scratch, place, every_s):
            session = run_session(replace(spec, out=scratch), transport=transport)
    except MedThinkError as error:
        return ShardEnd(shard=shard, error=error)
    shutil.rmtree(scratch, ignore_errors=True)
    with suppress(OSError):  # other shards of the run may be in it
        scratch.parent.rmdir()
    return ShardEnd(
        shard=shard,
        progress=session.run.manifest.progress,
        calls_made=session.calls_made,
        stopped_by=session.stopped_by,
        warnings=session.warnings,
    )


def merge_split(spec: RunSpec, count: int) -> Run:
    """Merge the finished shards into the run, and delete them."""
    assert spec.out is not None
    places = [one.out for one in split_run(spec, count) if one.out is not None]
    with tempfile.TemporaryDirectory(prefix="medthink-merge-") as folder:
        here = [Path(folder) / place.name for place in places]
        for place, copy in zip(places, here, strict=True):
            shutil.copytree(place, copy)
        merged = merge_shards(Path(folder) / "whole", here)
        if spec.plan is not None:
            write_atomic(merged.path / PLAN_FILE, [spec.plan.encode()])
        with new_folder(spec.out) as whole:
            copy_run(merged.path, whole)
            write_manifest(whole, merged.manifest.on(spec.benchmark, spec.out))
    shutil.rmtree(shards_folder(spec.out), ignore_errors=True)
    return Run(spec.out)


def copy_run(run: Path, target: Path) -> None:
    """Copy a run that may be in progress: the ledger first, so that no manifest counts more than its ledger has."""
    try:
        target.mkdir(parents=True, exist_ok=True)
        if (run / LEDGER).is_file():
            _copy_ledger(run / LEDGER, target / LEDGER)
        for path in sorted(run.iterdir()):
            if path.is_file() and not path.name.startswith((".", LEDGER)):
                write_atomic(target / path.name, [path.read_bytes()])
    except OSError as error:
        raise LedgerError(f"{run} cannot be copied to {target}: {error.strerror}", remedy=_ROOM) from None


def _copy_ledger(ledger: Path, target: Path) -> None:
    with tempfile.TemporaryDirectory(prefix="medthink-copy-") as folder:
        copy = Path(folder) / LEDGER
        try:
            with closing(sqlite3.connect(ledger)) as here, closing(sqlite3.connect(copy)) as there:
                here.backup(there)
        except sqlite3.Error as error:
            raise LedgerError(f"{ledger}: cannot be copied: {error}", remedy=_ROOM) from None
        with copy.open("rb") as source, open_for_writing(target) as stream:
            shutil.copyfileobj(source, stream)


@contextmanager
def _copying(run: Path, target: Path, every_s: float) -> Iterator[None]:
    """Copy the run while the block works, and again when it has ended, in whatever way."""
    over = threading.Event()

    def copy() -> None:
        while not over.wait(every_s):
            if run.exists():
                # A copy that fails now is made at the end, and what is wrong is said then.
                with suppress(MedThinkError):
                    copy_run(run, target)

    copier = threading.Thread(target=copy, name="shard copies", daemon=True)
    copier.start()
    try:
        yield
    finally:
        over.set()
        copier.join()
        if run.exists():
            copy_run(run, target)


def _bring(place: Path, scratch: Path) -> None:
    """Restore the shard's records: those that a killed worker left on this machine, or the copy if it has more."""
    if _calls_on_record(place) <= _calls_on_record(scratch):
        return
    # Under a name of its own until it is whole: a worker may be killed meanwhile.
    part = scratch.with_name(f"{scratch.name}.part")
    shutil.rmtree(part, ignore_errors=True)
    shutil.copytree(place, part)
    shutil.rmtree(scratch, ignore_errors=True)
    part.rename(scratch)


def _calls_on_record(run: Path) -> int:
    if not (run / LEDGER).is_file():
        return -1
    with closing(LedgerQueries.open(run)) as records:
        return records.totals().calls_made


def _scratch_folder(token: str) -> Path:
    """A private folder of this user on this machine."""
    folder = Path(tempfile.gettempdir()) / f"medthink-shards-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    if folder.is_symlink() or folder.stat().st_uid != os.getuid():
        raise OutsideError(f"{folder} belongs to another user", remedy="set TMPDIR to a folder of your own")
    (folder / token).mkdir(exist_ok=True)
    return folder / token
