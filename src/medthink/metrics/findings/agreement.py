"""How far the statements of a candidate agree with those of its reference, and where they conflict.

Two statements match when they name the same finding (or one that includes the other), both as present or both as
absent, and do not differ in site or side. F1, range 0 to 1, higher is better, is over matched statements; a pair in
which neither text states anything has none. Conflicts are counted separately, because a missed finding and a
contradicted one are different mistakes:

- presence: one says present, the other absent, and neither is uncertain;
- side: both say present, one on the left, the other on the right;
- size: matched, but the sizes differ by more than the judges' rubric allows (`sizes`).
"""

from collections.abc import Callable, Container, Mapping, Sequence
from typing import Literal

import msgspec

from medthink.metrics.findings.extract import extract_statements
from medthink.metrics.findings.lexicon import Lexicon, Statement, is_english, read_lexicon
from medthink.metrics.findings.sizes import sizes_agree

ConflictKind = Literal["presence", "side", "size"]


class Conflict(msgspec.Struct, frozen=True):
    """Two statements that cannot both be true."""

    kind: ConflictKind
    reference: Statement
    candidate: Statement


class FindingAgreement(msgspec.Struct, frozen=True):
    """The statements of both texts, which of them match, and which conflict; not compared if one is not in English."""

    reference: tuple[Statement, ...]
    candidate: tuple[Statement, ...]
    matched: tuple[tuple[Statement, Statement], ...]
    conflicts: tuple[Conflict, ...]
    is_read: bool = True

    @property
    def precision(self) -> float | None:
        """The share of the candidate's statements that match; none where it states nothing."""
        return len(self.matched) / len(self.candidate) if self.candidate else None

    @property
    def recall(self) -> float | None:
        """The share of the reference's statements that are matched; none where it states nothing."""
        return len(self.matched) / len(self.reference) if self.reference else None

    @property
    def f1(self) -> float | None:
        """Twice the matches over all statements of both; none where neither states anything."""
        stated = len(self.reference) + len(self.candidate)
        return 2 * len(self.matched) / stated if stated else None


FINDING_VALUES: dict[str, Callable[[FindingAgreement], float | None]] = {
    "finding_precision": lambda agreement: agreement.precision,
    "finding_recall": lambda agreement: agreement.recall,
    "finding_f1": lambda agreement: agreement.f1,
    # Texts that state nothing do not conflict.
    "finding_conflicts": lambda agreement: float(len(agreement.conflicts)) if agreement.is_read else None,
}
"""The value of each metric, from an agreement."""


def compare_findings(reference: str, candidate: str, lexicon: Lexicon | None = None) -> FindingAgreement:
    """Extract and compare the statements of both texts; text that is not in English cannot be compared."""
    if not (is_english(reference) and is_english(candidate)):
        return FindingAgreement((), (), (), (), is_read=False)
    return compare_statements(extract_statements(reference, lexicon), extract_statements(candidate, lexicon), lexicon)


def compare_statements(
    reference: Sequence[Statement], candidate: Sequence[Statement], lexicon: Lexicon | None = None
) -> FindingAgreement:
    """Match statements one to one, and find the conflicts among the rest, whatever order the texts have."""
    lexicon = lexicon or read_lexicon()
    ref, cand = sorted(reference, key=repr), sorted(candidate, key=repr)
    pairs = _match(ref, cand, lexicon)
    matched = sorted(((ref[i], cand[j]) for i, j in pairs), key=lambda pair: reference.index(pair[0]))
    left_ref, left_cand = _rest(ref, {i for i, _ in pairs}), _rest(cand, {j for _, j in pairs})
    sizes = [Conflict("size", r, c) for r, c in matched if _sizes_conflict(r, c)]
    conflicts = (*sizes, *_conflicts(left_ref, left_cand, lexicon))
    return FindingAgreement(tuple(reference), tuple(candidate), tuple(matched), conflicts)


def _rest(statements: Sequence[Statement], used: Container[int]) -> list[Statement]:
    return [statement for place, statement in enumerate(statements) if place not in used]


def _match(ref: Sequence[Statement], cand: Sequence[Statement], lexicon: Lexicon) -> list[tuple[int, int]]:
    """As many pairs as there can be; of those matchings the one whose pairs are most alike, without conflicts first."""

    def weigh(r: Statement, c: Statement) -> int:
        return 1 + 2 * _likeness(r, c) - _sizes_conflict(r, c) if _is_match(r, c, lexicon) else 0

    return _assign([[weigh(r, c) for c in cand] for r in ref])


