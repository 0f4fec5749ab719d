"""Check a submission: one code for `medthink submit check`, `medthink board add` and the server."""

from collections.abc import Callable
from pathlib import Path

import msgspec

from medthink.board.overlap import flag_overlap
from medthink.board.provenance import Provenance
from medthink.board.records import QueueProgress
from medthink.board.traces import Trails, check_trails, read_trails
from medthink.cases.benchmark import Benchmark
from medthink.cases.case import Case
from medthink.scoring.material import Material
from medthink.scoring.score import score
from medthink.scoring.scores import Scores
from medthink.scoring.submission import Submission, read_submission


class HeldBenchmark(msgspec.Struct, frozen=True, kw_only=True):
    """A split whose files are at hand, read once: submissions about it can be checked and scored."""

    split: Benchmark
    cases: dict[int, Case]
    fingerprint: str
    text_fingerprint: str

    @classmethod
    def open(cls, data: Path, split: str = "test") -> "HeldBenchmark":
        """Open a split and pin what it holds."""
        part = Benchmark.open(data)[split]
        prints = part.fingerprints()
        cases = {case.id: case for case in part}
        return cls(split=part, cases=cases, fingerprint=prints.whole, text_fingerprint=prints.texts)


class Checked(msgspec.Struct, frozen=True, kw_only=True):
    """What was found in a file: every problem, and where there is none the scores and how far they are borne out."""

    submission: Submission
    scores: Scores | None = None
    provenance: Provenance = "scored"
    doubts: tuple[str, ...] = ()
    trails: Trails | None = None


def check_file(
    path: Path, held: HeldBenchmark, *, name: str = "", tell: Callable[[QueueProgress], None] = lambda _: None
) -> Checked:
    """Read a submission and, if nothing is wrong with it, score it and check its traces; `tell` hears how far it is."""
    of = _count_lines(path)

    def tell_lines(lines: int, problems: int) -> None:
        tell(QueueProgress(done=lines, of=of, problems=problems))

    submission = read_submission(path, held.cases, tell=tell_lines)
    if submission.problems:
        return Checked(submission=submission)
    tell(QueueProgress(stage="score", done=of, of=of))
    trails = read_trails(path)
    doubts = _doubt_trails(trails, held, submission)
    provenance: Provenance = "traced" if trails.manifest and not doubts else "scored"
    predictions = list(submission.predictions)
    # What the traces say of task, condition and usage is believed only when they lead to the letters submitted.
    borne_out = trails if provenance == "traced" else None
    manifest = borne_out.manifest if borne_out else None
    material = Material(name or path.name, manifest, held.text_fingerprint, held.cases, predictions)
    return Checked(
        submission=submission,
        scores=score(material, usage=borne_out.usage if borne_out else None),
        provenance=provenance,
        doubts=(*doubts, *flag_overlap(predictions, held.cases)),
        trails=trails if trails.manifest else None,
    )


def _count_lines(path: Path) -> int:
    with path.open("rb") as stream:
        return sum(block.count(b"\n") for block in iter(lambda: stream.read(1 << 20), b""))


def _doubt_trails(trails: Trails, held: HeldBenchmark, submission: Submission) -> list[str]:
    if trails.manifest is None:
        return []
    if trails.manifest.fingerprint != held.fingerprint:
        return ["the run was made on other texts or images than this benchmark's"]
    return check_trails(trails, held.split, submission.predictions)
