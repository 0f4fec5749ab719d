"""A session's progress while it works: counted in one place, followed by a listener, readable from another terminal.

A session counts into one `LiveCounts`, which its listener gets once (`RunListener.follow`). The listener may read it
whenever it likes, from any thread: a live block refreshes by a timer, not by events. `status.read_status` makes the
same `LiveCounts` of a run that another process is working on.

phase            what is going on
checking         the preflight: is the server there, does it know the model, does it accept the key
fingerprinting   the benchmark is read once: its texts and images are pinned
learning         a baseline learns from the train split; it happens at the first call
preparing        the ledger is opened and the first cases are made ready
queueing         calls are put into batches
asking           calls are made
waiting          no server answers, a batch is under way, or the budget waits for calls in flight; `detail` says which
writing          predictions and manifest are written
ended            the session is over
"""

import statistics
import threading
import time
from collections import Counter, deque
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol

import msgspec

from medthink.core.clock import now_utc
from medthink.core.files import write_atomic
from medthink.core.jsonio import encode_json
from medthink.core.numbers import as_usd
from medthink.models.prices import Charge
from medthink.models.request import Reply, Usage

if TYPE_CHECKING:
    from medthink.runs.ledger.queries import LedgerQueries, Spent
    from medthink.workflow.prediction import Prediction

Phase = Literal[
    "checking", "fingerprinting", "learning", "preparing", "queueing", "asking", "waiting", "writing", "ended"
]
# Next to the ledger while a session works: what only the working process knows. Removed when a session ends normally.
LIVE = ".live.json"
LOG = "run.log"
WINDOW_S = 60.0
# The most recent calls are those of so many seconds, and so many at least.
_RECENT_S, _RECENT = 10.0, 20
# The median is of the latencies of so many replies.
_LATENCIES = 500
_LOG_BYTES, _OLD_LOGS = 1_000_000, 3


class ProgressFile(msgspec.Struct, frozen=True, kw_only=True):
    """The content of `.live.json`, which a working session writes for other processes."""

    phase: Phase
    detail: str = ""
    since: str = ""
    predictions: int = 0
    calls: int = 0
    max_usd: float | None = None
    max_calls: int | None = None


