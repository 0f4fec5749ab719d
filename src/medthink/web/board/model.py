"""One model of the board: its accuracy and rank, its errors, its provenance and its history."""

import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from medthink.board.judged_profile import JudgedProfile
from medthink.board.ranking import BoardRow, Leaderboard
from medthink.board.rerun import Rerun, describe_rerun
from medthink.board.submissions import ASKED, LEVELS, PROVENANCE
from medthink.core.numbers import as_count, count_of
from medthink.metrics.registry import shown_in
from medthink.report.provenance import condition_words
from medthink.report.tables import metric_value
from medthink.scoring.scores import SliceScore, informative_slices, rate_text, size_text, value_text
from medthink.stats.estimate import Estimate
from medthink.web.app.charts import IntervalPosition, ShareAxis, fit_axis, shape_of
from medthink.web.app.rendering import STATE_WORDS, tell_ends, tell_share
from medthink.web.board.case_answers import CaseStrips, RevealedCase, draw_cases, revealed_cases, right_shares
from medthink.web.board.columns import PROOF_WORDS, BoardCell, accuracy_of, board_columns
from medthink.web.board.filters import RANKING_WORDS
from medthink.web.board.leaderboard import tell_rank
from medthink.web.cases.answers import RevealedCases
from medthink.workflow.condition import Condition
from medthink.workflow.tasks import known_texts

_SLICE_WIDTH = 180
_EVENTS = {
    "published": "Published",
    "withdrawn": "Withdrawn",
    "provenance": "Proof",
    "judged": "Judged",
    "rerun planned": "Cases drawn for a re-run",
    "rerun": "Partly re-run",
    "annotated": "Note by the maintainers",
    "flagged": "Flagged by the maintainers",
}


class SliceRow(msgspec.Struct, frozen=True, kw_only=True):
    """A model's accuracy in one slice."""

    value: str
    n: int
    is_small: bool
    rate: str
    ends: str
    mark: IntervalPosition | None


class ProfileBar(msgspec.Struct, frozen=True, kw_only=True):
    """The share of wrong critical steps with one type of error."""

    name: str
    words: str
    mark: IntervalPosition | None


class ProfilePart(msgspec.Struct, frozen=True, kw_only=True):
    """One judge's verdicts on the reasoning."""

    judge: str
    is_smoke_test: bool
    exam: str
    is_below_floor: bool
    said: str
    bars: tuple[ProfileBar, ...]
    axis: ShareAxis


class HistoryLine(msgspec.Struct, frozen=True, kw_only=True):
    """One entry of the submission's history."""

    day: str
    what: str
    words: str


class ModelPage(msgspec.Struct, frozen=True, kw_only=True):
    """One model of the board."""

    number: int
    model: str
    effort: str
    team: str
    shape: int
    proof: BoardCell
    meta: tuple[str, ...]
    link: str
    lead: str
    stats: tuple[tuple[str, BoardCell], ...]
    notes: tuple[tuple[str, str], ...]
    strips: CaseStrips
    told: tuple[RevealedCase, ...]
    is_reading: bool
    total: int
    axis: ShareAxis
    all_cases: float
    slices: tuple[tuple[str, tuple[SliceRow, ...]], ...]
    profiles: tuple[ProfilePart, ...]
    step_columns: tuple[str, ...]
    steps: tuple[tuple[str, ...], ...]
    command: str
    facts: tuple[tuple[str, str], ...]
    has_download: bool
    history: tuple[HistoryLine, ...]
    pair: tuple[int, int] | None


def make_model_page(
    row: BoardRow, made: Leaderboard, events: Sequence[Mapping[str, Any]], revealed: RevealedCases | None
) -> ModelPage:
    """One model with everything public about it, and the cases the reader has revealed."""
    one = row.submission
    peers = made.ranking(row.kind)
    parts = informative_slices(row.scores)
    axis = fit_axis([*(part.accuracy for part in parts), accuracy_of(row)], _SLICE_WIDTH)
    columns, steps = _steps(row)
    return ModelPage(
        number=one.id,
        model=one.model,
        effort=one.about.effort,
        team=one.team,
        shape=shape_of(row.group),
        proof=board_columns([row])["proof"].cell(row),
        meta=tuple(_meta(row)),
        link=one.about.link if one.about.link.startswith(("https://", "http://")) else "",
        lead=_lead(row, peers),
        stats=tuple(_stats(row)),
        notes=tuple(_notes(row)),
        strips=draw_cases(row, peers),
        told=tuple(revealed_cases([row], right_shares(row, peers), len(peers), revealed)) if revealed else (),
        is_reading=revealed is not None,
        total=len(row.result.cases),
        axis=axis,
        all_cases=axis.x(accuracy_of(row).value or 0.0),
        slices=_slices(parts, axis),
        profiles=tuple(make_profile_part(profile) for profile in row.judged.profiles) if row.judged else (),
        step_columns=columns,
        steps=steps,
        command=_command(row),
        facts=tuple((name, words) for name, words in _facts(row) if words),
        has_download=one.allows_download and not row.is_withdrawn,
        history=tuple(_history(events)),
        pair=_pair(row, peers),
    )


