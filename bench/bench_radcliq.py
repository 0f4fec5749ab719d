"""RadCliQ in pairs per second, against `radgraph` and `bert-score` used plainly; random weights of real size.

python bench/bench_radcliq.py [--pairs 48] [--only bertscore]        `bert-score` is timed where it is installed
"""

import argparse
import os
import random
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests" / "support"))
warnings.simplefilter("ignore")

from medthink.metrics.radcliq.bertscore import LAYER, BertScore  # noqa: E402
from medthink.metrics.radcliq.chexbert import CheXbert  # noqa: E402
from medthink.metrics.radcliq.radgraph import RadGraph, _quiet  # noqa: E402
from medthink.metrics.radcliq.weights import ENVIRONMENT, WeightSource  # noqa: E402
from radcliq_checkpoints import (  # noqa: E402
    SENTENCES,
    build_bert_tokenizer,
    build_chexbert,
    build_radgraph,
    build_roberta,
)

BASE: dict[str, int] = {"hidden": 768, "layers": 12}


def make_pairs(n: int) -> list[tuple[str, str]]:
    """References and candidates of 8 to 60 words that the checkpoints' tokenizers know."""
    draw, words = random.Random(7), " ".join(SENTENCES).split()
    return [(_text(draw, words), _text(draw, words)) for _ in range(n)]


def _text(draw: random.Random, words: list[str]) -> str:
    return " ".join(draw.choices(words, k=draw.randrange(8, 61)))


def build(root: Path) -> None:
    """The three models at the size they are published in."""
    build_roberta(root / "distilroberta-base", hidden=768, heads=12)
    vocabulary = build_bert_tokenizer(root / "bert-base-uncased", **BASE)
    build_chexbert(root / "chexbert" / "chexbert.pth", vocabulary, **BASE)
    build_radgraph(root / "radgraph" / "radgraph", **BASE)


class Rate(NamedTuple):
    """Pairs per second, and per second of one core's time, which other work on the machine changes less."""

    wall: float
    cpu: float

    def __str__(self) -> str:
        return f"{self.wall:.2f} ({self.cpu:.2f})"


def rate(work: Callable[[], Any], pairs: int) -> Rate:
    """How fast the work goes."""
    wall, cpu = time.perf_counter(), time.process_time()
    work()
    return Rate(pairs / (time.perf_counter() - wall), pairs / (time.process_time() - cpu))


def plain_bert_score(root: Path, references: list[str], candidates: list[str]) -> Callable[[], Any]:
    """The package, as its documentation uses it: its own batches, every text encoded again for every model."""
    from bert_score import BERTScorer

    scorer = BERTScorer(model_type=str(root / "distilroberta-base"), num_layers=LAYER, idf=False)
    scorer._tokenizer.model_max_length = 512  # without one, the package fails under transformers 5
    return lambda: scorer.score(candidates, references)


def plain_radgraph(component: RadGraph, references: list[str], candidates: list[str]) -> Callable[[], Any]:
    """The package called with a list of reports; it reads them one by one."""

    def work() -> None:
        with _quiet():
            component._model(references)
            component._model(candidates)

    return work


def plain_chexbert(component: CheXbert, references: list[str], candidates: list[str]) -> Callable[[], Any]:
    """One text at a time."""
    return lambda: [component._embed([text], lambda _: None) for text in (*references, *candidates)]


def compare(root: Path, pairs: list[tuple[str, str]], only: str | None) -> None:
    """Print a line a component: plainly, ours with nothing kept, and ours for a second model's texts."""
    references, candidates = (list(side) for side in zip(*pairs, strict=True))
    others = [" ".join(reversed(text.split())) for text in candidates]
    graph_source = WeightSource(root / "radgraph" / "radgraph"), WeightSource(root / "tiny-encoder")
    graphs, semb, bert = RadGraph(*graph_source, features=root), CheXbert(features=root), BertScore(features=root)
    plain: dict[str, Callable[[], Any] | None] = {
        "radgraph": plain_radgraph(graphs, references, candidates),
        "semb": plain_chexbert(semb, references, candidates),
        "bertscore": plain_bert_score(root, references, candidates) if find_spec("bert_score") else None,
    }
    print("| pairs per second (per CPU second) | plainly | ours | ratio | ours, second model |\n|---|---|---|---|---|")
    for component in (graphs, semb, bert):
        if only not in (None, component.name):
            continue
        component.score(references[:1], [references[0][::-1]])  # the model is loaded before the clock starts
        work = plain[component.name]
        theirs = rate(work, len(pairs)) if work else None
        ours = rate(lambda one=component: one.score(references, candidates), len(pairs))
        second = rate(lambda one=component: one.score(references, others), len(pairs))
        ratio = f"{ours.wall / theirs.wall:.1f}× ({ours.cpu / theirs.cpu:.1f}×)" if theirs else "–"
        print(f"| {component.name} | {theirs or 'not installed'} | {ours} | {ratio} | {second} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=48)
    parser.add_argument("--only", choices=("radgraph", "semb", "bertscore"))
    args = parser.parse_args()
    pairs = make_pairs(args.pairs)
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        os.environ[ENVIRONMENT] = str(root)
        build(root)
        threads = os.environ.get("OMP_NUM_THREADS", "all")
        print(
            f"{len(pairs)} pairs of 8–60 words, random weights of base size, {os.cpu_count()} cores, threads: {threads}"
        )
        compare(root, pairs, args.only)


if __name__ == "__main__":
    main()
