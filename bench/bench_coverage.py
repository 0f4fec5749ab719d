"""How often the statements about runs hold, by simulation: the long form of the coverage tests.

    python bench/bench_coverage.py [PART…] [--repeats N]

Simulated answers: Bernoulli(logistic(skill − difficulty (sd 1.5) + family × case effect (sd 1))). Every line states
what should hold and how often it did; the Monte-Carlo error of a 5 % rate is 1.0 points at 500 repeats.
"""

import sys
from collections.abc import Callable
from statistics import NormalDist

import msgspec
import numpy as np
from scipy.stats import binom

from medthink.audit.benchmark import ALPHA, distinct_cases, judge_guessers
from medthink.audit.rivals import IMAGE_FREE, Guessable, guess_by_inputs, guess_longest, guess_majority
from medthink.cases.case import Case, Question, Reference
from medthink.stats import (
    Estimate,
    Game,
    MeanSequence,
    SignSequence,
    bradley_terry,
    cohen_kappa,
    confusion,
    gain_over_rivals,
    gwet_ac,
    holm,
    minimum_detectable_difference,
    powered_rate,
    rank_runs,
    rater_agreement,
)
from medthink.stats.bootstrap import LEAST_CLUSTERS
from medthink.stats.comparisons.gain import ratio_ends
from medthink.stats.intervals import rate_interval, student_quantile
from medthink.stats.memorisation import labels_recalled, order_favoured, order_gained, places_recalled


def outcomes(rng: np.random.Generator, skills: np.ndarray, cases: int) -> np.ndarray:
    """Right and wrong of runs on cases that are hard or easy for all, and for families of runs."""
    hard = rng.normal(0, 1.5, size=cases)
    kin = rng.normal(0, 1, size=(4, cases))[np.arange(len(skills)) % 4]
    return (rng.random((len(skills), cases)) < 1 / (1 + np.exp(hard - kin - skills[:, None]))).astype(float)


def family(rng: np.random.Generator, repeats: int) -> None:
    """Equal runs: any false statement. Strung-out runs: ranges cover together, pairs found."""
    for runs, cases in ((10, 90), (10, 300), (30, 90), (30, 300)):
        false = sum(
            any(
                pair.is_different
                for pair in rank_runs(
                    outcomes(rng, np.full(runs, 0.5), cases), cases=range(cases), rng=rng, flips=999
                ).pairs
            )
            for _ in range(repeats)
        )
        print(f"equal runs, {runs} × {cases}: something false said in {false / repeats:.1%} (at most 5 %)")
    skills = np.repeat([0.0, 1.0, 2.0], [4, 3, 3])
    best, last = [(skills > s).sum() + 1 for s in skills], [(skills >= s).sum() for s in skills]
    covered, found, seen = 0, [], []
    for _ in range(repeats):
        ranking = rank_runs(outcomes(rng, skills, 300), cases=range(300), rng=rng, flips=999)
        covered += all(one.rank <= best[one.run] and last[one.run] <= one.worst for one in ranking.runs)
        found += [pair.is_different for pair in ranking.pairs if skills[pair.a] != skills[pair.b]]
        resolution = minimum_detectable_difference(n=300, discordance=0.3, threshold=round(ranking.threshold, 1))
        seen.append(resolution.difference)
    print(f"three levels, 10 × 300: all rank ranges cover in {covered / repeats:.1%} (at least 95 %)")
    print(f"    pairs that differ found: {np.mean(found):.1%}; 80 % power at {np.mean(seen) * 100:.1f} points")


def accuracies(rng: np.random.Generator, repeats: int) -> None:
    """Do the intervals of all pairs hold together where runs are right nearly everywhere?"""
    for runs in (3, 10):
        for cases in (90, 300):
            told = []
            for accuracy in (0.8, 0.9, 0.95, 0.98, 0.99, 0.995, 0.999):
                rates = np.linspace(accuracy - (1 - accuracy), accuracy + (1 - accuracy) / 2, runs)
                covered = sum(_all_cover(rng, rates, cases) for _ in range(repeats)) / repeats
                told.append(f"{accuracy:.1%}: {covered:.1%}")
            print(f"{runs} runs × {cases}, all intervals cover at {', '.join(told)} (at least 93 %)", flush=True)


