"""Time the resampling of the statistics room against the plain loop that does the same: a ratio, in one run.

    python bench/bench_stats.py

The plain loop draws cases and averages them once per resample; it is timed on fewer resamples and scaled up. Both
sides run on the same machine in the same minute, so the ratio means something where the seconds do not.
"""

import time
from collections.abc import Callable

import numpy as np

from medthink.stats import bootstrap_mean, rank_runs, rater_agreement, sign_flip_test

RUNS, CASES, RESAMPLES, LOOPED = 59, 720, 10_000, 300


def best_of(call: Callable[[], object], *, rounds: int = 3) -> float:
    """Seconds of the fastest round."""
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return min(times)


def outcomes(rng: np.random.Generator) -> np.ndarray:
    """Right or wrong answers of many runs of rising skill on cases that are hard or easy for all."""
    logits = np.linspace(-1.5, 0.5, RUNS)[:, None] + rng.normal(0, 1.5, size=CASES)
    return (rng.random((RUNS, CASES)) < 1 / (1 + np.exp(-logits))).astype(np.float64)


def loop_ranks(scores: np.ndarray, rng: np.random.Generator) -> None:
    """Resampled means and ranks, one resample at a time."""
    for _ in range(LOOPED):
        means = scores[:, rng.integers(0, CASES, size=CASES)].mean(axis=1)
        for mean in means:
            _ = 1 + (means > mean).sum()


def loop_mean(values: np.ndarray, rng: np.random.Generator) -> None:
    """Resampled means, one at a time."""
    for _ in range(LOOPED):
        values[rng.integers(0, CASES, size=CASES)].mean()


def loop_flips(differences: np.ndarray, rng: np.random.Generator) -> None:
    """Totals under random signs, one at a time."""
    for _ in range(LOOPED):
        abs((rng.choice((-1, 1), size=CASES) * differences).sum())


def loop_kappa(a: np.ndarray, b: np.ndarray, rng: np.random.Generator) -> None:
    """κ of resampled rows by scikit-learn, one resample at a time."""
    from sklearn.metrics import cohen_kappa_score

    for _ in range(LOOPED):
        rows = rng.integers(0, CASES, size=CASES)
        cohen_kappa_score(a[rows], b[rows])


def main() -> None:
    """Print the table."""
    rng = np.random.default_rng(0)
    scores = outcomes(rng)
    a, b = scores[0], scores[30]
    rows = [
        (
            f"rank_runs, {RUNS} runs",
            lambda: rank_runs(scores, cases=range(CASES), rng=rng, flips=RESAMPLES),
            lambda: loop_ranks(scores, rng),
        ),
        (
            "bootstrap_mean",
            lambda: bootstrap_mean(a, rng=rng, resamples=RESAMPLES),
            lambda: loop_mean(a, rng),
        ),
        (
            "sign_flip_test",
            lambda: sign_flip_test(a, b, rng=rng, flips=RESAMPLES),
            lambda: loop_flips(a - b, rng),
        ),
        (
            "agreement, all coefficients",
            lambda: rater_agreement(a.astype(int), b.astype(int), rng=rng, resamples=RESAMPLES),
            lambda: loop_kappa(a, b, rng),
        ),
    ]
    print(f"{RESAMPLES:,} resamples × {CASES} cases")
    print(f"{'':<30}{'ours':>10}{'loop':>10}{'ratio':>8}")
    for name, ours, loop in rows:
        fast, slow = best_of(ours), best_of(loop, rounds=1) * RESAMPLES / LOOPED
        print(f"{name:<30}{fast:>8.2f} s{slow:>8.2f} s{slow / fast:>7.1f}×")


if __name__ == "__main__":
    main()
