"""BERTScore F1 as RadCliQ uses it: distilroberta-base, layer 5, no idf, rescaled by the published baseline.

Higher is better; 1 for equal texts, below 0 for texts less similar than random pairs. Implemented here, because the
package `bert-score` is silently wrong for RoBERTa under transformers 5 (it loses the space before the first word).
"""

import re
import sqlite3
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from medthink.core.digest import digest_bytes, digest_value
from medthink.metrics.radcliq.composite import (
    MAX_TOKENS,
    Advance,
    ComponentScores,
    batches_by_length,
    ignore_progress,
    missing_packages,
    package_versions,
    token_budget,
)
from medthink.metrics.radcliq.weights import FoundWeights, MissingWeights, WeightSource, digest_weights

if TYPE_CHECKING:
    import torch

_KEYS_AT_ONCE = 500
_MOST_BYTES = 4 * 1024**3


class FeatureStore:
    """The features of one component with one set of weights; without a folder nothing is stored.

    A file that has reached `most_bytes` is not extended.
    """

    def __init__(
        self, folder: Path | None, name: str, fingerprint: Mapping[str, str], *, most_bytes: int = _MOST_BYTES
    ) -> None:
        self._most_bytes = most_bytes
        # Other weights or packages make other features.
        self._path = folder and folder / f"{name}-{digest_value(dict(fingerprint))[:16]}.sqlite"

    def read(self, texts: Iterable[str]) -> dict[str, bytes]:
        """The stored features of these texts."""
        if self._path is None or not self._path.is_file():
            return {}
        by_key = {_key(text): text for text in texts}
        keys = list(by_key)
        found: dict[str, bytes] = {}
        with closing(sqlite3.connect(self._path)) as store:
            for start in range(0, len(keys), _KEYS_AT_ONCE):
                some = keys[start : start + _KEYS_AT_ONCE]
                marks = ",".join("?" * len(some))
                rows = store.execute(f"SELECT text, feature FROM features WHERE text IN ({marks})", some)
                found |= {by_key[key]: feature for key, feature in rows}
        return found

    def keep(self, features: Mapping[str, bytes]) -> None:
        """Keep the features of these texts."""
        if self._path is None or not features or self._is_full(self._path):
            return
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with closing(sqlite3.connect(self._path)) as store, store:
            store.execute("CREATE TABLE IF NOT EXISTS features (text TEXT PRIMARY KEY, feature BLOB NOT NULL)")
            rows = [(_key(text), feature) for text, feature in features.items()]
            store.executemany("INSERT OR REPLACE INTO features VALUES (?, ?)", rows)

    def _is_full(self, path: Path) -> bool:
        return path.is_file() and path.stat().st_size >= self._most_bytes


def _key(text: str) -> str:
    return digest_bytes(text.encode("utf-8", "surrogatepass"))


REPO = "distilroberta-base"
LAYER = 5
_PAIRS_AT_ONCE = 256
# The baseline of layer 5 for precision, recall and F1, published with bert-score 0.3.13.
BASELINE = (0.84732, 0.84759504, 0.8473319)


