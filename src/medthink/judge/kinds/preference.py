"""Preference between two discussions of the same case, asked in both orders."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Literal, get_args

import msgspec

from medthink.core.digest import digest_value
from medthink.judge.judgement import Evidence, Judgement, UnitVerdict
from medthink.judge.kinds import kind
from medthink.judge.kinds.kind import Aspect, JudgedTexts, ReaderColumn, common_scores
from medthink.judge.kinds.single_label import SingleLabelKind
from medthink.judge.scores import (
    JudgeConfigScores,
    Rights,
    ScoreCell,
    ScoreTable,
    Units,
    clustered_mean,
    clustered_rate,
)
from medthink.judge.units import UnitSet, UnitSource
from medthink.metrics.findings import compare_findings
from medthink.stats import Measured
from medthink.workflow.prediction import Prediction

Preferred = Literal["first", "second", "tie"]
PREFERENCES: tuple[Preferred, ...] = get_args(Preferred)
QUESTION = "Which discussion is better, the first or the second?"
_NOTE = (
    "Each pair is judged in both orders. A win counts only if it holds in both; if the preference changes with "
    "the order, it counts as a tie."
)


class PreferenceVerdict(UnitVerdict, frozen=True, kw_only=True):
    """Which of two discussions is better, by position."""

    preferred: Preferred


class PairOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """The outcome of a run against another one; `score` is 1 for a win, 0 for a loss and a half for a tie, by case."""

    against: str
    scores: dict[int, float]
    flips: int

    @property
    def share(self) -> Measured:
        """The share won, a tie counting half."""
        return clustered_mean(self.scores.items(), within=(0, 1))


class PreferenceScores(JudgeConfigScores, frozen=True, kw_only=True):
    """The outcomes of a run against others from one judge; keyed in `other` by the other run's number."""

    contests: dict[int, PairOutcome]
    won: Measured
    consistent: Measured


class PreferenceKind(SingleLabelKind[PreferenceVerdict, PreferenceScores]):
    """Two discussions side by side."""

    name = "preference"
    plural = "preferences"
    title = "Which is better?"
    about = "Which of two discussions is better"
    rubric = ("preference",)
    is_pairwise = True
    leading = "preference"
    true_label = ""
    aspects = (Aspect(name="preference", categories=PREFERENCES, is_main=True),)
    columns = (ReaderColumn("preferred", (*PREFERENCES, kind.UNSURE)),)
    forms: ClassVar[Mapping[str, str]] = {"preference": "preferred (first, second or tie)"}
    verdict = PreferenceVerdict
    field = "preferred"
    column = "preferred"

    def texts(self, prediction: Prediction) -> JudgedTexts:
        """The discussion as one text."""
        sections = prediction.discussion or {}
        return JudgedTexts({"discussion": "\n\n".join(text for text in sections.values() if text.strip())})

    def pair_sources(
        self, own: Prediction, other: Prediction, *, run: str, other_run: str, against: str
    ) -> tuple[UnitSource, ...]:
        """The pair in both orders: this run's discussion first, then second."""
        mine, theirs = (self.texts(one).parts["discussion"] for one in (own, other))
        if not mine or not theirs:
            return ()
        return tuple(
            UnitSource(
                run=f"{run} {other_run}",
                case=own.case,
                sample=other_number(other_run) * 2 + order,
                what=self.name,
                parts={"first": texts[0], "second": texts[1]},
                question=QUESTION,
                against=against,
            )
            for order, texts in enumerate(((mine, theirs), (theirs, mine)))
        )

    def judge_by_rule(self, units: UnitSet, evidence: Evidence, source: UnitSource) -> dict[str, Any]:
        """Prefer the text with more findings that match the expert's, minus those that conflict."""
        reference = "\n".join([evidence.findings, *evidence.captions])
        compared = {name: compare_findings(reference, text) for name, text in source.parts.items()}
        first, second = (len(compared[name].matched) - len(compared[name].conflicts) for name in ("first", "second"))
        preferred: Preferred = "tie" if first == second else "first" if first > second else "second"
        reason = f"{first} and {second} findings match, minus those that conflict"
        return {"verdicts": [PreferenceVerdict(id=one.id, reason=reason, preferred=preferred) for one in units.units]}

    def score(self, rows: Sequence[Judgement], units: Units, rights: Rights) -> PreferenceScores:  # noqa: ARG002
        """Wins, losses and ties against every other run; a pair that was judged in one order only is left out."""
        said: dict[tuple[int, int], dict[int, Preferred]] = {}
        names: dict[int, str] = {}
        for row in rows:
            if row.repeat == 0 and row.verdicts:
                other, order = divmod(row.sample, 2)
                said.setdefault((other, row.case), {})[order] = self.given(row)[0].preferred
                names[other] = units[row.key].detail if row.key in units else ""
        pairs = {key: (one[0], one[1]) for key, one in said.items() if len(one) == 2}
        contests = {other: _contest(names[other], other, pairs) for other in sorted({other for other, _ in pairs})}
        return PreferenceScores(
            **common_scores(rows, units),
            contests=contests,
            won=clustered_mean(((case, pair_score(*pair)) for (_, case), pair in pairs.items()), within=(0, 1)),
            consistent=clustered_rate((case, not is_flip(*pair)) for (_, case), pair in pairs.items()),
        )

    def tables(self, scores: PreferenceScores) -> tuple[ScoreTable, ...]:
        """All comparisons together, then one by one."""
        row = {
            "Pairs": ScoreCell(sum(len(one.scores) for one in scores.contests.values())),
            "Share won": ScoreCell(scores.won),
            "Same in both orders": ScoreCell(scores.consistent),
        }
        contests = tuple(
            {
                "Against": ScoreCell(one.against),
                **{
                    name: ScoreCell(sum(score == value for score in one.scores.values()))
                    for name, value in (("Won", 1.0), ("Lost", 0.0), ("Tied", 0.5))
                },
                "of these flipped": ScoreCell(one.flips),
                "Share": ScoreCell(one.share),
            }
            for one in scores.contests.values()
        )
        return (
            ScoreTable(heading="Preference", aspects=("preference",), rows=(row,), note=_NOTE),
            ScoreTable(heading="Preference by run", aspects=("preference",), rows=contests),
        )


def other_number(run: str) -> int:
    """The number of the other run in judgements, made from its digest."""
    return int(digest_value(run)[:7], 16)


def pair_score(own_first: Preferred, own_second: Preferred) -> float:
    """1 if this run's discussion is preferred in both orders, 0 if the other is, else a half."""
    if (own_first, own_second) == ("first", "second"):
        return 1.0
    return 0.0 if (own_first, own_second) == ("second", "first") else 0.5


def is_flip(own_first: Preferred, own_second: Preferred) -> bool:
    """Whether the preference depends on the order: the same position is preferred twice, or a tie only once."""
    return pair_score(own_first, own_second) == 0.5 and (own_first, own_second) != ("tie", "tie")


def _contest(against: str, other: int, pairs: Mapping[tuple[int, int], tuple[Preferred, Preferred]]) -> PairOutcome:
    own = {case: pair for (one, case), pair in pairs.items() if one == other}
    return PairOutcome(
        against=against,
        scores={case: pair_score(*pair) for case, pair in sorted(own.items())},
        flips=sum(is_flip(*pair) for pair in own.values()),
    )
