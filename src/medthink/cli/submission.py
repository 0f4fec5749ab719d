"""`medthink submission`, `medthink submit`: from a run or a file of predictions to a submission on a board."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import click

from medthink.cli.command import LazyGroup
from medthink.cli.flags import (
    PATH,
    RUN,
    OutPath,
    about_flags,
    condition_flag,
    data_flag,
    json_flag,
    model_name_flag,
    out_file,
    quiet_flag,
    revision_flag,
    split_flag,
)
from medthink.cli.output import console, is_quiet, print_json, print_line
from medthink.core.errors import Declined, OutsideError, UsageError
from medthink.core.numbers import as_percent

if TYPE_CHECKING:
    from medthink.board.checking import CheckedFile
    from medthink.bridges.board_client import BoardClient


@click.group(
    cls=LazyGroup,
    modules={
        "pack": "submission:submission_pack",
        "check": "submission:submission_check",
        "score": "submission:submission_score",
        "hub": "submission:submission_hub",
    },
)
def submission() -> None:
    """Pack a run as a submission, check and score one, or write its result for the hub.

    \b
    Example: medthink submission pack runs/qwen -o qwen.jsonl
    """


_MOST_SHOWN = 100


@click.command()
@click.argument("file", type=PATH)
@data_flag.but(required=True)
@split_flag
@json_flag
def submission_check(file: Path, data: Path, split: str, as_json: bool) -> None:
    """Check FILE against the benchmark: every problem by line and field. Exit code 1 if there is one.

    Answer keys in FILE are never read.

    \b
    Example: medthink submission check qwen.jsonl --data bench/
    """
    from medthink.board.checking import LoadedBenchmark, check_file

    checked = check_file(file, LoadedBenchmark.open(data, split))
    if as_json:
        print_json(_plain(checked))
    else:
        _show(checked)
    if problems := len(checked.submission.problems):
        raise Declined(f"{file}: {problems} problem{'s' if problems > 1 else ''}", remedy="fix them and check again")


def _show(checked: "CheckedFile") -> None:
    from medthink.scoring.submission_file import problem_lines

    lines = list(problem_lines(checked.submission.problems))
    for line in lines[:_MOST_SHOWN]:
        print_line(line)
    if len(lines) > _MOST_SHOWN:
        print_line(f"… and {len(lines) - _MOST_SHOWN} more; --json lists them all")
    if not lines:
        from medthink.board.submissions import PROVENANCE

        print_line(f"No problems in {checked.submission.n_lines} lines.")
        print_line(f"Provenance: {checked.provenance} ({PROVENANCE[checked.provenance]}).")
        for doubt in checked.doubts:
            print_line(f"Note: {doubt}.")


def _plain(checked: "CheckedFile") -> dict[str, object]:
    from msgspec import to_builtins

    return {
        "lines": checked.submission.n_lines,
        "problems": to_builtins(checked.submission.problems),
        "provenance": checked.provenance,
        "doubts": checked.doubts,
    }


@click.command()
@click.argument("run", type=RUN)
@out_file.but(type=OutPath(".yaml", ".yml"))
@data_flag
@click.option("--hub-id", metavar="ID", help="The benchmark's name on the hub.")
@revision_flag
@json_flag
def submission_hub(
    run: Path, out: Path, data: Path | None, hub_id: str | None, revision: str | None, as_json: bool
) -> None:  # fmt: skip
    """Write RUN's accuracy as an .eval_results YAML file and print how to upload it.

    \b
    Example: medthink submission hub runs/qwen -o medthinkvqa.yaml
    """
    from medthink.board.packing import DATASET, write_hub_results
    from medthink.core.clock import now_utc
    from medthink.scoring.score import score_run

    scores = score_run(run, data)
    write_hub_results(scores, out, dataset=hub_id or DATASET, date=now_utc()[:10], revision=revision)
    upload = f"hf upload USER/MODEL {out} .eval_results/{out.name}"
    if as_json:
        print_json({"file": str(out), "upload": upload})
        return
    print_line(f"Written to {out}. To show it on the model's page: {upload}")


@click.command()
@click.argument("run", type=RUN)
@out_file.but(type=OutPath(".jsonl"))
@data_flag
@json_flag
def submission_pack(run: Path, out: Path, data: Path | None, as_json: bool) -> None:
    """Write RUN as a submission with the traces that let a maintainer check it.

    The file contains letters, rationales, steps and every reply; nothing from the reference, and no paths or addresses.

    \b
    Example: medthink submission pack runs/qwen -o qwen.jsonl
    """
    from medthink.board.packing import pack_run

    lines = pack_run(run, out, data)
    if as_json:
        print_json({"file": str(out), "lines": lines})
        return
    print_line(f"{lines} lines written to {out}. Check it with: medthink submission check {out} --data DATA")


@click.command()
@click.argument("file", type=PATH)
@data_flag.but(required=True)
@split_flag
@json_flag
def submission_score(file: Path, data: Path, split: str, as_json: bool) -> None:
    """Check and score FILE as the leaderboard would. Exit code 1 if it has a problem.

    \b
    Example: medthink submission score qwen.jsonl --data bench/
    """
    from medthink.board.checking import LoadedBenchmark, check_file
    from medthink.cli.results.score import show_scores
    from medthink.scoring.scores import to_plain

    checked = check_file(file, LoadedBenchmark.open(data, split))
    if checked.scores is None:
        problems = checked.submission.problems
        raise Declined(
            f"{file}: {problems[0]}, and {len(problems) - 1} more", remedy="medthink submission check lists all"
        )
    if as_json:
        print_json(to_plain(checked.scores) | {"provenance": checked.provenance, "doubts": checked.doubts})
        return
    show_scores([checked.scores], [data], slices=True)
    print_line(f"Provenance: {checked.provenance}")
    for doubt in checked.doubts:
        print_line(f"Note: {doubt}.")


@click.command()
@click.argument("file", type=PATH)
@click.option("--to", "url", required=True, metavar="URL", help="The address of the served board.")
@model_name_flag.but(required=True)
@about_flags
@condition_flag("effort")
@click.option("--cued", is_flag=True, help="The model was given expert cues: ranked apart.")
@click.option(
    "--token-file", type=click.File("r"), metavar="FILE",
    help="A file with the API token; - for standard input. Without it, MEDTHINK_BOARD_TOKEN is used.",
)  # fmt: skip
@quiet_flag
@json_flag
def submit(file: Path, url: str, token_file: TextIO | None, as_json: bool, **about: Any) -> None:
    """Upload FILE, made by medthink submission pack, to a served board, and follow its checks.

    The server's answer is printed by line. The same file again is the same submission: after an interruption, run the
    same command again. The token is made on your account's page, with the scopes submit and read.

    \b
    Example: medthink submit qwen.jsonl --to https://board.example.org --model-name qwen-7b
    """
    from medthink.bridges.board_client import BoardClient

    if file.is_dir():
        raise UsageError(f"{file} is a folder", remedy="medthink submission pack makes a file of a run")
    client = BoardClient(url, _read_token(token_file))
    condition = "cued" if about.pop("cued") else ""
    told = _send(client, file, {**about, "effort": about["effort"] or "", "condition": condition})
    if as_json:
        print_json(told | {"page": client.page(told["token"])})
    _end_submission(client, told, as_json=as_json)


def _read_token(file: TextIO | None) -> str:
    from medthink.bridges.board_client import TOKEN

    token = file.readline().strip() if file is not None else os.environ.get(TOKEN, "")
    if not token:
        raise UsageError(
            "no API token", remedy=f"make one on your account's page and set {TOKEN}, or give --token-file"
        )
    return token


def _send(client: "BoardClient", file: Path, about: dict[str, str]) -> dict[str, Any]:
    """Upload the file with a bar, then follow its checks."""
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn

    watched = console(stderr=True)
    bar = Progress(
        TextColumn("{task.description}"), BarColumn(), DownloadColumn(),
        console=watched, transient=True, disable=is_quiet() or not watched.is_terminal,
    )  # fmt: skip
    with bar:
        task = bar.add_task("Uploading", total=file.stat().st_size if file.is_file() else None)
        told = client.send(file, about, lambda size: bar.advance(task, size))
        bar.update(task, description="Waiting for the checks")
        for state in client.follow(told["token"]):
            told = state
    return told


def _end_submission(client: "BoardClient", told: dict[str, Any], *, as_json: bool) -> None:
    """Say what the server found; invalid is 1, a check that failed there is 3."""
    page = client.page(told["token"])
    if told["status"] == "invalid":
        for line in () if as_json else client.problems(told["token"]):
            print_line(line)
        count = told["n_problems"]
        raise Declined(
            f"the server found {count} problem{'s' if count > 1 else ''}", remedy="fix them and submit again"
        )
    if told["status"] == "failed":
        raise OutsideError(f"the check failed on the server: {told['detail']}", remedy=f"see {page}")
    if as_json:
        return
    accuracy = (told["accuracy"] or {}).get("value")
    shown = "" if accuracy is None else f", accuracy {as_percent(accuracy)}"
    print_line(f"{told['model']} by {told['team']}: {told['status']}, {told['provenance']}{shown}.")
    print_line(f"Publish it, or discard it, at {page}")
