"""A strip of cases from the easiest to the hardest: a model's right answers, without revealing which case is which."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from math import ceil, sqrt

import msgspec

from medthink.board.ranking import BoardRow, RankingKind
from medthink.cases.case import Case
from medthink.web.app.charts import row_name
from medthink.web.app.rendering import STATE_WORDS
from medthink.web.cases.answers import RevealedCases

_PITCH, _SIDE = 12, 10
# Width-to-height ratio.
_WIDE, _NARROW = 9.0, 1.6


class CaseStrip(msgspec.Struct, frozen=True, kw_only=True):
    """One square per case, as one path for each result."""

    width: int
    height: int
    right: str
    wrong: str
    silent: str


class CaseStrips(msgspec.Struct, frozen=True, kw_only=True):
    """The same cases for wide and narrow pages, with the number of each result."""

    wide: CaseStrip
    narrow: CaseStrip
    right: int
    wrong: int
    silent: int


def draw_cases(row: BoardRow, rows: Sequence[BoardRow]) -> CaseStrips:
    """The cases of a row, ordered by the number of rows that get them right."""
    shares = right_shares(row, rows)
    order = sorted(range(len(row.result.cases)), key=lambda place: -shares[place])
    results = [_result(row, place) for place in order]
    return CaseStrips(
        wide=_draw(results, _WIDE),
        narrow=_draw(results, _NARROW),
        right=results.count("right"),
        wrong=results.count("wrong"),
        silent=results.count("silent"),
    )


def right_shares(row: BoardRow, rows: Sequence[BoardRow]) -> list[float]:
    """The share of rows that get each case of a row right; only this row if no other has the same cases."""
    alike = [other.result.rights for other in rows if other.result.cases == row.result.cases] or [row.result.rights]
    return [sum(rights) / len(alike) for rights in zip(*alike, strict=True)]


def _result(row: BoardRow, place: int) -> str:
    if row.result.states[place] != "ok":
        return "silent"
    return "right" if row.result.rights[place] >= 0.5 else "wrong"


def _draw(results: Sequence[str], shape: float) -> CaseStrip:
    """Column by column, so that the ends of the strip are easy and hard."""
    rows = max(1, ceil(sqrt(len(results) / shape)))
    paths: dict[str, list[str]] = {"right": [], "wrong": [], "silent": []}
    for place, result in enumerate(results):
        x, y = place // rows * _PITCH, place % rows * _PITCH
        paths[result].append(f"M{x + 1} {y + 1}h{_SIDE}v{_SIDE}h-{_SIDE}z")
    columns = ceil(len(results) / rows)
    drawn = {name: "".join(parts) for name, parts in paths.items()}
    return CaseStrip(width=columns * _PITCH, height=rows * _PITCH, **drawn)


class ModelAnswers(msgspec.Struct, frozen=True, kw_only=True):
    """One row of the board: its number, its name, and its letter for each case.

    `gives_words` says whether its team has made the model's texts public.
    """

    number: int
    name: str
    kind: RankingKind
    letters: Mapping[int, str | None]
    gives_words: bool = False


def collect_answers(rows: Sequence[BoardRow]) -> tuple[ModelAnswers, ...]:
    """The answers of these rows, in their order."""
    names = distinct_names(rows)
    return tuple(
        ModelAnswers(
            number=row.submission.id,
            name=names[row.submission.id],
            kind=row.kind,
            letters=dict(zip(row.result.cases, row.result.answers, strict=True)),
            gives_words=row.submission.allows_download,
        )
        for row in rows
    )


def distinct_names(rows: Sequence[BoardRow]) -> dict[int, str]:
    """The names of rows by number, with team and condition if another row has the same."""
    count = Counter(map(row_name, rows))
    return {row.submission.id: row_name(row) if count[row_name(row)] == 1 else _long_name(row) for row in rows}


def right_share(models: Sequence[ModelAnswers], case: int, gold: str) -> float | None:
    """The share of the models that saw the complete case and got it right; None if none was asked."""
    asked = [one.letters[case] for one in models if one.kind == "unaided" and case in one.letters]
    return asked.count(gold) / len(asked) if asked else None


def _long_name(row: BoardRow) -> str:
    return f"{row_name(row)} · {row.submission.team} · {row.scores.origin.condition_label}"


class RevealedAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """One model's answer."""

    letter: str
    text: str
    result: str


class RevealedCase(msgspec.Struct, frozen=True, kw_only=True):
    """A revealed case, the reference, and the answers of one model or two."""

    code: str
    number: int
    images: tuple[str, ...]
    n_images: int
    modalities: str
    gold: str
    diagnosis: str
    answers: tuple[RevealedAnswer, ...]
    rights: tuple[bool, ...]
    models_right: str
    share: float


def revealed_cases(
    rows: Sequence[BoardRow], shares: Sequence[float], models: int, revealed: RevealedCases
) -> Iterator[RevealedCase]:
    """The revealed cases of these rows, on the same cases; `shares` is the share of models right on each."""
    places = {number: place for place, number in enumerate(rows[0].result.cases)}
    for case in revealed.cases():
        place = places.get(case.id)
        if place is not None:
            yield RevealedCase(
                code=revealed.code(case),
                number=case.id,
                images=revealed.image_ids(case),
                n_images=len(case.question.images),
                modalities=", ".join(case.modalities),
                gold=case.reference.answer,
                diagnosis=case.question.options.get(case.reference.answer, case.reference.answer_text),
                answers=tuple(_answer(row, place, case) for row in rows),
                rights=tuple(row.result.rights[place] >= 0.5 for row in rows),
                models_right=f"{round(shares[place] * models)} of {models}",
                share=shares[place],
            )


def _answer(row: BoardRow, place: int, case: Case) -> RevealedAnswer:
    letter, state = row.result.answers[place], row.result.states[place]
    if letter is None:
        return RevealedAnswer(letter="", text=STATE_WORDS.get(state, state), result="")
    result = "right" if letter == case.reference.answer else "wrong"
    return RevealedAnswer(letter=letter, text=case.question.options.get(letter, ""), result=result)