class LiveCounts:
    """A run's progress.

    `predictions` and `calls` are the totals of the whole run, including earlier sessions; `calls` is the expected
    number, corrected as cases end. Of these calls, `kept` were answered in earlier sessions, `done` in this one,
    `failed` brought no answer, and `queued` wait in a batch. Tokens and money are those of the whole run; `cost_usd` is
    None when a price is not known, and `is_least_cost` says that nobody counted the tokens of some attempts. `reasons`
    counts the retries by what the attempt before ended in. `warnings` are for a person to know and do not stop the run.
    `unit` is the displayed word for a prediction.
    """

    def __init__(self) -> None:
        self.unit = "cases"
        self.phase: Phase = "preparing"
        self.detail = ""
        self.since = now_utc()
        self.predictions = 0
        self.states: Counter[str] = Counter()
        self.calls = 0
        self.kept = 0
        self.done = 0
        self.failed = 0
        self.in_flight = 0
        self.queued = 0
        self.retried = 0
        self.reasons: Counter[str] = Counter()
        self.latencies: deque[float] = deque(maxlen=_LATENCIES)
        self.max_usd: float | None = None
        self.max_calls: int | None = None
        self.input_tokens = 0
        self.output_tokens = 0
        self.cost_usd: float | None = 0.0
        self.is_least_cost = False
        self.is_running = True
        self.warnings: list[str] = []
        self.began = time.time()
        self.ends: deque[float] = deque()

    @property
    def finished(self) -> int:
        """Calls that ended in this session or an earlier one."""
        return self.kept + self.done + self.failed

    @property
    def predicted(self) -> int:
        """Predictions made so far, whatever their state."""
        return self.states.total()

    def per_minute(self) -> float:
        """Calls that ended in the last minute; in a shorter session, the rate so far."""
        now = time.time()
        ended = sum(1 for end in tuple(self.ends) if end > now - WINDOW_S)
        return ended * WINDOW_S / min(WINDOW_S, max(1.0, now - self.began))

    def time_left_s(self) -> float | None:
        """The remaining time at the rate of the last minute, or of the most recent calls if that is slower.

        None if none ended in the last minute.
        """
        if not (pace := self.per_minute()):
            return None
        now, ends = time.time(), tuple(self.ends)
        since = min(now - _RECENT_S, ends[-_RECENT] if len(ends) > _RECENT else self.began)
        recent = max(1, sum(1 for end in ends if end > since))
        recent_s = (now - since) / recent if since > self.began and since > now - WINDOW_S else 0.0
        return max(0, self.calls - self.finished) * max(recent_s, WINDOW_S / pace)

    def tell_reasons(self) -> str:
        """Why attempts were repeated, the commonest reason first; the number of each, where there are several."""
        named = [(reason.replace("_", " "), count) for reason, count in self.reasons.most_common()]
        return named[0][0] if len(named) == 1 else ", ".join(f"{count:,} {reason}" for reason, count in named)

    def latency_s(self) -> float | None:
        """The median latency of the most recent replies."""
        return statistics.median(self.latencies) if self.latencies else None

    def calls_affordable(self) -> int | None:
        """How many more calls the limits allow, at the cost of those so far; None if they allow all that are left."""
        allowed = [] if self.max_calls is None else [self.max_calls - self.finished - self.in_flight]
        if self.max_usd is not None and self.cost_usd and self.finished:
            allowed.append(int((self.max_usd - self.cost_usd) * self.finished / self.cost_usd + 1e-6))
        least = max(0, min(allowed, default=self.calls))
        return least if least < self.calls - self.finished - self.in_flight else None

    def count_attempt(self, number: int, outcome: str, latency_s: float) -> None:
        """Count an attempt that ended; a later one says that it is retried."""
        if outcome == "ok":
            self.latencies.append(latency_s)
        self.retried += number > 1

    def count_paid(self, usage: Usage | None, charge: Charge) -> None:
        """Count the tokens and the cost of an attempt."""
        self.count_tokens(usage)
        known = self.cost_usd is not None and charge.cost_usd is not None
        self.cost_usd = (self.cost_usd or 0.0) + (charge.cost_usd or 0.0) if known else None
        self.is_least_cost |= charge.is_least

    def count_end(self, *, is_answered: bool) -> None:
        """Count a call that ended."""
        if is_answered:
            self.done += 1
        else:
            self.failed += 1
        now = time.time()
        self.ends.append(now)
        while self.ends[0] < now - WINDOW_S:
            self.ends.popleft()

    def count_tokens(self, usage: Usage | None) -> None:
        """Count the tokens of a reply."""
        if usage is not None:
            self.input_tokens += usage.input
            self.output_tokens += usage.output

    def take_spent(self, records: "LedgerQueries", own: "Spent") -> None:
        """Set the recorded tokens, and the money of the run's own calls."""
        self.count_tokens(records.tokens())
        self.cost_usd, self.is_least_cost = own.cost_usd, own.uncounted > 0

    def snapshot(self) -> dict[str, Any]:
        """The counts as plain data, for JSON."""
        names = ("phase", "detail", "since", "predictions", "calls", "kept", "done", "failed", "in_flight", "queued")
        more = (
            "retried",
            "input_tokens",
            "output_tokens",
            "cost_usd",
            "is_least_cost",
            "max_usd",
            "max_calls",
            "is_running",
        )
        return {name: getattr(self, name) for name in (*names, *more)} | {
            "states": dict(self.states),
            "reasons": dict(self.reasons),
            "latency_s": self.latency_s(),
            "calls_per_minute": self.per_minute(),
            "seconds_left": self.time_left_s(),
        }


class RunListener(Protocol):
    """Follows a run."""

    def follow(self, counts: LiveCounts) -> None:
        """The session begins; `counts` is kept up to date until it ends."""

    def enter(self, phase: Phase, detail: str) -> None:
        """Another phase begins; the counts already show it."""

    def see(self, prediction: "Prediction", *, is_kept: bool = False) -> None:
        """One more prediction is there and counted; `is_kept`: from an earlier session."""


class SilentListener:
    """A listener that does nothing."""

    def follow(self, counts: LiveCounts) -> None:
        """Nothing."""

    def enter(self, phase: Phase, detail: str) -> None:
        """Nothing."""

    def see(self, prediction: "Prediction", *, is_kept: bool = False) -> None:
        """Nothing."""


