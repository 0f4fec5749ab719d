"""The page of one case of a run: the question as shown, every prompt and reply, the parsed results, the verdicts."""

from collections.abc import Iterator, Sequence
from itertools import pairwise

import msgspec

from medthink.cases.case import Case, Image, ImageReference
from medthink.core.errors import MedThinkError
from medthink.core.jsonio import encode_json
from medthink.models.request import Reply
from medthink.runs.trace import AttemptTrace, CallTrace, CaseTrace, SentImage, Trace
from medthink.web.app.images import PageImage, show_image
from medthink.web.app.rendering import NONE, tell_money, tell_time, tell_tokens
from medthink.web.runs.index import IndexedRun
from medthink.web.runs.run_page import CaseLine, CasesQuery, choose_lines, list_rows, make_case_lines
from medthink.web.runs.verdicts import CaseVerdicts, JudgeVerdicts
from medthink.workflow.prediction import Prediction
from medthink.workflow.view import Showing

_STEPS = {"findings": "Step 1", "summary": "Step 2 · summary", "differential": "Step 3 · differential"}
_SAID = 200
UNKNOWN_IMAGE = "unknown"


class ImageCell(PageImage, frozen=True, kw_only=True):
    """One image of the grid, and whether the model saw it."""

    is_sent: bool


class OptionLine(msgspec.Struct, frozen=True, kw_only=True):
    """One option; `shown` is the letter the model saw, if the options were reordered."""

    letter: str
    shown: str
    text: str
    is_gold: bool
    is_answer: bool


class PromptPart(msgspec.Struct, frozen=True, kw_only=True):
    """A piece of a prompt: text, or an image by its id and its number in the grid."""

    text: str = ""
    image: str = ""
    number: int = 0


class CallView(msgspec.Struct, frozen=True, kw_only=True):
    """One call: the request and the reply."""

    id: int
    title: str
    state: str
    said: str
    tokens: str
    cost: str
    took: str
    system: str
    parts: tuple[PromptPart, ...]
    settings: str
    schema: str
    reply: Reply | None
    error: str
    attempts: tuple[AttemptTrace, ...]


class CasePage(msgspec.Struct, frozen=True, kw_only=True):
    """Everything about one case of a run."""

    run_slug: str
    run_name: str
    line: CaseLine
    query: CasesQuery
    place: str
    previous: str
    next: str
    samples: tuple[int, ...]
    history: str
    options: tuple[OptionLine, ...]
    images: tuple[ImageCell, ...]
    are_swapped: bool
    prediction: Prediction | None
    verdicts: tuple[JudgeVerdicts, ...]
    calls: tuple[CallView, ...]
    calls_problem: str
    tokens: str
    cost: str
    took: str
    findings: str
    discussion: str
    facts: tuple[tuple[str, str], ...]
    doubt: str
    against: str
    other: CaseLine | None
    other_prediction: Prediction | None


def make_case_page(
    run: IndexedRun,
    number: int,
    sample: int,
    beside: Sequence[IndexedRun],
    verdicts: CaseVerdicts,
    query: CasesQuery,
) -> CasePage | None:
    """The case and sample, or None if the run does not include it."""
    other = next((one for one in beside if one.slug == query.against), None)
    every = make_case_lines(run, list_rows(run), other, verdicts)
    line = next((one for one in every if (one.case, one.sample) == (number, sample)), None)
    if line is None:
        return None
    traced = _trace(run, number)
    trace = traced if isinstance(traced, CaseTrace) else None
    case = run.bench.cases.get(number) if run.bench else None
    prediction = _prediction(trace, sample)
    images = _images(run, case, prediction)
    other_trace = _trace(other, number) if other else None
    previous, following, place = _neighbours(choose_lines(every, run, query), line)
    return CasePage(
        run_slug=run.slug,
        run_name=run.name,
        line=line,
        query=query,
        place=place,
        previous=previous,
        next=following,
        samples=tuple(row.sample for row in run.rows_of(number)),
        history=case.question.history if case else "",
        options=tuple(_options(case, run, prediction)) if case else (),
        images=tuple(images.values()),
        are_swapped=run.manifest.condition.swap_images,
        prediction=prediction,
        verdicts=verdicts.get((number, sample), ()),
        calls=tuple(_calls(trace, sample, images)) if trace else (),
        calls_problem=traced if isinstance(traced, str) else "",
        tokens=tell_tokens(*_token_counts(prediction)),
        cost=tell_money(line.cost_usd, is_least=any(one.is_least_cost for one in trace.calls) if trace else False),
        took=tell_time(line.latency_s),
        findings=case.reference.findings if case else "",
        discussion=case.reference.discussion if case else "",
        facts=tuple(case_facts(case)) if case else (),
        doubt=run.doubt,
        against=other.name if other else "",
        other=_line_of(other, number, sample) if other else None,
        other_prediction=_prediction(other_trace, sample) if isinstance(other_trace, CaseTrace) else None,
    )


def _trace(run: IndexedRun, number: int) -> CaseTrace | str:
    """The ledger's record of the case, or the reason why there is none."""
    opened = (run.bench.benchmark, run.bench.answers) if run.bench else None
    try:
        trace = Trace(run.path, opened=opened)
    except MedThinkError as error:
        return str(error)
    try:
        return trace.case(number)
    except MedThinkError as error:
        return error.problem
    finally:
        trace.close()


