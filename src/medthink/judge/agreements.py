"""`agreement.json`: how far the raters of a run agree, and what of it stands beside a judge's numbers."""

from collections.abc import Iterable
from pathlib import Path
from typing import Literal

import msgspec

from medthink.core.errors import DataError
from medthink.core.jsonio import read_json, write_json
from medthink.judge.judgement import Judgement, digest_judgements
from medthink.judge.raters import READERS
from medthink.stats import Agreement, Measured, OrderedAgreement, PanelAgreement

PairKind = Literal["reader–reader", "reader–itself", "reader–judge", "judge–judge", "judge–itself"]

AGREEMENT_FILE = "agreement.json"


class Pair(msgspec.Struct, frozen=True, kw_only=True):
    """Two raters on one aspect; `slicing` and `value` are empty where all cases are meant."""

    kind: PairKind
    a: str
    b: str
    aspect: str
    slicing: str = ""
    value: str = ""
    is_wiring_check: bool = False
    nominal: Agreement
    ordered: OrderedAgreement | None


class Panel(msgspec.Struct, frozen=True, kw_only=True):
    """All readers, or all judges, on one aspect."""

    raters: tuple[str, ...]
    aspect: str
    agreement: PanelAgreement


class Bias(msgspec.Struct, frozen=True, kw_only=True):
    """What a judge reports, and what is left of it after correction for its errors where readers know the truth.

    `reported` is the judge's share of steps that are not factual, `validated` the number of them that readers have
    judged too.
    """

    judge: str
    reported: Measured
    corrected: Measured
    validated: int
    is_wiring_check: bool


class CheckScore(msgspec.Struct, frozen=True, kw_only=True):
    """How a reader did on planted checks, whose truth is known."""

    reader: str
    right: Measured


class Agreements(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that can be said of how the raters of one run agree; `raters` counts the units each has labelled.

    `judgements` is the digest of the judgements that it was made from.
    """

    judgements: str = ""
    raters: dict[str, int]
    pairs: tuple[Pair, ...]
    panels: tuple[Panel, ...]
    biases: tuple[Bias, ...]
    checks: tuple[CheckScore, ...]
    problems: dict[str, int]

    def is_outdated(self, judgements: Iterable[Judgement]) -> bool:
        """Whether these are other judgements than it was made from: the run was judged again since."""
        return self.judgements != digest_judgements(judgements)


def judge_validity(agreements: Agreements, judge: str) -> tuple[Pair, ...]:
    """What stands beside a judge's numbers: its agreement with the readers on each aspect, over all cases.

    With the readers' majority where there are several readers, else with the only one there is.
    """
    own = [pair for pair in agreements.pairs if pair.kind == "reader–judge" and pair.b == judge and not pair.slicing]
    together = [pair for pair in own if pair.a == READERS]
    return tuple(together or own)


def hide_readers(agreements: Agreements) -> Agreements:
    """What may stand on a page that others see: judges against readers, who have numbers in the place of names."""
    pairs = [pair for pair in agreements.pairs if pair.kind == "reader–judge"]
    names = dict.fromkeys(pair.a for pair in pairs if pair.a != READERS)
    hidden = {READERS: READERS} | {name: f"reader {number}" for number, name in enumerate(names, start=1)}
    shown = tuple(msgspec.structs.replace(pair, a=hidden[pair.a]) for pair in pairs)
    return msgspec.structs.replace(agreements, raters={}, pairs=shown, panels=(), checks=())


def write_agreement(run: Path, agreements: Agreements) -> None:
    """Keep in the run how far its raters agree."""
    write_json(run / AGREEMENT_FILE, msgspec.to_builtins(agreements))


def read_agreement(run: Path) -> Agreements | None:
    """How far the run's raters agree, or None where that was never measured."""
    path = run / AGREEMENT_FILE
    if not path.exists():
        return None
    try:
        return msgspec.convert(read_json(path), Agreements)
    except msgspec.ValidationError as error:
        raise DataError(f"not an agreement: {error}", file=path, remedy="run medthink agree again") from None
