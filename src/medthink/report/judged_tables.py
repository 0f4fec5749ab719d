"""The tables of what judges say; beside every number is how far readers bear the judge out."""

from collections.abc import Iterable, Sequence

from medthink.core.percent import as_percent
from medthink.judge.coverage import COMPLETE_SHARE, Coverage
from medthink.judge.scores import Discussions, Findings, Soundness, StepScores
from medthink.judge.slicing import Slice
from medthink.report.seated import Seated, mean, share
from medthink.report.tables import Table
from medthink.scoring.slices import SMALL

AGREEMENT = "Agreement with readers"
_WHO = ("Run", "Judge", AGREEMENT)
_SLICE = ("Slice", "Cases", "Judged")
_FINDINGS = ("Images: supported", "Images: contradicted", "Summary: supported", "Summary: contradicted")
_LAST_STEP = 5

StepSeats = Sequence[Seated[StepScores]]
DiscussionSeats = Sequence[Seated[Discussions]]
FindingSeats = Sequence[Seated[Findings]]


def steps_table(seats: StepSeats) -> Table:
    """How many steps are wrong, of all and of the critical ones."""
    rows = (
        (
            *_who(one, "factual", "critical"),
            _judged(one.scores.coverage),
            f"{one.scores.steps:,}",
            share(one.scores.errors),
            share(one.scores.critical),
            share(one.scores.critical_errors),
        )
        for one in seats
    )
    return _table(("Judged", "Steps", "Wrong steps", "Critical steps", "Wrong of these"), rows)


def soundness_table(seats: StepSeats) -> Table:
    """Whether right answers stand on sound reasons, and wrong ones."""
    rows = (
        (*_who(one, "factual", "critical"), f"{found.every_step.n:,} {word}", *_soundness(found))
        for one in seats
        for word, found in (("right", one.scores.sound_if_right), ("wrong", one.scores.sound_if_wrong))
    )
    return _table(("Answers", "Every step sound", "Every critical step sound"), rows)


def first_errors_table(seats: StepSeats) -> Table:
    """The step at which reasoning first goes wrong, late ones taken together."""
    rows = []
    for one in seats:
        found = one.scores.first_errors
        late = sum(count for step, count in found.by_step.items() if step >= _LAST_STEP)
        counts = [found.by_step.get(step, 0) for step in range(1, _LAST_STEP)]
        cells = (f"{count:,}" for count in (found.without, *counts, late))
        rows.append((*_who(one, "factual"), *cells, share(found.place)))
    steps = [f"Step {step}" for step in range(1, _LAST_STEP)]
    return _table(("No error", *steps, f"Step {_LAST_STEP} or later", "Mean place (share of the steps)"), rows)


def discussions_table(seats: DiscussionSeats) -> Table:
    """How true the sentences of discussions are, the rest being unverifiable, and what they teach."""
    rows = (
        (
            *_who(one, "sentence", "education"),
            _judged(one.scores.coverage),
            f"{one.scores.sentences:,}",
            *(share(one.scores.labels[label]) for label in ("correct", "incorrect")),
            mean(one.scores.total, 1),
        )
        for one in seats
    )
    return _table(("Judged", "Sentences", "Correct", "Incorrect", "Education value (0–10)"), rows)


def findings_table(seats: FindingSeats) -> Table:
    """Whether what is said of images and in summaries holds."""
    rows = (
        (
            *_who(one, "statement"),
            _judged(one.scores.coverage),
            f"{one.scores.statements:,}",
            *(share(one.scores.images[word]) for word in ("supported", "contradicted")),
            *(share(one.scores.summary[word]) for word in ("supported", "contradicted")),
        )
        for one in seats
    )
    return _table(("Judged", "Statements", *_FINDINGS), rows)


def coverage_table(seats: Iterable[tuple[str, Seated[StepScores] | Seated[Discussions] | Seated[Findings]]]) -> Table:
    """What was to be judged, what was, and why the rest was not."""
    rows = tuple(
        (
            one.run,
            one.judge,
            what,
            _judged(one.scores.coverage),
            share(one.scores.coverage.share),
            _reasons(one.scores.coverage),
            f"{one.scores.coverage.absent:,}",
            "complete" if one.scores.coverage.is_complete else f"incomplete: under {as_percent(COMPLETE_SHARE, 0)}",
        )
        for what, one in seats
    )
    columns = ("Run", "Judge", "Of", "Judged", "Share judged", "Why not", "Nothing to judge", "Scores are")
    return Table(columns, rows, frozenset({3, 4, 6}), frozenset({1, 5}))


