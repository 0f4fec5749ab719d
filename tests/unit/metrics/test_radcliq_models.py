"""RadCliQ's model components with tiny random checkpoints, made here and read by the real loading code."""

import json
import pickle
import tarfile
from pathlib import Path
from typing import Any

import pytest

from medthink.core.errors import DataError
from medthink.metrics.radcliq import score_radcliq
from medthink.metrics.radcliq.bertscore import BASELINE, LAYER, BertScore
from medthink.metrics.radcliq.chexbert import CheXbert, load_encoder
from medthink.metrics.radcliq.component import Bleu2
from medthink.metrics.radcliq.graphs import RadGraph
from medthink.metrics.radcliq.weights import ENVIRONMENT, WeightSource

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
pytestmark = pytest.mark.filterwarnings("ignore")

SENTENCES = [
    "Small left pleural effusion with bibasilar atelectasis.",
    "No acute cardiopulmonary process.",
    "Mild cardiomegaly. No pleural effusion or pneumothorax.",
]
LONG = " ".join(["effusion and atelectasis"] * 400)


def build_roberta(folder: Path) -> None:
    from tokenizers import ByteLevelBPETokenizer

    folder.mkdir(parents=True)
    trained = ByteLevelBPETokenizer()
    trained.train_from_iterator(SENTENCES, vocab_size=400, special_tokens=["<s>", "<pad>", "</s>", "<unk>", "<mask>"])
    trained.save_model(str(folder))
    config = transformers.RobertaConfig(
        vocab_size=trained.get_vocab_size(),
        hidden_size=32,
        num_hidden_layers=6,
        num_attention_heads=2,
        intermediate_size=64,
        max_position_embeddings=514,
        type_vocab_size=1,
        pad_token_id=1,
    )
    transformers.RobertaModel(config).save_pretrained(folder)
    transformers.RobertaTokenizerFast(
        vocab=str(folder / "vocab.json"),
        merges=str(folder / "merges.txt"),
        **(
            {}
            if int(transformers.__version__.split(".")[0]) >= 5
            else {"vocab_file": str(folder / "vocab.json"), "merges_file": str(folder / "merges.txt")}
        ),
    ).save_pretrained(folder)


def build_bert_tokenizer(folder: Path) -> int:
    folder.mkdir(parents=True)
    words = sorted({word for sentence in SENTENCES for word in sentence.lower().replace(".", " .").split()})
    letters = [chr(code) for code in range(97, 123)]
    vocabulary = [
        "[PAD]",
        "[UNK]",
        "[CLS]",
        "[SEP]",
        "[MASK]",
        *words,
        *letters,
        *(f"##{c}" for c in letters),
        "1",
        "2",
    ]
    vocabulary = list(dict.fromkeys(vocabulary))
    (folder / "vocab.txt").write_text("\n".join(vocabulary) + "\n")
    size = bert_config(len(vocabulary))
    size.save_pretrained(folder)
    return len(vocabulary)


def bert_config(vocabulary: int) -> Any:
    return transformers.BertConfig(
        vocab_size=vocabulary,
        hidden_size=64,
        num_hidden_layers=2,
        num_attention_heads=1,
        intermediate_size=128,
        initializer_range=0.5,
    )


def build_chexbert(path: Path, vocabulary: int) -> None:
    path.parent.mkdir(parents=True)
    encoder = transformers.BertModel(bert_config(vocabulary))
    state = {f"module.bert.{key}": tensor for key, tensor in encoder.state_dict().items()}
    for head in range(14):
        state[f"module.linear_heads.{head}.weight"] = torch.zeros(4, 64)
    torch.save({"model_state_dict": state}, path)


