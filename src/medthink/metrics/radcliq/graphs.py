"""RadGraph F1 with the original RadGraph model, through the `radgraph` package, from local weights only."""

import contextlib
import io
import shutil
import tempfile
import warnings
import weakref
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from medthink.core.errors import DataError
from medthink.core.files import write_atomic
from medthink.core.jsonio import parse_json
from medthink.metrics.radcliq.annotations import Annotation, radgraph_f1, read_annotation
from medthink.metrics.radcliq.component import ComponentScores, missing_packages, package_versions
from medthink.metrics.radcliq.weights import Found, Missing, WeightSource, digest_weights, extract_archive

MODEL = "radgraph"
ARCHIVE = "radgraph.tar.gz"
_PACKAGES = ("torch", "transformers", "radgraph", "requests", "dotmap")


class RadGraph:
    """RadGraph F1 as a component."""

    name = "radgraph"

    def __init__(self, source: WeightSource | None = None, encoder: WeightSource | None = None) -> None:
        self._source = source or WeightSource()
        self._encoder_source = encoder or WeightSource(online=self._source.online)

    def unavailable(self) -> str | None:
        """Why it cannot be computed here; None if it can."""
        packages = missing_packages(*_PACKAGES)
        if packages:
            return packages
        missing = [found.reason for found in (self._weights, self._encoder) if isinstance(found, Missing)]
        return missing[0] if missing else None

    def score(self, references: Sequence[str], candidates: Sequence[str]) -> ComponentScores:
        """RadGraph F1 of every pair; each text is annotated once."""
        texts = list(dict.fromkeys((*references, *candidates)))
        annotated = dict(zip(texts, self.annotate(texts), strict=True))
        pairs = zip(references, candidates, strict=True)
        return ComponentScores([radgraph_f1(annotated[ref], annotated[cand]) for ref, cand in pairs], [])

    def annotate(self, texts: Sequence[str]) -> list[Annotation]:
        """The entities and relations the model finds in each text."""
        with _quiet():
            found = self._model(list(texts))
        return [read_annotation(found[str(place)]) for place in range(len(texts))]

    def fingerprint(self) -> dict[str, str]:
        """The model by digest, its base encoder's files by digest, the packages."""
        assert isinstance(self._weights, Found) and isinstance(self._encoder, Found)
        return {
            "model": MODEL,
            "source": self._weights.source,
            "options": "entities and relations, mean of both F1",
            **package_versions(*_PACKAGES),
            **digest_weights(self._weights.path),
            **{f"encoder:{key}": value for key, value in digest_weights(self._encoder.path).items()},
        }

    @cached_property
    def _scratch(self) -> Path:
        """A folder that goes when this component does."""
        folder = tempfile.mkdtemp(prefix="medthink-radgraph-")
        weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        return Path(folder)

    @cached_property
    def _weights(self) -> Found | Missing:
        folder = self._source.find_scorer_file(Path(MODEL) / MODEL, ARCHIVE)
        return folder if isinstance(folder, Found) else self._source.find_scorer_file(Path(MODEL) / ARCHIVE, ARCHIVE)

    @cached_property
    def _folder(self) -> Path:
        """The unpacked model."""
        assert isinstance(self._weights, Found)
        if self._weights.path.is_dir():
            return self._weights.path
        folder = self._scratch / "unpacked"
        extract_archive(self._weights.path, folder)
        return folder

    @cached_property
    def _config(self) -> dict[str, Any]:
        path = self._folder / "config.json"
        config: dict[str, Any] = parse_json(path.read_bytes(), file=path)
        return config

    @cached_property
    def _encoder(self) -> Found | Missing:
        """The config and tokenizer of the base encoder; its weights are in the model's own."""
        if isinstance(self._weights, Missing):
            return self._weights
        name = _encoder_entries(self._config)[0]["model_name"]
        return (
            Found(Path(name), "path in config.json") if Path(name).is_dir() else self._encoder_source.find_model(name)
        )

    @cached_property
    def _model(self) -> Any:
        with _quiet():
            _mend_tokenizers()
            from radgraph import RadGraph as Package

            return Package(model_type=MODEL, model_cache_dir=str(self._prepare()), cuda=-1)

    def _prepare(self) -> Path:
        """A copy of the model's folder whose config names the encoder by its path, so that nothing is fetched."""
        from orjson import dumps

        assert isinstance(self._encoder, Found)
        root = self._scratch / "prepared"
        (root / MODEL).mkdir(parents=True, exist_ok=True)
        for entry in _encoder_entries(self._config):
            entry["model_name"] = str(self._encoder.path.resolve())
        write_atomic(root / MODEL / "config.json", [dumps(self._config)])
        for name in ("vocabulary", "weights.th"):
            (root / MODEL / name).symlink_to((self._folder / name).resolve())
        return root


def _encoder_entries(config: dict[str, Any]) -> list[dict[str, Any]]:
    try:
        reader = config["dataset_reader"]["token_indexers"]["bert"]
        return [reader, config["model"]["embedder"]["token_embedders"]["bert"]]
    except KeyError as error:
        raise DataError(f"RadGraph's config.json has no {error}", remedy=f"take {ARCHIVE} anew") from None


@contextlib.contextmanager
def _quiet() -> Any:
    """The package prints, and changes the filters of warnings for everybody: keep both to itself."""
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        yield


def _mend_tokenizers() -> None:
    """Give tokenizers of transformers 5 the two methods that the package calls and that were taken away."""
    from transformers import PreTrainedTokenizerBase

    if not hasattr(PreTrainedTokenizerBase, "encode_plus"):
        PreTrainedTokenizerBase.encode_plus = PreTrainedTokenizerBase.__call__
    if not hasattr(PreTrainedTokenizerBase, "build_inputs_with_special_tokens"):
        PreTrainedTokenizerBase.build_inputs_with_special_tokens = _with_special_tokens


def _with_special_tokens(tokenizer: Any, ids: list[int]) -> list[int]:
    return [tokenizer.cls_token_id, *ids, tokenizer.sep_token_id]
