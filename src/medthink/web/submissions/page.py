"""Pages of a submission from upload to publication, for its team and the maintainers."""

from collections.abc import Sequence
from math import sqrt
from statistics import NormalDist
from typing import Any

import msgspec

from medthink.board.submissions import ASKED, EVER_SCORED, AskedText, ModelDescription, Status, SubmissionRecord
from medthink.scoring.scores import Scores
from medthink.scoring.submission_file import SubmissionProblem
from medthink.web.app.query import Query
from medthink.web.app.rendering import Difference, Interval, place_rate, tell_difference
from medthink.web.board.columns import PROOF_WORDS, rival_name

SHOWN_PROBLEMS = 100
STEPS = ("Upload", "Check", "Score", "Preview", "Publish")
# A submission's current step, and whether it ended there.
_AT: dict[Status, tuple[int, bool]] = {
    "received": (1, False),
    "checking": (1, False),
    "invalid": (1, True),
    "failed": (2, True),
    "scored": (3, False),
    "offered": (3, False),
    "lapsed": (3, True),
    "published": (4, False),
    "withdrawn": (4, True),
}
STATE_MARKS: dict[Status, tuple[str, str, str]] = {
    "received": ("waiting", "clock", "waiting"),
    "checking": ("running", "play", "checking"),
    "invalid": ("failed", "cross", "not accepted"),
    "failed": ("failed", "warn", "could not be scored"),
    "scored": ("ok", "check", "scored, not public"),
    "offered": ("waiting", "clock", "waiting for approval"),
    "lapsed": ("withdrawn", "flag", "not published"),
    "published": ("ok", "check", "published"),
    "withdrawn": ("withdrawn", "flag", "withdrawn"),
}
"""Every state with its class, icon and text."""


class SubmitQuery(Query, frozen=True, kw_only=True):
    """The filters of the maintainers' list."""

    status: str = ""


class SubmissionLine(msgspec.Struct, frozen=True, kw_only=True):
    """A submission in a list."""

    token: str
    number: int
    model: str
    team: str
    status: Status
    mark: tuple[str, str, str]
    received_at: str
    accuracy: str
    flag: str


class UploadForm(msgspec.Struct, frozen=True, kw_only=True):
    """The form as filled in, shown again with an error."""

    model: str = ""
    about: ModelDescription = ModelDescription()
    condition: str = ""
    download: str = ""


class SubmitPage(msgspec.Struct, frozen=True, kw_only=True):
    """The submission form, and the team's submissions."""

    benchmark: str
    n_cases: int
    team: str
    is_submitter: bool
    used_today: int
    per_day: int
    published_this_week: int
    per_week: int
    largest_mb: int
    form: UploadForm
    asked: tuple[AskedText, ...] = ASKED
    problem: str
    lines: tuple[SubmissionLine, ...]


class PreviewView(msgspec.Struct, frozen=True, kw_only=True):
    """The numbers of a scored submission."""

    accuracy: Interval | None
    states: tuple[tuple[str, int], ...]
    rank: str
    among: int
    letters: str
    gain: Difference | None
    rival: str
    difference: Difference | None
    is_different: bool
    last_model: str
    last_token: str
    proof: str
    level: int
    doubts: str
    luck: str


class SubmissionPage(msgspec.Struct, frozen=True, kw_only=True):
    """One submission: its state, its problems or scores, and the possible actions."""

    record: SubmissionRecord
    mark: tuple[str, str, str]
    steps: tuple[tuple[str, str], ...]
    is_moving: bool
    position: int | None
    size: str
    problems: tuple[SubmissionProblem, ...]
    n_problems: int
    preview: PreviewView | None
    declined: str
    history: tuple[tuple[str, str, str], ...]
    needs_approval: bool
    is_maintainer: bool
    is_own: bool
    problem: str


class QueuePage(msgspec.Struct, frozen=True, kw_only=True):
    """Every submission, for maintainers."""

    query: SubmitQuery
    lines: tuple[SubmissionLine, ...]
    total: int
    counts: tuple[tuple[Status, str, int], ...]


