"""`run.json`: the settings of a run, and its progress."""

import os
from collections.abc import Callable, Collection, Iterable
from pathlib import Path
from typing import Any, TypeVar

import msgspec
from msgspec.structs import force_setattr, replace

from medthink import __version__
from medthink.core.digest import digest_value
from medthink.core.errors import DataError, LedgerError, MedThinkError, UsageError
from medthink.core.jsonio import read_stored, write_json
from medthink.models.catalog import check_base_url
from medthink.models.prices import PriceSource, parse_price
from medthink.runs.ledger.queries import RUN_FOLDER, name_cases
from medthink.runs.selection import DEFAULT_SPLIT, Selection
from medthink.runs.survey import find_changes_at
from medthink.workflow.condition import Condition
from medthink.workflow.tasks import resolve_condition

FORMAT = 1
# What may differ between two sessions of one run: where data and servers are, which release runs, when it began.
_FINGERPRINTS = ("fingerprint", "text_fingerprint")
_NOT_IDENTITY = ("benchmark", "benchmark_absolute", "base_urls", "package", "created_at", "progress", "amendments")


class Progress(msgspec.Struct, frozen=True, kw_only=True):
    """A run's progress; everything here can be recomputed from the ledger.

    Of the `image_replies` to calls with images, `image_doubts` count too few input tokens to have seen them.
    `uncounted_replies` never arrived or count no tokens, and may have been billed: `cost_usd` includes them with the
    most that they may cost, and it is shown as "at least". `usage_doubts` counts replies with impossible token counts.
    `changes` is how much was written to the ledger, and `predictions_digest` is of the predictions file made of it:
    where the ledger counts more, it knows more. `stopped_by` is the error that ended the last session.
    """

    cases: int
    states: dict[str, int]
    calls: dict[str, int]
    attempts: int
    image_replies: int = 0
    image_doubts: int = 0
    cost_usd: float | None
    uncounted_replies: int = 0
    usage_doubts: int = 0
    reported_models: tuple[str, ...]
    first_call_at: str | None
    last_call_at: str | None
    is_complete: bool
    changes: int = 0
    predictions_digest: str = ""
    stopped_by: str = ""
    remedy: str = ""

    @property
    def is_unanswered(self) -> bool:
        """Whether every case failed and no call was answered: there is nothing to score."""
        return not self.calls.get("done") and set(self.states) == {"failed"}

    @property
    def is_least_cost(self) -> bool:
        """Whether the cost includes attempts whose tokens were not counted."""
        return self.uncounted_replies > 0 and self.cost_usd is not None

    @property
    def word(self) -> str:
        """The progress in one or two words."""
        failed = self.states.get("failed", 0)
        if not self.is_complete:
            return "unfinished"
        if not failed:
            return "complete"
        return "failed" if failed == sum(self.states.values()) else "partly failed"


class Amendment(msgspec.Struct, frozen=True, kw_only=True):
    """A change of the benchmark during a run, which touched only cases without an answered call.

    `fingerprint` is what the benchmark had before.
    """

    at: str
    fingerprint: str