class RunLog:
    """`run.log` in a run's folder: phases, cautions, failures, and the counts once a minute.

    It is rotated, and has neither prompts nor replies, so no reference either; keys are masked in what servers say. A
    disk that cannot take it stops no run.
    """

    def __init__(self, file: Path, counts: LiveCounts) -> None:
        self._file = file
        self._counts = counts
        self._turn = threading.Lock()
        self._over = threading.Event()
        self._minutes = threading.Thread(target=self._count_minutes, name="run log", daemon=True)
        self._minutes.start()

    def write(self, line: str) -> None:
        """Write a line, with the time."""
        flat = " ".join(line.split())
        with self._turn, suppress(OSError):
            with self._file.open("a", encoding="utf-8", errors="backslashreplace") as stream:
                stream.write(f"{now_utc()} {flat}\n")
                is_full = stream.tell() > _LOG_BYTES
            if is_full:
                for number in range(_OLD_LOGS, 0, -1):
                    newer = self._file if number == 1 else self._file.with_name(f"{LOG}.{number - 1}")
                    with suppress(FileNotFoundError):
                        newer.replace(self._file.with_name(f"{LOG}.{number}"))

    def tell(self) -> None:
        """Write the counts."""
        counts = self._counts
        states = ", ".join(f"{count} {state}" for state, count in counts.states.most_common()) or "none"
        reasons = f" ({counts.tell_reasons()})" if counts.reasons else ""
        cost = as_usd(counts.cost_usd, is_least=counts.is_least_cost)
        self.write(
            f"{counts.phase}: {counts.finished} of {max(counts.calls, counts.finished)} calls, {counts.in_flight} in"
            f" flight, {counts.retried} retried{reasons}, {counts.failed} failed; cases: {counts.predicted} of"
            f" {counts.predictions} done: {states}; cost {cost}"
        )

    def close(self) -> None:
        """Write the last counts."""
        self._over.set()
        self._minutes.join()
        self.tell()

    def _count_minutes(self) -> None:
        while not self._over.wait(WINDOW_S):
            self.tell()


class ProgressTracker:
    """Counts for one session, and announces its phase to the listener and in the run's folder."""

    def __init__(self, listener: RunListener | None = None) -> None:
        self.counts = LiveCounts()
        self._log: RunLog | None = None
        self.models: set[str] = set()
        self._listener = listener or SilentListener()
        self._folder: Path | None = None
        self._expected: int | None = None
        self._listener.follow(self.counts)

    def begin_pass(self) -> None:
        """Restart the counts: the next pass over the cases meets everything done in the earlier one again."""
        counts = self.counts
        if self._expected is None:
            self._expected = counts.calls
        counts.calls = self._expected
        counts.kept = counts.done = counts.failed = 0
        counts.states.clear()

    def announce_in(self, folder: Path) -> None:
        """Begin to announce the session's progress in this folder, which is locked, and to keep its log there."""
        self._folder = folder
        self._log = RunLog(folder / LOG, self.counts)
        self.announce()

    def say(self, line: str) -> None:
        """A line for the log."""
        if self._log is not None:
            self._log.write(line)

    def enter(self, phase: Phase, detail: str = "") -> None:
        """Begin a phase, unless it is already the current one."""
        counts = self.counts
        if (phase, detail) == (counts.phase, counts.detail):
            return
        counts.phase, counts.detail, counts.since = phase, detail, now_utc()
        self._listener.enter(phase, detail)
        self.say(f"{phase}: {detail}" if detail else phase)
        self.announce()

    def warn(self, problem: str) -> None:
        """Record a warning, which does not stop the run."""
        if problem not in self.counts.warnings:
            self.counts.warnings.append(problem)
            self.say(f"caution: {problem}")

    def note_reply(self, reply: Reply) -> None:
        """Warn of an answer under a different model name than before, or with a reason to stop that is not known."""
        if reply.stop_word:
            self.warn(f"replies end for an unknown reason ({reply.stop_word}): their answers are taken as whole")
        name = reply.model
        if name and name not in self.models:
            if self.models:
                seen = ", ".join(sorted(self.models))
                self.warn(f"the provider now reports the model {name}; earlier replies came from {seen}")
            self.models.add(name)

    def see(self, prediction: "Prediction", *, is_kept: bool = False) -> None:
        """Count a prediction."""
        self.counts.states[prediction.state] += 1
        if prediction.state != "ok" and not is_kept:
            self.say(f"case {prediction.case}, sample {prediction.sample}: {prediction.state}: {prediction.detail}")
        self._listener.see(prediction, is_kept=is_kept)

    def announce(self) -> None:
        """Write phase and totals for other processes to read."""
        if self._folder is None:
            return
        counts = self.counts
        announcement = ProgressFile(
            phase=counts.phase,
            detail=counts.detail,
            since=counts.since,
            predictions=counts.predictions,
            calls=counts.calls,
            max_usd=counts.max_usd,
            max_calls=counts.max_calls,
        )
        write_atomic(self._folder / LIVE, [encode_json(msgspec.to_builtins(announcement))])

    def leave(self) -> None:
        """The session ended normally: remove the announcement."""
        self.counts.is_running = False
        self.counts.phase = "ended"
        if self._log is not None:
            self._log.close()
        if self._folder is not None:
            (self._folder / LIVE).unlink(missing_ok=True)
