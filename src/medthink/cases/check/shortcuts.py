"""Ways to be right without seeing the images: a favoured letter, and the longest option."""

from collections import Counter
from collections.abc import Iterator
from math import exp, lgamma, log

from medthink.cases.case import LETTERS, Case
from medthink.cases.check.report import Finding
from medthink.core.numbers import as_percent

P_LIMIT = 0.01
_CHANCE = 1 / len(LETTERS)


class ShortcutTally:
    """Counts, for one split, how often each letter and how often the longest option is right."""

    def __init__(self) -> None:
        self.letters: Counter[str] = Counter()
        self.cases = 0
        self.longest = 0
        self.only_longest = 0

    def add(self, case: Case) -> None:
        """Take in a case; one without a valid answer has its own problem and is not counted."""
        options, answer = case.question.options, case.reference.answer
        if answer not in options or len(options) < 2:
            return
        self.cases += 1
        self.letters[answer] += 1
        lengths = [*map(len, options.values())]
        length = len(options[answer])
        if length == max(lengths):
            self.longest += 1
            self.only_longest += lengths.count(length) == 1

    def findings(self) -> Iterator[Finding]:
        """What chance does not explain."""
        if not self.cases:
            return
        letter, count = max(self.letters.items(), key=lambda pair: (pair[1], pair[0]))
        p = min(1.0, len(LETTERS) * binomial_tail(count, self.cases, _CHANCE))
        if p < P_LIMIT:
            share = f"{as_percent(count / self.cases)}; even: 20.0 %"
            detail = f"{letter} is right in {count} of {self.cases} ({share}), p = {p:.2g}"
            yield Finding("letters-skewed", "correct_answer", detail)
        p = binomial_tail(self.only_longest, self.cases, _CHANCE)
        if p < P_LIMIT:
            detail = (
                f"longest alone in {self.only_longest} of {self.cases} ({as_percent(self.only_longest / self.cases)}), "
                f"ties included {self.longest} ({as_percent(self.longest / self.cases)}; even: 20.0 %), p = {p:.2g}"
            )
            yield Finding("longest-option-right", "options", detail)


def binomial_tail(successes: int, trials: int, chance: float) -> float:
    """The probability of at least this many successes."""
    if successes <= 0:
        return 1.0
    base = lgamma(trials + 1)
    return min(
        1.0,
        sum(
            exp(base - lgamma(k + 1) - lgamma(trials - k + 1) + k * log(chance) + (trials - k) * log(1 - chance))
            for k in range(successes, trials + 1)
        ),
    )
