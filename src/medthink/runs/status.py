"""A run's progress, read from its folder while another process may be working on it."""

import time
from contextlib import closing
from pathlib import Path

import msgspec

from medthink.runs.lock import is_held
from medthink.runs.manifest import Manifest, read_manifest
from medthink.runs.progress import LIVE, WINDOW_S, Announcement, LiveCounts
from medthink.runs.records import LEDGER, Records


def read_status(run: Path) -> LiveCounts:
    """The counts of a run, even while another process works on it."""
    manifest = read_manifest(run)
    counts = LiveCounts()
    counts.is_running = is_held(run)
    live = _read_announcement(run)
    _take_totals(counts, manifest, live)
    if (run / LEDGER).is_file():
        with closing(Records.open(run)) as records:
            _take_records(counts, records)
    if live is None or not counts.is_running:
        counts.phase, counts.in_flight = "ended", 0
    return counts


def _take_totals(counts: LiveCounts, manifest: Manifest, live: Announcement | None) -> None:
    if manifest.progress is not None:
        counts.predictions = manifest.progress.cases
        counts.calls = sum(manifest.progress.calls.values())
    if live is not None:
        counts.phase, counts.detail, counts.since = live.phase, live.detail, live.since
        counts.predictions = live.predictions or counts.predictions
        counts.calls = live.calls or counts.calls


def _take_records(counts: LiveCounts, records: Records) -> None:
    totals = records.totals()
    counts.states.update(records.prediction_states())
    counts.done, counts.failed = totals.calls.get("done", 0), totals.calls.get("failed", 0)
    counts.queued = totals.calls.get("queued", 0)
    # Calls are recorded as open before they have a place; only this many are in progress.
    intended = totals.calls.get("open", 0)
    counts.in_flight = min(intended, records.places() or intended)
    counts.retried = records.retries()
    counts.take_spent(records, is_running=counts.is_running)
    counts.ends.extend(records.ends_since(time.time() - WINDOW_S))
    counts.began = min([*counts.ends, counts.began])


def _read_announcement(run: Path) -> Announcement | None:
    try:
        return msgspec.json.decode((run / LIVE).read_bytes(), type=Announcement)
    except (OSError, msgspec.DecodeError):
        return None
