"""A vision-language model with a few thousand weights, made in the test: Idefics3, which takes several images."""

from pathlib import Path
from typing import Any

from lazily import Lazily

torch = Lazily("torch")
transformers = Lazily("transformers")

SPECIAL = (
    "<pad>", "<bos>", "<end_of_utterance>", "<image>", "<fake_token_around_image>", "<global-img>",
)  # fmt: skip
TEMPLATE = (
    "<bos>{% for message in messages %}{{ message['role'] | capitalize }}: "
    "{% for part in message['content'] %}{% if part['type'] == 'image' %}{{ '<image>' }}"
    "{% else %}{{ part['text'] }}{% endif %}{% endfor %}<end_of_utterance>\n{% endfor %}"
    "{% if add_generation_prompt %}Assistant:{% endif %}"
)


def build_idefics(folder: Path, *, template: str = TEMPLATE, says: str = "", seed: int = 0) -> Path:
    """Random weights, a byte-level vocabulary, and everything that `AutoProcessor` needs, in a folder.

    With `says` (no sign twice, no colon), the model answers with these signs and then ends.
    """
    processor = transformers.Idefics3Processor(
        image_processor=transformers.Idefics3ImageProcessorPil(
            size={"longest_edge": 32}, max_image_size={"longest_edge": 32}, do_image_splitting=False
        ),
        tokenizer=_tokenizer(),
        image_seq_len=4,
        chat_template=template,
    )
    torch.manual_seed(seed)
    config = transformers.Idefics3Config(
        vision_config={
            "hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2,
            "image_size": 32, "patch_size": 8, "initializer_range": 0.5,
        },
        text_config={
            "model_type": "llama", "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 1,
            "num_attention_heads": 2, "num_key_value_heads": 2, "vocab_size": len(processor.tokenizer),
            "max_position_embeddings": 8192, "initializer_range": 0.5,
            "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2,
        },
        image_token_id=processor.tokenizer.convert_tokens_to_ids("<image>"),
        scale_factor=2,
        pad_token_id=0,
    )  # fmt: skip
    model = transformers.Idefics3ForConditionalGeneration(config)
    if says:
        _teach(model, processor.tokenizer, says)
    model.generation_config.eos_token_id = 2
    model.generation_config.pad_token_id = 0
    model.save_pretrained(folder)
    processor.save_pretrained(folder)
    return folder


def _teach(model: Any, tokenizer: object, says: str) -> None:
    """Let each sign lead to the next: nothing but the last token's embedding reaches the output."""
    for layer in model.model.text_model.layers:
        layer.self_attn.o_proj.weight.data.zero_()
        layer.mlp.down_proj.weight.data.zero_()
    known = tokenizer.convert_tokens_to_ids([":", *says])  # type: ignore[attr-defined]
    embedding, output = model.get_input_embeddings().weight, model.get_output_embeddings().weight
    output.data.zero_()
    for place, (now, then) in enumerate(zip(known, [*known[1:], 2], strict=True)):
        embedding.data[now] = 0.0
        embedding.data[now, place] = 1.0
        output.data[then, place] = 1.0


def _tokenizer() -> Any:
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    bpe = Tokenizer(models.BPE(vocab={one: place for place, one in enumerate((*SPECIAL, *letters))}, merges=[]))
    bpe.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    bpe.decoder = decoders.ByteLevel()
    bpe.add_special_tokens([AddedToken(one, special=True, normalized=False) for one in SPECIAL])
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=bpe, pad_token="<pad>", bos_token="<bos>", eos_token="<end_of_utterance>",
        additional_special_tokens=list(SPECIAL[3:]),
    )  # fmt: skip