def _all_cover(rng: np.random.Generator, rates: np.ndarray, cases: int) -> bool:
    """One data set of correlated runs with these true rates: a case is as hard for all, and by chance for each."""
    limits = np.array([NormalDist().inv_cdf(rate) for rate in rates])
    hard = rng.normal(size=cases) + rng.normal(size=(len(rates), cases))
    right = (hard / 2**0.5 < limits[:, None]).astype(float)
    pairs = rank_runs(right, cases=range(cases), rng=rng, flips=999).pairs
    return all(one.difference.low <= rates[one.a] - rates[one.b] <= one.difference.high for one in pairs)


def gain(rng: np.random.Generator, repeats: int) -> None:
    """The gain over the strongest of equal rivals: coverage, and bias of the estimate."""
    for cases, rivals in ((90, 1), (90, 3), (90, 8), (720, 3), (720, 8)):
        inside, alone, values = 0, 0, []
        for _ in range(repeats):
            right, others = with_rivals(rng, cases, rivals)
            found = gain_over_rivals(right, others, rng=rng)
            single = gain_over_rivals(right, others[[found.strongest]], rng=rng).gain
            inside += found.gain.low <= 0.2 <= found.gain.high
            alone += single.low <= 0.2 <= single.high
            values.append(found.gain.value - 0.2)
        print(
            f"{rivals} equal rivals, {cases} cases: covers {inside / repeats:.1%}, "
            f"rival taken as given {alone / repeats:.1%}; bias {np.mean(values) * 100:+.1f} points"
        )


def normalised(rng: np.random.Generator, repeats: int) -> None:
    """The normalised gain, also of a strong run, whose low end Fieller's method sets too high."""
    for accuracy, rival in ((0.6, 0.4), (0.9, 0.5), (0.95, 0.9)):
        truth = true_normalised(accuracy, rival)
        for cases in (30, 90, 720):
            drawn = (with_rivals(rng, cases, 1, accuracy=accuracy, rival=rival) for _ in range(10 * repeats))
            counts = np.array([misses(right, others[0]) for right, others in drawn]).T
            low, high = ratio_ends(*counts[:, counts[0] + counts[2] > 0], cases, student_quantile(0.95, cases - 1))
            over, under = (truth < 1 - high).mean(), (truth > 1 - low).mean()
            print(f"normalised, {accuracy:.0%} against {rival:.0%}, {cases} cases: {told(over, under)}")
        over, under = 0, 0
        for _ in range(repeats):
            right, others = with_rivals(rng, 90, 8, accuracy=accuracy, rival=rival)
            found = gain_over_rivals(right, others, rng=rng).normalised
            over, under = over + (truth < found.low), under + (truth > found.high)
        shares = over / repeats, under / repeats
        print(f"normalised, {accuracy:.0%} against 8 of {rival:.0%}, 90 cases: {told(*shares)}")


def misses(right: np.ndarray, other: np.ndarray) -> tuple[float, float, float]:
    """How many cases both miss, the run alone, the rival alone."""
    return ((1 - right) * (1 - other)).sum(), ((1 - right) * other).sum(), (right * (1 - other)).sum()


def told(over: float, under: float) -> str:
    return f"covers {1 - over - under:.1%}; low end too high {over:.1%}"


def with_rivals(
    rng: np.random.Generator, cases: int, rivals: int, *, accuracy: float = 0.6, rival: float = 0.4
) -> tuple[np.ndarray, np.ndarray]:
    """A run and equal rivals on cases that are hard or easy for all."""
    hard = rng.normal(0, 0.15, size=cases)
    return (rng.random(cases) < accuracy + hard) * 1.0, (rng.random((rivals, cases)) < rival + hard) * 1.0


def true_normalised(accuracy: float, rival: float) -> float:
    """What the normalised gain is in the long run of `with_rivals`: rates beyond 0 and 1 are cut there."""
    hard = np.random.default_rng(0).normal(0, 0.15, size=4_000_000)
    own, other = (float(np.clip(rate + hard, 0, 1).mean()) for rate in (accuracy, rival))
    return (own - other) / (1 - other)


