"""The flags that make a condition, for every command that takes one."""

from collections.abc import Callable
from typing import Any

import click
import msgspec

from medthink.cli.params import Real
from medthink.workflow.condition import Condition, OptionOrder, parse_share
from medthink.workflow.tasks import default_condition

SOURCES = click.Choice(["none", "expert", "self"])
EFFORTS = click.Choice(["none", "minimal", "low", "medium", "high", "xhigh"])

_FLAGS = [
    click.option("--image-share", metavar="SHARE", help="Share of each case's images, such as 40%.  [default: 100%]"),
    click.option(
        "--image-choice",
        type=click.Choice(["first", "spread", "seeded"]),
        help="Which images make the share: the first, spread over the case, or drawn.  [default: first]",
    ),
    click.option(
        "--image-order",
        type=click.Choice(["as_is", "reversed", "seeded"]),
        help="The order they are shown in.  [default: as_is]",
    ),
    click.option("--swap-images", is_flag=True, default=None, help="Show another case's images, as a test of looking."),
    click.option("--hide-history", is_flag=True, default=None, help="Do not show the clinical history."),
    click.option("--hide-options", is_flag=True, default=None, help="Do not show the options: free-text diagnosis."),
    click.option(
        "--option-order", metavar="ORDER", help="as_is, seeded, or a number k: rotate by k letters.  [default: as_is]"
    ),
    click.option(
        "--findings",
        type=SOURCES,
        help="Step 1, findings per image: the expert's or the model's own.  [default: self for twi, else none]",
    ),
    click.option("--summary", type=SOURCES, help="Step 2, summary of all images: likewise."),
    click.option("--single-call", is_flag=True, default=None, help="twi: ask for all three steps in one reply."),
    click.option(
        "--prompt-set", metavar="NAME", help="default, brief, or the path of a folder of one's own.  [default: default]"
    ),
    click.option("--no-schema", is_flag=True, default=None, help="Ask for JSON in words only, for servers without it."),
    click.option("--max-side", type=click.IntRange(1), metavar="PX", help="Shrink images to this longest side."),
    click.option("--max-bytes", type=click.IntRange(1), metavar="N", help="Shrink images to this many bytes."),
    click.option("--effort", type=EFFORTS, help="How hard the model thinks, by the provider's own parameter."),
    click.option("--temperature", type=Real(0, 2), metavar="T", help="Sampling temperature."),
    click.option("--max-tokens", type=click.IntRange(1), metavar="N", help="The most tokens a reply may have."),
    click.option("--samples", type=click.IntRange(1), metavar="N", help="Answers per case.  [default: 1]"),
    click.option("--seed", type=click.IntRange(0), metavar="N", help="Seed of what is shown by chance.  [default: 0]"),
    click.option(
        "--model-seed",
        type=click.IntRange(0),
        metavar="N",
        help="Seed sent to the model, and N + k with sample k.",
    ),
]


def condition_flags(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the flags of a condition; it receives them as keyword arguments."""
    for flag in reversed(_FLAGS):
        command = flag(command)
    return command


def read_condition(task: str, flags: dict[str, Any]) -> Condition:
    """The task's default condition, changed by the flags that were given."""
    given = {name: value for name, value in flags.items() if value is not None}
    changes: dict[str, Any] = {}
    for flag, field in (
        ("hide_history", "show_history"),
        ("hide_options", "show_options"),
        ("no_schema", "use_schema"),
    ):
        if given.pop(flag, False):
            changes[field] = False
    for flag, field in (("max_side", "image_max_side"), ("max_bytes", "image_max_bytes")):
        if flag in given:
            changes[field] = given.pop(flag)
    if "image_share" in given:
        given["image_share"] = parse_share(given["image_share"])
    if "option_order" in given:
        given["option_order"] = _read_option_order(given["option_order"])
    return msgspec.structs.replace(default_condition(task), **given, **changes)


def _read_option_order(text: str) -> OptionOrder:
    if text.isdecimal():
        return int(text)
    if text in ("as_is", "seeded"):
        return "as_is" if text == "as_is" else "seeded"
    raise click.BadParameter(f"{text!r} is neither as_is, seeded nor a number", param_hint="--option-order")
