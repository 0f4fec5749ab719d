"""The interface of a kind of judging: its units, its prompt and reply, its verdicts, and their scores."""

import json
import re
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar, Generic, TypeVar, cast

import msgspec

from medthink.cases.case import Case
from medthink.cases.slices import Slices, group_by_slice, sort_slices
from medthink.judge.decisive import DecisiveList, is_shown
from medthink.judge.judgement import Evidence, Judgement, UnitVerdict, label_judges
from medthink.judge.rubric import ERROR_TYPES, SUPPORTS, ErrorType, Support
from medthink.judge.scores import JudgeConfigScores, JudgedSlice, Rights, ScoreCell, ScoreTable, Units, measure_coverage
from medthink.judge.units import MAX_UNITS, UnitSet, UnitSource
from medthink.models.request import Schema
from medthink.workflow.forms import ReplyFault, first_fault
from medthink.workflow.prediction import Prediction
from medthink.workflow.sentences import split_sentences

Label = str | int | bool
Labels = Mapping[str, Label | None]

Given = TypeVar("Given", bound=UnitVerdict)
Scored = TypeVar("Scored", bound=JudgeConfigScores)


class JudgedItem(msgspec.Struct, frozen=True, kw_only=True):
    """One item that receives a verdict or a reader's labels; `form` says which labels."""

    id: str
    form: str
    part: str
    text: str


class Aspect(msgspec.Struct, frozen=True, kw_only=True):
    """One question that both judges and readers answer, so that they can be compared.

    `wrong` is the label that counts as an error, where a judge's error rate can be corrected by readers;
    `is_main` says that it is also compared within slices.
    """

    name: str
    categories: tuple[Label, ...]
    is_main: bool = False
    is_ordered: bool = False
    wrong: Label | None = None


class ReaderColumn(msgspec.Struct, frozen=True):
    """A column that readers fill in, and the allowed words if they are few."""

    name: str
    choices: tuple[str, ...] = ()


class JudgedTexts(msgspec.Struct, frozen=True):
    """The texts of a prediction by part, and the expected parts that are missing."""

    parts: dict[str, str]
    missing: tuple[str, ...] = ()


