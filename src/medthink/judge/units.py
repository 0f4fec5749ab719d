"""Units of judging: pieces of the texts that a run wrote.

A unit's id is made from the run, the case, the sample and its position and words in the original text, so that labels
refer to the judged text and never to a position in a list. All judges and readers of a run judge the same units, which
are kept in `units.jsonl`.
"""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Literal

import msgspec

from medthink.core.digest import digest_value
from medthink.core.jsonio import read_stored_rows, write_jsonl
from medthink.workflow.carried import Piece, carry
from medthink.workflow.clauses import split_clauses
from medthink.workflow.sentences import Span, split_sentences

UNITS_FILE = "units.jsonl"
SENTENCES = "sentences"
MAX_UNITS = 120
NOT_SHOWN = " (image not shown)"

SplitState = Literal["ok", "absent", "too_many"]


class Unit(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One unit to judge: `text` is the part's original text from `start` to `end`.

    Before it stands, in brackets, what the unit carries from the heading of its list: "[No sign of:] effusion".
    """

    id: str
    part: str
    start: int
    end: int
    text: str

    @property
    def carries(self) -> bool:
        """Whether it carries something from the heading of its list."""
        return len(self.text) > self.end - self.start > 0


class UnitSet(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The units of one prediction, and their splitter.

    `splitter` is the model that was asked, or "sentences" for the deterministic one; `is_fallback` says that the
    model's steps could not be used and the deterministic ones replace them, `detail` why. `texts` is the digest of the
    segmented texts. `missing` names expected parts that are missing.
    """

    case: int
    sample: int
    what: str
    state: SplitState
    splitter: str
    is_fallback: bool = False
    detail: str = ""
    texts: str
    missing: tuple[str, ...] = ()
    units: tuple[Unit, ...] = ()

    @property
    def key(self) -> "UnitKey":
        """The identity of the set."""
        return (self.case, self.sample, self.what)

    @property
    def ids(self) -> tuple[str, ...]:
        """The ids, in reading order."""
        return tuple(unit.id for unit in self.units)


UnitKey = tuple[int, int, str]


class UnitSource(msgspec.Struct, frozen=True, kw_only=True):
    """The texts of one prediction that are to be judged, by part, and the parts that are missing.

    `answer` is the answer that the text led to, if that may be shown. `findings`, if given, are the units: findings to
    look for in the texts, each with whether the author was shown it. `question`, if given, is the only unit: a question
    about the texts as a whole. `against` names the run that another text is from. `max_units` is how many units of it
    may be judged; `is_cut_by_model` says that a model may segment it.
    """

    run: str
    case: int
    sample: int
    what: str
    parts: dict[str, str]
    missing: tuple[str, ...] = ()
    answer: str = ""
    findings: tuple[tuple[str, bool], ...] = ()
    question: str = ""
    against: str = ""
    max_units: int = MAX_UNITS
    is_cut_by_model: bool = False

    @property
    def key(self) -> "UnitKey":
        """The identity of the units."""
        return (self.case, self.sample, self.what)

    def digest(self) -> str:
        """The digest of the texts, and of the findings to look for in them."""
        return digest_value([self.parts, self.findings] if self.findings else self.parts)

    def marked(self, units: Iterable[Unit]) -> dict[str, str]:
        """The whole texts by part, with every unit that is a piece of them between numbered markers."""
        if self.findings or self.question:
            return dict(self.parts)
        pieces: dict[str, list[str]] = {name: [] for name in self.parts}
        places = dict.fromkeys(self.parts, 0)
        # Units may be listed in a different order from the text.
        for number, unit in sorted(enumerate(units, start=1), key=lambda one: one[1].start):
            text = self.parts[unit.part]
            before = _unmarked(text[places[unit.part] : unit.start])
            pieces[unit.part].append(f"{before}«{number}» {_unmarked(text[unit.start : unit.end])} «/{number}»")
            places[unit.part] = unit.end
        return {name: "".join(found) + _unmarked(self.parts[name][places[name] :]) for name, found in pieces.items()}

    def wanted(self) -> list[Unit]:
        """The findings to look for in every part, as units."""
        found = []
        for part in self.parts:
            for text, is_shown in self.findings:
                place = digest_value(["decisive", self.run, self.case, self.sample, self.what, part, text])
                found.append(Unit(place[:12], part if is_shown else f"{part}{NOT_SHOWN}", 0, 0, text))
        return found

    def cut(self, part: str, spans: Iterable[Span]) -> tuple[Unit, ...]:
        """The pieces of a part as units, each with what it carries from the heading of its list."""
        return tuple(self.unit(part, one) for one in carry(self.parts[part], spans))

    def unit(self, part: str, one: Piece) -> Unit:
        """The unit of this statement."""
        text = one.shown(self.parts[part])
        place = digest_value([self.run, self.case, self.sample, self.what, part, one.start, one.end, text])
        return Unit(place[:12], part, one.start, one.end, text)


def _unmarked(text: str) -> str:
    """The text without anything that could be mistaken for one of our markers."""
    return text.replace("«", "‹").replace("»", "›")


def split_source(source: UnitSource) -> UnitSet:
    """Split every part into sentences; in a text of steps, long ones into clauses, unless that makes too many."""
    if source.findings:
        return unit_set(source, source.wanted(), splitter=SENTENCES)
    if source.question:
        place = digest_value(["question", source.run, source.case, source.sample, source.what, source.digest()])
        units = [Unit(place[:12], "both", 0, 0, source.question)]
        return unit_set(source, units, splitter=SENTENCES, detail=source.against)
    units = _cut(source, split_clauses) if source.is_cut_by_model else []
    if not units or len(units) > source.max_units:
        units = _cut(source, split_sentences)
    return unit_set(source, units, splitter=SENTENCES)


def _cut(source: UnitSource, split: Callable[[str], list[Span]]) -> list[Unit]:
    return [unit for part, text in source.parts.items() for unit in source.cut(part, split(text))]


def unit_set(
    source: UnitSource, units: Iterable[Unit], *, splitter: str, is_fallback: bool = False, detail: str = ""
) -> UnitSet:
    """The units with their state: too many units is a state, and none is dropped."""
    found = tuple(units)
    limit = source.max_units
    state: SplitState = "too_many" if len(found) > limit else "ok" if found else "absent"
    if state == "too_many":
        over = f"{len(found)} units, over the limit of {limit}"
        detail = f"{detail}; {over}" if detail else over
    return UnitSet(
        case=source.case,
        sample=source.sample,
        what=source.what,
        state=state,
        splitter=splitter,
        is_fallback=is_fallback,
        detail=detail,
        texts=source.digest(),
        missing=source.missing,
        units=found,
    )


def read_units(run: Path) -> dict[UnitKey, UnitSet]:
    """The unit sets of a run; empty if it was never judged."""
    remedy = "restore the original file, or use the release that wrote it"
    found = read_stored_rows(run / UNITS_FILE, UnitSet, name="a set of units", remedy=remedy)
    return {units.key: units for units in found}


def write_units(run: Path, sets: dict[UnitKey, UnitSet]) -> None:
    """Write the unit sets, by case, sample and kind."""
    if sets:
        write_jsonl(run / UNITS_FILE, (msgspec.to_builtins(sets[key]) for key in sorted(sets)))
