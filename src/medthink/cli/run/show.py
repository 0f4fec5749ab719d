"""`medthink show`: the cases of a run, or every prompt, reply and result of one case."""

from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import click
from msgspec import json, to_builtins

from medthink.cli.flags import RUN, data_flag, html_flag, json_flag
from medthink.cli.output import LONG_TABLE, console, plain, print_json, print_line, print_lines, print_table
from medthink.core.errors import UsageError
from medthink.core.numbers import as_usd, count_of

if TYPE_CHECKING:
    from medthink.runs.trace import CallTrace, CaseRow, CaseTrace, SentImage, Trace
    from medthink.workflow.prediction import Prediction

_RIGHT = {True: "right", False: "wrong", None: "–"}
_LONGEST_ANSWER = 40
_SHOWN_ELSEWHERE = ("case", "split", "sample", "calls", "tokens", "cost_usd", "latency_s")


@click.command()
@click.argument("run", metavar="RUN", type=RUN)
@click.argument("case_number", metavar="[CASE]", required=False, type=int)
@click.option("--failed", is_flag=True, help="Only cases without a usable answer: failed, refused, unparsed …")
@click.option("--wrong", is_flag=True, help="Only cases answered wrongly.")
@html_flag
@data_flag
@json_flag
def show(
    run: Path, case_number: int | None, failed: bool, wrong: bool, page: Path | None, data: Path | None, as_json: bool
) -> None:
    """List the cases of RUN, or show one CASE: every prompt as sent, every reply as received, and the result.

    The run may still be in progress.

    \b
    Example: medthink show runs/qwen --wrong
    Example: medthink show runs/qwen 12
    Example: medthink show runs/qwen --failed --html failed.html
    """
    from medthink.runs.trace import Trace

    if case_number is not None and (failed or wrong):
        raise UsageError(
            "--failed and --wrong cannot be combined with a single CASE",
            remedy="leave out CASE, or --failed and --wrong",
        )
    with closing(Trace(run, data)) as trace:
        if wrong and trace.doubt:
            raise UsageError("which answers are wrong is unknown", remedy=trace.doubt)
        rows = [row for row in trace.rows() if _is_wanted(row, case_number, failed=failed, wrong=wrong)]
        if page is not None:
            _write_page(trace, rows, page, case_number, data)
        elif case_number is None:
            _list(trace, rows, as_json=as_json)
        else:
            _show_case(trace, trace.case(case_number), as_json=as_json)


def _is_wanted(row: "CaseRow", case_number: int | None, *, failed: bool, wrong: bool) -> bool:
    if case_number is not None:
        return row.case == case_number
    if not failed and not wrong:
        return True
    return (failed and row.state != "ok") or (wrong and row.state == "ok" and row.is_right is False)


def _write_page(trace: "Trace", rows: "list[CaseRow]", page: Path, case_number: int | None, data: Path | None) -> None:
    from medthink.core.files import write_atomic
    from medthink.web.cases.file import run_file

    if not rows:
        if case_number is not None:
            trace.case(case_number)
        raise UsageError("no case is left to show", remedy="leave out --failed or --wrong")
    write_atomic(page, [run_file(trace, rows, data).encode()])
    print_line(f"Written: {page}")


def _list(trace: "Trace", rows: "list[CaseRow]", *, as_json: bool) -> None:
    manifest = trace.manifest
    if as_json:
        about = {"run": str(trace.path), "model": manifest.model, "task": manifest.task}
        print_json(
            about | {"condition_label": manifest.condition.label(), "doubt": trace.doubt, "cases": to_builtins(rows)}
        )
        return
    has_samples = manifest.condition.samples > 1
    columns = [
        "case",
        *(["sample"] if has_samples else []),
        "state",
        "answer",
        "right or wrong",
        "calls",
        "cost",
        "why",
    ]
    lines = (
        (
            row.case,
            *([row.sample] if has_samples else []),
            row.state,
            _shorten(row.answer or "–"),
            _RIGHT[row.is_right],
            row.calls,
            as_usd(row.cost_usd, is_least=row.is_least_cost),
            _shorten(row.detail, 80),
        )
        for row in rows
    )
    title = f"{trace.path}: {manifest.model} · {manifest.task} · {manifest.condition.label()}"
    right = (0, len(columns) - 3, len(columns) - 2)
    if len(rows) > LONG_TABLE:
        print_lines(title, columns, lines, right=right)
    else:
        console().print(print_table(title, columns, lines, right=right))
    print_line(f"{len(rows)} listed; medthink show {trace.path} CASE shows one in full.")
    if trace.doubt:
        print_line(f"Right or wrong is unknown: {trace.doubt}")