def sequence(rng: np.random.Generator, repeats: int) -> None:
    """Watched at every case: false decisions at no difference, and the share of cases used at three gaps."""
    for gap in (0, 36, 72, 144):
        discordant = 216
        won = (discordant + gap) // 2
        values = np.repeat([1.0, -1.0, 0.0], [won, discordant - won, 720 - discordant])
        missed, decided, used, such = 0, 0, [], 0
        for _ in range(repeats):
            watch, sign, known = MeanSequence(720), SignSequence(), None
            is_out = False
            for k, value in enumerate(rng.permutation(values).tolist(), start=1):
                watch.see(value)
                sign.see(value)
                is_out |= not watch.low - 1e-9 <= gap / 720 <= watch.high + 1e-9
                if known is None and not watch.low <= 0 <= watch.high:
                    known = k
                if known is not None and gap:
                    break
            missed, decided, such = missed + is_out, decided + (known is not None), such + (sign.verdict != 0)
            used.append((known or 720) / 720)
        print(
            f"gap {gap / 7.2:.0f} points of 720: truth ever outside {missed / repeats:.1%}, "
            f"decided {decided / repeats:.1%}, "
            f"mean share of cases used {np.mean(used):.0%}; such cases decided by then {such / repeats:.1%}"
        )


def powered(rng: np.random.Generator, repeats: int) -> None:
    """Readers on some cases and a judge on all: coverage and width against readers alone."""
    for read, right in ((50, 0.9), (100, 0.9), (100, 0.75), (100, 0.5)):
        inside, widths, refused = 0, [], 0
        for _ in range(repeats):
            clusters = np.repeat(np.arange(720), 6)
            truth = (rng.random(len(clusters)) < rng.beta(2, 4, size=720)[clusters]).astype(float)
            judged = np.where(rng.random(len(truth)) < right, truth, 1 - truth)
            found = powered_rate(judged, np.where(clusters < read, truth, np.nan), clusters=clusters)
            if not isinstance(found.together, Estimate):
                refused += 1
                continue
            inside += found.together.low <= 1 / 3 <= found.together.high
            widths.append([one.high - one.low for one in (found.together, found.readers)])
        ours, theirs = np.mean(widths, axis=0)
        print(
            f"{read} of 720 cases read, judge right {right:.0%}: covers {inside / len(widths):.1%}; "
            f"width {ours:.3f} against {theirs:.3f} of readers alone; taken for picked {refused / repeats:.1%}"
        )


def rare(rng: np.random.Generator, repeats: int) -> None:
    """Readers and a judge on rates from 1 to 50 %: coverage on a grid of cases read of 300 and of judges."""
    print("covered by readers and judge together, by readers alone")
    for rows, spread in ((1, 6), (6, 6), (6, 1)):
        worst = 1.0
        for right in (0.99, 0.9, 0.75, 0.5):
            for rate in (0.01, 0.03, 0.1, 0.3, 0.5):
                reads = (2, 5, 10, 20, 50, 100, 200)
                cells = [_rare_cell(rng, repeats, rate, read, right=right, rows=rows, spread=spread) for read in reads]
                told = "  ".join(f"{read}: {one:.1%}, {two:.1%}" for read, (one, two) in zip(reads, cells, strict=True))
                print(f"{rows} row(s) of cases, judge right {right:.0%}, rate {rate:.0%}: {told}", flush=True)
                worst = min(worst, *(min(cell) for cell in cells))
        print(f"{rows} row(s), correlation within cases {1 / (1 + spread):.2f}: the least coverage is {worst:.1%}")


def _rare_cell(
    rng: np.random.Generator, repeats: int, rate: float, read: int, *, right: float, rows: int, spread: float
) -> tuple[float, float]:
    clusters, found = np.repeat(np.arange(300), rows), []
    for _ in range(repeats):
        chances = rng.beta(spread * rate, spread - spread * rate, size=300)
        truth = (rng.random(len(clusters)) < chances[clusters]).astype(float)
        judged = np.where(rng.random(len(truth)) < right, truth, 1 - truth)
        one = powered_rate(judged, np.where(clusters < read, truth, np.nan), clusters=clusters)
        if isinstance(one.together, Estimate):
            found.append([part.low <= rate <= part.high for part in (one.together, one.readers)])
    together, alone = np.mean(found, axis=0)
    return float(together), float(alone)