def step_slices_table(one: Seated[StepScores]) -> Table:
    """The steps of one seat, slice by slice: what is wrong, which types of error, and how sound the reasons are."""
    rows = tuple(
        (
            *_slice(part),
            *_step_cells(part.scores),
            one.slice_agreement("factual", part.slicing, part.value),
        )
        for part in one.scores.slices
    )
    types = [
        f"{cell.error_type.replace('_', ' ')} ({'critical' if cell.critical else 'other'})"
        for cell in one.scores.profile
    ]
    sound = (
        "Right answers, every step sound",
        "Wrong answers, every step sound",
        "First error at (share of the steps)",
    )
    columns = (*_SLICE, "Steps", "Wrong steps", "Wrong critical steps", *types, *sound, AGREEMENT)
    return Table(columns, rows, frozenset(range(1, len(columns) - 1)), frozenset({len(columns) - 1}))


def discussion_slices_table(one: Seated[Discussions]) -> Table:
    """The discussions of one seat, slice by slice: sentences by label and section, education by dimension."""
    rows = tuple(
        (
            *_slice(part),
            *_discussion_cells(part.scores),
            one.slice_agreement("sentence", part.slicing, part.value),
            one.slice_agreement("education", part.slicing, part.value),
        )
        for part in one.scores.slices
    )
    sections = [f"Correct: {name.replace('_', ' ')}" for name in one.scores.by_section]
    dimensions = [f"{name.replace('_', ' ')} (0–2)" for name in one.scores.education]
    numbers = ("Correct", "Incorrect", *sections, *dimensions, "Education value (0–10)")
    columns = (*_SLICE, *numbers, f"{AGREEMENT}: sentences", f"{AGREEMENT}: education")
    return Table(columns, rows, frozenset(range(1, len(columns) - 2)), frozenset({len(columns) - 2, len(columns) - 1}))


def finding_slices_table(one: Seated[Findings]) -> Table:
    """The findings and summaries of one seat, slice by slice."""
    rows = tuple(
        (
            *_slice(part),
            *(share(part.scores.images[word]) for word in ("supported", "contradicted")),
            *(share(part.scores.summary[word]) for word in ("supported", "contradicted")),
            one.slice_agreement("statement", part.slicing, part.value),
        )
        for part in one.scores.slices
    )
    columns = (*_SLICE, *_FINDINGS, AGREEMENT)
    return Table(columns, rows, frozenset(range(1, len(columns) - 1)), frozenset({len(columns) - 1}))


def _slice(part: Slice[StepScores] | Slice[Discussions] | Slice[Findings]) -> tuple[str, str, str]:
    return (f"{part.slicing}: {part.value}", _cases(part.cases), _judged(part.scores.coverage))


def _step_cells(scores: StepScores) -> tuple[str, ...]:
    return (
        f"{scores.steps:,}",
        share(scores.errors),
        share(scores.critical_errors),
        *(share(cell.of_steps) for cell in scores.profile),
        share(scores.sound_if_right.every_step),
        share(scores.sound_if_wrong.every_step),
        share(scores.first_errors.place),
    )


def _discussion_cells(scores: Discussions) -> tuple[str, ...]:
    return (
        *(share(scores.labels[label]) for label in ("correct", "incorrect")),
        *(share(section["correct"]) for section in scores.by_section.values()),
        *(mean(score, 2) for score in scores.education.values()),
        mean(scores.total, 1),
    )


def _who(one: Seated[StepScores] | Seated[Discussions] | Seated[Findings], *aspects: str) -> tuple[str, str, str]:
    return (one.run, one.judge, one.agreement(*aspects))


def _table(columns: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> Table:
    """A table of a row a seat, which every row names and bears out before its numbers."""
    whole = (*_WHO, *columns)
    return Table(whole, tuple(rows), frozenset(range(len(_WHO), len(whole))), frozenset({1, 2}))


def _soundness(found: Soundness) -> tuple[str, str]:
    return (share(found.every_step), share(found.critical_steps))


def _judged(coverage: Coverage) -> str:
    return f"{coverage.judged:,} of {coverage.due:,}{'' if coverage.is_complete else ' (incomplete)'}"


def _cases(count: int) -> str:
    return f"{count:,}{' (small)' if count < SMALL else ''}"


def _reasons(coverage: Coverage) -> str:
    counts = {**coverage.unjudged, "never asked": coverage.missing}
    return ", ".join(f"{count:,} {why.replace('_', ' ')}" for why, count in counts.items() if count) or "–"