def _show_case(trace: "Trace", case: "CaseTrace", *, as_json: bool) -> None:
    if as_json:
        print_json(to_builtins(case) | {"run": str(trace.path), "doubt": trace.doubt})
        return
    for row in case.rows:
        correct = f" (correct: {case.correct})" if row.is_right is False else ""
        answer = f" · answer {row.answer} · {_RIGHT[row.is_right]}{correct}" if row.answer else ""
        sample = f" · sample {row.sample}" if len(case.rows) > 1 else ""
        detail = f": {row.detail}" if row.detail else ""
        cost = as_usd(row.cost_usd, is_least=row.is_least_cost)
        print_line(f"Case {case.case}{sample} · {row.state}{detail}{answer} · {count_of(row.calls, 'call')} · {cost}")
    for number, call in enumerate(case.calls, 1):
        _print_call(f"{number} of {len(case.calls)}", call)
    for prediction in case.predictions:
        _rule(f"result{f', sample {prediction.sample}' if len(case.rows) > 1 else ''}")
        click.echo(plain(_describe_result(prediction)))
    if trace.doubt:
        print_line(f"\nRight or wrong is unknown: {trace.doubt}")


def _print_call(place: str, call: "CallTrace") -> None:
    from medthink.core.jsonio import encode_json

    _rule(f"{place} · {call.kind} · {call.state} · {_describe_use(call)}")
    click.echo(f"[system]\n{plain(call.system)}\n\n[user]")
    for part in call.parts:
        click.echo(plain(part if isinstance(part, str) else _describe_image(part)))
    if call.schema is not None:
        click.echo(f"\n[schema] {plain(encode_json(call.schema).decode())}")
    if call.settings:
        click.echo(f"\n[settings] {', '.join(f'{name} {value}' for name, value in call.settings.items())}")
    if call.reply is not None:
        if call.reply.reasoning:
            click.echo(f"\n[reasoning]\n{plain(call.reply.reasoning)}")
        click.echo(f"\n[reply, {call.reply.stop}]\n{plain(call.reply.text)}")
    if call.error_kind:
        click.echo(f"\n[{call.error_kind}] {plain(call.error_detail or '')}")
    for attempt in call.attempts if len(call.attempts) > 1 else ():
        sent = "" if attempt.is_sent else ", not sent"
        click.echo(f"  attempt {attempt.number}: {attempt.outcome}{sent}, {attempt.latency_s:.1f} s {attempt.endpoint}")
    click.echo()


def _describe_image(image: "SentImage") -> str:
    """One line for an image of a prompt."""
    place = "not found in the benchmark" if image.path is None else f"image {image.slot}: {image.path}"
    return f"[{place}; {image.media_type}, SHA-256 {image.digest[:12]}…]"


def _describe_result(prediction: "Prediction") -> str:
    """The parsed replies, as JSON on several lines; empty fields and those shown elsewhere are left out."""
    held = {name: value for name, value in to_builtins(prediction).items() if value and name not in _SHOWN_ELSEWHERE}
    return json.format(json.encode(held), indent=2).decode()


def _describe_use(call: "CallTrace") -> str:
    """The usage of the call: attempts, tokens, time and money."""
    words = [count_of(len(call.attempts), "attempt")] if call.attempts else []
    if any(one.outcome != "ok" for one in call.attempts):
        words[0] += f" ({', '.join(one.outcome for one in call.attempts)})"
    if call.reply is not None:
        usage = call.reply.usage
        words.append("tokens not counted" if usage is None else f"{usage.input:,} tokens in, {usage.output:,} out")
        took = call.reply.latency_s
        words.append("time not known" if took is None else f"{took:.1f} s")
    words.append(as_usd(call.cost_usd, is_least=call.is_least_cost))
    return " · ".join(words)


def _rule(title: str) -> None:
    click.echo(f"──── {plain(title)} ".ljust(100, "─"))


def _shorten(text: str, longest: int = _LONGEST_ANSWER) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= longest else f"{flat[: longest - 1]}…"
