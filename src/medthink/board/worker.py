"""Check and score what was handed in, one submission after another; any number of workers may run."""

import tempfile
from collections.abc import Mapping
from pathlib import Path

from medthink.board.checking import HeldBenchmark, check_file
from medthink.board.store import BoardStore
from medthink.board.submissions import SubmissionRecord, claim, fail, keep_scores, read_file, refuse
from medthink.core.errors import MedThinkError


def work_once(store: BoardStore, held: Mapping[int, HeldBenchmark]) -> SubmissionRecord | None:
    """Check and score the next submission that waits; returns it, or None when none waits.

    `held` are the benchmarks whose files are at hand, by their number on the board.
    """
    found = claim(store)
    if found is not None:
        work_on(store, found, held.get(found.benchmark_id))
    return found


def work_on(store: BoardStore, found: SubmissionRecord, held: HeldBenchmark | None) -> None:
    """Check and score this submission; what is not the submitter's fault ends as `failed`."""
    if held is None:
        fail(store, found, "the files of its benchmark are not at hand")
        return
    try:
        _settle(store, found, held)
    except MedThinkError as error:
        fail(store, found, error.problem)


def _settle(store: BoardStore, found: SubmissionRecord, held: HeldBenchmark) -> None:
    assert found.file_sha256 is not None
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "submission.jsonl"
        path.write_bytes(read_file(store, found.file_sha256))
        checked = check_file(path, held, name=found.model)
    if checked.scores is None:
        refuse(store, found, checked.submission.problems)
        return
    keep_scores(store, found, checked.scores, provenance=checked.provenance, detail="; ".join(checked.doubts))
