"""Backends as operators declare them: engine, address, device, and what they serve."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self
from urllib.parse import urlsplit

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from gateway.config.devices import DeviceEntry, DeviceSpec, DevicesSpec
from gateway.config.formats import KvFormat, WeightFormat
from gateway.config.secrets import SecretText
from gateway.config.sizes import (
    Bytes,
    Count,
    Duration,
    KvPool,
    PoolSize,
    Tokens,
    Unreadable,
    Whole,
)
from gateway.config.spec import FilePath, Name, Spec

__all__ = ["ENGINES", "Abilities", "BackendSpec", "KvEventsSpec", "LabelName", "ModelSpec", "SlotsSpec", "TimeoutSpec"]

ENGINES = ("vllm", "sglang", "llama.cpp", "ollama", "dwarfstar", "ninfer", "openai", "anthropic")
"""Names of `gateway.engines.registry`, for which there is a test."""
LabelName = Literal["public", "internal", "confidential", "restricted"]


class ModelSpec(Spec):
    """A model that this backend serves. What is left out comes from the engine, then from the catalogue."""

    id: Name
    """Catalogue id, or a name of your own with `kv_bytes` and `params`."""
    served_as: Name | None = None
    """The name that the engine knows it by; the id itself when left out."""
    weights: WeightFormat = "auto"
    """Number format of the weights. auto: from the engine's name for the model, else bf16 (llama.cpp: q4_k_m)."""
    kv: KvFormat = "auto"
    """Number format of the KV cache. auto: what the engine says, else 16 bit."""
    context: Annotated[Tokens, Field(gt=0)] | None = None
    """Tokens of prompt and output together that the engine was started with."""
    params: Annotated[Count, Field(gt=0)] | None = None
    """Parameters of a model that the catalogue lacks: 27B."""
    active_params: Annotated[Count, Field(gt=0)] | None = None
    """Parameters that one token uses, for a mixture of experts that the catalogue lacks: 3B."""
    kv_bytes: Annotated[Bytes, Field(gt=0)] | None = None
    """Bytes of KV cache a token in the format of `kv`, for a model that the catalogue lacks, or to overrule it."""
    tokenizer: FilePath | None = None
    """Its tokenizer, for exact counts near a limit where no engine tells them: a folder with tokenizer.json and chat
    template as Hugging Face has it, such a tokenizer.json, or o200k_base.tiktoken. Never fetched from anywhere."""


def _model(value: Any) -> Any:
    return {"id": value} if isinstance(value, str) else value


def _auto(value: Any) -> Any:
    return None if value == "auto" else value


class TimeoutSpec(Spec):
    """When a silent engine is given up."""

    connect: Annotated[Duration, Field(gt=0)] = 2.0
    """To a connection."""
    first_token: Annotated[
        Annotated[Duration, Field(gt=0)] | None,
        BeforeValidator(_auto, json_schema_input_type=Literal["auto"] | Duration),
    ] = None
    """To the first token. auto: several times what the prompt should take on this device."""
    token_gap: Annotated[Duration, Field(gt=0)] = 60.0
    """Between two pieces of an answer."""
    abort: Annotated[
        Annotated[Duration, Field(ge=0)] | None,
        BeforeValidator(_auto, json_schema_input_type=Literal["auto"] | Duration),
    ] = None
    """From a client's leaving to the engine's letting its request go: at most so long its place is kept, less if the
    engine says that it is free. auto: what engines of this kind need, or 10 s where they tell."""


class SlotsSpec(Spec):
    """The slots of llama.cpp's server."""

    choose: bool = True
    """Tell it in which slot to work (id_slot), so that conversations that begin alike don't take each other's. Without
    it the server chooses; so it does while others than this gateway use it."""
    save: bool = False
    """It was started with --slot-save-path: what loses its slot is saved there and restored when it goes on, where that
    is faster than to read it again. Takes 16 files, each as large as what a slot holds."""


