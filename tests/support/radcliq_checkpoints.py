"""Random checkpoints in the forms that RadCliQ's models are published in, tiny unless asked to be of real size.

The same weights in every run: among random ones there are ties, which another batch or machine would decide otherwise.
"""

import json
from pathlib import Path
from typing import Any

from lazily import Lazily

torch = Lazily("torch")
transformers = Lazily("transformers")

SENTENCES = [
    "Small left pleural effusion with bibasilar atelectasis.",
    "No acute cardiopulmonary process.",
    "Mild cardiomegaly. No pleural effusion or pneumothorax.",
]


def _seed() -> None:
    torch.manual_seed(0)


def build_roberta(folder: Path, *, hidden: int = 32, heads: int = 2) -> None:
    from tokenizers import ByteLevelBPETokenizer

    _seed()
    folder.mkdir(parents=True)
    trained = ByteLevelBPETokenizer()
    trained.train_from_iterator(SENTENCES, vocab_size=400, special_tokens=["<s>", "<pad>", "</s>", "<unk>", "<mask>"])
    trained.save_model(str(folder))
    config = transformers.RobertaConfig(
        vocab_size=trained.get_vocab_size(),
        hidden_size=hidden,
        num_hidden_layers=6,
        num_attention_heads=heads,
        intermediate_size=2 * hidden if hidden < 768 else 4 * hidden,
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


def build_bert_tokenizer(folder: Path, *, hidden: int = 64, layers: int = 2) -> int:
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
    bert_config(len(vocabulary), hidden=hidden, layers=layers).save_pretrained(folder)
    return len(vocabulary)


def bert_config(vocabulary: int, *, hidden: int = 64, layers: int = 2) -> Any:
    return transformers.BertConfig(
        vocab_size=vocabulary,
        hidden_size=hidden,
        num_hidden_layers=layers,
        num_attention_heads=hidden // 64,
        intermediate_size=2 * hidden if hidden < 768 else 4 * hidden,
        initializer_range=0.5 if hidden < 768 else 0.02,
    )


def build_chexbert(path: Path, vocabulary: int, *, hidden: int = 64, layers: int = 2) -> None:
    _seed()
    path.parent.mkdir(parents=True)
    encoder = transformers.BertModel(bert_config(vocabulary, hidden=hidden, layers=layers))
    state = {f"module.bert.{key}": tensor for key, tensor in encoder.state_dict().items()}
    for head in range(14):
        state[f"module.linear_heads.{head}.weight"] = torch.zeros(4, hidden)
    torch.save({"model_state_dict": state}, path)


def build_radgraph(folder: Path, *, hidden: int = 64, layers: int = 2) -> None:
    """Config, vocabulary and weights of a DyGIE on a tiny BERT, whose encoder is named as on the hub."""
    from medthink.metrics.radcliq.radgraph import _mend_tokenizers, _quiet

    _seed()
    encoder = folder.parents[1] / "tiny-encoder"
    build_bert_tokenizer(encoder, hidden=hidden, layers=layers)
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
