"""CheXbert similarity (SembScore): the cosine of two reports' [CLS] vectors. Range -1 to 1, higher is better."""

import re
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from medthink.core.errors import DataError
from medthink.metrics.radcliq.bertscore import FeatureStore
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

TOKENIZER_REPO = "bert-base-uncased"
_PREFIX = "module.bert."
_HEAD_SIZE = 64


class CheXbert:
    """CheXbert similarity as a component."""

    name = "semb"

    def __init__(
        self, source: WeightSource | None = None, tokenizer: WeightSource | None = None, features: Path | None = None
    ) -> None:
        """`features` is a folder that caches vectors between runs."""
        self._features = features
        self._source = source or WeightSource()
        self._tokenizer_source = tokenizer or WeightSource(online=self._source.online)

    def unavailable(self) -> str | None:
        """The reason why it cannot be computed here; None if it can."""
        packages = missing_packages("torch", "transformers")
        if packages:
            return packages
        missing = [
            found.reason for found in (self._weights, self._tokenizer_folder) if isinstance(found, MissingWeights)
        ]
        return "; ".join(missing) or None

    def score(
        self, references: Sequence[str], candidates: Sequence[str], advance: Advance = ignore_progress
    ) -> ComponentScores:
        """The cosine of every pair."""
        import torch

        texts = list(dict.fromkeys(_clean(text) for text in (*references, *candidates)))
        vectors = self._vectors(texts, advance)
        values, cut = [], []
        for place, (reference, candidate) in enumerate(zip(references, candidates, strict=True)):
            (ref, ref_cut), (cand, cand_cut) = vectors[_clean(reference)], vectors[_clean(candidate)]
            values.append(float(torch.nn.functional.cosine_similarity(ref, cand, dim=0)))
            if ref_cut or cand_cut:
                cut.append(place)
        return ComponentScores(values, cut)

    def _vectors(self, texts: Sequence[str], advance: Advance) -> dict[str, tuple["torch.Tensor", bool]]:
        """The vector of every text, and whether it was truncated; stored vectors are reused, new ones are stored."""
        store = FeatureStore(self._features, self.name, self.fingerprint())
        vectors = {text: _unpack(feature) for text, feature in store.read(texts).items()}
        advance(len(vectors))
        made = self._embed([text for text in texts if text not in vectors], advance)
        store.keep({text: _pack(*vector) for text, vector in made.items()})
        return vectors | made

    def fingerprint(self) -> dict[str, str]:
        """The checkpoint and the tokenizer by digest, the packages, the options."""
        assert isinstance(self._weights, FoundWeights) and isinstance(self._tokenizer_folder, FoundWeights)
        return {
            "model": "CheXbert",
            "source": self._weights.source,
            "options": f"[CLS] of the last layer, cosine, {MAX_TOKENS} tokens",
            **package_versions("torch", "transformers"),
            **digest_weights(self._weights.path),
            **{f"tokenizer:{key}": value for key, value in digest_weights(self._tokenizer_folder.path).items()},
        }

    @cached_property
    def _weights(self) -> FoundWeights | MissingWeights:
        return self._source.find_scorer_file(Path("chexbert") / "chexbert.pth", "chexbert.pth")

    @cached_property
    def _tokenizer_folder(self) -> FoundWeights | MissingWeights:
        return self._tokenizer_source.find_model(TOKENIZER_REPO)

    @cached_property
    def _model(self) -> tuple[Any, Any]:
        from transformers import AutoTokenizer

        assert isinstance(self._weights, FoundWeights) and isinstance(self._tokenizer_folder, FoundWeights)
        tokenizer = AutoTokenizer.from_pretrained(str(self._tokenizer_folder.path), local_files_only=True)
        return tokenizer, load_encoder(self._weights.path)

    def _embed(self, texts: Sequence[str], advance: Advance) -> dict[str, tuple["torch.Tensor", bool]]:
        import torch

        if not texts:
            return {}
        tokenizer, model = self._model
        all_ids = tokenizer(list(texts), truncation=False, verbose=False)["input_ids"]
        kept = [_cut(ids, tokenizer.sep_token_id) for ids in all_ids]
        vectors: dict[str, tuple[torch.Tensor, bool]] = {}
        for places in batches_by_length(list(map(len, kept)), token_budget()):
            longest = len(kept[places[-1]])
            tokens = torch.full((len(places), longest), tokenizer.pad_token_id)
            mask = torch.zeros_like(tokens)
            for row, place in enumerate(places):
                tokens[row, : len(kept[place])] = torch.tensor(kept[place])
                mask[row, : len(kept[place])] = 1
            with torch.inference_mode():
                output = model(input_ids=tokens, attention_mask=mask).last_hidden_state[:, 0].clone()
            for row, place in enumerate(places):
                vectors[texts[place]] = (output[row], len(all_ids[place]) > MAX_TOKENS)
            advance(len(places))
        return vectors


def _cut(ids: list[int], end: int) -> list[int]:
    return ids if len(ids) <= MAX_TOKENS else [*ids[: MAX_TOKENS - 1], end]


def _pack(vector: "torch.Tensor", is_cut: bool) -> bytes:
    return b"".join([bytes([is_cut]), vector.numpy().tobytes()])


def _unpack(feature: bytes) -> tuple["torch.Tensor", bool]:
    import torch

    return torch.frombuffer(bytearray(feature[1:]), dtype=torch.float32), bool(feature[0])


def load_encoder(path: Path) -> Any:
    """The BERT encoder of a CheXbert checkpoint, its sizes read from the tensors; no code in the file is run."""
    import pickle

    import torch
    from transformers import BertModel

    try:
        checkpoint = torch.load(path, map_location="cpu", weights_only=True)
        state = {
            key.removeprefix(_PREFIX): tensor
            for key, tensor in checkpoint["model_state_dict"].items()
            if key.startswith(_PREFIX)
        }
        model = BertModel(_config(state), add_pooling_layer="pooler.dense.weight" in state)
        model.load_state_dict(state, strict=True)
    except (pickle.UnpicklingError, KeyError, TypeError, RuntimeError) as error:
        problem = f"is not a CheXbert checkpoint: {str(error).splitlines()[0]}"
        raise DataError(problem, file=path, remedy="use chexbert.pth from StanfordAIMI/RRG_scorers") from None
    return model.eval()


def _config(state: Mapping[str, Any]) -> Any:
    from transformers import BertConfig

    vocabulary, hidden = state["embeddings.word_embeddings.weight"].shape
    return BertConfig(
        vocab_size=vocabulary,
        hidden_size=hidden,
        num_hidden_layers=len({key.split(".")[2] for key in state if key.startswith("encoder.layer.")}),
        num_attention_heads=hidden // _HEAD_SIZE,
        intermediate_size=state["encoder.layer.0.intermediate.dense.weight"].shape[0],
        max_position_embeddings=state["embeddings.position_embeddings.weight"].shape[0],
        type_vocab_size=state["embeddings.token_type_embeddings.weight"].shape[0],
    )


def _clean(text: str) -> str:
    return re.sub(r"\s+", " ", text).strip()