class Manifest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The settings of a run; two sessions continue one run if all but path, release and time are equal.

    `benchmark` is its path from the run's folder, so that both may move together; `benchmark_absolute` is tried second.
    `fingerprint` pins texts and images of the split, `text_fingerprint` its texts alone: scoring needs no image. Both
    are empty until the survey has ended, which the first calls do not wait for.
    `image_detail` is the level of detail that images are sent at, where the condition leaves it to us.
    `condition_label` is left as the release that started the run wrote it, for the digest; show `condition.label()`.
    """

    format: int = FORMAT
    benchmark: str
    benchmark_absolute: str = ""
    fingerprint: str
    text_fingerprint: str
    selection: Selection
    task: str
    model: str
    base_urls: tuple[str, ...] = ()
    condition: Condition
    condition_label: str
    image_detail: str = ""
    prompts: dict[str, str]
    package: str = __version__
    created_at: str
    progress: Progress | None = None
    amendments: tuple[Amendment, ...] = ()

    @property
    def benchmark_name(self) -> str:
        """The name of the benchmark's folder or file."""
        return Path(self.benchmark_absolute or self.benchmark).name or "benchmark"

    def label(self) -> str:
        """The condition in one line, with the level of image detail that was chosen for it."""
        chosen = f" · image detail {self.image_detail}" if self.image_detail else ""
        return self.condition.label() + chosen

    def on(self, benchmark: Path, run: Path) -> "Manifest":
        """The manifest of a run in this folder, on the benchmark at this path."""
        absolute = Path(os.path.abspath(benchmark))  # noqa: PTH100  `resolve` would replace the name of a link
        named = absolute.parent.resolve() / absolute.name
        return replace(self, benchmark=os.path.relpath(named, run.resolve()), benchmark_absolute=str(absolute))

    def moved(self, old: Path, new: Path) -> "Manifest":
        """The same for another folder of the run."""
        return replace(self, benchmark=os.path.relpath(old.resolve() / self.benchmark, new.resolve()))

    def identity(self) -> dict[str, Any]:
        """The fields that make it this run and no other."""
        fields: dict[str, Any] = msgspec.to_builtins(self)
        return {name: value for name, value in fields.items() if name not in _NOT_IDENTITY}

    def digest(self) -> str:
        """The digest of the identity."""
        return digest_value(self.identity())


def find_runs(places: Iterable[Path]) -> tuple[Path, ...]:
    """The runs and files named: a sweep or a folder of runs stands for its runs, by name.

    Files that a sweep keeps beside its runs are passed over, so that `sweep/*` names its runs.
    """
    return tuple(run for place in places for run in _runs_at(place))


def _runs_at(place: Path) -> list[Path]:
    if not place.is_dir():
        return [] if (place.parent / "sweep.json").is_file() and place.suffix in (".json", ".svg") else [place]
    if (place / "run.json").is_file():
        return [place]
    return sorted(path.parent for path in place.glob("*/run.json")) or [place]


def read_manifest(run: Path) -> Manifest:
    """The manifest of a run's folder."""
    path = run / "run.json"
    if not path.is_file():
        raise DataError("this is not a run: it has no run.json", file=run, remedy=RUN_FOLDER)
    return read_stored(path, Manifest, name="a manifest", remedy="use the release that wrote it")


def write_manifest(run: Path, manifest: Manifest) -> None:
    """Write the manifest atomically."""
    try:
        write_json(run / "run.json", msgspec.to_builtins(manifest))
    except TypeError as error:  # a name that is not valid Unicode, or a number beyond 64 bits
        raise UsageError(
            f"run.json cannot store these settings: {error}", remedy="use names in Unicode and smaller numbers"
        ) from None


Found = TypeVar("Found")


def find_benchmark(
    run: Path,
    manifest: Manifest,
    data: Path | None,
    read: Callable[[Path], Found | None],
    *,
    names_changes: bool = True,
) -> Found:
    """The run's benchmark as `read` returns it; `read` returns None for a different benchmark.

    Tried are `data` alone if given, else the path from the run's folder and then the absolute one. UsageError if the
    benchmark is at neither; naming the cases that have changed takes a pass over its images.
    """
    if not manifest.fingerprint:
        raise UsageError(
            f"{run}: its benchmark has no fingerprint yet", remedy="wait until the run has it, or run its command again"
        )
    there = [place for place in _places(run, manifest, data) if place.exists()]
    problems: list[MedThinkError] = []
    for place in there:
        try:
            if (found := read(place)) is not None:
                return found
            changed = find_changes_at(place, run, manifest.selection.split) if names_changes else frozenset()
        except MedThinkError as error:
            problems.append(error)
        else:
            problems.append(_other_benchmark(run, place, changed))
    raise problems[0] if problems else _no_benchmark(run, _places(run, manifest, data)[0])


