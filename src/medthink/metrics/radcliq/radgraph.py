"""RadGraph F1 with the original RadGraph model, through the `radgraph` package, from local weights only."""

import contextlib
import io
import shutil
import tempfile
import warnings
import weakref
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from orjson import dumps

from medthink.core.errors import DataError
from medthink.core.files import write_atomic
from medthink.core.jsonio import parse_json
from medthink.metrics.radcliq.bertscore import FeatureStore
from medthink.metrics.radcliq.composite import (
    Advance,
    ComponentScores,
    batches_by_length,
    ignore_progress,
    missing_packages,
    package_versions,
    token_budget,
)
from medthink.metrics.radcliq.weights import FoundWeights, MissingWeights, WeightSource, digest_weights, extract_archive

Entity = tuple[str, str]
Relation = tuple[Entity, Entity, str]


class Annotation(NamedTuple):
    """The entities and relations of one text."""

    entities: frozenset[Entity]
    relations: frozenset[Relation]


class _RawEntity(msgspec.Struct):
    tokens: str
    label: str
    relations: list[tuple[str, str]] = []


class _RawAnnotation(msgspec.Struct):
    entities: dict[str, _RawEntity]


def read_annotation(value: Any, *, file: object = "", field: str = "") -> Annotation:
    """One text's annotation in the form the RadGraph package writes, or DataError."""
    try:
        raw = msgspec.convert(value, _RawAnnotation).entities
    except msgspec.ValidationError as error:
        remedy = 'write {"entities": {"1": {"tokens": …, "label": …, "relations": [[type, id], …]}}}'
        raise DataError(f"not a RadGraph annotation: {error}", file=file, field=field, remedy=remedy) from None
    unknown = [other for entity in raw.values() for _, other in entity.relations if other not in raw]
    if unknown:
        raise DataError(f"a relation points to an unknown entity: {unknown[0]}", file=file, field=field)
    named = {key: (entity.tokens, entity.label) for key, entity in raw.items()}
    relations = {(named[key], named[other], kind) for key, entity in raw.items() for kind, other in entity.relations}
    return Annotation(frozenset(named.values()), frozenset(relations))


def radgraph_f1(reference: Annotation, candidate: Annotation) -> float:
    """The mean of entity and relation F1."""
    entities = _f1(reference.entities, candidate.entities)
    return (entities + _f1(reference.relations, candidate.relations)) / 2


def _f1(reference: frozenset[Any], candidate: frozenset[Any]) -> float:
    stated = len(reference) + len(candidate)
    return 2 * len(reference & candidate) / stated if stated else 0.0


def read_annotations(value: Any, *, file: object = "") -> dict[str, Annotation]:
    """The annotations of many texts by their key."""
    if not isinstance(value, Mapping):
        raise DataError("not an object of annotations by key", file=file)
    return {str(key): read_annotation(entry, file=file, field=str(key)) for key, entry in value.items()}


MODEL = "radgraph"
ARCHIVE = "radgraph.tar.gz"
_PACKAGES = ("torch", "transformers", "radgraph", "requests", "dotmap")


