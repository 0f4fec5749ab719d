"""The earlier sessions of a run: whether the next one continues them, and what of theirs is kept."""

from contextlib import closing
from pathlib import Path

from msgspec.structs import replace

from medthink.cases.benchmark import Fingerprints
from medthink.core.clock import now_utc
from medthink.core.digest import digest_file
from medthink.models.catalog import PROVIDERS
from medthink.models.image_detail import settle_detail
from medthink.runs.ledger.queries import LEDGER, LedgerQueries, Totals, damaged
from medthink.runs.manifest import Amendment, Manifest, RunSpec, read_manifest, refuse_other_run, write_manifest
from medthink.runs.run import PREDICTIONS_FILE, is_settled
from medthink.runs.survey import Survey, find_changed, write_digests
from medthink.workflow.tasks import prompt_versions


def resolve_manifest(spec: RunSpec, out: Path, seen: Survey) -> tuple[Manifest, bool]:
    """The manifest of the run, new or continued, and whether its predictions so far can be kept as they are.

    They can if this release made them, after the survey of that session had ended.
    """
    new = plan_manifest(spec, seen.fingerprints)
    old = find_earlier(out, new, seen.digests)
    if old is not None:
        kept = {"created_at": old.created_at, "condition_label": old.condition_label, "progress": old.progress}
        new = replace(new, amendments=_amend(old, new), **kept)
        if new.fingerprint != old.fingerprint:
            write_digests(out, seen.digests)
            write_manifest(out, new)
        return new, old.package == new.package and bool(old.fingerprint)
    begin_manifest(out, new)
    write_digests(out, seen.digests)
    return new, True


def begin_manifest(out: Path, new: Manifest) -> None:
    """Write the manifest of a new run."""
    for name in (LEDGER, f"{LEDGER}-wal", f"{LEDGER}-shm", PREDICTIONS_FILE):
        (out / name).unlink(missing_ok=True)  # of a run that nothing answered
    write_manifest(out, new)


def plan_manifest(spec: RunSpec, fingerprints: Fingerprints) -> Manifest:
    """The manifest of the run before its first call."""
    made = Manifest(
        benchmark=str(spec.benchmark),
        fingerprint=fingerprints.whole,
        text_fingerprint=fingerprints.texts,
        selection=spec.selection,
        task=spec.task,
        model=spec.model,
        base_urls=spec.base_urls,
        condition=spec.condition,
        condition_label=spec.condition.label(),
        image_detail=_chosen_detail(spec),
        prompts={str(kind): version for kind, version in prompt_versions(spec.task, spec.condition).items()},
        created_at=now_utc(),
    )
    return made if spec.out is None else made.on(spec.benchmark, spec.out)


def _chosen_detail(spec: RunSpec) -> str:
    """The level of image detail that a provider is sent where the condition names none."""
    provider, _, name = spec.model.partition("/")
    is_asked = provider in PROVIDERS and spec.condition.image_share > 0 and spec.condition.image_detail is None
    return settle_detail(None, provider, name) or "" if is_asked else ""


def find_earlier(out: Path, new: Manifest, digests: dict[int, str]) -> Manifest | None:
    """The manifest of the run to continue, if there is one; LedgerError if it is another run.

    A changed benchmark is accepted if the change affects only cases without an answered call.
    """
    if not (out / "run.json").exists():
        return None
    old = read_manifest(out)
    if not old.fingerprint:
        # The session ended before its survey; what it was answered is found by the content of each request.
        new = replace(new, fingerprint="", text_fingerprint="")
    if old.identity() != new.identity() and _is_blank(out):
        return None
    changed = find_changed(out, digests)
    is_open = old.fingerprint != new.fingerprint and _is_open_to(out, new, changed)
    compared = replace(new, fingerprint=old.fingerprint, text_fingerprint=old.text_fingerprint) if is_open else new
    refuse_other_run(old, compared, out, changed)
    return old


def _is_blank(out: Path) -> bool:
    """Whether nothing in the run was answered or paid for: another run may be started in its place."""
    if not (out / LEDGER).is_file():
        return True
    with closing(LedgerQueries.open(out)) as records:
        totals = records.totals()
    # Without a price, only what was billed for sure or perhaps is known.
    return set(totals.calls) <= {"failed"} and not totals.spent.cost_usd and not totals.spent.uncounted


def _is_open_to(out: Path, new: Manifest, changed: set[int] | None) -> bool:
    """Whether no answered call of the run involves the changed cases."""
    if changed is None or not (out / LEDGER).is_file():
        return False
    with closing(LedgerQueries.open(out)) as records:
        answered = records.answered_cases()
    # With swapped images, a changed case also appears in the prompts of others.
    return not answered if new.condition.swap_images else not (answered & changed)


def _amend(old: Manifest, new: Manifest) -> tuple[Amendment, ...]:
    """The changes of the benchmark during the run, including this one if any."""
    if old.fingerprint in ("", new.fingerprint):
        return old.amendments
    return (*old.amendments, Amendment(at=now_utc(), fingerprint=old.fingerprint))


def refuse_lost(manifest: Manifest, totals: Totals, ledger: Path) -> None:
    """Raise LedgerError if recorded calls are missing: making them again would mean paying again."""
    before = sum(manifest.progress.calls.values()) if manifest.progress else 0
    if sum(totals.calls.values()) < before:
        raise damaged(ledger, f"it holds {sum(totals.calls.values())} calls, and run.json counts {before}")


def is_finished(out: Path) -> bool:
    """Whether the run exists and no call is left to make."""
    if not (out / "run.json").exists():
        return False
    progress = read_manifest(out).progress
    return progress is not None and progress.is_complete and not progress.calls.get("failed")


def is_done(out: Path, manifest: Manifest, total: int) -> bool:
    """Whether a session would change nothing: no case failed, and all that the ledger holds is written."""
    progress = manifest.progress
    if progress is None or progress.cases != total or progress.states.get("failed") or not is_finished(out):
        return False
    is_whole = is_settled(out, manifest) and (out / LEDGER).is_file()
    return is_whole and digest_file(out / PREDICTIONS_FILE) == progress.predictions_digest
