"""Whether a new session may continue the run that is already in its folder."""

from contextlib import closing
from pathlib import Path

from msgspec.structs import replace

from medthink.cases.benchmark import Fingerprints
from medthink.core.clock import now_utc
from medthink.core.errors import LedgerError
from medthink.runs.manifest import Amendment, Manifest, read_manifest, refuse_other_run, write_manifest
from medthink.runs.progress import LIVE
from medthink.runs.reader import damaged
from medthink.runs.records import LEDGER, Records, Totals
from medthink.runs.spec import RunSpec
from medthink.runs.survey import Survey, find_changed, write_digests
from medthink.workflow.tasks import prompt_versions


def make_folder(out: Path) -> None:
    """Make the run's folder, or raise LedgerError if it holds something else."""
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise LedgerError(f"{out}: cannot be created: {error.strerror}", remedy="choose another --out") from None
    strange = [
        path.name for path in out.iterdir() if not (out / "run.json").exists() and path.name not in (".lock", LIVE)
    ]
    if strange:
        raise LedgerError(f"{out} is not empty and not a run: it holds {strange[0]}", remedy="choose another --out")


def settle_manifest(spec: RunSpec, out: Path, seen: Survey) -> tuple[Manifest, bool]:
    """The manifest of the run, new or continued, and whether everything so far was made by this release."""
    new = plan_manifest(spec, seen.fingerprints)
    old = find_earlier(out, new, seen.digests)
    if old is not None:
        kept = {"created_at": old.created_at, "condition_label": old.condition_label, "progress": old.progress}
        new = replace(new, amendments=_amend(old, new), **kept)
        if new.fingerprint != old.fingerprint:
            write_digests(out, seen.digests)
            write_manifest(out, new)
        return new, old.package == new.package
    write_manifest(out, new)
    write_digests(out, seen.digests)
    return new, True


def plan_manifest(spec: RunSpec, fingerprints: Fingerprints) -> Manifest:
    """The manifest of the run before its first call."""
    return Manifest(
        benchmark=str(spec.benchmark),
        fingerprint=fingerprints.whole,
        text_fingerprint=fingerprints.texts,
        selection=spec.selection,
        task=spec.task,
        model=spec.model,
        base_urls=spec.base_urls,
        condition=spec.condition,
        condition_label=spec.condition.label(),
        prompts={str(kind): version for kind, version in prompt_versions(spec.task, spec.condition).items()},
        created_at=now_utc(),
    )


def find_earlier(out: Path, new: Manifest, digests: dict[int, str]) -> Manifest | None:
    """The manifest of the run to continue, if there is one; LedgerError if it is another run.

    A changed benchmark is accepted if the change affects only cases without an answered call.
    """
    if not (out / "run.json").exists():
        return None
    old = read_manifest(out)
    is_open = old.fingerprint != new.fingerprint and _is_open_to(out, new, digests)
    compared = replace(new, fingerprint=old.fingerprint, text_fingerprint=old.text_fingerprint) if is_open else new
    refuse_other_run(old, compared, out)
    return old


def _is_open_to(out: Path, new: Manifest, digests: dict[int, str]) -> bool:
    """Whether no answered call of the run involves the changed cases."""
    changed = find_changed(out, digests)
    if changed is None or not (out / LEDGER).is_file():
        return False
    with closing(Records.open(out)) as records:
        answered = records.answered_cases()
    # With swapped images, a changed case also appears in the prompts of others.
    return not answered if new.condition.swap_images else not (answered & changed)


def _amend(old: Manifest, new: Manifest) -> tuple[Amendment, ...]:
    """The changes of the benchmark during the run, including this one if any."""
    if old.fingerprint == new.fingerprint:
        return old.amendments
    return (*old.amendments, Amendment(at=now_utc(), fingerprint=old.fingerprint))


def refuse_lost(manifest: Manifest, totals: Totals, ledger: Path) -> None:
    """Raise LedgerError if recorded calls are gone: asking for them again would mean paying again."""
    before = sum(manifest.progress.calls.values()) if manifest.progress else 0
    if sum(totals.calls.values()) < before:
        raise damaged(ledger, f"it holds {sum(totals.calls.values())} calls, and run.json counts {before}")


def is_finished(out: Path) -> bool:
    """Whether a run is there with nothing left to ask."""
    if not (out / "run.json").exists():
        return False
    progress = read_manifest(out).progress
    return progress is not None and progress.is_complete and not progress.calls.get("failed")
