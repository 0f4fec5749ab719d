"""Chat Completions as local servers speak it (vLLM, SGLang, llama.cpp, Ollama and the like)."""

from medthink.models.image_detail import settle_detail
from medthink.models.request import Request
from medthink.models.wires import Encoded
from medthink.models.wires.answers import check_tier
from medthink.models.wires.openai_chat import HEADERS, MODELS_PATH, decode, encode_chat, encode_part, sign

__all__ = ["HEADERS", "MODELS_PATH", "decode", "encode", "sign"]


def encode(request: Request, model: str) -> Encoded:
    """Encode the request with the older name of the token limit, which every server knows."""
    check_tier(request, frozenset())
    settle_detail(request.image_detail, "server", model)
    content = [encode_part(part) for part in request.parts]
    return encode_chat(request, model, content=content, settings={"max_tokens": request.max_tokens})
