"""Providers and engines by name: ``preset: taotoken`` and a key are a whole target. One table, pure.

A row says where an API is, how it speaks and which quirks are known; no prices, and a model only where the provider's
own examples agree on one. A quirk that is not here costs one refused request: a prober learns it (``parameters.py``).
Sources: each provider's API reference and quick start; variables as their own clients call them.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from urllib.parse import urlsplit

from pinchpoint.snapshot import Placement
from pinchpoint.sources.probe.dialects import DialectName

_CHAT, _RESPONSES, _ANTHROPIC = DialectName.OPENAI_CHAT, DialectName.OPENAI_RESPONSES, DialectName.ANTHROPIC


@dataclass(frozen=True, slots=True, kw_only=True)
class Preset:
    """``urls``: the base URL of each dialect that is spoken there, the usual dialect first.

    ``parameters`` are defaults of the target's ``parameters``. ``key_variable`` is the environment variable that the
    provider's own tools read the key from.
    """

    urls: Mapping[DialectName, str]
    placement: Placement = Placement.HOSTED
    key_variable: str | None = None
    model: str | None = None
    parameters: Mapping[str, object] = field(default_factory=dict)

    @property
    def dialect(self) -> DialectName:
        return next(iter(self.urls))

    @property
    def url(self) -> str:
        return self.urls[self.dialect]

    @property
    def hosts(self) -> frozenset[str]:
        return frozenset(host for url in self.urls.values() if (host := urlsplit(url).hostname))


def _chat(url: str, key_variable: str, anthropic: str | None = None, **parameters: object) -> Preset:
    urls = {_CHAT: url} | ({_ANTHROPIC: anthropic} if anthropic else {})
    return Preset(urls=urls, key_variable=key_variable, parameters=parameters)


def _engine(port: int, *more: DialectName, key_variable: str | None = None, **parameters: object) -> Preset:
    url = f"http://127.0.0.1:{port}"
    return Preset(
        urls=dict.fromkeys((_CHAT, *more), url),
        placement=Placement.LOCAL,
        key_variable=key_variable,
        parameters=parameters,
    )


PRESETS: Mapping[str, Preset] = MappingProxyType(
    {
        # Aggregators: many models behind one key.
        "taotoken": Preset(
            urls=dict.fromkeys((_CHAT, _ANTHROPIC), "https://taotoken.net/api"),
            key_variable="TAOTOKEN_API_KEY",
            model="gpt-4o-mini",
        ),
        "openrouter": _chat("https://openrouter.ai/api/v1", "OPENROUTER_API_KEY", "https://openrouter.ai/api"),
        "siliconflow": _chat("https://api.siliconflow.cn/v1", "SILICONFLOW_API_KEY"),
        "together": _chat("https://api.together.xyz/v1", "TOGETHER_API_KEY"),
        "fireworks": _chat("https://api.fireworks.ai/inference/v1", "FIREWORKS_API_KEY"),
        # Makers of models.
        "openai": Preset(
            urls=dict.fromkeys((_CHAT, _RESPONSES), "https://api.openai.com/v1"),
            key_variable="OPENAI_API_KEY",
            parameters={"token_field": "max_completion_tokens"},
        ),
        "azure": Preset(urls={DialectName.AZURE_OPENAI: ""}, key_variable="AZURE_OPENAI_API_KEY"),
        "anthropic": Preset(urls={_ANTHROPIC: "https://api.anthropic.com"}, key_variable="ANTHROPIC_API_KEY"),
        "gemini": Preset(
            urls={
                DialectName.GEMINI: "https://generativelanguage.googleapis.com",
                _CHAT: "https://generativelanguage.googleapis.com/v1beta/openai",
            },
            key_variable="GEMINI_API_KEY",
        ),
        "deepseek": _chat("https://api.deepseek.com", "DEEPSEEK_API_KEY", "https://api.deepseek.com/anthropic"),
        "moonshot": _chat("https://api.moonshot.cn/v1", "MOONSHOT_API_KEY", "https://api.moonshot.cn/anthropic"),
        "dashscope": _chat("https://dashscope.aliyuncs.com/compatible-mode/v1", "DASHSCOPE_API_KEY"),
        "zhipu": _chat(
            "https://open.bigmodel.cn/api/paas/v4", "ZHIPUAI_API_KEY", "https://open.bigmodel.cn/api/anthropic"
        ),
        "volcengine": _chat("https://ark.cn-beijing.volces.com/api/v3", "ARK_API_KEY"),
        "mistral": _chat("https://api.mistral.ai/v1", "MISTRAL_API_KEY", stream_usage=False),  # sends usage unasked
        "xai": _chat("https://api.x.ai/v1", "XAI_API_KEY"),
        "groq": _chat("https://api.groq.com/openai/v1", "GROQ_API_KEY"),
        # Engines, where they listen by default.
        "vllm": _engine(8000, _RESPONSES, _ANTHROPIC, key_variable="VLLM_API_KEY"),
        "sglang": _engine(30000),
        "ollama": _engine(11434, _ANTHROPIC, continuous_usage=False, ignore_eos=False),
        "llama_cpp": _engine(8080, _ANTHROPIC, continuous_usage=False),
        "lmdeploy": _engine(23333, continuous_usage=False),
        "tgi": _engine(8080, continuous_usage=False, ignore_eos=False),
    }
)


def preset_at(url: str) -> str | None:
    """The hosted preset whose host this URL has. Engines have none of their own: anything may listen on loopback."""
    try:
        host = (urlsplit(url).hostname or "").removesuffix(".")  # a name may end with the dot of the root
    except ValueError:
        return None
    if host.endswith((".openai.azure.com", ".cognitiveservices.azure.com", ".services.ai.azure.com")):
        return "azure"
    return next(
        (name for name, preset in PRESETS.items() if preset.placement is Placement.HOSTED and host in preset.hosts),
        None,
    )
