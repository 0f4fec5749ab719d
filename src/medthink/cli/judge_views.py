"""What `medthink judge` shows: progress while it works, and what the judgements add up to."""

from collections.abc import Iterable

from rich.progress import Progress, TaskID

from medthink.cli.show import console, progress, say, table
from medthink.judge.agreements import read_agreement
from medthink.judge.coverage import Coverage
from medthink.judge.judged import JudgedRun, JudgedScores
from medthink.judge.judgement import Judgement
from medthink.judge.rubric import ERROR_TYPES, MAX_STEPS
from medthink.judge.scores import Discussions, ErrorCell, Findings, StepScores
from medthink.scoring.scores import number, percent


class JudgeProgress:
    """A bar of judgements made, on standard error."""

    def __init__(self) -> None:
        self._bars: Progress = progress()
        self._task = TaskID(0)

    def __enter__(self) -> "JudgeProgress":
        self._task = self._bars.add_task("judgements", total=None)
        self._bars.start()
        return self

    def see(self, judgement: Judgement) -> None:  # noqa: ARG002
        """Count one."""
        self._bars.advance(self._task)

    def __exit__(self, *_: object) -> None:
        self._bars.stop()


def show_scores(scores: JudgedScores) -> None:
    """Print a table for every seat."""
    for steps in scores.steps:
        _show_steps(steps)
    for discussions in scores.discussions:
        _show_discussions(discussions)
    for findings in scores.findings:
        _show_findings(findings)
    for what, share in scores.disagreement.items():
        console().print(f"Pairs of judges that differ over a unit of {what}: {percent(share)}")


def show_outdated(run: JudgedRun) -> None:
    """Point out an agreement that was measured of other judgements than the run has now."""
    agreements = read_agreement(run.path)
    if agreements is not None and agreements.is_outdated(run.judgements):
        say("agreement.json was made from earlier judgements: run medthink agree again", stderr=True)


def _show_steps(scores: StepScores) -> None:
    firsts = scores.first_errors
    rows = [
        *_coverage(scores.coverage),
        ("steps judged", f"{scores.steps}"),
        *((word, percent(rate)) for word, rate in scores.support.items()),
        ("critical steps", percent(scores.critical)),
        ("wrong among critical steps", percent(scores.critical_errors)),
        ("right answers that are sound throughout", percent(scores.sound_if_right.every_step)),
        ("right answers without a critical error", percent(scores.sound_if_right.critical_steps)),
        ("wrong answers that are sound throughout", percent(scores.sound_if_wrong.every_step)),
        ("first error at step", _firsts(firsts.by_step, firsts.without)),
    ]
    out = console()
    out.print(table(f"Steps · {scores.label}", ("", ""), rows))
    cells = {(cell.error_type, cell.critical): cell for cell in scores.profile}
    profile = [
        (name.replace("_", " "), *(_cell(cells[name, critical]) for critical in (True, False))) for name in ERROR_TYPES
    ]
    out.print(table("Share of the wrong steps by type of error", ("type", "critical", "other"), profile))
    out.print()


def _show_discussions(scores: Discussions) -> None:
    rows = [
        *_coverage(scores.coverage),
        ("sentences judged", f"{scores.sentences}"),
        *((word, percent(rate)) for word, rate in scores.labels.items()),
        *((f"correct in {name.replace('_', ' ')}", percent(by["correct"])) for name, by in scores.by_section.items()),
        ("missing sections", _counts(scores.missing_sections)),
        *((f"{name.replace('_', ' ')}, 0–2", number(mean)) for name, mean in scores.education.items()),
        ("education value, 0–10", number(scores.total)),
    ]
    console().print(table(f"Discussions · {scores.label}", ("", ""), rows))
    console().print()


def _show_findings(scores: Findings) -> None:
    rows = [
        *_coverage(scores.coverage),
        ("statements judged", f"{scores.statements}"),
        *((f"single images: {word}", percent(rate)) for word, rate in scores.images.items()),
        *((f"summary: {word}", percent(rate)) for word, rate in scores.summary.items()),
    ]
    console().print(table(f"Findings · {scores.label}", ("", ""), rows))
    console().print()


def _coverage(coverage: Coverage) -> Iterable[tuple[str, str]]:
    state = "" if coverage.is_complete else " – INCOMPLETE, not to be published"
    yield "judged", f"{coverage.judged} of {coverage.due}, {percent(coverage.share)}{state}"
    if coverage.unjudged or coverage.missing:
        yield "unjudged", _counts(coverage.unjudged | ({"not asked yet": coverage.missing} if coverage.missing else {}))
    if coverage.absent:
        yield "nothing to judge", str(coverage.absent)
    if coverage.fallback_splits:
        yield "cut by sentences instead", str(coverage.fallback_splits)


def _firsts(by_step: dict[int, int], without: int) -> str:
    shown = ", ".join(f"{step}: {by_step[step]}" for step in range(1, MAX_STEPS + 1) if step in by_step)
    return f"{shown or 'none'}; without error: {without}"


def _cell(cell: ErrorCell) -> str:
    return f"{cell.count} · {percent(cell.of_errors)}"


def _counts(counts: dict[str, int]) -> str:
    return ", ".join(f"{count} {name.replace('_', ' ')}" for name, count in counts.items() if count) or "none"
