"""From a model's name to who answers for it; what it needs is imported on demand."""

from pathlib import Path
from typing import TYPE_CHECKING

from medthink.core.errors import UsageError
from medthink.core.plugins import load_plugin
from medthink.models.catalog import PROVIDERS
from medthink.models.prices import load_prices
from medthink.runs.answerers import (
    AddedAnswerer,
    Answerer,
    BaselineAnswerer,
    InspectAnswerer,
    LocalAnswerer,
    ModelAnswerer,
    ReplayAnswerer,
)
from medthink.workflow.ask import Prompt

if TYPE_CHECKING:
    from medthink.cases.benchmark import Benchmark
    from medthink.models.transport import Transport


def open_answerer(
    spec: str,
    *,
    benchmark: "Benchmark",
    base_urls: tuple[str, ...] = (),
    transport: "Transport | None" = None,
    prices: Path | None = None,
    needs_key: bool = True,
    is_batch: bool = False,
) -> Answerer[Prompt]:
    """Open what the model spec names; its dependencies are imported on demand."""
    provider, _, name = spec.partition("/")
    if provider in ("baseline", "replay"):
        _refuse_flags(spec, base_urls, is_batch=is_batch)
    if provider == "baseline":
        from medthink.baselines import open_baseline

        return BaselineAnswerer(spec, open_baseline(name, benchmark))
    if provider == "replay":
        return ReplayAnswerer(spec, Path(name))
    return open_model_answerer(
        spec, base_urls=base_urls, transport=transport, prices=prices, needs_key=needs_key, is_batch=is_batch
    )


def open_model_answerer(
    spec: str,
    *,
    base_urls: tuple[str, ...] = (),
    transport: "Transport | None" = None,
    prices: Path | None = None,
    needs_key: bool = True,
    is_batch: bool = False,
) -> ModelAnswerer | AddedAnswerer:
    """The HTTP model named by the spec, or the one another package adds under that name."""
    provider, _, name = spec.partition("/")
    price = load_prices(prices).find(spec)
    if provider == "local" and name:
        from medthink.models.local import LocalModel

        _refuse_flags(spec, base_urls, is_batch=is_batch)
        return LocalAnswerer(spec, LocalModel(name), price)
    if provider == "inspect" and name:
        from medthink.models.inspect_ai import InspectModel

        _refuse_flags(spec, (), is_batch=is_batch)
        return InspectAnswerer(spec, InspectModel(name, base_urls=base_urls, transport=transport), price)
    open_added = load_plugin("medthink.models", provider) if name and provider not in PROVIDERS else None
    if open_added is None:
        return ModelAnswerer(
            spec, base_urls=base_urls, transport=transport, price=price, needs_key=needs_key, is_batch=is_batch
        )
    _refuse_flags(spec, base_urls, is_batch=is_batch)
    return AddedAnswerer(spec, open_added(name), price)


def _refuse_flags(spec: str, base_urls: tuple[str, ...], *, is_batch: bool) -> None:
    """Raise UsageError for provider flags if there is no provider."""
    if base_urls:
        raise UsageError(f"{spec} takes no --base-url", remedy="leave it out")
    if is_batch:
        raise UsageError(f"{spec} has no batches", remedy="leave out --batch")