def make_line(one: SubmissionRecord, scores: Scores | None) -> SubmissionLine:
    """A submission in a list."""
    rate = place_rate(scores.answers.accuracy) if scores and scores.answers else None
    return SubmissionLine(
        token=one.token,
        number=one.id,
        model=one.model,
        team=one.team,
        status=one.status,
        mark=STATE_MARKS[one.status],
        received_at=one.received_at,
        accuracy=rate.words if rate else "",
        flag=one.flag,
    )


def make_steps(status: Status) -> tuple[tuple[str, str], ...]:
    """The five steps, each with its class: done, now, bad or none."""
    at, is_end = _AT[status]
    now = "bad" if is_end else "now"
    return tuple((name, "done" if place < at else now if place == at else "") for place, name in enumerate(STEPS))


def make_preview_view(one: SubmissionRecord, scores: Scores, family_count: int) -> PreviewView:
    """The numbers of a scored submission as text."""
    answers, preview = scores.answers, one.preview
    rank, among, letters = "–", 1, ""
    if preview is not None and preview.rank is not None:
        rank = f"{preview.rank}" if preview.rank == preview.worst else f"{preview.rank}–{preview.worst}"
        among, letters = preview.among, " ".join(preview.letters)
    difference = preview.difference if preview else None
    return PreviewView(
        accuracy=place_rate(answers.accuracy) if answers else None,
        states=tuple(answers.states.items()) if answers else (),
        rank=rank,
        among=among,
        letters=letters,
        gain=tell_difference(preview.gain) if preview and preview.gain is not None else None,
        rival=rival_name(preview.rival) if preview else "",
        difference=tell_difference(difference) if difference is not None else None,
        is_different=bool(preview and preview.is_different),
        last_model=preview.last_model if preview else "",
        last_token=preview.last_token if preview else "",
        proof=PROOF_WORDS[one.provenance],
        level=list(PROOF_WORDS).index(one.provenance),
        doubts=one.detail if one.status in ("scored", "offered", "published") else "",
        luck=_tell_luck(family_count, scores),
    )


def make_counts(records: Sequence[SubmissionRecord]) -> tuple[tuple[Status, str, int], ...]:
    """The number of submissions in each state, without empty ones."""
    found = [one.status for one in records]
    return tuple((state, mark[2], found.count(state)) for state, mark in STATE_MARKS.items() if state in found)


def tell_history(events: Sequence[dict[str, Any]]) -> tuple[tuple[str, str, str], ...]:
    """Every change as text, newest first: time, person, action."""
    return tuple((one["at"], one["actor"], _tell_event(one)) for one in reversed(events))


def find_declined(events: Sequence[dict[str, Any]]) -> str:
    """The reason why the maintainers returned a submission; "" unless that was its last change of state."""
    moves = [one for one in events if one["what"] in _AT]
    return str(moves[-1]["detail"].get("why", "")) if moves and moves[-1]["what"] == "scored" else ""


def is_scored(one: SubmissionRecord) -> bool:
    """Whether there are numbers to show."""
    return one.status in EVER_SCORED


_EVENTS = {
    "received": "submitted",
    "checking": "check began",
    "invalid": "not accepted",
    "failed": "could not be scored",
    "offered": "offered for publication",
    "lapsed": "discarded",
}


def _tell_event(one: dict[str, Any]) -> str:
    detail = one["detail"]
    said = detail.get("why") or detail.get("annotation") or detail.get("flag") or ""
    # A submission is scored once without a reason; with one, the maintainers returned it.
    word = "returned to the team" if one["what"] == "scored" and said else _EVENTS.get(one["what"], one["what"])
    return f"{word}: {said}" if said else word


def _tell_luck(count: int, scores: Scores) -> str:
    """The apparent advantage, by chance alone, of the best of several equal models (Blom's approximation)."""
    answers = scores.answers
    if count < 2 or answers is None or answers.accuracy.value is None:
        return ""
    rate = answers.accuracy.value
    error = sqrt(max(rate * (1 - rate), 0.0) / max(answers.n_cases, 1))
    points = 100 * error * NormalDist().inv_cdf((count - 0.375) / (count + 0.25))
    return f"{points:.1f}"