class JudgeKind(ABC, Generic[Given, Scored]):
    """One kind of judging.

    `title` is its heading for readers, `about` says what they judge, and `rubric` names the sections of the rubric that
    they need. `tasks` are those whose runs are judged this way by default. With `uses_decisive`, the case's decisive
    findings are the units; with `is_pairwise`, two runs are compared. `aspects` are compared between judges and
    readers, `leading` is the one whose labels show the votes of a panel, and `true_label` its label for a true unit.
    `exam_part` is the part under which a judge of this kind is given a text in its exam. `columns` are what readers
    fill in, and `forms` says, for each form of item, which of them, as worded on the readers' page.
    """

    name: ClassVar[str]
    plural: ClassVar[str]
    title: ClassVar[str]
    about: ClassVar[str]
    rubric: ClassVar[tuple[str, ...]] = ()
    tasks: ClassVar[tuple[str, ...]] = ()
    max_units: ClassVar[int] = MAX_UNITS
    is_cut_by_model: ClassVar[bool] = False
    shows_answer: ClassVar[bool] = False
    uses_decisive: ClassVar[bool] = False
    is_pairwise: ClassVar[bool] = False
    leading: ClassVar[str]
    true_label: ClassVar[str] = "supported"
    exam_part: ClassVar[str] = ""
    aspects: ClassVar[tuple[Aspect, ...]]
    columns: ClassVar[tuple[ReaderColumn, ...]]
    forms: ClassVar[Mapping[str, str]]

    @abstractmethod
    def texts(self, prediction: Prediction) -> JudgedTexts:
        """The parts of a prediction that are judged."""

    @abstractmethod
    def items(self, units: UnitSet) -> tuple[JudgedItem, ...]:
        """Every item that receives a verdict, in the order of verdicts."""

    @abstractmethod
    def schema(self, call: str, units: UnitSet, rests_on: Sequence[str]) -> Schema:
        """The form of a reply; `rests_on` are the names of the evidence."""

    @abstractmethod
    def read_reply(
        self, text: str, call: str, units: UnitSet, rests_on: Sequence[str]
    ) -> tuple[Given, ...] | ReplyFault:
        """One verdict for every item, or the reply's fault."""

    @abstractmethod
    def read_stored(self, rows: Sequence[Mapping[str, Any]]) -> tuple[Given, ...]:
        """The verdicts of a row of `judgements.jsonl`."""

    @abstractmethod
    def judge_by_rule(self, units: UnitSet, evidence: Evidence, source: UnitSource) -> dict[str, Any]:
        """The reply of the embedded judge, without the code of its call."""

    @abstractmethod
    def vote(self, ballots: Sequence[Given]) -> Given | None:
        """The majority verdict on one item; None if there is no majority."""

    def is_tie(self, verdict: Given) -> bool:  # noqa: ARG002
        """Whether a panel has no majority on what matters most, though its other aspects count."""
        return False

    @abstractmethod
    def labels(self, verdict: Given) -> Labels:
        """A verdict as labels by aspect."""

    @abstractmethod
    def read_cells(self, form: str, row: Mapping[str, str]) -> Labels:
        """A reader's cells as labels by aspect; ValueError names a cell that is unreadable or contradictory."""

    def columns_of(self, form: str) -> tuple[ReaderColumn, ...]:  # noqa: ARG002
        """The columns of an item of this form."""
        return self.columns

    def gaps(self, form: str, row: Mapping[str, str]) -> tuple[str, ...]:  # noqa: ARG002
        """The columns of an item that a reader still has to fill in; "unsure" is an answer."""
        return tuple(one.name for one in self.columns if one.choices and not row.get(one.name, "").strip())

    @abstractmethod
    def score(self, rows: Sequence[Judgement], units: Units, rights: Rights) -> Scored:
        """The scores of one judge's judgements."""

    @abstractmethod
    def tables(self, scores: Scored) -> tuple[ScoreTable, ...]:
        """The scores as tables; the first has one row."""

    @property
    def wrong_label(self) -> Label | None:
        """The leading aspect's label for a false unit."""
        return next(aspect.wrong for aspect in self.aspects if aspect.name == self.leading)

    def label_for(self, edit: str) -> Label | None:  # noqa: ARG002
        """The leading aspect's label for a unit that an exam's edit has made false."""
        return self.wrong_label

    def given(self, row: Judgement) -> tuple[Given, ...]:
        """The verdicts of a judgement of this kind."""
        return cast("tuple[Given, ...]", row.verdicts)

    def slice_cells(self, scores: Scored) -> dict[str, ScoreCell]:
        """The cells shown for a slice."""
        return self.tables(scores)[0].rows[0]

    def source(self, prediction: Prediction, case: Case, run: str, decisive: DecisiveList | None = None) -> UnitSource:
        """The texts of a prediction that are judged, with its answer; an empty part is left out."""
        texts = self.texts(prediction)
        findings = decisive.findings if decisive and self.uses_decisive else ()
        return UnitSource(
            run=run,
            case=prediction.case,
            sample=prediction.sample,
            what=self.name,
            parts={name: text for name, text in texts.parts.items() if split_sentences(text)},
            missing=texts.missing,
            answer=_name_answer(prediction, case) if self.shows_answer else "",
            findings=tuple((one.text, is_shown(one, prediction.slots, case)) for one in findings),
            max_units=self.max_units,
            is_cut_by_model=self.is_cut_by_model,
        )

    def pair_sources(
        self,
        own: Prediction,
        other: Prediction,
        *,
        run: str,
        other_run: str,
        against: str,
    ) -> tuple[UnitSource, ...]:
        """The texts of a prediction and of another run's, for a kind that compares two."""
        raise NotImplementedError(f"{self.name} does not compare two runs")

    def score_with_slices(self, rows: Sequence[Judgement], units: Units, rights: Rights, slices: Slices) -> Scored:
        """The scores of all cases, and those of every slice."""
        found = []
        for (slicing, value), group in sort_slices(group_by_slice(((row.case, row) for row in rows), slices)).items():
            cases = {row.case for row in group}
            own = {key: one for key, one in units.items() if one.case in cases}
            scores = self.score(group, own, rights)
            found.append(JudgedSlice(slicing=slicing, value=value, cases=len(cases), scores=scores))
        return msgspec.structs.replace(self.score(rows, units, rights), slices=tuple(found))


def _name_answer(prediction: Prediction, case: Case) -> str:
    """The answer the text led to, with the letter its author saw."""
    if prediction.prediction is None:
        return prediction.prediction_text or ""
    letter = prediction.letter_shown or prediction.prediction
    return f"{letter}: {case.question.options.get(prediction.prediction, '')}"


def common_scores(rows: Sequence[Judgement], units: Units) -> dict[str, Any]:
    """The fields that the scores of every kind share."""
    seat = rows[0].seat
    return {
        "seat": seat,
        "label": label_judges(rows).get(seat, seat.label()),
        "is_smoke_test": seat.is_smoke_test,
        "coverage": measure_coverage(rows, units),
        "ties": sum(len(row.ties) for row in rows),
    }


