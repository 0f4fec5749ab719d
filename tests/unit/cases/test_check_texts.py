"""Texts by their words: phrases, and near-identity against the plain definition."""

import random

import pytest

from medthink.cases.check.splits import binomial_tail
from medthink.cases.check.texts import GRAM, SimilarTextFinder, SimilarTexts, contains_phrase, normalised_words


def grams(words: list[str]) -> set[tuple[str, ...]]:
    return {tuple(words[at : at + GRAM]) for at in range(max(1, len(words) - GRAM + 1))} if words else set()


def by_definition(texts: list[tuple[str, list[str]]]) -> list[SimilarTexts]:
    """Every pair compared, the most similar earliest predecessor kept."""
    found = []
    for second, (split, words) in enumerate(texts):
        matches = []
        for first, (other_split, other) in enumerate(texts[:second]):
            common, union = len(grams(words) & grams(other)), len(grams(words) | grams(other))
            if split != other_split and union and 5 * common >= 4 * union:
                matches.append(SimilarTexts(first, second, common / union))
        if matches:
            found.append(max(matches, key=lambda match: (match.similarity, -match.first)))
    return found


@pytest.mark.parametrize("seed", range(30))
def test_near_identity_is_exact(seed: int) -> None:
    rng = random.Random(seed)
    vocabulary = [f"w{number}" for number in range(rng.choice([2, 8, 60]))]
    seeds = [rng.choices(vocabulary, k=rng.choice([0, 1, 3, 5, 12, 40, 60])) for _ in range(6)]
    texts = []
    for _ in range(40):
        words = list(rng.choice(seeds))
        for _ in range(rng.choice([0, 0, 1, 1, 2])):
            if words:
                words[rng.randrange(len(words))] = rng.choice(vocabulary)
        texts.append((rng.choice(["train", "validation", "test"]), words))
    finder = SimilarTextFinder()
    for split, words in texts:
        finder.add(split, " ".join(words).encode())
    assert list(finder.matches()) == by_definition(texts)


def test_one_split_has_no_match_and_no_text_no_problem() -> None:
    finder = SimilarTextFinder()
    assert list(finder.matches()) == []
    for _ in range(3):
        finder.add("train", b"the same five words here")
    assert list(finder.matches()) == []


def test_many_equal_texts_are_not_compared_in_pairs(monkeypatch: pytest.MonkeyPatch) -> None:
    compared = []
    compare = SimilarTextFinder._compare
    monkeypatch.setattr(SimilarTextFinder, "_compare", lambda *pair: compared.append(pair) or compare(*pair))
    finder = SimilarTextFinder()
    for number in range(600):
        finder.add("train" if number < 300 else "test", b"not available")
    matches = list(finder.matches())
    assert [(match.first, match.second) for match in matches] == [(0, number) for number in range(300, 600)]
    assert len(compared) < 3 * 600


def test_a_fifth_of_new_sequences_at_the_start_is_still_a_match() -> None:
    words = " ".join(f"w{number}" for number in range(24)).encode()
    finder = SimilarTextFinder()
    finder.add("test", words)
    finder.add("train", b"a b c d e " + words)
    finder.add("train", b"a b c d e f " + words)
    assert [tuple(match) for match in finder.matches()] == [(0, 1, 0.8)]


def test_a_long_stammer_at_the_start_hides_no_match() -> None:
    words = " ".join(f"w{number}" for number in range(30)).encode()
    for texts in ((words, b"a " * 30 + words), (b"a " * 30 + words, words)):
        finder = SimilarTextFinder()
        finder.add("test", texts[0])
        finder.add("train", texts[1])
        finder.add("train", b"something else")
        (match,) = finder.matches()
        assert match.similarity == pytest.approx(26 / 31)


def test_empty_texts_are_never_alike() -> None:
    finder = SimilarTextFinder()
    finder.add("train", b"")
    finder.add("test", b"  ")
    assert list(finder.matches()) == []


@pytest.mark.parametrize(
    ("history", "phrase", "expected"),
    [
        ("Known Crohn's disease.", "crohn’s disease", True),
        ("Signs of spinal tuberculosis", "Tuberculosis", True),
        ("tuberculosis of the spine", "spinal tuberculosis", False),
        ("The ﬁnal stage", "final", True),
        ("gouty", "gout", False),
        ("anything", "", False),
        ("", "gout", False),
        ("a b a c", "a c", True),
    ],
)
def test_a_phrase_is_found_by_whole_words(history: str, phrase: str, expected: bool) -> None:
    assert contains_phrase(normalised_words(history), phrase) is expected


def test_binomial_tail_against_scipy() -> None:
    stats = pytest.importorskip("scipy.stats")
    for successes, trials in [(0, 10), (1, 1), (10, 10), (182, 720), (277, 720), (1900, 7347)]:
        assert binomial_tail(successes, trials, 0.2) == pytest.approx(
            stats.binom.sf(successes - 1, trials, 0.2), rel=1e-9
        )


def test_the_known_skews_of_the_released_test_split_are_beyond_chance() -> None:
    assert 5 * binomial_tail(182, 720, 0.2) < 0.01
    assert binomial_tail(277, 720, 0.2) < 0.01
