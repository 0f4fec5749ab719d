"""Judges' verdicts on a run's texts, unit by unit, as pages show them."""

from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

import msgspec

from medthink.judge.exam.results import BELOW_FLOOR, EXAMS_FILE, describe_exam, read_results
from medthink.judge.judged import JUDGEMENTS_FILE, read_judgements
from medthink.judge.judgement import Judgement, UnitVerdict, label_judges, name_judges
from medthink.judge.kinds import KINDS
from medthink.judge.kinds.kind import JudgeKind
from medthink.judge.units import UnitSet, read_units

Tone = Literal["good", "bad", "unsure"]
_TONES: dict[str, Tone] = {"supported": "good", "correct": "good", "contradicted": "bad", "incorrect": "bad"}


class ShownVerdict(msgspec.Struct, frozen=True, kw_only=True):
    """One judge's verdict on one unit."""

    text: str
    word: str
    tone: Tone
    note: str


class JudgeVerdicts(msgspec.Struct, frozen=True, kw_only=True):
    """All verdicts of one judge on one text, and its exam result; `unjudged` is the reason if there is no verdict."""

    seat: str
    what: str
    is_smoke_test: bool
    exam: str
    verdicts: tuple[ShownVerdict, ...]
    unjudged: str

    @property
    def is_below_floor(self) -> bool:
        """Whether the judge is below the floor of its exam."""
        return self.exam.startswith(BELOW_FLOOR)

    @property
    def bad(self) -> int:
        """The number of contradicted units."""
        return sum(verdict.tone == "bad" for verdict in self.verdicts)


CaseVerdicts = dict[tuple[int, int], tuple[JudgeVerdicts, ...]]
"""Verdicts by case and sample."""


def load_verdicts(run: Path) -> CaseVerdicts:
    """The verdicts of a run, empty if it was never judged; read again when the file changes."""
    judged = _state(run / JUDGEMENTS_FILE)
    return _load(run, judged, _state(run / EXAMS_FILE)) if judged else {}


def _state(path: Path) -> tuple[int, int] | None:
    """A stamp that detects changes of a file; None if it does not exist."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size


@lru_cache(maxsize=16)
def _load(run: Path, judged: tuple[int, int], examined: tuple[int, int] | None) -> CaseVerdicts:  # noqa: ARG001
    units, exams = read_units(run), read_results(run / EXAMS_FILE)
    judgements = [one for one in read_judgements(run) if one.repeat == 0]
    names = name_judges({one.seat: one.seat.label() for one in judgements} | label_judges(judgements))
    found: dict[tuple[int, int], list[JudgeVerdicts]] = {}
    for one in judgements:
        told = _tell_seat(one, names[one.seat], units.get(one.key), describe_exam(exams, one.seat, one.what))
        found.setdefault((one.case, one.sample), []).append(told)
    return {key: tuple(listed) for key, listed in found.items()}


def _tell_seat(one: Judgement, seat: str, units: UnitSet | None, exam: str) -> JudgeVerdicts:
    kind = KINDS[one.what]
    texts = {item.id: item.text or item.part for item in kind.items(units)} if units else {}
    why = (one.why or one.state).replace("_", " ") + (f": {one.detail}" if one.detail else "")
    return JudgeVerdicts(
        seat=seat,
        what=one.what,
        is_smoke_test=one.seat.is_smoke_test,
        exam=exam,
        verdicts=tuple(_tell(verdict, texts.get(verdict.id, ""), kind) for verdict in one.verdicts),
        unjudged="" if one.state == "ok" else why,
    )


def _tell(verdict: UnitVerdict, text: str, kind: JudgeKind[Any, Any]) -> ShownVerdict:
    """The leading label as the verdict, other labels as a note."""
    labels = dict(kind.labels(verdict))
    main = kind.leading if kind.leading in labels else next(iter(labels))
    said = labels.pop(main)
    word = str(said) if main == kind.leading else f"{main} {said}"
    also = [name.removeprefix("error: ") for name, is_so in labels.items() if is_so is True and name != "factual"]
    notes = [verdict.reason, *also]
    return ShownVerdict(
        text=text, word=word, tone=_TONES.get(word, "unsure"), note=" · ".join(note for note in notes if note)
    )