def _zmq(text: str) -> str:
    if not text.startswith(("tcp://", "ipc://")):
        raise Unreadable("is not a ZMQ address", "write it like tcp://10.0.0.11:5557")
    return text


ZmqAddress = Annotated[str, AfterValidator(_zmq), Field(examples=["tcp://10.0.0.11:5557"])]


class KvEventsSpec(Spec):
    """vLLM's own word on what its cache holds (--kv-events-config with the publisher zmq); needs kvgate[kv-events]."""

    connect: ZmqAddress | None = None
    """Where the engine publishes, if its endpoint is one with * (tcp://*:5557) or ipc://."""
    listen: ZmqAddress | None = None
    """Where to listen instead, if its endpoint names this machine: then vLLM connects."""
    replay: ZmqAddress | None = None
    """Its replay_endpoint, asked for what was missed."""

    @model_validator(mode="after")
    def _one_way(self) -> Self:
        if (self.connect is None) == (self.listen is None):
            raise ValueError("needs connect or listen, one of them")
        return self


def _url(text: str) -> str:
    hint = "write it like http://10.0.0.11:8000"
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError:
        raise Unreadable("is not a URL", hint) from None
    if (
        parts.scheme not in ("http", "https")
        or not parts.hostname
        or any(c.isspace() or not c.isprintable() for c in text)
    ):
        raise Unreadable("is not an http or https URL", hint)
    if parts.username is not None or parts.password is not None:
        raise Unreadable("holds a user name or password", "put the key under `key:`, as ${env.NAME}")
    if parts.query or parts.fragment:
        raise Unreadable("has a query or fragment, and only a base URL is used", hint)
    if port == 0:
        raise Unreadable("has port 0", hint)
    return text.rstrip("/").removesuffix("/v1")


def _page(text: str) -> str:
    return text if urlsplit(_url(text)).path else f"{_url(text)}/metrics"


class TelemetrySpec(Spec):
    """Where a backend's devices tell clock, heat, power, memory and links, as pages for Prometheus."""

    dcgm: Annotated[str, AfterValidator(_page), Field(examples=["http://10.0.0.11:9400/metrics"])] | None = None
    """NVIDIA's DCGM exporter."""
    nvidia: Annotated[str, AfterValidator(_page), Field(examples=["http://10.0.0.11:9835/metrics"])] | None = None
    """nvidia_gpu_exporter."""
    node: Annotated[str, AfterValidator(_page), Field(examples=["http://10.0.0.11:9100/metrics"])] | None = None
    """node_exporter: memory and network."""
    agent: Annotated[str, AfterValidator(_page), Field(examples=["http://10.0.0.11:9836/metrics"])] | None = None
    """`kvgate device-agent`, or its file alone: all of it."""
    key: SecretText | None = None
    """The agent's token, as ${env.NAME} or ${file:/path}."""
    labels: Annotated[dict[str, str | list[str]], Field(default_factory=dict, examples=[{"gpu": ["0", "1"]}])]
    """Which samples are this backend's, where an exporter serves several: {gpu: "0"}, {gpu: ["0", "1"]}."""

    def wanted(self) -> dict[str, tuple[str, ...]]:
        """By label the values that samples of this backend may have."""
        return {key: (said,) if isinstance(said, str) else tuple(said) for key, said in self.labels.items()}

    def addresses(self) -> tuple[tuple[str, str], ...]:
        """(kind, URL) of each exporter."""
        told = (("dcgm", self.dcgm), ("nvidia", self.nvidia), ("node", self.node), ("agent", self.agent))
        return tuple((kind, url) for kind, url in told if url is not None)


class Abilities(Spec):
    """Overrules what was detected; an ability that is left out is detected."""

    tools: bool | None = None
    """Calls tools."""
    vision: bool | None = None
    """Reads images."""
    audio: bool | None = None
    """Hears audio."""
    json_schema: bool | None = None
    """Answers within a JSON schema."""
    logprobs: bool | None = None
    """Tells the probabilities of tokens."""
    embeddings: bool | None = None
    """Makes embeddings."""
    rerank: bool | None = None
    """Ranks documents."""