def people(rng: np.random.Generator, repeats: int) -> None:
    """Readers on cases: does the interval cover the rate of *these* readers on such cases, and of readers at large?"""
    for readers, cases in ((1, 60), (2, 60), (4, 60), (4, 200), (8, 60), (12, 100)):
        these = such = 0
        for _ in range(repeats):
            skills = rng.normal(0.8, 0.5, size=readers)
            right = rng.random((readers, cases)) < chance_right(skills[:, None] + rng.normal(0, 1.2, size=cases))
            found = rate_interval(right.ravel(), clusters=np.tile(np.arange(cases), readers))
            these += found.low <= readers_rate(skills).mean() <= found.high
            such += found.low <= SUCH_READERS <= found.high
        print(
            f"{readers} readers × {cases} cases: covers the rate of these readers {these / repeats:.1%}, "
            f"of such readers {such / repeats:.1%}"
        )


def preferences(rng: np.random.Generator, repeats: int) -> None:
    """Runs compared pair by pair: false ranges of equal ones, and coverage of the strengths, also of unequal ones."""
    for runs in (2, 3, 5, 10):
        for cases in (2, 3, 5, 10, 30, 90):
            cells = []
            for spread in (0.0, 1.0, 2.0):
                skills = np.linspace(-spread, spread, runs)
                order = np.argsort(np.argsort(-skills)) + 1
                false = inside = 0
                for _ in range(repeats):
                    ((*part,),) = bradley_terry(contests(rng, skills, cases), rng=rng, flips=999)
                    false += any(
                        (one.rank, one.worst_rank) != (1, runs)
                        if not spread
                        else not one.rank <= order[one.contestant] <= one.worst_rank
                        for one in part
                    )
                    rates = chance_right((skills - skills.mean())[[one.contestant for one in part]])
                    ends = [(one.beats_average.low, one.beats_average.high) for one in part]
                    inside += np.mean([low <= rate <= high for rate, (low, high) in zip(rates, ends, strict=True)])
                cells += [f"false ranges {false / repeats:.1%}, strengths covered {inside / repeats:.1%}"]
            told = zip(("equal", "from −1 to 1", "from −2 to 2"), cells, strict=True)
            print(f"{runs} runs, {cases} cases: {'; '.join(map(': '.join, told))}", flush=True)


def contests(rng: np.random.Generator, skills: np.ndarray, cases: int) -> list[Game]:
    """All pairs in every case, by the order of what each run wrote there: the Bradley–Terry model holds."""
    written = skills + rng.gumbel(size=(cases, len(skills)))
    return [
        Game(a, b, float(row[a] > row[b]), case)
        for case, row in enumerate(written)
        for a in range(len(skills))
        for b in range(a)
    ]


NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(41)


def chance_right(logit: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-logit))


def readers_rate(skills: np.ndarray) -> np.ndarray:
    """The true rate of readers with these skills, over all cases."""
    return chance_right(skills[:, None] + 1.2 * NODES) @ WEIGHTS / WEIGHTS.sum()


SUCH_READERS = float(readers_rate(0.8 + 0.5 * NODES) @ WEIGHTS / WEIGHTS.sum())


def memory(rng: np.random.Generator, repeats: int) -> None:
    """Models that never saw the cases, skilled and with a liking for a letter: any alarm. Then some that have."""
    for cases, known in ((180, 0.0), (180, 0.03), (180, 0.1), (720, 0.0), (720, 0.01), (720, 0.03)):
        alarms = sum(min(holm(memory_p_values(rng, cases, known))) < 0.01 for _ in range(repeats))
        print(f"{known:.0%} of {cases} cases remembered: alarm in {alarms / repeats:.1%}")


def dating(rng: np.random.Generator, repeats: int) -> None:
    """Models that date cases to within so many numbers, evenly or with a peak, and remember nothing: alarms at 1 %."""
    shapes: dict[str, Callable[[int, int], np.ndarray]] = {
        "even": lambda reach, n: rng.integers(-reach, reach + 1, n),
        "normal": lambda reach, n: np.rint(rng.normal(0, reach, n)).astype(int),
        "peaked": lambda reach, n: np.rint(rng.laplace(0, reach, n)).astype(int),
    }
    for name, draw in shapes.items():
        for reach in (1, 5, 40, 500):
            for cases in (60, 180):
                labels = [np.sort(rng.choice(18_000, cases, replace=False)) + 9_000 for _ in range(repeats)]
                found = [
                    labels_recalled((one + draw(reach, cases)).tolist(), one.tolist(), alpha=0.01, rng=rng).p_value
                    for one in labels
                ]
                print(f"{name}, ±{reach}, {cases} cases: alarm in {np.mean(np.array(found) <= 0.01):.1%}")


