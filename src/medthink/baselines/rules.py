"""Baselines that follow a rule: a random letter, the most frequent one, the longest option."""

from collections import Counter

from medthink.baselines.baseline import Choose, ChoosingBaseline, Pick
from medthink.baselines.learning import Lessons
from medthink.cases.benchmark import Benchmark
from medthink.cases.case import Case, Question
from medthink.core.digest import seed_from


def rule_baseline(name: str, benchmark: Benchmark) -> ChoosingBaseline:
    """The baseline that follows the rule of that name."""
    choose: Choose = choose_longest if name == "longest" else choose_random
    if name == "majority":
        choose = _majority_chooser(benchmark)
    return ChoosingBaseline(name, choose)


def random_letter(question: Question, sample: int) -> str:
    """A letter drawn with equal chances, seeded by the question's text and the sample's number."""
    letters = list(question.options)
    return letters[seed_from("random letter", sample, question.history, *question.options.values()) % len(letters)]


def choose_random(question: Question, sample: int) -> Pick:
    """A random letter."""
    return Pick(random_letter(question, sample), "Drawn at random, without a look at the case.")


def longest_letter(question: Question) -> str:
    """The option with the most characters, not counting spaces around it; in a tie, the one shown first."""
    return max(question.options, key=lambda letter: len(question.options[letter].strip()))


def choose_longest(question: Question, sample: int) -> Pick:  # noqa: ARG001
    """The longest option, whatever the sample."""
    letter = longest_letter(question)
    length = len(question.options[letter].strip())
    return Pick(letter, f"The longest option, {length} characters.")


def rank_letters(cases: list[Case]) -> list[str]:
    """The letters by how often they are right, most frequent first; ties in alphabetical order."""
    counts = Counter(case.reference.answer for case in cases)
    return sorted(counts, key=lambda letter: (-counts[letter], letter))


def _majority_chooser(benchmark: Benchmark) -> Choose:
    lessons = Lessons(benchmark, "majority", rank_letters)

    def choose(question: Question, sample: int) -> Pick:  # noqa: ARG001
        letter = next(
            (letter for letter in lessons.recall(question) if letter in question.options), next(iter(question.options))
        )
        return Pick(letter, f"{letter} is the letter most often right in the train split.")

    return choose
