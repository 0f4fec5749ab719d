"""`local/PATH`: a transformers model with weights on this machine's disk, in this process, one request at a time.

For small models and for tests. Larger models are better behind a server, which batches requests and uses the GPU well.
"""

import asyncio
import io
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pybase64

from medthink.core.errors import UsageError
from medthink.models.image_detail import settle_detail
from medthink.models.request import ImagePart, ModelError, Reply, Request, TextPart, Usage
from medthink.models.wires.answers import Ending, make_reply
from medthink.models.wires.usage import TokenCounts

if TYPE_CHECKING:
    import torch

# A model's own default is often only 20 tokens in total.
DEFAULT_TOKENS = 2_048
_EXTRA = "pip install 'medthink[local]'"


class _Loaded(NamedTuple):
    """A loaded model and its input processor; `special` are control tokens that no text may contain."""

    processor: Any
    model: Any
    special: tuple[str, ...]


class LocalModel:
    """A model in this process; it is loaded with the first request."""

    def __init__(self, path: str) -> None:
        self.path = Path(path)
        if not (self.path / "config.json").is_file():
            raise UsageError(
                f"{path}: no model found", remedy="give a folder with config.json, weights and processor, as local/PATH"
            )
        self._loaded: _Loaded | None = None
        self._turn = asyncio.Lock()

    def refuse(self, request: Request) -> None:
        """Raise ModelError for settings that are not supported here."""
        if request.effort is not None:
            raise ModelError("unsupported", "a local model has no effort setting", remedy="leave out --effort")
        settle_detail(request.image_detail, "local", "a local model")
        if request.schema is not None:
            raise ModelError("unsupported", "a local model cannot enforce a schema", remedy="add --no-schema")

    async def generate(self, request: Request) -> Reply:
        """Answer the request, or raise ModelError."""
        self.refuse(request)
        async with self._turn:
            stop = threading.Event()
            try:
                return await asyncio.to_thread(self._generate, request, stop)
            except asyncio.CancelledError:
                # The thread continues until its next token.
                stop.set()
                raise

    def _generate(self, request: Request, stop: threading.Event) -> Reply:
        loaded = self._loaded = self._loaded or _load(self.path)
        _refuse_special(request, loaded.special)
        inputs = _prepare(loaded, request)
        length = inputs["input_ids"].shape[1]
        limit = request.max_tokens or DEFAULT_TOKENS
        made = _run(loaded.model, inputs, _settings(request, limit), stop)[0, length:]
        ends = loaded.model.generation_config.eos_token_id
        is_whole = int(made[-1]) in (ends if isinstance(ends, list) else [ends])
        text = loaded.processor.decode(made, skip_special_tokens=True).strip()
        usage = Usage(input=length, output=len(made))
        counted, ending = TokenCounts(usage), Ending("end" if is_whole else "truncated")
        return make_reply(
            text=text, ending=ending, counted=counted, model=self.path.name, reasoning="", wants_json=False
        )


def _load(path: Path) -> _Loaded:
    try:
        import torch
        import transformers
    except ImportError as error:
        raise UsageError(f"local models need {error.name}", remedy=_EXTRA) from None
    transformers.utils.logging.disable_progress_bar()
    try:
        processor = transformers.AutoProcessor.from_pretrained(path, local_files_only=True)
        model = transformers.AutoModelForImageTextToText.from_pretrained(path, local_files_only=True, dtype="auto")
    except (OSError, ValueError, ImportError) as error:
        first = str(error).strip().partition("\n")[0]
        remedy = (
            f"check that it is an image-text-to-text model of transformers; {_EXTRA} installs what most of them need"
        )
        raise UsageError(f"{path}: cannot be loaded: {first}", remedy=remedy) from None
    if getattr(processor, "chat_template", None) is None:
        raise UsageError(f"{path}: it has no chat template", remedy="use an instruction-tuned model")
    device = "cuda" if torch.cuda.is_available() else "cpu"
    tokenizer = processor.tokenizer
    added = {str(one) for one in tokenizer.added_tokens_decoder.values() if one.special}
    special = {*tokenizer.all_special_tokens, *added, getattr(processor, "image_token", None) or ""} - {""}
    return _Loaded(processor, model.to(device).eval(), tuple(sorted(special)))


def _refuse_special(request: Request, special: tuple[str, ...]) -> None:
    """Refuse text with the model's control tokens: it would be read as an image or as the end of a turn."""
    for text in (request.system, *(part.text for part in request.parts if isinstance(part, TextPart))):
        found = next((sign for sign in special if sign in text), None)
        if found is not None:
            raise ModelError(
                "unsupported",
                f"the text contains {found!r}, which this model reads as a control token",
                remedy="remove it from the benchmark, or use a server",
            )


def _prepare(loaded: _Loaded, request: Request) -> Any:
    import jinja2

    system = [{"role": "system", "content": [{"type": "text", "text": request.system}]}] if request.system else []
    messages = [*system, {"role": "user", "content": [_content(part) for part in request.parts]}]
    try:
        inputs = loaded.processor.apply_chat_template(
            messages, add_generation_prompt=True, tokenize=True, return_dict=True, return_tensors="pt"
        )
    except jinja2.TemplateError as error:
        raise ModelError("unsupported", f"the model's chat template rejects this prompt: {error}") from None
    except ValueError as error:
        raise ModelError("bad_request", f"the prompt cannot be prepared: {error}") from None
    return inputs.to(loaded.model.device, dtype=loaded.model.dtype)


def _content(part: TextPart | ImagePart) -> dict[str, Any]:
    if isinstance(part, TextPart):
        return {"type": "text", "text": part.text}
    from PIL import Image

    return {"type": "image", "image": Image.open(io.BytesIO(pybase64.b64decode(part.base64))).convert("RGB")}


def _settings(request: Request, limit: int) -> dict[str, Any]:
    """The settings requested; everything else stays at the model's defaults."""
    import transformers

    settings: dict[str, Any] = {"max_new_tokens": limit}
    if request.temperature is not None:
        settings |= {"do_sample": request.temperature > 0}
        settings |= {"temperature": request.temperature} if request.temperature > 0 else {}
    if request.seed is not None:
        transformers.set_seed(request.seed % 2**32)
    return settings


def _run(model: Any, inputs: Any, settings: dict[str, Any], stop: threading.Event) -> "torch.Tensor":
    import torch
    from transformers import StoppingCriteriaList

    def is_told_to_stop(ids: "torch.Tensor", scores: Any, **_: Any) -> "torch.Tensor":  # noqa: ARG001
        return torch.full((ids.shape[0],), stop.is_set(), dtype=torch.bool, device=ids.device)

    try:
        with torch.inference_mode():
            made: torch.Tensor = model.generate(
                **inputs, **settings, stopping_criteria=StoppingCriteriaList([is_told_to_stop])
            )
            return made
    except torch.OutOfMemoryError:
        remedy = "lower --image-share, --max-side or --max-tokens, or use a server"
        raise ModelError("unsupported", "there is not enough memory for this request", remedy=remedy) from None
    except (RuntimeError, ValueError, IndexError) as error:
        first = str(error).strip().partition("\n")[0]
        raise ModelError("bad_request", f"the model failed on this request: {first}") from None
