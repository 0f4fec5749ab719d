"""Adds a run or a file to the board in one step, for maintainers: receive, check, score, publish."""

import tempfile
import time
from pathlib import Path

import msgspec

from medthink.board.benchmarks import add_benchmark
from medthink.board.checking import LoadedBenchmark
from medthink.board.judged_profile import store_profiles
from medthink.board.moderation import publish, raise_provenance
from medthink.board.packing import pack_run
from medthink.board.queue import Upload, claim, receive
from medthink.board.submissions import ModelDescription, SubmissionRecord, find_submission
from medthink.board.worker import process_submission
from medthink.core.errors import Declined, UsageError
from medthink.runs.manifest import read_manifest
from medthink.scoring.submission_file import problem_lines
from medthink.store.engine import Store

_MOST_SHOWN = 20
_WAIT_S = 0.2


class DirectSubmission(msgspec.Struct, frozen=True, kw_only=True):
    """A submission added by a maintainer; a run states its own model."""

    source: Path
    team: str
    model: str = ""
    about: ModelDescription = ModelDescription()
    allows_download: bool = False


def add_to_board(
    store: Store, held: LoadedBenchmark, addition: DirectSubmission, *, name: str = "", actor: str
) -> SubmissionRecord:
    """Check, score and publish; a file with problems is refused, with all of them listed.

    Judged results of a run are included; a run judged later can be added again.
    """
    benchmark = add_benchmark(store, held, name)
    model, about, data = _read(addition, held.split.path)
    upload = Upload(
        benchmark_id=benchmark.id,
        team=addition.team,
        model=model,
        data=data,
        about=about,
        allows_download=addition.allows_download,
    )
    received = receive(store, upload, actor=actor)
    found = _known(store, received.token)
    if found.status == "received":
        _check(store, found, held)
    found = _known(store, received.token)
    if found.status in ("invalid", "failed"):
        said = "\n".join(list(problem_lines(found.problems))[:_MOST_SHOWN]) or found.reason
        raise Declined(
            f"{addition.source} was not added:\n{said}", remedy="medthink submission check lists all problems"
        )
    if found.status == "scored":
        publish(store, found.token, actor=actor)
        if addition.source.is_dir() and found.provenance == "traced":
            raise_provenance(store, found.token, "ledger", actor=actor, why="added from the run with its ledger")
    if addition.source.is_dir():
        store_profiles(store, found.id, addition.source, held.cases, actor=actor)
    return _known(store, received.token)


def _check(store: Store, found: SubmissionRecord, held: LoadedBenchmark) -> None:
    """Check and score it here, or wait for a worker that has claimed it."""
    claimed = claim(store, actor="maintainer", only=found.id)
    if claimed is not None:
        process_submission(store, claimed, held)
    while _known(store, found.token).status in ("received", "checking"):
        time.sleep(_WAIT_S)


def _read(addition: DirectSubmission, benchmark: Path) -> tuple[str, ModelDescription, bytes]:
    """The model, its description, and the submission's bytes."""
    source = addition.source
    if not source.is_dir():
        if not addition.model:
            raise UsageError(f"{source}: the model's name is missing", remedy="name it with --model")
        return addition.model, addition.about, source.read_bytes()
    manifest = read_manifest(source)
    about = msgspec.structs.replace(
        addition.about,
        effort=addition.about.effort or manifest.condition.effort or "",
        is_expert_cued=addition.about.is_expert_cued or not manifest.condition.is_unaided,
    )
    with tempfile.TemporaryDirectory() as folder:
        packed = Path(folder) / "packed.jsonl"
        pack_run(source, packed, benchmark)
        return addition.model or manifest.model, about, packed.read_bytes()


def _known(store: Store, token: str) -> SubmissionRecord:
    found = find_submission(store, token)
    assert found is not None
    return found