class BertScore:
    """BERTScore as a component."""

    name = "bertscore"

    def __init__(self, source: WeightSource | None = None, features: Path | None = None) -> None:
        self._source = source or WeightSource()
        self._features = features

    def unavailable(self) -> str | None:
        """The reason why it cannot be computed here; None if it can."""
        packages = missing_packages("torch", "transformers")
        if packages:
            return packages
        return self._found.reason if isinstance(self._found, MissingWeights) else None

    def score(
        self, references: Sequence[str], candidates: Sequence[str], advance: Advance = ignore_progress
    ) -> ComponentScores:
        """Rescaled F1 of every pair."""
        pairs = [(_clean(r), _clean(c)) for r, c in zip(references, candidates, strict=True)]
        store = FeatureStore(self._features, self.name, self.fingerprint())
        values: list[float] = []
        cut: list[int] = []
        tell = _once(advance)
        # A vector for every token of every text at once would fill the memory.
        for start in range(0, len(pairs), _PAIRS_AT_ONCE):
            some = pairs[start : start + _PAIRS_AT_ONCE]
            encoded = self._vectors(some, store, tell)
            for place, (reference, candidate) in enumerate(some, start=start):
                (ref, ref_cut), (cand, cand_cut) = encoded[reference], encoded[candidate]
                values.append(_rescaled_f1(ref, cand))
                cut += [place] if ref_cut or cand_cut else []
        return ComponentScores(values, cut)

    def _vectors(
        self, pairs: Sequence[tuple[str, str]], store: FeatureStore, tell: Callable[[Iterable[str]], None]
    ) -> dict[str, tuple["torch.Tensor", bool]]:
        """The vectors of every text; stored vectors of references are reused, and new ones are stored."""
        references = dict.fromkeys(reference for reference, _ in pairs)
        kept = {text: _unpack(feature) for text, feature in store.read(references).items()}
        tell(kept)
        texts = [text for text in dict.fromkeys(text for pair in pairs for text in pair) if text not in kept]
        made = dict(zip(texts, self._encode(texts, tell), strict=True))
        store.keep({text: _pack(*made[text]) for text in references if text in made})
        return kept | made

    def fingerprint(self) -> dict[str, str]:
        """The model's files by digest, the packages, the options."""
        assert isinstance(self._found, FoundWeights)
        return {
            "model": REPO,
            "source": self._found.source,
            "options": f"layer {LAYER}, idf off, baseline {BASELINE[2]}, {MAX_TOKENS} tokens",
            **package_versions("torch", "transformers"),
            **digest_weights(self._found.path),
        }

    @cached_property
    def _found(self) -> FoundWeights | MissingWeights:
        return self._source.find_model(REPO)

    @cached_property
    def _model(self) -> tuple[Any, Any]:
        from transformers import AutoModel, AutoTokenizer

        assert isinstance(self._found, FoundWeights)
        path = str(self._found.path)
        # The prefix space is set when loading: transformers 5 ignores it when encoding.
        tokenizer = AutoTokenizer.from_pretrained(path, add_prefix_space=True, local_files_only=True)
        model = AutoModel.from_pretrained(path, local_files_only=True, use_safetensors=True)
        # The layers above the one used would be computed for nothing.
        model.encoder.layer = model.encoder.layer[:LAYER]
        return tokenizer, model.eval()

    def _encode(self, texts: Sequence[str], tell: Callable[[Iterable[str]], None]) -> list[tuple["torch.Tensor", bool]]:
        """Unit vectors of every token of every text, special tokens first and last, and whether it was cut."""
        import torch

        if not texts:
            return []
        tokenizer, model = self._model
        lengths = [len(ids) for ids in tokenizer(list(texts), truncation=False, verbose=False)["input_ids"]]
        kept = [min(length, MAX_TOKENS) for length in lengths]
        vectors: dict[int, torch.Tensor] = {}
        for places in batches_by_length(kept, token_budget()):
            batch = [texts[place] for place in places]
            inputs = tokenizer(
                batch, return_tensors="pt", padding=True, truncation=True, max_length=MAX_TOKENS, verbose=False
            )
            with torch.inference_mode():
                hidden = model(**inputs).last_hidden_state
                hidden = torch.nn.functional.normalize(hidden, dim=-1)
            for row, place in zip(hidden, places, strict=True):
                # A copy, so that the padded batch can go.
                vectors[place] = row[: kept[place]].clone()
            tell(batch)
        return [(vectors[place], length > MAX_TOKENS) for place, length in enumerate(lengths)]


def _once(advance: Advance) -> Callable[[Iterable[str]], None]:
    """Reports each text once, even if it occurs again."""
    told: set[str] = set()

    def tell(texts: Iterable[str]) -> None:
        new = set(texts) - told
        told.update(new)
        advance(len(new))

    return tell


def _pack(vectors: "torch.Tensor", is_cut: bool) -> bytes:
    return b"".join([bytes([is_cut]), int(vectors.shape[1]).to_bytes(4, "little"), vectors.numpy().tobytes()])


def _unpack(feature: bytes) -> tuple["torch.Tensor", bool]:
    import torch

    width = int.from_bytes(feature[1:5], "little")
    return torch.frombuffer(bytearray(feature[5:]), dtype=torch.float32).reshape(-1, width), bool(feature[0])


def _clean(text: str) -> str:
    return re.sub(r" +", " ", text).strip()


def _rescaled_f1(reference: "torch.Tensor", candidate: "torch.Tensor") -> float:
    """Greedy matching; special tokens can be matched to, but do not count themselves."""
    similarity = candidate @ reference.T
    precision = float(similarity.max(dim=1).values[1:-1].mean())
    recall = float(similarity.max(dim=0).values[1:-1].mean())
    f1 = 2 * precision * recall / (precision + recall)
    return (f1 - BASELINE[2]) / (1 - BASELINE[2])