def _assign(weights: Sequence[Sequence[int]]) -> list[tuple[int, int]]:
    """The pairs (row, column) of weight above 0, one to one: as many as possible, then of the largest sum."""
    wanted = [(i, j) for i, row in enumerate(weights) for j, weight in enumerate(row) if weight > 0]
    if len({i for i, _ in wanted}) == len(wanted) == len({j for _, j in wanted}):
        return wanted
    from scipy.optimize import linear_sum_assignment

    # One pair more outweighs whatever all of them could gain by being more alike.
    more = 1 + max(weights[i][j] for i, j in wanted) * min(len(weights), len(weights[0]))
    matrix = [[weight + more if weight > 0 else 0 for weight in row] for row in weights]
    rows, columns = linear_sum_assignment(matrix, maximize=True)
    return [(i, j) for i, j in zip(rows.tolist(), columns.tolist(), strict=True) if weights[i][j] > 0]


def _is_match(ref: Statement, cand: Statement, lexicon: Lexicon) -> bool:
    return (
        ref.polarity == cand.polarity
        and _nest(ref.finding, cand.finding, lexicon.broader)
        and _nest(ref.site, cand.site, lexicon.part_of)
        and (ref.side is None or cand.side is None or ref.side == cand.side)
    )


def _nest(one: str | None, other: str | None, broader: Mapping[str, str]) -> bool:
    """Whether the two are the same, one includes the other, or one is unspecified."""
    return one is None or other is None or one in _chain(other, broader) or other in _chain(one, broader)


def _chain(name: str, broader: Mapping[str, str]) -> list[str]:
    """A name and all that include it; a "bear paw sign" is a "paw sign"."""
    chain = [name]
    while chain[-1] in broader:
        chain.append(broader[chain[-1]])
    while chain[-1].endswith("_sign") and chain[-1].count("_") > 1:
        chain.append(chain[-1].partition("_")[2])
    return chain


def _likeness(ref: Statement, cand: Statement) -> int:
    """How many of the fields are the same, the finding itself first."""
    fields = ("site", "side", "certainty", "size_mm", "change")
    same = [bool(getattr(ref, field) == getattr(cand, field)) for field in fields]
    return 10 * (ref.finding == cand.finding) + sum(same)


def _sizes_conflict(ref: Statement, cand: Statement) -> bool:
    if ref.size_mm is None or cand.size_mm is None:
        return False
    return not sizes_agree(ref.size_mm, cand.size_mm, ref.finding, ref.site, cand.finding, cand.site)


def _conflicts(ref: Sequence[Statement], cand: Sequence[Statement], lexicon: Lexicon) -> list[Conflict]:
    """Each remaining statement conflicts at most once: presence is checked first, then side; as many as there are."""
    found: list[Conflict] = []
    left_ref, left_cand = list(ref), list(cand)
    kinds: tuple[ConflictKind, ...] = ("presence", "side")
    for kind in kinds:
        pairs = _assign([[int(_conflict_kind(r, c, lexicon) == kind) for c in left_cand] for r in left_ref])
        found += [Conflict(kind, left_ref[i], left_cand[j]) for i, j in pairs]
        left_ref, left_cand = _rest(left_ref, {i for i, _ in pairs}), _rest(left_cand, {j for _, j in pairs})
    return found


def _conflict_kind(ref: Statement, cand: Statement, lexicon: Lexicon) -> ConflictKind | None:
    if not _nest(ref.site, cand.site, lexicon.part_of) or "uncertain" in (ref.certainty, cand.certainty):
        return None
    if {ref.side, cand.side} == {"left", "right"}:
        both_there = ref.polarity == cand.polarity == "present"
        return "side" if both_there and _nest(ref.finding, cand.finding, lexicon.broader) else None
    absent, present = (ref, cand) if ref.polarity == "absent" else (cand, ref)
    if absent.polarity == present.polarity:
        return None
    # Absence rules out everything included: "no lesion" contradicts "a cyst", "no cyst" does not contradict "a lesion".
    return "presence" if absent.finding in _chain(present.finding, lexicon.broader) else None