def build_radgraph(folder: Path) -> None:
    """Config, vocabulary and weights of a DyGIE on a tiny BERT, whose encoder is named as on the hub."""
    from medthink.metrics.radcliq.graphs import _mend_tokenizers, _quiet

    encoder = folder.parents[1] / "tiny-encoder"
    build_bert_tokenizer(encoder)
    (folder / "vocabulary").mkdir(parents=True)
    (folder / "vocabulary" / "non_padded_namespaces.txt").write_text("*tags\n*labels\n")
    (folder / "vocabulary" / "radgraph__ner_labels.txt").write_text("\nOBS-DP\nANAT-DP\nOBS-U\nOBS-DA\n")
    (folder / "vocabulary" / "radgraph__relation_labels.txt").write_text("\nmodify\nlocated_at\nsuggestive_of\n")
    bert = {"model_name": "someone/tiny-encoder", "max_length": 512}
    model = {
        "type": "dygie",
        "embedder": {"token_embedders": {"bert": bert}},
        "initializer": {},
        "module_initializer": {},
        "feature_size": 8,
        "max_span_width": 3,
        "target_task": "ner",
        "feedforward_params": {"num_layers": 1, "hidden_dims": 16, "dropout": 0.1},
        "loss_weights": {"ner": 1.0, "relation": 1.0, "coref": 0.0, "events": 0.0},
        "modules": {
            "coref": {"spans_per_word": 0.3, "max_antecedents": 10, "coref_prop": 0},
            "ner": {},
            "relation": {"spans_per_word": 0.5},
            "events": {
                "trigger_spans_per_word": 0.3,
                "argument_spans_per_word": 0.8,
                "loss_weights": {"trigger": 1.0, "arguments": 1.0},
            },
        },
    }
    config = {"dataset_reader": {"max_span_width": 3, "token_indexers": {"bert": bert}}, "model": model}
    (folder / "config.json").write_text(json.dumps(config))
    with _quiet():
        _mend_tokenizers()
        from radgraph.allennlp.data import Vocabulary
        from radgraph.allennlp.modules import text_field_embedders, token_embedders
        from radgraph.dygie.models import dygie

        embedder = token_embedders.PretrainedTransformerMismatchedEmbedder(model_name=str(encoder), max_length=512)
        settings = {
            k: v for k, v in model.items() if k not in ("type", "embedder", "initializer", "module_initializer")
        }
        built = dygie.DyGIE(
            vocab=Vocabulary.from_files(str(folder / "vocabulary")),
            embedder=text_field_embedders.BasicTextFieldEmbedder({"bert": embedder}),
            **json.loads(json.dumps(settings)),
        )
    torch.save(built.state_dict(), folder / "weights.th")


@pytest.fixture(scope="module")
def weights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    torch.manual_seed(0)
    root = tmp_path_factory.mktemp("weights")
    build_roberta(root / "distilroberta-base")
    vocabulary = build_bert_tokenizer(root / "bert-base-uncased")
    build_chexbert(root / "chexbert" / "chexbert.pth", vocabulary)
    return root


@pytest.fixture(scope="module")
def graph_weights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("radgraph.allennlp.data")
    torch.manual_seed(3)
    root = tmp_path_factory.mktemp("graph")
    build_radgraph(root / "radgraph" / "radgraph")
    return root


