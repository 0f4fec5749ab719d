"""What happened to each case of a run: every prompt as sent, every reply as received, read from its ledger.

Reading needs no lock, so a run can be inspected while another process works on it. The benchmark is opened where it can
be found: it says which answers are right and which files the images came from. Without it, both stay unknown.
"""

from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

import msgspec

from medthink.cases.benchmark import Benchmark
from medthink.cases.case import Image
from medthink.core.errors import DataError, MedThinkError, UsageError
from medthink.models.request import Reply, Usage
from medthink.runs.calls.asking import encode_image
from medthink.runs.ledger.queries import LEDGER, LedgerQueries, connect_read_only, find_uri
from medthink.runs.ledger.schema import CALL_COST
from medthink.runs.manifest import Manifest, find_benchmark, read_manifest
from medthink.workflow.prediction import Prediction
from medthink.workflow.tasks import ends_in_answer, has_letters
from medthink.workflow.view import Showing

# A case with recorded calls but no prediction yet.
UNFINISHED = "unfinished"
_SETTINGS = ("max_tokens", "temperature", "seed", "effort")


class SentImage(msgspec.Struct, frozen=True, kw_only=True):
    """An image of a prompt, by the digest of the bytes sent.

    `slot` and `path` are None where the benchmark no longer holds these bytes.
    """

    media_type: str
    digest: str
    slot: int | None = None
    path: str | None = None


class AttemptTrace(msgspec.Struct, frozen=True):
    """One try at sending a call."""

    number: int
    endpoint: str
    outcome: str
    is_sent: bool
    latency_s: float
    usage: Usage | None
    cost_usd: float | None
    is_least_cost: bool


class CallTrace(msgspec.Struct, frozen=True, kw_only=True):
    """One call: what was sent, in its order, and what came back."""

    id: int
    kind: str
    sample: int
    state: str
    system: str
    parts: tuple[str | SentImage, ...]
    schema: Any
    settings: dict[str, Any]
    reply: Reply | None
    error_kind: str | None
    error_detail: str | None
    cost_usd: float | None
    started_at: str
    ended_at: str | None
    attempts: tuple[AttemptTrace, ...]

    @property
    def is_least_cost(self) -> bool:
        """Whether nobody counted the tokens of an attempt."""
        return any(one.is_least_cost for one in self.attempts)

    @property
    def images(self) -> tuple[SentImage, ...]:
        """The images of the prompt, in the order sent."""
        return tuple(part for part in self.parts if isinstance(part, SentImage))


class CaseRow(msgspec.Struct, frozen=True, kw_only=True):
    """One line about a case and sample; `is_right` is None where there is no answer to compare, or no benchmark."""

    case: int
    sample: int
    state: str
    answer: str | None = None
    is_right: bool | None = None
    detail: str = ""
    calls: int = 0
    tokens: Usage | None = None
    cost_usd: float | None = None
    is_least_cost: bool = False
    latency_s: float | None = 0.0


class CaseTrace(msgspec.Struct, frozen=True, kw_only=True):
    """Everything on record about one case: its calls in the order first asked, and their results."""

    case: int
    rows: tuple[CaseRow, ...]
    predictions: tuple[Prediction, ...]
    calls: tuple[CallTrace, ...]
    correct: str | None


class _Asked(msgspec.Struct):
    """A request as the ledger keeps it; a part is its kind and its content."""

    system: str = ""
    parts: list[list[str]] = []
    schema: Any = None
    max_tokens: int | None = None
    temperature: float | None = None
    seed: int | None = None
    effort: str | None = None
    sample: int = 0


