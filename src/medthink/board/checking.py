"""Check a submission; the same code serves `medthink submit check`, `medthink board add` and the server."""

from collections.abc import Callable
from pathlib import Path

import msgspec

from medthink.board.overlap import flag_overlap
from medthink.board.provenance import Provenance
from medthink.board.records import QueueProgress
from medthink.board.traces import Trails, check_trails, read_trails
from medthink.cases.benchmark import Benchmark
from medthink.cases.held import HeldSplit
from medthink.core.files import open_for_reading
from medthink.scoring.material import Material
from medthink.scoring.score import score
from medthink.scoring.scores import Scores
from medthink.scoring.submission import Submission, read_submission


class HeldBenchmark(HeldSplit, frozen=True, kw_only=True):
    """A split whose files are available, read once, so that its submissions can be checked and scored."""

    fingerprint: str

    @classmethod
    def open(cls, data: Path, split: str = "test") -> "HeldBenchmark":
        """Open a split and pin what it holds."""
        part = Benchmark.open(data)[split]
        passing = part.pass_prints()
        cases = {case.id: case for case in passing.cases}
        prints = passing.finish()
        return cls(split=part, cases=cases, fingerprint=prints.whole, text_fingerprint=prints.texts)


class Checked(msgspec.Struct, frozen=True, kw_only=True):
    """The result for a file: every problem or, if there is none, the scores and their provenance."""

    submission: Submission
    scores: Scores | None = None
    provenance: Provenance = "scored"
    doubts: tuple[str, ...] = ()
    trails: Trails | None = None


def check_file(
    path: Path, held: HeldBenchmark, *, name: str = "", tell: Callable[[QueueProgress], None] = lambda _: None
) -> Checked:
    """Read a submission and, if it is valid, score it and check its traces; `tell` is called with the progress."""
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
    # The traces' task, condition and usage are accepted only if they lead to the submitted letters.
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
    with open_for_reading(path) as stream:
        return sum(block.count(b"\n") for block in iter(lambda: stream.read(1 << 20), b""))


def _doubt_trails(trails: Trails, held: HeldBenchmark, submission: Submission) -> list[str]:
    if trails.manifest is None:
        return []
    if trails.manifest.fingerprint != held.fingerprint:
        return ["the run was made on texts or images that differ from this benchmark's"]
    return check_trails(trails, held.split, submission.predictions)