_ALIASES = {
    **dict.fromkeys(("llamacpp", "llama-server", "llama_cpp", "llama-cpp"), "llama.cpp"),
    **dict.fromkeys(("ds4", "ds4-server"), "dwarfstar"),
    "ninfer-serve": "ninfer",
    "claude": "anthropic",
    **{name: name for name in ENGINES},
}
"""What people write, in small letters, and what is meant."""


def _engine(value: Any) -> Any:
    if value in ENGINES:
        return value
    speaks_openai = ("tgi", "lmdeploy", "tensorrt-llm", "mlx", "lmstudio", "exllama", "tabbyapi")
    if isinstance(value, str) and value.lower() in speaks_openai:
        raise Unreadable(
            "is an engine without an adapter of its own here", "its OpenAI-compatible API works as engine: openai"
        )
    meant = _ALIASES.get(value.lower(), "") if isinstance(value, str) else ""
    raise Unreadable("is not an engine", f"write {meant}" if meant else f"one of {', '.join(ENGINES)}")


class BackendSpec(Spec):
    """One engine at one address."""

    name: Name
    """Its name in answers, metrics and logs."""
    url: Annotated[str, AfterValidator(_url), Field(examples=["http://10.0.0.11:8000"])]
    """Base URL of the engine; a trailing /v1 is ignored."""
    engine: Annotated[
        str,
        BeforeValidator(
            _engine,
            json_schema_input_type=Literal[
                "vllm", "sglang", "llama.cpp", "ollama", "dwarfstar", "ninfer", "openai", "anthropic"
            ],
        ),
    ]
    """What runs there; openai: any other server with OpenAI's API, dwarfstar: ds4-server, llama.cpp: llama-server."""
    device: DeviceEntry = DeviceSpec()
    """Catalogue id, or numbers: {memory: 96GiB, bandwidth: 1792GB/s, fp16: 250T}."""
    devices: DevicesSpec = DevicesSpec()
    """How many devices it spans."""
    models: tuple[Annotated[ModelSpec, BeforeValidator(_model, json_schema_input_type=str | ModelSpec)], ...] = ()
    """What it serves; left out: whatever the engine lists."""
    kv_pool: KvPool = PoolSize()
    """Size of the KV cache: a size, a number of tokens, or auto: the engine's figure, else memory less weights."""
    context: Annotated[Tokens, Field(gt=0)] | None = None
    """Cap on prompt and output together, in tokens, below what its engine was started with."""
    running: Annotated[
        Annotated[Whole, Field(ge=1, le=65536)] | None,
        BeforeValidator(_auto, json_schema_input_type=Literal["auto"] | int),
    ] = None
    """Requests that may run at once. auto: the engine's slots, else what the KV cache bears."""
    one_model: bool = False
    """Whether its engine holds one model at a time and swaps when asked for another, like llama-swap: then it is asked
    for another only when nothing runs there."""
    queued_prefill: Annotated[Duration, Field(gt=0)] = 2.0
    """Seconds of prefill that may wait inside the engine before it gets nothing new."""
    location: Literal["on-prem", "off-prem"] = "on-prem"
    """Whether requests stay in the house."""
    clearance: LabelName | None = None
    """The most sensitive data it may see; restricted when on-prem, public when off-prem."""
    key: SecretText | None = None
    """The engine's API key, as ${env.NAME} or ${file:/path}."""
    timeouts: TimeoutSpec = TimeoutSpec()
    """When a silent engine is given up."""
    abilities: Abilities = Abilities()
    """Normally detected."""
    telemetry: TelemetrySpec | None = None
    """How its devices fare; without it only what requests take tells."""
    kv_events: KvEventsSpec | None = None
    """For vLLM: listen to what it says of its KV cache; without it what is cached is predicted from what was sent."""
    slots: SlotsSpec = SlotsSpec()
    """For llama.cpp: who chooses among its slots."""
