"""Cases of a run as one page: each with every prompt as sent, every reply as received, and the result."""

from collections.abc import Iterator, Sequence

from msgspec import json, to_builtins

from medthink import __version__
from medthink.cases.card import thumbnail
from medthink.core.jsonio import encode_json
from medthink.core.markup import Markup, fold, joined, tag
from medthink.core.numbers import as_usd, count_of
from medthink.report.frame import frame_page
from medthink.runs.prediction import Prediction
from medthink.runs.trace import CallTrace, CaseRow, CaseTrace, SentImage, Trace

# Further cases are only listed: each case comes with its pictures and all its texts.
MOST_CASES = 100
_SHOWN_ELSEWHERE = ("case", "split", "sample", "calls", "tokens", "cost_usd", "latency_s")
_RIGHT = {True: "right", False: "wrong", None: "–"}


def trace_page(trace: Trace, rows: Sequence[CaseRow]) -> str:
    """The page of the cases in the rows."""
    cases = list(dict.fromkeys(row.case for row in rows))
    shown = cases[:MOST_CASES]
    is_one = len(cases) == 1
    name = f"Case {cases[0]}" if is_one else "Cases"
    manifest = trace.manifest
    details = [_case_markup(trace, trace.case(case), is_open=is_one) for case in shown]
    notes = [trace.doubt] if trace.doubt else []
    if len(cases) > len(shown):
        notes.append(f"{count_of(len(cases) - len(shown), 'case')} of the list are not shown in full.")
    return frame_page(
        f"{name} of {trace.path.name}",
        facts=joined((f"{manifest.model} · {manifest.task} · {manifest.condition.label()} · medthink {__version__}",)),
        contents=Markup(""),
        body=joined((_list_markup(rows), *(tag("p", note, class_="soft") for note in notes), *details)),
    )


def _list_markup(rows: Sequence[CaseRow]) -> Markup:
    columns = ("case", "sample", "state", "answer", "right or wrong", "calls", "cost")
    lines = [
        (row.case, row.sample, row.state, row.answer or "–", _RIGHT[row.is_right], row.calls, _cost(row))
        for row in rows
    ]
    head = tag("thead", tag("tr", *(tag("th", name) for name in columns)))
    body = tag("tbody", *(tag("tr", *(tag("td", str(cell)) for cell in line)) for line in lines))
    return tag("div", tag("table", head, body), class_="box")


def _case_markup(trace: Trace, case: CaseTrace, *, is_open: bool) -> Markup:
    verdicts = ", ".join(f"{row.state} {row.answer or ''} {_RIGHT[row.is_right]}".strip() for row in case.rows)
    head = joined((tag("b", f"Case {case.case}"), tag("span", f" · {verdicts}", class_="soft")))
    pictures = trace.images(case.case)
    figures = [
        tag("figure", thumbnail(image, f"Image {image.slot}"), tag("figcaption", f"Image {image.slot}"))
        for image in pictures.values()
    ]
    body = fold(
        head,
        tag("div", *figures, class_="pictures"),
        *(_call_markup(number, len(case.calls), call) for number, call in enumerate(case.calls, 1)),
        *_results(case),
        class_="case",
    )
    return Markup(body.replace("<details", "<details open", 1)) if is_open else body


def _call_markup(number: int, total: int, call: CallTrace) -> Markup:
    head = f"Call {number} of {total}: {call.kind} · {call.state}"
    return fold(head, *_call_parts(call), class_="inner")


def _call_parts(call: CallTrace) -> Iterator[Markup]:
    yield tag("h5", "System")
    yield _sent(call.system)
    yield tag("h5", "User")
    yield _sent("\n".join(part if isinstance(part, str) else describe_image(part) for part in call.parts))
    if call.schema is not None:
        yield fold("Schema", _sent(encode_json(call.schema).decode()))
    if call.settings:
        yield tag("p", "Settings: " + ", ".join(f"{name} {value}" for name, value in call.settings.items()))
    if call.reply is not None:
        yield tag("h5", "Reply")
        yield _sent(call.reply.text)
        if call.reply.reasoning:
            yield fold("Reasoning", _sent(call.reply.reasoning))
    if call.error_kind:
        yield tag("p", tag("b", call.error_kind), f": {call.error_detail}", class_="state")
    yield tag("p", describe_use(call), class_="soft")


def _sent(text: str) -> Markup:
    return tag("pre", text, class_="sent")


def _results(case: CaseTrace) -> Iterator[Markup]:
    for prediction in case.predictions:
        yield fold(f"Parsed result, sample {prediction.sample}", _sent(describe_result(prediction)))


def describe_image(image: SentImage) -> str:
    """One line for an image of a prompt."""
    place = "not found in the benchmark" if image.path is None else f"image {image.slot}: {image.path}"
    return f"[{place}; {image.media_type}, SHA-256 {image.digest[:12]}…]"


def describe_result(prediction: Prediction) -> str:
    """What was read from the replies, as JSON on several lines; empty fields and those shown elsewhere are left out."""
    held = {name: value for name, value in to_builtins(prediction).items() if value and name not in _SHOWN_ELSEWHERE}
    return json.format(json.encode(held), indent=2).decode()


def _cost(one: CaseRow | CallTrace) -> str:
    return as_usd(one.cost_usd, is_least=one.is_least_cost)


def describe_use(call: CallTrace) -> str:
    """What the call used: attempts, tokens, time and money."""
    words = [count_of(len(call.attempts), "attempt")] if call.attempts else []
    if any(one.outcome != "ok" for one in call.attempts):
        words[0] += f" ({', '.join(one.outcome for one in call.attempts)})"
    if call.reply is not None:
        usage = call.reply.usage
        words.append("tokens not counted" if usage is None else f"{usage.input:,} tokens in, {usage.output:,} out")
        took = call.reply.latency_s
        words.append("time not known" if took is None else f"{took:.1f} s")
    words.append(_cost(call))
    return " · ".join(words)