def _prediction(trace: CaseTrace | None, sample: int) -> Prediction | None:
    return next((one for one in trace.predictions if one.sample == sample), None) if trace else None


def _line_of(run: IndexedRun, number: int, sample: int) -> CaseLine | None:
    rows = [row for row in list_rows(run) if (row.case, row.sample) == (number, sample)]
    return next(iter(make_case_lines(run, rows, None, {})), None)


def _neighbours(lines: list[CaseLine], here: CaseLine) -> tuple[str, str, str]:
    """The URLs of the previous and next lines in the filtered list, and this line's position."""
    keys = [(one.case, one.sample) for one in lines]
    mine = (here.case, here.sample)
    before = {second: _address(first) for first, second in pairwise(keys)}
    after = {first: _address(second) for first, second in pairwise(keys)}
    place = f"{keys.index(mine) + 1:,} of {len(keys):,}" if mine in keys else ""
    first = _address(keys[0]) if keys and mine not in keys else ""
    return before.get(mine, ""), after.get(mine, first), place


def _address(key: tuple[int, int]) -> str:
    case, sample = key
    return f"{case}/{sample}" if sample else str(case)


def _images(run: IndexedRun, case: Case | None, prediction: Prediction | None) -> dict[int, ImageCell]:
    """The images of the case by slot, or those of the case that provided its images, with their known data."""
    if case is None or run.bench is None:
        return {}
    condition = run.manifest.condition
    images: Sequence[Image] = case.question.images
    labels: Sequence[ImageReference] = case.reference.images
    if condition.swap_images:
        images, labels = Showing(condition, run.bench.benchmark).show(case)[0].question.images, ()
    cells = {}
    for place, image in enumerate(images):
        shown = msgspec.structs.asdict(show_image(run.bench, image, place + 1))
        if place < len(labels):
            shown |= {"group": labels[place].modality, "caption": labels[place].caption}
        cells[image.slot] = ImageCell(**shown, is_sent=prediction is None or image.slot in prediction.slots)
    return cells


def _options(case: Case, run: IndexedRun, prediction: Prediction | None) -> Iterator[OptionLine]:
    from medthink.workflow.view import show_under_condition

    condition = msgspec.structs.replace(run.manifest.condition, swap_images=False)
    moved = {original: shown for shown, original in show_under_condition(condition, case.question).letters.items()}
    for letter, text in case.question.options.items():
        shown = moved.get(letter, letter)
        yield OptionLine(
            letter=letter,
            shown=shown if shown != letter else "",
            text=text,
            is_gold=run.has_letters and letter == case.reference.answer,
            is_answer=prediction is not None and letter == prediction.prediction,
        )


def _calls(trace: CaseTrace, sample: int, images: dict[int, ImageCell]) -> Iterator[CallView]:
    for call in trace.calls:
        if call.sample == sample:
            yield _call(call, images)


def _call(call: CallTrace, images: dict[int, ImageCell]) -> CallView:
    reply = call.reply
    usage = reply.usage if reply else None
    return CallView(
        id=call.id,
        title=_title(call, images),
        state=call.state,
        said=" ".join((reply.text if reply else call.error_detail or "").split())[:_SAID],
        tokens=tell_tokens(usage.input, usage.output) if usage else NONE,
        cost=tell_money(call.cost_usd, is_least=call.is_least_cost),
        took=tell_time(reply.latency_s) if reply else "",
        system=call.system,
        parts=tuple(_part(part, images) for part in call.parts),
        settings=", ".join(f"{name} {value}" for name, value in call.settings.items()),
        schema=encode_json(call.schema).decode() if call.schema else "",
        reply=reply,
        error=": ".join(part for part in (call.error_kind, call.error_detail) if part),
        attempts=call.attempts,
    )


def _part(part: str | SentImage, images: dict[int, ImageCell]) -> PromptPart:
    if isinstance(part, str):
        return PromptPart(text=part)
    cell = images.get(part.slot or 0)
    return PromptPart(image=cell.id, number=cell.number) if cell else PromptPart(image=UNKNOWN_IMAGE)


def _title(call: CallTrace, images: dict[int, ImageCell]) -> str:
    name = _STEPS.get(call.kind, call.kind.capitalize())
    cell = images.get(call.images[0].slot or 0) if call.kind == "findings" and len(call.images) == 1 else None
    return f"{name} · image {cell.number}" if cell else name


def _token_counts(prediction: Prediction | None) -> tuple[int | None, int | None]:
    tokens = prediction.tokens if prediction else None
    return (tokens.input, tokens.output) if tokens else (None, None)


def case_facts(case: Case) -> Iterator[tuple[str, str]]:
    """The withheld facts of a case: diagnosis, codes, time points."""
    reference = case.reference
    yield "diagnosis", f"{reference.answer} · {reference.answer_text}"
    codes = (reference.icd_chapter, reference.icd_block, reference.icd_category)
    yield "ICD-10", " › ".join(code for code in codes if code) or NONE
    if reference.is_longitudinal:
        yield "time points", f"{reference.timepoint_count}, {reference.interval_text or 'interval not stated'}"