class Trace(LedgerQueries):
    """A run opened for looking at its cases.

    `doubt` says why right and wrong are unknown, if they are. `opened` is a benchmark already known to be the run's,
    with the right letter of each case.
    """

    def __init__(
        self, run: Path, data: Path | None = None, *, opened: tuple[Benchmark, dict[int, str]] | None = None
    ) -> None:
        self.path = run
        self.manifest: Manifest = read_manifest(run)
        super().__init__(connect_read_only(find_uri(run), run / LEDGER))
        self.benchmark, self.doubt = (opened[0], "") if opened else _find_benchmark(run, self.manifest, data)
        self._answers: dict[int, str] | None = opened[1] if opened else None

    def rows(self) -> list[CaseRow]:
        """Every case that has been asked about, by case and sample; those without a prediction are unfinished."""
        made = [self._row(one) for one in self.predictions_as(Prediction)]
        under_way = self._reader.execute(
            f"SELECT case_id, count(*), total({CALL_COST}), count(*) - count({CALL_COST}) FROM calls"
            " WHERE case_id NOT IN (SELECT case_id FROM predictions) GROUP BY case_id"
        )
        unfinished = [
            CaseRow(
                case=case,
                sample=0,
                state=UNFINISHED,
                calls=calls,
                cost_usd=None if unpriced else cost,
                is_least_cost=case in self._uncounted,
            )
            for case, calls, cost, unpriced in under_way
        ]
        return sorted([*made, *unfinished], key=lambda row: (row.case, row.sample))

    def case(self, case_id: int) -> CaseTrace:
        """The case with every call; UsageError when the run never asked about it."""
        self.verify(case_id)
        predictions = tuple(self.predictions_of(case_id))
        calls = tuple(self._calls_of(case_id))
        if not predictions and not calls:
            raise UsageError(
                f"{self.path} has not asked about case {case_id}", remedy=f"medthink show {self.path} lists its cases"
            )
        rows = tuple(map(self._row, predictions)) or (
            CaseRow(case=case_id, sample=0, state=UNFINISHED, calls=len(calls)),
        )
        return CaseTrace(
            case=case_id, rows=rows, predictions=predictions, calls=calls, correct=self._correct().get(case_id)
        )

    def images(self, case_id: int) -> dict[str, Image]:
        """The case's images as shown, by the digest of the bytes sent for them."""
        if self.benchmark is None:
            return {}
        try:
            shown, _ = Showing(self.manifest.condition, self.benchmark).show(self.benchmark.case(case_id))
        except DataError:
            return {}
        sent = ((_sent_digest(image, self.manifest), image) for image in shown.question.images)
        return {digest: image for digest, image in sent if digest is not None}

    def _row(self, one: Prediction) -> CaseRow:
        correct = self._correct().get(one.case)
        is_answer = one.state == "ok" and has_letters(self.manifest.task, self.manifest.condition)
        return CaseRow(
            case=one.case,
            sample=one.sample,
            state=one.state,
            answer=one.prediction or one.prediction_text,
            is_right=one.prediction == correct if is_answer and correct is not None else None,
            detail=one.detail,
            calls=len(one.calls),
            tokens=one.tokens,
            cost_usd=one.cost_usd,
            is_least_cost=one.case in self._uncounted,
            latency_s=one.latency_s,
        )

    @cached_property
    def _uncounted(self) -> frozenset[int]:
        return self.uncounted_cases()

    def _correct(self) -> dict[int, str]:
        """The right letter of each case; empty for a task without letters, or without the benchmark."""
        if self._answers is None:
            cases = () if self.benchmark is None or not ends_in_answer(self.manifest.task) else self.benchmark
            self._answers = {case.id: case.reference.answer for case in cases}
        return self._answers

    def _calls_of(self, case_id: int) -> Iterator[CallTrace]:
        images = self.images(case_id)
        found = self._reader.execute(
            f"SELECT key, id, kind, state, request, reply, error_kind, error_detail, {CALL_COST}, started_at, ended_at"
            " FROM calls WHERE case_id = ? ORDER BY id",
            (case_id,),
        ).fetchall()
        for key, number, kind, state, request, reply, *rest in found:
            asked = self._reader.decode(request, _Asked)
            error_kind, error_detail, cost_usd, started_at, ended_at = rest
            yield CallTrace(
                id=number,
                kind=kind,
                sample=asked.sample,
                state=state,
                system=asked.system,
                parts=tuple(self._read_part(part, images) for part in asked.parts),
                schema=asked.schema,
                settings={name: getattr(asked, name) for name in _SETTINGS if getattr(asked, name) is not None},
                reply=self._reader.decode(reply, Reply) if reply and state == "done" else None,
                error_kind=error_kind,
                error_detail=error_detail,
                cost_usd=cost_usd,
                started_at=started_at,
                ended_at=ended_at,
                attempts=tuple(self._attempts_of(key)),
            )

    def _attempts_of(self, key: str) -> Iterator[AttemptTrace]:
        found = (
            "SELECT number, endpoint, outcome, is_sent, latency_s, usage, cost_usd, is_least FROM attempts"
            " WHERE call_key = ? ORDER BY rowid"
        )
        for number, endpoint, outcome, is_sent, latency_s, used, cost_usd, is_least in self._reader.execute(
            found, (key,)
        ):
            usage = None if used is None else self._reader.decode(used, Usage)
            yield AttemptTrace(number, endpoint, outcome, bool(is_sent), latency_s, usage, cost_usd, bool(is_least))

    def _read_part(self, part: list[str], images: dict[str, Image]) -> str | SentImage:
        if part[0] == "text":
            return part[1]
        _, media_type, digest = part
        image = images.get(digest)
        if image is None or self.benchmark is None:
            return SentImage(media_type=media_type, digest=digest)
        file = self.benchmark.path / image.path
        path = str(file) if file.is_file() else image.path
        return SentImage(media_type=media_type, digest=digest, slot=image.slot, path=path)


def _find_benchmark(run: Path, manifest: Manifest, data: Path | None) -> tuple[Benchmark | None, str]:
    """The split that the run is about, or why it cannot be used."""

    def read_own(place: Path) -> Benchmark | None:
        split = Benchmark.open(place)[manifest.selection.split]
        return split if split.text_fingerprint() == manifest.text_fingerprint else None

    try:
        return find_benchmark(run, manifest, data, read_own), ""
    except MedThinkError as error:
        return None, f"{error.problem}; {error.remedy}"


def _sent_digest(image: Image, manifest: Manifest) -> str | None:
    """The digest under which an image is sent; None if it can no longer be read."""
    try:
        return encode_image(image, manifest.condition).digest
    except DataError:
        return None
