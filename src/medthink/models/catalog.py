"""Model names: `openai/NAME`, `openai-chat/NAME`, `anthropic/NAME`, `google/NAME`, `server/NAME`.

A provider is one line here and one wire module, which is imported on demand.
"""

import base64
import importlib
import os
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, get_args
from urllib.parse import quote, urlsplit

import msgspec

from medthink.core.errors import UsageError, did_you_mean
from medthink.core.plugins import plugin_names
from medthink.models.image_limits import MB, ImageLimits
from medthink.models.request import Effort, ModelError, Request, TextPart

if TYPE_CHECKING:
    from medthink.models.batches import BatchService
    from medthink.models.transport import HttpModel, Target, Transport
    from medthink.models.wires import Wire

_SHOWN = 8
# A shorter one may be a word that answers use.
_LEAST_SECRET = 12
_MASK = "[key]"
# More than any budget of thinking tokens.
_AMPLE_TOKENS = 100_000


class ApiKey:
    """A secret that no repr, error or log contains."""

    __slots__ = ("_forms", "_secret", "source")

    def __init__(self, secret: str, source: str) -> None:
        self._secret = secret
        self.source = source
        encoded = base64.b64encode(secret.encode()).decode().rstrip("=")
        # The beginning identifies a key, and providers echo keys with the middle masked.
        starts = [re.escape(form[:_SHOWN]) + r"[^\s\"',;]*" for form in (secret, quote(secret, safe=""), encoded)]
        self._forms = re.compile("|".join(dict.fromkeys(starts)))

    def reveal(self) -> str:
        """The secret itself, for the header that carries it."""
        return self._secret

    def redact(self, text: str) -> str:
        """The text without the key, whole, quoted, in base64 or cut off."""
        return self._forms.sub(_MASK, text)

    def mask(self, body: bytes) -> bytes:
        """A server's reply without the whole key; what is made of the reply cannot contain it then."""
        if len(self._secret) < _LEAST_SECRET:
            return body
        return body.replace(self._secret.encode(), _MASK.encode())

    def __repr__(self) -> str:
        return f"Key({self.source})"


class Provider(msgspec.Struct, frozen=True, kw_only=True):
    """A provider's address, its wire, and its limits."""

    wire: str
    # Its module in `batches`; empty if a batch is a file that a person runs on the server.
    batches: str = ""
    # The path of a free test request: only one's own server has one.
    free_path: str | None = None
    url: str = ""
    url_variable: str = ""
    key_variables: tuple[str, ...]
    needs_key: bool = True
    # The fewest tokens at the beginning of a prompt that it keeps for minutes, and takes less for when they come again.
    least_cached: int | None = None
    image_limits: ImageLimits = ImageLimits()


_OPENAI_IMAGES = ImageLimits(max_images=500, max_image_bytes=50 * MB, max_request_bytes=50 * MB)
# 10 MB is Anthropic's limit for the base64 of an image, so three quarters of it for the file. Models with a context of
# 200,000 tokens accept 100 images and report that themselves.
_ANTHROPIC_IMAGES = ImageLimits(
    max_images=600, max_image_bytes=10 * MB * 3 // 4, max_request_bytes=32 * MB,
    max_side=8_000, crowd=20, max_crowded_side=2_000,
)  # fmt: skip
_GEMINI_IMAGES = ImageLimits(max_images=900, max_image_bytes=7 * MB, max_request_bytes=100 * MB)

PROVIDERS: dict[str, Provider] = {
    "openai": Provider(
        wire="openai_responses", batches="openai", url="https://api.openai.com/v1", url_variable="OPENAI_BASE_URL",
        key_variables=("OPENAI_API_KEY",), image_limits=_OPENAI_IMAGES, least_cached=1_024,
    ),
    "openai-chat": Provider(
        wire="openai_chat", batches="openai", url="https://api.openai.com/v1", url_variable="OPENAI_BASE_URL",
        key_variables=("OPENAI_API_KEY",), image_limits=_OPENAI_IMAGES, least_cached=1_024,
    ),
    "anthropic": Provider(
        wire="anthropic", batches="anthropic", url="https://api.anthropic.com", url_variable="ANTHROPIC_BASE_URL",
        key_variables=("ANTHROPIC_API_KEY",), image_limits=_ANTHROPIC_IMAGES, least_cached=4_096,
    ),
    "google": Provider(
        wire="gemini", batches="gemini", url="https://generativelanguage.googleapis.com",
        url_variable="GOOGLE_GEMINI_BASE_URL",
        key_variables=("GEMINI_API_KEY", "GOOGLE_API_KEY"), image_limits=_GEMINI_IMAGES, least_cached=4_096,
    ),
    "server": Provider(
        wire="server_chat", free_path="/chat/completions", key_variables=("MEDTHINK_SERVER_KEY",), needs_key=False,
    ),
}  # fmt: skip


class ModelName(msgspec.Struct, frozen=True):
    """`provider/name`, taken apart."""

    provider: str
    name: str

    def __str__(self) -> str:
        return f"{self.provider}/{self.name}"