def memory_p_values(rng: np.random.Generator, cases: int, known: float) -> list[float]:
    """The four tests of one model that remembers a share of the cases and is good, biased and guessing elsewhere."""
    is_known = rng.random(cases) < known
    actual = [rng.permutation(5)[:4].tolist() for _ in range(cases)]
    named = [actual[k] if is_known[k] else rng.permutation(5)[:4].tolist() for k in range(cases)]
    labels = np.sort(rng.choice(18_000, cases, replace=False))
    # What is in a case tells when it was published to within two years, as far as skill goes.
    numbers = np.where(is_known, labels, labels + rng.integers(-1500, 1501, size=cases))
    easy = rng.random(cases) < 0.3
    hidden = [is_known | (easy & (rng.random(cases) < 0.9)) for _ in range(2)]
    places = [rng.choice(5, cases, p=[0.253, 0.2, 0.19, 0.187, 0.17]), rng.integers(0, 5, cases)]
    hard = rng.normal(0, 1.5, size=cases)
    rights = [rng.random(cases) < 1 / (1 + np.exp(hard - 0.5 - 0.8 * (place == 0))) for place in places]
    letters = [["ABCDE"[one] for one in place] for place in places]
    gained = order_gained(rights[0] | is_known, letters[0], rights[1], letters[1], alpha=0.0025)
    return [
        places_recalled(named, actual, alpha=0.0025).p_value,
        labels_recalled(numbers.tolist(), labels.tolist(), alpha=0.0025, rng=rng).p_value,
        order_favoured(*hidden, alpha=0.0025).p_value,
        1.0 if gained is None else gained.p_value,
    ]


SYLLABLES = [a + b for a in "bdfgklmnprstvz" for b in ("a", "e", "i", "o", "u")]


def shortcuts(rng: np.random.Generator, repeats: int) -> None:
    """Benchmarks of one's own without a train split and without a shortcut: false alarms of the audit.

    `before` is the same hits against a binomial, as if the guesses were independent of the right answers.
    """
    for cases in (40, 90, 180, 720):
        rounds = repeats if cases < 720 else repeats // 4
        told_alarms(f"nothing to find, {cases} cases", rng, rounds, cases)


