"""The flags that several commands share: each has its names, text, placeholder and default here alone."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from msgspec.structs import replace

from medthink.cli.output import print_line
from medthink.core.errors import UsageError
from medthink.core.files import claim_file
from medthink.core.numbers import count_of
from medthink.workflow.condition import FIELD, FIELDS, LARGEST_SEED, Condition, ConditionField

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from medthink.core.plugins import PortionRunner
    from medthink.models.transport import Transport
    from medthink.runs.batches.jobs import Batch
    from medthink.store.engine import Store

Decorated = Callable[..., Any]
PATH = click.Path(path_type=Path)


class FiniteFloat(click.FloatRange):
    """A finite number within a range; NaN and infinity are refused."""

    def convert(self, value: float, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """The number, or a usage error."""
        number = float(super().convert(value, param, ctx))
        if not math.isfinite(number):
            self.fail(f"{value} is not a finite number.", param, ctx)
        return number


class HyphenatedChoice(click.Choice[Any]):
    """One of several words; an underscore may be written for a hyphen."""

    def normalize_choice(self, choice: Any, ctx: click.Context | None) -> str:
        """The word that is shown."""
        return super().normalize_choice(choice, ctx).replace("_", "-")


class RunPath(click.Path):
    """A run, which the shell completes."""

    def __init__(self) -> None:
        super().__init__(path_type=Path)

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> "list[CompletionItem]":  # noqa: ARG002
        """Folders of runs."""
        from medthink.cli.shell.completion import complete_runs

        return complete_runs(incomplete)


RUN = RunPath()


class OutPath(click.Path):
    """A place to write to, which must not be a file that another command made; a file ends in one of `endings`."""

    def __init__(self, *endings: str) -> None:
        super().__init__(path_type=Path)
        self._endings = endings

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Path:  # noqa: ARG002
        """The path, or a usage error."""
        path = Path(str(value))
        if self._endings and path.suffix.lower() not in self._endings:
            raise UsageError(f"{path} must end in {' or '.join(self._endings)}", remedy="name another file")
        claim_file(path)
        return path


class ListOption(click.Option):
    """A list: the flag may be repeated, and each time name several things, separated by commas."""

    def __init__(self, names: Sequence[str], **settings: Any) -> None:
        super().__init__(names, **settings | {"multiple": True})

    def type_cast_value(self, ctx: click.Context, value: Any) -> Any:
        """The things named, in their order."""
        if not isinstance(value, list | tuple):
            return super().type_cast_value(ctx, value)
        return super().type_cast_value(ctx, [part for one in value for part in _cut(one)])


def _cut(given: Any) -> list[Any]:
    """The parts between commas; a file whose name has a comma is one thing."""
    if not isinstance(given, str) or Path(given).exists():
        return [given]
    return [part.strip() for part in given.split(",") if part.strip()] or [given]


class Flag:
    """A flag, to be put on a command."""

    def __init__(self, *names: str, **settings: Any) -> None:
        self._names = names
        self._settings = settings

    def __call__(self, command: Decorated) -> Decorated:
        """Put it on a command."""
        return click.option(*self._names, **self._settings)(command)

    def but(self, **settings: Any) -> "Flag":
        """The same flag with another default, or required."""
        return Flag(*self._names, **self._settings | settings)

    def option(self, name: str) -> click.Option:
        """The flag as an option whose value has this name."""
        spelled = [one for one in self._names if one.startswith("-")]
        settings = dict(self._settings)
        kind: type[click.Option] = settings.pop("cls", click.Option)
        return kind([*spelled, name], **settings)


def _complete_model(ctx: click.Context, param: click.Parameter, incomplete: str) -> "list[CompletionItem]":  # noqa: ARG001
    from medthink.cli.shell.completion import complete_models

    return complete_models(incomplete)


def _complete_split(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:  # noqa: ARG001
    return [name for name in ("train", "validation", "test") if name.startswith(incomplete)]


def put(flags: Sequence[Decorated], command: Decorated) -> Decorated:
    """The command with these flags, in their order."""
    for one in reversed(flags):
        command = one(command)
    return command


# What most commands have.
json_flag = Flag("--json", "as_json", is_flag=True, help="Print JSON.")
data_flag = Flag(
    "--data", type=PATH, metavar="DATA", help="The benchmark: a folder or file; by default the one that the run names."
)
split_flag = Flag(
    "--split", default="test", show_default=True, metavar="NAME", help="The split of the benchmark.",
    shell_complete=_complete_split,
)  # fmt: skip
seed_flag = Flag(
    "--seed",
    type=click.IntRange(0, LARGEST_SEED),
    default=0,
    show_default=True,
    metavar="N",
    help="Seed of every random choice.",
)
revision_flag = Flag("--revision", metavar="NAME", help="A branch, tag or commit of the benchmark on the hub.")
_ABOUT = {
    "organisation": Flag(
        "--organization", "--organisation", "organisation", default="", metavar="NAME", help="Who made the model."
    ),
    "family": Flag("--family", default="", metavar="NAME", help="The model's family, used to count submissions."),
    "link": Flag("--link", default="", metavar="URL", help="A link to more information."),
}  # fmt: skip


def about_flags(command: Decorated) -> Decorated:
    """What a submission says of its model."""
    return put([*_ABOUT.values()], command)


model_name_flag = Flag("--model-name", "model", default="", metavar="NAME", help="The name to show for the model.")
team_flag = Flag("--team", default="", metavar="NAME", help="The team for which results are submitted.")
out_file = Flag("-o", "--out", type=OutPath(), required=True, metavar="FILE", help="The file to write.")
out_folder = Flag("-o", "--out", type=PATH, required=True, metavar="FOLDER", help="The folder to write to.")
out_run = Flag(
    "-o", "--out", type=RUN, metavar="RUN", help="The run's folder; an existing run is continued."
)  # fmt: skip
out_any = Flag("-o", "--out", type=OutPath(), required=True, metavar="FILE|FOLDER", help="The file or folder to write.")
embed_flag = Flag("--embed-images", is_flag=True, help="Put the images into the file: parquet, or Inspect's log.")
html_flag = Flag("--html", "page", type=OutPath(".html"), metavar="FILE", help="Write a self-contained page instead.")
figure_flag = Flag("--figure", type=OutPath(), metavar="FILE", help="Also draw one figure: .svg, .pdf or .png.")
key_flag = Flag(
    "--key", type=PATH, metavar="FILE", help="The key of the lists: FOLDER-key.json, beside their folder."
)  # fmt: skip
accept_flag = Flag(
    "--accept", cls=ListOption, metavar="FILE:LINES,…",
    help="Rows whose code is right though their text, number or sheet is another unit's: anna.csv:3-9.",
)  # fmt: skip
readers_flag = Flag(
    "--readers", cls=ListOption, required=True, metavar="NAME,…", help="The readers; each gets a list."
)  # fmt: skip
form_flag = Flag(
    "--format", "form", type=click.Choice(["csv", "xlsx", "jsonl"]), default="csv", show_default=True,
    help="The format to write.",
)  # fmt: skip
by_case_flag = Flag(
    "--by-case", is_flag=True, help="Instead, list cases: the hardest or most disputed, and doubtful keys or labels."
)
slices_flag = Flag("--slices", is_flag=True, help="Also show the result within slices.")
port_flag = Flag(
    "--port", type=click.IntRange(1, 65535), metavar="N", help="The port to open.  [default: the first free from 7350]"
)
browser_flag = Flag("--browser/--no-browser", default=True, help="Open the browser.  [default: yes]")


def format_flag(formats: Mapping[str, str]) -> Flag:
    """`--format`: one of several, each with what it is."""
    listed = "; ".join(f"{name}: {meaning}" for name, meaning in formats.items())
    return Flag("--format", "target", type=click.Choice(list(formats)), required=True, help=f"{listed}.")


def count_flag(what: str, **settings: Any) -> Flag:
    """`-n/--count`: how many of something."""
    return Flag("-n", "--count", **{"type": click.IntRange(1), "metavar": "N", "help": f"How many {what}."} | settings)


def _note(ctx: click.Context, param: click.Parameter, value: bool) -> None:
    if value:
        ctx.meta[f"medthink.{param.name}"] = True


# What is shown while a command works is read from the context, by `medthink.cli.output`.
quiet_flag = Flag("-q", "--quiet", is_flag=True, expose_value=False, callback=_note, help="Show no progress.")
verbose_flag = Flag(
    "-v", "--verbose", is_flag=True, expose_value=False, callback=_note, help="Show every case or command in full."
)


# How models are asked, by every command that asks some.
judges_flag = Flag(
    "-j", "--judge", "judges", cls=ListOption, required=True, metavar="SPEC", shell_complete=_complete_model,
    help="A judge: a model, as in medthink run, or baseline/rules; may be repeated.",
)  # fmt: skip
repeats_flag = Flag(
    "--repeats", type=click.IntRange(1), metavar="N", default=1, show_default=True, help="How often each is asked.",
)  # fmt: skip
model_flag = Flag(
    "-m", "--model", metavar="SPEC", shell_complete=_complete_model,
    help="openai/NAME, anthropic/NAME, google/NAME, server/NAME, inspect/PROVIDER/NAME, local/PATH, baseline/NAME, "
    "replay/RUN.",
)  # fmt: skip
base_url_flag = Flag(
    "--base-url", "base_urls", cls=ListOption, metavar="URL",
    help="Address of the server; several share the load.",
)  # fmt: skip
max_usd_flag = Flag("--max-usd", type=FiniteFloat(0), metavar="USD", help="Stop before the cost exceeds this.")
max_calls_flag = Flag("--max-calls", type=click.IntRange(0), metavar="N", help="Stop after this many calls.")
dry_run_flag = Flag(
    "--dry-run", is_flag=True, help="Count what is left to do: calls, tokens, images, cost; send nothing."
)
SENDING = {
    "base_urls": base_url_flag,
    "concurrency": Flag(
        "-c", "--concurrency", type=click.IntRange(1), metavar="N", default=16, show_default=True,
        help="Maximum concurrent calls.",
    ),
    "rpm": Flag("--rpm", type=click.IntRange(1), metavar="N", help="At most N requests per minute."),
    "tpm": Flag("--tpm", type=click.IntRange(1), metavar="N", help="At most N tokens per minute."),
    "timeout": Flag(
        "--timeout", type=FiniteFloat(1), metavar="S", default=600.0, show_default=True,
        help="Seconds to wait for one reply.",
    ),
    "max_wait": Flag(
        "--max-wait", type=FiniteFloat(0), metavar="S", default=600.0, show_default=True,
        help="How many seconds to wait for a server that is down or a provider that asks us to slow down.",
    ),
    "service_tier": Flag(
        "--service-tier", metavar="TIER",
        help="The provider's own service tier, such as flex or priority; the one used is recorded and priced.",
    ),
    "batch": Flag(
        "--batch/--no-batch", default=False,
        help="Use the provider's batch API: half the price, up to a day per step.  [default: no]",
    ),
    "wait": Flag(
        "--wait/--no-wait", default=True,
        help="With --batch: wait for the replies, or exit once everything is sent; the same command collects them.  "
        "[default: wait]",
    ),
    "cancel_batches": Flag(
        "--cancel-batches/--no-cancel-batches", default=False,
        help="First cancel the batches of earlier sessions, keeping what they have answered.  [default: no]",
    ),
    "forget_batches": Flag(
        "--forget-batch", "forget_batches", cls=ListOption, metavar="ID",
        help="First give up a batch that cannot be collected any more: its calls are asked again, and count at the "
        "most that they may have cost.",
    ),
    "preflight": Flag(
        "--preflight/--no-preflight", default=True,
        help="Check server, model and key before the first call.  [default: yes]",
    ),
    "max_usd": max_usd_flag,
    "max_calls": max_calls_flag,
    "prices": Flag("--prices", type=PATH, metavar="FILE", help="Your own prices (TOML)."),
    "price": Flag("--price", metavar="IN/OUT", help="The model's price: US dollars for a million tokens, e.g. 5/30."),
}  # fmt: skip
"""The flags of `CallTerms` and of the transport, by the name of their value."""


def sending_flags(command: Decorated) -> Decorated:
    """Where models are asked, how fast, at what price and up to which limit."""
    return put([*SENDING.values()], command)


def read_transport(flags: dict[str, Any]) -> "Transport":
    """The transport that the flags ask for, taken out of them."""
    from medthink.models.limits import Backoff, RateLimits
    from medthink.models.transport import Transport

    if flags["service_tier"] is not None and flags["batch"]:
        raise UsageError("a batch has no service tier", remedy="leave out --service-tier, or --batch")
    return Transport(
        service_tier=flags.pop("service_tier"),
        pace=RateLimits(
            concurrency=flags.pop("concurrency"),
            requests_per_minute=flags.pop("rpm"),
            tokens_per_minute=flags.pop("tpm"),
        ),
        backoff=Backoff(patience_s=flags.pop("max_wait")),
        timeout_s=flags.pop("timeout"),
    )


def read_terms(flags: dict[str, Any]) -> dict[str, Any]:
    """The fields of `CallTerms`, taken out of the flags."""
    if not flags["batch"] and not flags["wait"]:
        raise UsageError("--no-wait only applies to batches", remedy="add --batch, or leave out --no-wait")
    names = ("base_urls", "prices", "max_usd", "max_calls", "preflight", "batch", "wait", "cancel_batches")
    return {name: flags.pop(name) for name in (*names, "price", "forget_batches")}


def condition_flag(name: str) -> Flag:
    """The flag of one field of a condition; without it, the value is None."""
    field = FIELD[name]
    if field.switch:
        return Flag(field.switch, field.parameter, default=None, help=field.help)
    return Flag(field.option, field.parameter, type=_type(field), metavar=field.metavar or None, help=field.help)


def condition_flags(command: Decorated) -> Decorated:
    """Give a command the flags of a condition; it receives them as keyword arguments."""
    return put([condition_flag(field.name) for field in FIELDS], command)


def read_condition(task: str, flags: dict[str, Any]) -> Condition:
    """The task's default condition, changed by the flags given."""
    from medthink.workflow.tasks import default_condition

    given = {field: flags[field.parameter] for field in FIELDS if flags[field.parameter] is not None}
    values = {field.name: field.read(value) if isinstance(value, str) else value for field, value in given.items()}
    return replace(default_condition(task), **values)