def _pair(row: BoardRow, peers: Sequence[BoardRow]) -> tuple[int, int] | None:
    """The model and the first of its ranking, or the first and the second; the better one first."""
    numbers = [peer.submission.id for peer in peers]
    if len(numbers) < 2 or row.submission.id not in numbers:
        return None
    return (numbers[0], row.submission.id if row.submission.id != numbers[0] else numbers[1])


def _meta(row: BoardRow) -> Iterator[str]:
    one = row.submission
    yield from (part for part in (one.about.organisation, one.about.mode) if part)
    yield f"{RANKING_WORDS[row.kind].lower()}, {row.scores.origin.condition_label}"
    yield f"published {(one.published_at or '')[:10]}"


def _lead(row: BoardRow, peers: Sequence[BoardRow]) -> str:
    right = sum(share >= 0.5 for share in row.result.rights)
    words = f"Right in {right:,} of {count_of(len(row.result.cases), 'case')}."
    if row.is_withdrawn:
        return f"{words} It was withdrawn and has no rank."
    if row.rank is not None:
        words += f" Its rank lies within {tell_rank(row)} of {len(peers)}."
    gain = row.gain.gain if row.gain else None
    if row.gain and isinstance(gain, Estimate):
        verb = "beats" if gain.low > 0 else "falls short of" if gain.high < 0 else "is not shown to differ from"
        by = f" by {size_text(gain)}" if gain.low > 0 or gain.high < 0 else ""
        words += f" It {verb} the strongest rival without images{by}."
    return words


def _stats(row: BoardRow) -> Iterator[tuple[str, BoardCell]]:
    known = board_columns([row])
    value = accuracy_of(row)
    yield "Accuracy", BoardCell(text=tell_share(value), under=tell_ends(value))
    yield "Rank", BoardCell(text=tell_rank(row), under=f"tie group {row.group}" if row.group else "not ranked")
    yield "Gain", known["gain"].cell(row)
    yield "No letter", known["silent"].cell(row)
    yield "Price per case", BoardCell(text=known["cost"].cell(row).text)
    out, back = known["output"].cell(row).text, known["input"].cell(row).text
    yield "Tokens per case", BoardCell(text=out, under=f"out; {back} in" if out != "–" else "not traced")


def _notes(row: BoardRow) -> Iterator[tuple[str, str]]:
    """Public notes, each with its tone."""
    one = row.submission
    if row.is_withdrawn:
        yield "bad", f"Withdrawn {(one.withdrawn_at or '')[:10]}: {one.reason or 'no reason given'}"
    if one.detail:
        yield "warn", f"{one.detail[:1].upper()}{one.detail[1:]}."
    if one.flag:
        yield "warn", f"Flagged by the maintainers: {one.flag}"
    if one.annotation:
        yield "plain", f"Note by the maintainers: {one.annotation}"
    if row.rerun:
        yield "good" if row.rerun.is_within else "warn", _tell_rerun(row.rerun)
    if row.by_family > 1:
        yield (
            "plain",
            (
                f"This is one of {row.by_family} submissions of its family and of {row.by_team} by its team. The best "
                "of several equal models looks better by chance alone."
            ),
        )


def _tell_rerun(rerun: Rerun) -> str:
    told = describe_rerun(rerun)
    verdict = "" if rerun.is_within else " This does not confirm the row."
    right = f" Of these cases {rerun.right} were right as submitted and {rerun.right_again} in the re-run."
    return f"{told[:1].upper()}{told[1:]}.{right}{verdict}"


def _slices(parts: Sequence[SliceScore], axis: ShareAxis) -> tuple[tuple[str, tuple[SliceRow, ...]], ...]:
    groups: dict[str, list[SliceRow]] = {}
    for part in parts:
        rate = part.accuracy
        ends = tell_ends(rate) or "no interval"
        groups.setdefault(part.by[:1].upper() + part.by[1:], []).append(
            SliceRow(
                value=part.value,
                n=part.n,
                is_small=part.is_small,
                rate="–" if rate.value is None else f"{rate.value * 100:.1f}",
                ends=ends,
                mark=axis.place(rate),
            )
        )
    return tuple((by, tuple(rows)) for by, rows in groups.items())