@pytest.fixture
def environment(weights: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(ENVIRONMENT, str(weights))
    return weights


def test_bertscore_is_one_for_equal_texts(environment: Path) -> None:
    component = BertScore()
    assert component.unavailable() is None
    scores = component.score(SENTENCES, SENTENCES)
    assert scores.values == pytest.approx([1.0] * 3, abs=1e-4)
    assert scores.truncated == []


def test_bertscore_by_hand(environment: Path) -> None:
    """One pair, token by token, from the model's own hidden states."""
    tokenizer = transformers.AutoTokenizer.from_pretrained(environment / "distilroberta-base", add_prefix_space=True)
    model = transformers.AutoModel.from_pretrained(environment / "distilroberta-base").eval()
    sides = []
    for text in SENTENCES[:2]:
        with torch.no_grad():
            hidden = model(**tokenizer(text, return_tensors="pt"), output_hidden_states=True).hidden_states[LAYER][0]
        sides.append([row / row.norm() for row in hidden])
    ref, cand = sides
    precision = sum(max(float(c @ r) for r in ref) for c in cand[1:-1]) / (len(cand) - 2)
    recall = sum(max(float(c @ r) for c in cand) for r in ref[1:-1]) / (len(ref) - 2)
    f1 = 2 * precision * recall / (precision + recall)
    expected = (f1 - BASELINE[2]) / (1 - BASELINE[2])
    assert BertScore().score([SENTENCES[0]], [SENTENCES[1]]).values == pytest.approx([expected], abs=1e-4)


def test_bertscore_begins_the_first_word_with_a_space(environment: Path) -> None:
    tokenizer, _ = BertScore()._model
    assert tokenizer("effusion")["input_ids"] == tokenizer(" effusion")["input_ids"]


def test_bertscore_collapses_spaces_and_counts_cut_texts(environment: Path) -> None:
    scores = BertScore().score(["pleural   effusion", LONG], ["pleural effusion", "effusion"])
    assert scores.values[0] == pytest.approx(1.0, abs=1e-4)
    assert scores.truncated == [1]


def test_chexbert(environment: Path) -> None:
    component = CheXbert()
    assert component.unavailable() is None
    scores = component.score([*SENTENCES, SENTENCES[0], LONG], [*SENTENCES, SENTENCES[1], SENTENCES[0]])
    assert scores.values[:3] == pytest.approx([1.0] * 3, abs=1e-5)
    assert -1 <= scores.values[3] < 0.9999
    assert scores.truncated == [4]
    assert component.score(["a\n\nb"], ["a b"]).values == pytest.approx([1.0], abs=1e-5)


def test_fingerprints_name_the_weights(environment: Path) -> None:
    for component in (BertScore(), CheXbert()):
        fingerprint = component.fingerprint()
        assert any(key.startswith("sha256:") for key in fingerprint)
        assert fingerprint["package:torch"] == torch.__version__
        assert fingerprint["source"] == ENVIRONMENT


class Evil:
    def __reduce__(self) -> Any:
        return (exec, ("raise SystemExit('code in the checkpoint was run')",))


def test_a_checkpoint_with_code_in_it_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "chexbert.pth"
    torch.save({"model_state_dict": Evil()}, path)
    with pytest.raises(DataError, match="not a CheXbert checkpoint"):
        load_encoder(path)
    path.write_bytes(pickle.dumps({"model_state_dict": {}}))
    with pytest.raises(DataError, match="not a CheXbert checkpoint"):
        load_encoder(path)


def test_radgraph_through_the_package(graph_weights: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(ENVIRONMENT, str(graph_weights))
    component = RadGraph()
    assert component.unavailable() is None
    annotated = component.annotate(SENTENCES)
    assert any(annotation.entities for annotation in annotated)
    scores = component.score(SENTENCES, SENTENCES)
    for annotation, value in zip(annotated, scores.values, strict=True):
        assert value == (bool(annotation.entities) + bool(annotation.relations)) / 2
    assert any(key.startswith("encoder:sha256:") for key in component.fingerprint())


def test_radgraph_from_its_archive(graph_weights: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "radgraph").mkdir()
    archive = tmp_path / "radgraph" / "radgraph.tar.gz"
    with tarfile.open(archive, "w:gz") as tar:
        for name in ("config.json", "vocabulary", "weights.th"):
            tar.add(graph_weights / "radgraph" / "radgraph" / name, arcname=name)
    monkeypatch.setenv(ENVIRONMENT, str(tmp_path))
    assert "tiny-encoder" in str(RadGraph().unavailable())
    component = RadGraph(encoder=WeightSource(explicit=graph_weights / "tiny-encoder"))
    assert component.unavailable() is None
    monkeypatch.setenv(ENVIRONMENT, str(graph_weights))
    assert component.annotate(SENTENCES) == RadGraph().annotate(SENTENCES)


def test_equal_texts_score_the_same_whatever_the_weights(
    weights: Path, graph_weights: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(ENVIRONMENT, str(weights))
    components = [
        RadGraph(WeightSource(graph_weights / "radgraph" / "radgraph"), WeightSource(graph_weights / "tiny-encoder")),
        BertScore(),
        CheXbert(),
        Bleu2(),
    ]
    result = score_radcliq(SENTENCES, SENTENCES, components)
    assert result.status == "ok"
    expected = {1.0: -1.4406902828047017, 0.5: -0.818082117695542}
    for row in result.rows:
        assert row.components is not None
        assert row.v1 == pytest.approx(expected[row.components.radgraph], abs=1e-3)
