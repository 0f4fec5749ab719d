"""CheXbert similarity (SembScore): the cosine of two reports' [CLS] vectors. Range -1 to 1, higher is better."""

import re
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from medthink.core.errors import DataError
from medthink.metrics.radcliq.component import MAX_TOKENS, ComponentScores, missing_packages, package_versions
from medthink.metrics.radcliq.weights import Found, Missing, WeightSource, digest_weights

if TYPE_CHECKING:
    import torch

TOKENIZER_REPO = "bert-base-uncased"
_PREFIX = "module.bert."
_HEAD_SIZE = 64


class CheXbert:
    """CheXbert similarity as a component."""

    name = "semb"

    def __init__(self, source: WeightSource | None = None, tokenizer: WeightSource | None = None) -> None:
        self._source = source or WeightSource()
        self._tokenizer_source = tokenizer or WeightSource(online=self._source.online)

    def unavailable(self) -> str | None:
        """Why it cannot be computed here; None if it can."""
        packages = missing_packages("torch", "transformers")
        if packages:
            return packages
        missing = [found.reason for found in (self._weights, self._tokenizer_folder) if isinstance(found, Missing)]
        return "; ".join(missing) or None

    def score(self, references: Sequence[str], candidates: Sequence[str]) -> ComponentScores:
        """The cosine of every pair."""
        import torch

        texts = list(dict.fromkeys(_clean(text) for text in (*references, *candidates)))
        vectors = {text: self._embed(text) for text in texts}
        values, cut = [], []
        for place, (reference, candidate) in enumerate(zip(references, candidates, strict=True)):
            (ref, ref_cut), (cand, cand_cut) = vectors[_clean(reference)], vectors[_clean(candidate)]
            values.append(float(torch.nn.functional.cosine_similarity(ref, cand, dim=0)))
            if ref_cut or cand_cut:
                cut.append(place)
        return ComponentScores(values, cut)

    def fingerprint(self) -> dict[str, str]:
        """The checkpoint and the tokenizer by digest, the packages, the options."""
        assert isinstance(self._weights, Found) and isinstance(self._tokenizer_folder, Found)
        return {
            "model": "CheXbert",
            "source": self._weights.source,
            "options": f"[CLS] of the last layer, cosine, {MAX_TOKENS} tokens",
            **package_versions("torch", "transformers"),
            **digest_weights(self._weights.path),
            **{f"tokenizer:{key}": value for key, value in digest_weights(self._tokenizer_folder.path).items()},
        }

    @cached_property
    def _weights(self) -> Found | Missing:
        return self._source.find_scorer_file(Path("chexbert") / "chexbert.pth", "chexbert.pth")

    @cached_property
    def _tokenizer_folder(self) -> Found | Missing:
        return self._tokenizer_source.find_model(TOKENIZER_REPO)

    @cached_property
    def _model(self) -> tuple[Any, Any]:
        from transformers import AutoTokenizer

        assert isinstance(self._weights, Found) and isinstance(self._tokenizer_folder, Found)
        tokenizer = AutoTokenizer.from_pretrained(str(self._tokenizer_folder.path), local_files_only=True)
        return tokenizer, load_encoder(self._weights.path)

    def _embed(self, text: str) -> tuple["torch.Tensor", bool]:
        import torch

        tokenizer, model = self._model
        ids = tokenizer(text, truncation=False, verbose=False)["input_ids"]
        is_cut = len(ids) > MAX_TOKENS
        if is_cut:
            ids = [*ids[: MAX_TOKENS - 1], tokenizer.sep_token_id]
        with torch.inference_mode():
            tokens = torch.tensor([ids])
            output = model(input_ids=tokens, attention_mask=torch.ones_like(tokens))
        return output.last_hidden_state[0, 0], is_cut


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
        raise DataError(problem, file=path, remedy="take chexbert.pth of StanfordAIMI/RRG_scorers") from None
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
