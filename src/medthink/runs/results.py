"""What came out of a run, written from its ledger."""

from pathlib import Path

from msgspec.structs import replace

from medthink.core.files import write_atomic
from medthink.runs.doubts import count_image_doubts
from medthink.runs.index import PREDICTIONS_FILE
from medthink.runs.ledger import Ledger
from medthink.runs.manifest import Manifest, Progress, write_manifest
from medthink.runs.records import Records


def write_results(out: Path, manifest: Manifest, ledger: Ledger, total: int) -> None:
    """Write predictions and manifest from the ledger; the same ledger gives the same bytes."""
    write_atomic(out / PREDICTIONS_FILE, (body + b"\n" for body in ledger.predictions()))
    write_manifest(out, replace(manifest, progress=summarise(ledger, total)))


def summarise(ledger: Records, total: int, *, is_running: bool = False) -> Progress:
    """The run's progress, computed from its ledger."""
    totals, span = ledger.totals(), ledger.span()
    states, doubts = ledger.prediction_states(), count_image_doubts(ledger)
    return Progress(
        cases=total,
        states=states,
        calls={str(state): count for state, count in totals.calls.items()},
        attempts=totals.attempts,
        image_replies=doubts.replies,
        image_doubts=doubts.doubtful,
        cost_usd=totals.cost_usd,
        unseen_replies=totals.lost_replies(is_running=is_running),
        usage_doubts=ledger.usage_doubts(),
        reported_models=ledger.reported_models(),
        first_call_at=span[0],
        last_call_at=span[1],
        is_complete=sum(states.values()) == total and not totals.calls.get("queued"),
    )