def make_profile_part(profile: JudgedProfile) -> ProfilePart:
    axis = ShareAxis(low=0.0, high=1.0, width=_SLICE_WIDTH)
    said = (
        f"{profile.steps:,} steps, {tell_share(profile.wrong_steps)} wrong; of the critical steps "
        f"{tell_share(profile.wrong_critical_steps)}; right answers with every step supported "
        f"{tell_share(profile.sound_if_right)}; judged {tell_share(profile.judged)} of the expected steps"
    )
    bars = (
        ProfileBar(name=name.replace("_", " ").capitalize(), words=rate_text(rate), mark=axis.place(rate))
        for name, rate in profile.error_types.items()
    )
    return ProfilePart(
        judge=profile.judge,
        is_smoke_test=profile.is_smoke_test,
        exam=profile.exam,
        is_below_floor=profile.is_below_floor,
        said=said,
        bars=tuple(bars),
        axis=axis,
    )


def _steps(row: BoardRow) -> tuple[tuple[str, ...], tuple[tuple[str, ...], ...]]:
    """Steps 1 and 2 against the expert's texts, with their metrics."""
    names, texts = [step.step for step in row.scores.steps], known_texts()
    metrics = [one for one in shown_in("tables") if any(metric_value(row.scores, step, one.name) for step in names)]
    rows = tuple(
        (
            texts[step.step].title,
            as_count(step.states.get("ok", 0)),
            *(value_text(metric_value(row.scores, step.step, metric.name)) for metric in metrics),
        )
        for step in row.scores.steps
        if step.states.get("ok")
    )
    return ("Step", "Texts", *(metric.title for metric in metrics)), rows


def _command(row: BoardRow) -> str:
    """The command that reproduces the run; empty if its condition is unknown."""
    origin = row.scores.origin
    if origin.condition is None:
        return ""
    words = ["medthink", "run", "DATA", "--model", origin.model, "--task", origin.task]
    words += ["--split", origin.split] if origin.split != "test" else []
    condition = msgspec.convert(origin.condition, Condition)
    return shlex.join([*words, *condition_words(origin.task, condition), "--out", "again"])


def _facts(row: BoardRow) -> Iterator[tuple[str, str]]:
    one, origin = row.submission, row.scores.origin
    states = row.scores.answers.states if row.scores.answers else {}
    yield "Task", origin.task
    yield "Condition", origin.condition_label
    yield from ((text.fact, getattr(one.about, text.name)) for text in ASKED if text.fact)
    yield "Prompts", ", ".join(f"{kind} {version[:8]}" for kind, version in origin.prompts.items())
    yield "Model as the provider names it", ", ".join(origin.reported_models)
    yield "Answers", ", ".join(f"{count:,} {STATE_WORDS.get(state, state)}" for state, count in states.items() if count)
    yield "Attempts per case", str(one.about.attempts) if one.about.attempts > 1 else ""
    yield "Benchmark", f"fingerprint {origin.text_fingerprint[:12]}"
    yield "Scorer", f"{row.scores.scorer}, medthink {row.scores.package}"
    yield "Proof", f"{PROOF_WORDS[one.provenance]}: {PROVENANCE[one.provenance]}"
    yield "Submissions", f"{row.by_team} by the team, {row.by_family} of the family"
    yield "File", f"SHA-256 {one.file_sha256}" if one.file_sha256 else ""
    yield "Notes", one.about.notes


def _history(events: Sequence[Mapping[str, Any]]) -> Iterator[HistoryLine]:
    """Its history since publication, newest first; without names."""
    for event in reversed(events):
        what, detail = event["what"], event["detail"]
        if what in _EVENTS:
            yield HistoryLine(day=event["at"][:10], what=_EVENTS[what], words=_tell_event(what, detail))


def _tell_event(what: str, detail: Mapping[str, Any]) -> str:
    match what:
        case "provenance":
            level = next((level for level in LEVELS if level == detail.get("level")), None)
            return f"{PROOF_WORDS[level]}: {detail.get('why', '')}" if level else ""
        case "judged":
            return ", ".join(str(one.get("judge", "")) for one in detail.get("profiles", ()))
        case "rerun planned":
            allowed = f"{detail.get('bound', 0) * 100:.3g} % of all answers may differ"
            return f"{len(detail.get('cases', ()))} cases, seed {detail.get('seed')}; {allowed}"
        case "rerun":
            return describe_rerun(msgspec.convert(detail, Rerun))
        case "withdrawn":
            return str(detail.get("why", ""))
        case "annotated":
            return str(detail.get("annotation", ""))
        case "flagged":
            return str(detail.get("flag", "")) or "the flag was removed"
    return ""
