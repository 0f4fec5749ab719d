"""The flags that say how judges are asked, for judging and for the exam."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import click

from medthink.cli.batch_flags import batch_option, no_wait_option, read_batch
from medthink.cli.params import Real
from medthink.core.errors import UsageError
from medthink.models.request import Effort

if TYPE_CHECKING:
    from medthink.models.transport import Transport

Decorated = Callable[..., Any]

judges_flag = click.option(
    "--judge",
    "judges",
    multiple=True,
    required=True,
    metavar="SPEC",
    help="Who judges: a model, as in medthink run, or baseline/rules; may be repeated.",
)
_SIGHT = (
    click.option("--images", is_flag=True, help="Show the judge the images too."),
    click.option(
        "--show",
        metavar="LIST",
        help="What it sees, of: history, options, captions, findings, discussion, diagnosis; default: all.",
    ),
)
_ASKING = (
    click.option("--effort", type=click.Choice(get_args(Effort)), help="Reasoning effort of the judge."),
    click.option("--temperature", type=Real(0), metavar="T", help="Sampling temperature."),
    click.option("--max-tokens", type=click.IntRange(1), metavar="N", help="Maximum tokens per reply."),
    click.option("--no-schema", is_flag=True, help="Ask for JSON in words only, for servers without it."),
    click.option("--base-url", "base_urls", multiple=True, metavar="URL", help="Address of the judge's server."),
    click.option("--concurrency", type=click.IntRange(1), default=16, show_default=True, help="Concurrent calls."),
    click.option("--timeout", type=Real(1), default=600.0, show_default=True, help="Seconds to wait for one reply."),
    click.option(
        "--patience", type=Real(0), metavar="S", default=600.0, show_default=True,
        help="Seconds to wait for a server that is down, or for a pause that a provider asks for.",
    ),
    batch_option,
    no_wait_option,
    click.option("--no-preflight", is_flag=True, help="Ask at once, without checking server, model and key first."),
    click.option("--max-usd", type=Real(0), metavar="USD", help="Stop before judging costs more than this."),
    click.option("--max-calls", type=click.IntRange(0), metavar="N", help="Stop after this many calls."),
    click.option("--prices", type=click.Path(path_type=Path), metavar="FILE", help="Your own prices (TOML)."),
)  # fmt: skip


def sight_flags(command: Decorated) -> Decorated:
    """Add the flags that say what a judge sees."""
    return _add(_SIGHT, command)


def asking_flags(command: Decorated) -> Decorated:
    """Add the flags that say how a judge is asked, and the limits."""
    return _add(_ASKING, command)


def _add(options: tuple[Callable[[Decorated], Decorated], ...], command: Decorated) -> Decorated:
    for option in reversed(options):
        command = option(command)
    return command


def read_terms(flags: dict[str, Any]) -> dict[str, Any]:
    """The fields of `JudgeTerms`, taken out of the flags."""
    from medthink.judge.evidence import DEFAULT_SIGHT, SIGHTS, parse_sight

    show, with_images = flags.pop("show"), flags.pop("images")
    seen = {*(DEFAULT_SIGHT if show is None else parse_sight(show)), *(["images"] if with_images else [])}
    same = ("judges", "effort", "temperature", "max_tokens", "base_urls", "max_usd", "max_calls", "prices")
    return {
        "sees": tuple(name for name in SIGHTS if name in seen),
        "use_schema": not flags.pop("no_schema"),
        "preflight": not flags.pop("no_preflight"),
        **read_batch(flags),
        **{name: flags.pop(name) for name in same},
    }


def read_kinds(text: str | None) -> tuple[str, ...] | None:
    """The kinds of judging named, or None where none are; UsageError for others."""
    from medthink.judge.kinds import KINDS

    if text is None:
        return None
    words = text.replace(",", " ").split()
    unknown = [word for word in words if word not in KINDS]
    if unknown or not words:
        raise UsageError(f"cannot judge {', '.join(unknown) or 'nothing'}", remedy=f"known: {', '.join(KINDS)}")
    return tuple(dict.fromkeys(words))


def read_transport(flags: dict[str, Any]) -> "Transport":
    """The transport that the flags ask for, taken out of them."""
    from medthink.models.limits import Pace
    from medthink.models.retries import Backoff
    from medthink.models.transport import Transport

    return Transport(
        pace=Pace(concurrency=flags.pop("concurrency")),
        backoff=Backoff(patience_s=flags.pop("patience")),
        timeout_s=flags.pop("timeout"),
    )