def match_ids(verdicts: Iterable[Given], ids: Sequence[str]) -> tuple[Given, ...] | ReplyFault:
    """The verdicts in the order of the units; each unit needs exactly one, with a reason."""
    by_id: dict[str, Given] = {}
    counts: Counter[str] = Counter()
    for verdict in verdicts:
        by_id[verdict.id] = verdict
        counts[verdict.id] += 1
    missing = [one for one in ids if one not in counts]
    twice = [one for one in ids if counts[one] > 1]
    strange = len(counts.keys() - set(ids))
    problems = [f"no verdict for {', '.join(missing)}"] if missing else []
    problems += [f"more than one verdict for {', '.join(twice)}"] if twice else []
    problems += [f"{strange} verdicts for ids that were not given"] if strange else []
    if problems:
        return ReplyFault("wrong_ids", "; ".join(problems))
    ordered = tuple(by_id[one] for one in ids)
    return first_fault(refuse_no_reason(one.id, one.reason) for one in ordered) or ordered


def refuse_no_reason(name: str, reason: str) -> ReplyFault | None:
    """The fault of a verdict without a reason: its judge did not say what it rests on."""
    return None if reason.strip() else ReplyFault("wrong_form", f"{name} has no reason")


def check_grounds(verdict: UnitVerdict, rests_on: Sequence[str], allowed: Sequence[str]) -> ReplyFault | None:
    """Why a verdict's grounds are not acceptable; None if they are acceptable."""
    if not rests_on or set(rests_on) - set(allowed):
        return ReplyFault("wrong_form", f'{verdict.id} must rest on one or more of the names given for "rests_on"')
    return None


UNSURE = "unsure"

_YES = frozenset({"yes", "y", "true", "t", "1", "ja", "oui"})
_NO = frozenset({"no", "n", "false", "f", "0", "nein", "non"})
_NOTHING = frozenset({"", UNSURE, "?", "n/a", "na", "-", "–", "none", "nan", "null", "not sure"})
_TYPE_WORDS: dict[str, ErrorType] = {name.replace("_", " "): name for name in ERROR_TYPES} | {
    "image": "image_understanding",
    "imaging": "image_understanding",
    "clinical": "clinical_scenario",
    "scenario": "clinical_scenario",
    "knowledge": "medical_knowledge",
}
_SEPARATORS = re.compile(r"[;,|/\n]+")
_ENDING = re.compile(r"\s+(?:err|errs|error|errors)\.?$")

Word = TypeVar("Word", bound=str)


class ContradictoryCells(ValueError):
    """Cells of one row that contradict each other."""


def read_label(column: str, text: str, words: Sequence[Word]) -> Word | None:
    """One of the words, or nothing."""
    folded = _fold(text)
    found = next((word for word in words if word == folded), None)
    if found is None and folded not in _NOTHING:
        raise ValueError(f"{column}: {text.strip()!r} is not one of {', '.join(words)}")
    return found


def read_factual(text: str) -> tuple[bool | None, Support | None]:
    """Whether it is true, and how it is supported if one of the three words is used."""
    support = read_support(text, may_differ=True)
    if support is not None:
        return support == "supported", support
    return read_truth("factual", text), None


def read_support(text: str, *, may_differ: bool = False) -> Support | None:
    """One of the three words, or nothing; with `may_differ`, any other word counts as nothing too."""
    word = _fold(text)
    if may_differ and word not in SUPPORTS:
        return None
    return read_label("factual", word, SUPPORTS)


def read_truth(column: str, text: str) -> bool | None:
    """Yes, no, or nothing."""
    word = _fold(text)
    if word in _NOTHING:
        return None
    if word in _YES or word in _NO:
        return word in _YES
    raise ValueError(f"{column}: {text.strip()!r} is neither yes nor no")


def read_types(text: str) -> tuple[ErrorType, ...]:
    """Error types separated by semicolons, commas or line breaks, or as a JSON list; main one first."""
    stripped = text.strip()
    pieces = _json_list(stripped) if stripped.startswith("[") else _SEPARATORS.split(stripped)
    return tuple(dict.fromkeys(_read_type(piece) for piece in pieces if _fold(piece) not in _NOTHING))


def _read_type(piece: str) -> ErrorType:
    word = _ENDING.sub("", _fold(piece).replace("_", " ").replace("-", " "))
    if word not in _TYPE_WORDS:
        raise ValueError(f"error_types: {piece.strip()!r} is not one of {', '.join(ERROR_TYPES)}")
    return _TYPE_WORDS[word]


def _json_list(text: str) -> list[str]:
    try:
        value = json.loads(text.replace("'", '"'))
    except (json.JSONDecodeError, RecursionError):
        raise ValueError(f"error_types: {text[:40]!r} is not a list") from None
    return [str(one) for one in value]


def _fold(text: str) -> str:
    return " ".join(text.lower().split())