def _places(run: Path, manifest: Manifest, data: Path | None) -> tuple[Path, ...]:
    if data is not None:
        return (data,)
    beside = Path(os.path.normpath(run.resolve() / manifest.benchmark))
    return tuple(dict.fromkeys((beside, Path(manifest.benchmark_absolute or beside))))


def _other_benchmark(run: Path, place: Path, changed: Collection[int]) -> UsageError:
    if changed:
        return UsageError(
            f"{place} has changed since {run} was made on it: {name_cases(changed)}",
            remedy="restore its texts and images, or give the right one with --data",
        )
    return UsageError(
        f"{place} is not the benchmark that {run} was made on, or has changed since: its fingerprint differs",
        remedy="give the right one with --data",
    )


def _no_benchmark(run: Path, place: Path) -> UsageError:
    return UsageError(f"{run}: its benchmark is no longer at {place}", remedy="give its path with --data")


def refuse_other_run(old: Manifest, new: Manifest, run: Path, changed: Collection[int] | None = None) -> None:
    """Raise LedgerError, naming the field, unless the new session continues the old one.

    `changed` are the cases of the benchmark that have changed since, if that is known.
    """
    before, now = _spread(old.identity()), _spread(new.identity())
    # The label only repeats the condition's fields.
    different = [name for name in before | now if before.get(name) != now.get(name) and name != "condition_label"]
    # Another task or condition has other prompts, so they add no information.
    different = [name for name in different if not name.startswith("prompts.")] or different
    if not different:
        return
    others = [name for name in different if name not in _FINGERPRINTS]
    reasons = [f"{name}: was {_short(before.get(name))}, now {_short(now.get(name))}" for name in others]
    is_changed = len(others) < len(different)
    if is_changed:
        cases = f": {name_cases(changed)}" if changed else ""
        reasons.insert(0, f"the benchmark has changed since{cases}")
    again = "restore its texts and images" if is_changed else "run the same command as before"
    raise LedgerError(f"{run} holds another run: {'; '.join(reasons)}", remedy=f"{again}, or choose another --out")


def _spread(fields: dict[str, Any]) -> dict[str, Any]:
    """The fields with those inside them by a name of their own, such as `condition.image_share`."""
    inside = {
        f"{name}.{key}": part for name, one in fields.items() if isinstance(one, dict) for key, part in one.items()
    }
    return {name: one for name, one in fields.items() if not isinstance(one, dict)} | inside


def _short(value: Any) -> str:
    text = str(value)
    return text if len(text) <= 120 else text[:117] + "…"


class CallTerms(msgspec.Struct, frozen=True, kw_only=True):
    """How models are asked: servers, prices and limits.

    With `batch`, calls use the provider's batch API; the session waits for them unless `wait` is off. `cancel_batches`
    ends the jobs of earlier sessions first, and `forget_batches` names those that cannot be collected any more. With
    `preflight`, server, model and key are checked before the first call.
    """

    base_urls: tuple[str, ...] = ()
    prices: Path | None = None
    price: str | None = None
    max_usd: float | None = None
    max_calls: int | None = None
    preflight: bool = True
    batch: bool = False
    wait: bool = True
    cancel_batches: bool = False
    forget_batches: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        # Before anything is written: addresses are stored in plans, manifests and ledgers.
        for url in self.base_urls:
            check_base_url(url)
        if self.price is not None:
            parse_price(self.price)

    @property
    def price_source(self) -> PriceSource:
        """Where the price of a model is found: the one given counts, whatever the model."""
        return self.prices if self.price is None else parse_price(self.price)


class RunSpec(CallTerms, frozen=True, kw_only=True):
    """The parameters of a session; the command line's flags map one to one onto these fields.

    `out` may be missing only if nothing is sent. `plan` is the command as a file, kept in the run's folder.
    """

    benchmark: Path
    model: str
    out: Path | None = None
    task: str = "answer"
    condition: Condition = Condition()
    selection: Selection = Selection(split=DEFAULT_SPLIT)
    rehash: bool = False
    plan: str | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        # In this one place, for the command line and for Python.
        force_setattr(self, "condition", resolve_condition(self.task, self.condition))
