"""Combine the shards of one run; they must be disjoint, of the same run and complete."""

from contextlib import closing
from pathlib import Path

from msgspec.structs import replace

from medthink.core.errors import UsageError
from medthink.core.files import new_folder
from medthink.runs.ledger import Ledger
from medthink.runs.manifest import Manifest, read_manifest
from medthink.runs.records import LEDGER
from medthink.runs.results import write_results
from medthink.runs.run import Run
from medthink.runs.selection import Shard


def merge_shards(out: Path, runs: list[Path]) -> Run:
    """Combine the shards' ledgers into one run; if anything is wrong with them, nothing is written."""
    manifests = [read_manifest(run) for run in runs]
    _refuse_strangers(runs, manifests)
    whole = replace(
        manifests[0],
        selection=replace(manifests[0].selection, shard=None),
        created_at=min(manifest.created_at for manifest in manifests),
        progress=None,
    )
    with new_folder(out) as folder, closing(Ledger(folder / LEDGER)) as ledger:
        for run in runs:
            ledger.take_in(run)
        write_results(folder, whole, ledger, sum(m.progress.cases for m in manifests if m.progress))
    return Run(out)


def _refuse_strangers(runs: list[Path], manifests: list[Manifest]) -> None:
    shards = [manifest.selection.shard for manifest in manifests]
    for run, manifest, shard in zip(runs, manifests, shards, strict=True):
        if shard is None:
            raise UsageError(f"{run} is a whole run, not a shard", remedy="merge runs made with --shard i/n")
        if _without_shard(manifest) != _without_shard(manifests[0]):
            raise UsageError(f"{run} is not a shard of the same run as {runs[0]}", remedy="merge shards of one command")
        if manifest.progress is None or not manifest.progress.is_complete:
            raise UsageError(f"{run} is not finished", remedy="run its command again first")
    _refuse_gaps([shard for shard in shards if shard])


def _refuse_gaps(shards: list[Shard]) -> None:
    count = shards[0].count
    numbers = sorted(shard.number for shard in shards)
    if any(shard.count != count for shard in shards) or numbers != list(range(1, count + 1)):
        given = ", ".join(map(str, shards))
        raise UsageError(f"the shards {given} are not complete", remedy=f"give 1/{count} to {count}/{count}, once each")


def _without_shard(manifest: Manifest) -> str:
    whole = replace(manifest.selection, shard=None)
    # The label may be another release's words for the same condition.
    return replace(manifest, selection=whole, condition_label="").digest()