def planted(rng: np.random.Generator, repeats: int) -> None:
    """The same with doubled cases, which are no shortcut, and with shortcuts that the audit should find."""
    told_alarms("a tenth of 180 cases doubled", rng, repeats // 4, 180, doubled=0.1)
    for kind, shares in SHORTCUTS.items():
        for share in shares:
            told_alarms(f"{kind} in {share:.0%} of 180 cases", rng, repeats // 4, 180, kind=kind, share=share)


# What gives the right answer away, and in what share of the cases.
SHORTCUTS = {
    "letter": (0.15,),
    "length": (0.15, 0.2),
    "wording": (0.15, 0.2),
    "word of the history": (0.3, 0.6),
    "frequent diagnosis": (0.15, 0.3),
}


def told_alarms(
    what: str, rng: np.random.Generator, rounds: int, cases: int, doubled: float = 0.0, **shortcut: object
) -> None:
    """How many of so many audits raise an alarm, and how many would by binomial tests alone."""
    found = [alarms_of(own_benchmark(rng, cases, doubled=doubled, **shortcut)) for _ in range(rounds)]
    now, before = np.mean(found, axis=0)
    print(f"{what}: alarm in {now:.1%} of {rounds} (before {before:.1%})", flush=True)


def alarms_of(cases: list[Case]) -> tuple[bool, bool]:
    """Whether the audit raises an alarm, and whether it would by binomial tests of all hits."""
    material = Guessable(cases, [])
    found = [guess_majority(material), guess_longest(cases), *(guess_by_inputs(material, one) for one in IMAGE_FREE)]
    hits = [sum(one.letters[case.id] == case.reference.answer for case in cases) for one in found]
    now = any(score.verdict == "alarm" for score in judge_guessers(found, distinct_cases(cases)))
    return now, bool(min(holm(binom.sf(np.array(hits) - 1, len(cases), 0.2).tolist())) < ALPHA)


def own_benchmark(
    rng: np.random.Generator, cases: int, *, doubled: float, kind: str = "", share: float = 0.0
) -> list[Case]:
    """Cases in made-up words, their right answers by chance, but for the shortcut in a share of them."""
    lexicon = ["".join(rng.choice(SYLLABLES, 3)) for _ in range(400)]
    diagnoses = [" ".join(rng.choice(lexicon, rng.integers(1, 4))) for _ in range(150)]
    made = [make_case(rng, number, lexicon, diagnoses, kind if rng.random() < share else "") for number in range(cases)]
    twins = made[: round(doubled * cases)]
    return made + [msgspec.structs.replace(case, id=case.id + cases) for case in twins]


def make_case(rng: np.random.Generator, number: int, lexicon: list[str], diagnoses: list[str], kind: str) -> Case:
    """One case, with the shortcut if one is named."""
    history = rng.choice(lexicon, 40).tolist()
    texts = rng.choice(diagnoses, 5, replace=False).tolist()
    right = 0 if kind == "letter" else int(rng.integers(5))
    if kind == "length":
        texts[right] += " " + " ".join(rng.choice(lexicon, 3))
    elif kind == "wording":
        texts[right] += " with complication"
    elif kind == "word of the history":
        pair = int(rng.integers(10))
        history[0], texts[right] = f"sign{pair}", f"{texts[right]} disease{pair}"
        texts = [
            text if place == right else f"{text} disease{(pair + place + 1) % 10}" for place, text in enumerate(texts)
        ]
    elif kind == "frequent diagnosis":
        texts[right] = "frequent disease"
    options = dict(zip("ABCDE", texts, strict=True))
    answer = "ABCDE"[right]
    reference = Reference((), "", "", answer, options[answer], "", "", "", False, 1, "")
    return Case(number, f"Case number {number}", "own", Question(" ".join(history), (), options), reference, 0, {})


def raters(rng: np.random.Generator, repeats: int) -> None:
    """Two raters of six units a case that agree better in some cases: how often an interval holds the truth."""
    first, second, _ = two_raters(rng, 200_000)
    table = confusion(first, second, categories=(0, 1))
    truth = {"kappa": cohen_kappa(table), "ac1": gwet_ac(table)}
    for cases in (2, 3, 5, LEAST_CLUSTERS, 10, 20):
        held, shown = dict.fromkeys(truth, 0), dict.fromkeys(truth, 0)
        for _ in range(repeats):
            first, second, clusters = two_raters(rng, cases)
            found = rater_agreement(first, second, rng=rng, clusters=clusters, categories=(0, 1), resamples=500)
            for name, value in truth.items():
                one = getattr(found, name)
                if isinstance(one, Estimate):
                    shown[name] += 1
                    held[name] += one.low <= value <= one.high
        said = (f"{name} {held[name] / shown[name]:.1%}" if shown[name] else f"{name} none" for name in truth)
        print(f"two raters, {cases} cases: intervals that hold the truth: {', '.join(said)}")


def two_raters(rng: np.random.Generator, cases: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The labels of two raters, and the case of each: agreement and prevalence differ between cases."""
    agreement, prevalence = rng.beta(6, 2, size=(cases, 1)), rng.beta(2, 2, size=(cases, 1))
    first = (rng.random((cases, 6)) < prevalence).astype(int)
    second = np.where(rng.random((cases, 6)) < agreement, first, 1 - first)
    return first.ravel(), second.ravel(), np.repeat(np.arange(cases), 6)


def main() -> None:
    """Run the parts that are named, or all."""
    words = sys.argv[1:]
    repeats = int(words[words.index("--repeats") + 1]) if "--repeats" in words else 500
    every = (
        family,
        accuracies,
        gain,
        normalised,
        sequence,
        powered,
        rare,
        people,
        preferences,
        memory,
        dating,
        shortcuts,
        planted,
        raters,
    )
    parts = {part.__name__: part for part in every}
    for name, part in parts.items():
        if name in words or not set(words) & set(parts):
            part(np.random.default_rng(1), repeats)


if __name__ == "__main__":
    main()