def parse_model_name(spec: str) -> ModelName:
    """Take `provider/name` apart, or raise UsageError; the name itself may contain slashes."""
    provider, _, name = spec.partition("/")
    if provider not in PROVIDERS or not name:
        known = ", ".join(f"{each}/NAME" for each in (*PROVIDERS, *plugin_names("medthink.models")))
        meant = did_you_mean(provider, [*PROVIDERS, "inspect", "local", "baseline", "replay"]) if name else ""
        remedy = f"{meant} Write {known}, inspect/PROVIDER/NAME, local/PATH, baseline/NAME or replay/RUN".removeprefix(
            " "
        )
        raise UsageError(f"unknown model {spec!r}", remedy=remedy)
    return ModelName(provider, name)


def least_cached(spec: str) -> int | None:
    """The fewest tokens that the cache of this model's provider keeps; None if there is no cache."""
    provider = PROVIDERS.get(spec.partition("/")[0])
    return None if provider is None else provider.least_cached


def efforts_of(model: ModelName) -> tuple[Effort, ...]:
    """The levels of effort that the model's wire sends, least first."""
    wire = importlib.import_module(f"medthink.models.wires.{PROVIDERS[model.provider].wire}")
    asked = Request(parts=(TextPart("?"),), max_tokens=_AMPLE_TOKENS)
    return tuple(
        level for level in get_args(Effort) if _takes(wire, msgspec.structs.replace(asked, effort=level), model)
    )


def _takes(wire: "Wire", request: Request, model: ModelName) -> bool:
    try:
        wire.encode(request, model.name)
    except ModelError:
        return False
    return True


def resolve_target(
    spec: str, *, base_urls: tuple[str, ...] = (), env: Mapping[str, str] | None = None, needs_key: bool = True
) -> "Target":
    """Resolve everything about the model that does not need the network, or raise UsageError.

    With `needs_key=False` no key is required, because nothing will be sent.
    """
    from medthink.models.transport import Target

    env = os.environ if env is None else env
    model = parse_model_name(spec)
    provider = PROVIDERS[model.provider]
    return Target(
        provider=model.provider,
        name=model.name,
        wire=importlib.import_module(f"medthink.models.wires.{provider.wire}"),
        urls=_settle_urls(model, provider, base_urls, env),
        key=_find_key(model, provider, env, is_needed=needs_key and provider.needs_key),
        key_variable=" or ".join(provider.key_variables),
        image_limits=provider.image_limits,
        free_path=provider.free_path,
    )


def open_model(
    spec: str,
    *,
    base_urls: tuple[str, ...] = (),
    transport: "Transport | None" = None,
    env: Mapping[str, str] | None = None,
    needs_key: bool = True,
) -> "HttpModel":
    """The model of that name, ready to be asked."""
    from medthink.models.transport import HttpModel

    target = resolve_target(spec, base_urls=base_urls, env=env, needs_key=needs_key)
    return HttpModel(target, transport)


def open_batches(target: "Target", transport: "Transport | None" = None) -> "BatchService":
    """The batches of a model; those of a server are files that a person runs."""
    from medthink.models.batches.client import BatchClient
    from medthink.models.batches.files import FileBatches

    module = PROVIDERS[target.provider].batches
    if not module:
        return FileBatches()
    if len(target.urls) > 1:
        raise UsageError("a batch needs exactly one address", remedy="give one --base-url")
    return BatchClient(target, importlib.import_module(f"medthink.models.batches.{module}"), transport)


def _settle_urls(
    model: ModelName, provider: Provider, base_urls: tuple[str, ...], env: Mapping[str, str]
) -> tuple[str, ...]:
    urls = base_urls or tuple(url for url in (env.get(provider.url_variable, "") or provider.url,) if url)
    if not urls:
        raise UsageError(
            f"the address of {model} is missing", remedy="give --base-url, e.g. --base-url http://localhost:8000/v1"
        )
    for url in urls:
        check_base_url(url, key_variable=next(iter(provider.key_variables), "the environment"))
    return tuple(dict.fromkeys(url.rstrip("/") for url in urls))


def check_base_url(url: str, *, key_variable: str = "the environment") -> None:
    """Raise UsageError unless this is an address without secrets: it is recorded with every run."""
    try:
        parts = urlsplit(url)
        (parts.hostname or "").encode("idna")  # refuses a label of more than 63 characters
        is_whole = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # unmatched brackets, or an invalid port
        is_whole = False
    # It may hold a password or a key.
    shown = "the value given" if set(url) & set("@?#") else repr(url)
    if not is_whole:
        raise UsageError(f"{shown} is not a base URL", remedy="write it as http://HOST:PORT/v1 or https://HOST/v1")
    if parts.username or parts.password:
        raise UsageError("a base URL must not contain a password", remedy=f"put the key into {key_variable}")
    if parts.query or parts.fragment or url.endswith(("?", "#")):
        raise UsageError("a base URL must not contain a query (?…)", remedy=f"put the key into {key_variable}")


def _find_key(model: ModelName, provider: Provider, env: Mapping[str, str], *, is_needed: bool) -> ApiKey | None:
    for variable in provider.key_variables:
        if secret := env.get(variable, "").strip():
            if not (secret.isascii() and secret.isprintable()):
                raise UsageError(
                    f"the key in {variable} contains a line break or another character that no key has",
                    remedy=f"set {variable} to the key alone",
                )
            return ApiKey(secret, variable)
    if is_needed:
        raise UsageError(f"{model} needs a key", remedy=f"set {' or '.join(provider.key_variables)}")
    return None