def _type(field: ConditionField) -> "click.ParamType[Any] | None":
    if field.choices:
        return HyphenatedChoice(field.choices)
    if field.low is None or field.read is not str:
        return None
    return click.IntRange(field.low, field.high) if field.whole else FiniteFloat(field.low, field.high)


def say_jobs(jobs: "Sequence[Batch]", folder: Path) -> None:
    """Say that calls are waiting at the provider, or which command runs their files by hand."""
    if not jobs:
        return
    from medthink.models.batches.files import OUTPUT

    calls = count_of(sum(job.calls for job in jobs), "call")
    by_hand = [job for job in jobs if job.model.startswith("server/")]
    if not by_hand:
        print_line(
            f"{calls} waiting in {count_of(len(jobs), 'batch', 'batches')}; the same command collects them", stderr=True
        )
        return
    print_line(f"{calls} waiting to be run; run them as follows, then run the same command again:", stderr=True)
    for job in by_hand:
        place, name = folder / job.mark, job.model.partition("/")[2]
        print_line(f"  vllm run-batch -i {place}.jsonl -o {place}{OUTPUT} --model {name}", stderr=True)


def cluster_flag(what: str) -> Flag:
    """The flag --cluster, with what is done there."""
    return Flag(
        "--cluster",
        type=click.Choice(["ray"]),
        help=f"{what} on a Ray cluster that is already running; needs the extra [ray].",
    )


def read_cluster(cluster: str | None, *, needs: str, is_wanted: bool) -> "PortionRunner | None":
    """The place of heavy work: None means here. UsageError if there is no heavy work, i.e. without `needs`."""
    if cluster is None:
        return None
    if not is_wanted:
        raise UsageError("--cluster is for heavy work, and there is none", remedy=f"add {needs}, or leave it out")
    from medthink.bridges.ray_cluster import map_on_ray

    return map_on_ray


store_flag = Flag(
    "--store", default="board.sqlite", show_default=True, envvar="MEDTHINK_STORE", metavar="FILE|URL",
    help="A SQLite file, or postgresql://… (or set MEDTHINK_STORE).",
)  # fmt: skip


@contextmanager
def open_store(place: str, *, creates: bool = False) -> "Iterator[Store]":
    """The store, closed afterwards; only commands that write to it may create it."""
    try:
        from medthink.store.engine import Store, store_url
    except ModuleNotFoundError as error:
        raise UsageError(f"a board needs the package {error.name}", remedy="pip install 'medthink[board]'") from None
    with closing(Store(store_url(place), must_exist=not creates)) as store:
        yield store
