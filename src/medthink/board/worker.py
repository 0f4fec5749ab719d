"""Check and score what was handed in: the same code for `medthink submit`, `medthink board add` and the server."""

import tempfile
from collections.abc import Mapping
from pathlib import Path

import msgspec

from medthink.board.benchmarks import HeldBenchmark
from medthink.board.overlap import flag_overlap
from medthink.board.store import BoardStore
from medthink.board.submissions import Provenance, SubmissionRecord, claim, fail, keep_scores, read_file, refuse
from medthink.board.traces import Trails, check_trails, read_trails
from medthink.core.errors import MedThinkError
from medthink.scoring.material import Material
from medthink.scoring.score import score
from medthink.scoring.scores import Scores
from medthink.scoring.submission import Submission, read_submission


class Checked(msgspec.Struct, frozen=True, kw_only=True):
    """What was found in a file: every problem, and where there is none the scores and how far they are borne out."""

    submission: Submission
    scores: Scores | None = None
    provenance: Provenance = "scored"
    doubts: tuple[str, ...] = ()
    trails: Trails | None = None


def check_file(path: Path, held: HeldBenchmark) -> Checked:
    """Read a submission and, if nothing is wrong with it, score it and check its traces."""
    submission = read_submission(path, held.cases)
    if submission.problems:
        return Checked(submission=submission)
    trails = read_trails(path)
    doubts = list(check_trails(trails, held.split, submission.predictions)) if trails.manifest else []
    provenance: Provenance = "traced" if trails.manifest and not doubts else "scored"
    material = Material(
        path.name, None, held.record.text_fingerprint, held.cases, list(submission.predictions)
    )  # fmt: skip
    doubts += flag_overlap(submission.predictions, held.cases)
    return Checked(
        submission=submission,
        scores=score(material),
        provenance=provenance,
        doubts=tuple(doubts),
        trails=trails if trails.manifest else None,
    )


def work_once(store: BoardStore, held: Mapping[int, HeldBenchmark]) -> SubmissionRecord | None:
    """Check and score the next submission that waits; returns it, or None when none waits.

    `held` are the benchmarks whose files are at hand, by their number on the board.
    """
    found = claim(store)
    if found is None:
        return None
    if found.benchmark_id not in held:
        fail(store, found, "the files of its benchmark are not at hand")
        return found
    try:
        _settle(store, found, held[found.benchmark_id])
    except MedThinkError as error:
        fail(store, found, error.problem)
    return found


def _settle(store: BoardStore, found: SubmissionRecord, held: HeldBenchmark) -> None:
    assert found.file_sha256 is not None
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "submission.jsonl"
        path.write_bytes(read_file(store, found.file_sha256))
        checked = check_file(path, held)
    if checked.scores is None:
        refuse(store, found, checked.submission.problems)
        return
    keep_scores(store, found, checked.scores, provenance=checked.provenance, detail="; ".join(checked.doubts))