class RadGraph:
    """RadGraph F1 as a component."""

    name = "radgraph"

    def __init__(
        self, source: WeightSource | None = None, encoder: WeightSource | None = None, features: Path | None = None
    ) -> None:
        """`features` is a folder that caches annotations between runs."""
        self._features = features
        self._source = source or WeightSource()
        self._encoder_source = encoder or WeightSource(online=self._source.online)

    def unavailable(self) -> str | None:
        """The reason why it cannot be computed here; None if it can."""
        packages = missing_packages(*_PACKAGES)
        if packages:
            return packages
        missing = [found.reason for found in (self._weights, self._encoder) if isinstance(found, MissingWeights)]
        return missing[0] if missing else None

    def score(
        self, references: Sequence[str], candidates: Sequence[str], advance: Advance = ignore_progress
    ) -> ComponentScores:
        """RadGraph F1 of every pair; each text is annotated once."""
        texts = list(dict.fromkeys((*references, *candidates)))
        annotated = dict(zip(texts, self.annotate(texts, advance), strict=True))
        pairs = zip(references, candidates, strict=True)
        return ComponentScores([radgraph_f1(annotated[ref], annotated[cand]) for ref, cand in pairs], [])

    def annotate(self, texts: Sequence[str], advance: Advance = ignore_progress) -> list[Annotation]:
        """The entities and relations the model finds in each text; stored annotations are reused."""
        store = FeatureStore(self._features, self.name, self.fingerprint())
        raw = {text: parse_json(feature, file="kept annotations") for text, feature in store.read(texts).items()}
        advance(len(raw))
        missing = list(dict.fromkeys(text for text in texts if text not in raw))
        made: dict[str, Any] = {}
        with _quiet():
            words = self._words(missing)
            for places in batches_by_length(list(map(len, words)), token_budget()):
                found = self._annotate_batch([words[place] for place in places])
                made |= dict(zip((missing[place] for place in places), found, strict=True))
                advance(len(places))
        store.keep({text: dumps(annotation) for text, annotation in made.items()})
        return [read_annotation((raw | made)[text]) for text in texts]

    def _words(self, texts: Sequence[str]) -> list[list[str]]:
        """Each text by words, as the package cuts them."""
        if not texts:
            return []
        self._model  # noqa: B018 - the package can only be imported once its tokenizers are mended
        from radgraph.utils import preprocess_reports

        return [report["sentences"][0] for report in preprocess_reports(list(texts), MODEL)]

    def _annotate_batch(self, texts: list[list[str]]) -> list[dict[str, Any]]:
        """Annotate the texts as sentences of one document.

        The package processes documents one by one, but batches their sentences. Entities and relations never cross
        sentences, so each text is read as it would be alone.
        """
        import torch
        from radgraph.radgraph import AllennlpDataset, PyTorchDataLoader
        from radgraph.utils import get_entity

        document = {"doc_key": "0", "sentences": texts, "dataset": MODEL}
        data = AllennlpDataset([self._model.reader.text_to_instance(document)])
        data.index_with(self._model.model.vocab)
        with torch.inference_mode():
            (batch,) = PyTorchDataLoader(batch_size=1, dataset=data)
            found = self._model.model.make_output_human_readable(self._model.model(**batch)).to_json()
        annotations, start = [], 0
        for words, entities, relations in zip(
            found["sentences"], found["predicted_ner"], found["predicted_relations"], strict=True
        ):
            own = [[a - start, b - start, *rest] for a, b, *rest in entities]
            joined = [[a - start, b - start, c - start, d - start, *rest] for a, b, c, d, *rest in relations]
            annotations.append({"entities": get_entity(own, joined, words)})
            start += len(words)
        return annotations

    def fingerprint(self) -> dict[str, str]:
        """The model by digest, its base encoder's files by digest, the packages."""
        assert isinstance(self._weights, FoundWeights) and isinstance(self._encoder, FoundWeights)
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
        """A folder that is removed with this component."""
        folder = tempfile.mkdtemp(prefix="medthink-radgraph-")
        weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        return Path(folder)

    @cached_property
    def _weights(self) -> FoundWeights | MissingWeights:
        folder = self._source.find_scorer_file(Path(MODEL) / MODEL, ARCHIVE)
        return (
            folder
            if isinstance(folder, FoundWeights)
            else self._source.find_scorer_file(Path(MODEL) / ARCHIVE, ARCHIVE)
        )

    @cached_property
    def _folder(self) -> Path:
        """The unpacked model."""
        assert isinstance(self._weights, FoundWeights)
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
    def _encoder(self) -> FoundWeights | MissingWeights:
        """The config and tokenizer of the base encoder; its weights are in the model's own."""
        if isinstance(self._weights, MissingWeights):
            return self._weights
        name = _encoder_entries(self._config)[0]["model_name"]
        return (
            FoundWeights(Path(name), "path in config.json")
            if Path(name).is_dir()
            else self._encoder_source.find_model(name)
        )

    @cached_property
    def _model(self) -> Any:
        with _quiet():
            _mend_tokenizers()
            from radgraph import RadGraph as Package

            return Package(model_type=MODEL, model_cache_dir=str(self._prepare()), cuda=-1)

    def _prepare(self) -> Path:
        """A copy of the model's folder whose config names the encoder by its path, so that nothing is fetched."""
        assert isinstance(self._encoder, FoundWeights)
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
        raise DataError(f"RadGraph's config.json has no {error}", remedy=f"download {ARCHIVE} again") from None


@contextlib.contextmanager
def _quiet() -> Any:
    """Suppress what the package prints, and undo its changes to the global warning filters."""
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        yield


def _mend_tokenizers() -> None:
    """Give the tokenizers of transformers 5 the two removed methods that the package still calls."""
    from transformers import PreTrainedTokenizerBase

    if not hasattr(PreTrainedTokenizerBase, "encode_plus"):
        PreTrainedTokenizerBase.encode_plus = PreTrainedTokenizerBase.__call__
    if not hasattr(PreTrainedTokenizerBase, "build_inputs_with_special_tokens"):
        PreTrainedTokenizerBase.build_inputs_with_special_tokens = _with_special_tokens


def _with_special_tokens(tokenizer: Any, ids: list[int]) -> list[int]:
    return [tokenizer.cls_token_id, *ids, tokenizer.sep_token_id]
