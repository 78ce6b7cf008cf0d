"""What a key and a model's name tell by their looks, held against the host that they are sent to. Pure.

Says nothing of a key but its kind: no part of it leaves here. A look is no proof, for a gateway may take any key: ask
only about a key or a model that was refused. Prefixes: the providers' own documentation, and the public rules of
secret scanners. Plain ``sk-…`` is everybody's and tells nothing.
"""

import re
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Provider:
    """One API. ``models``: how the names of models begin that it serves and that no other *first-hand* API does."""

    name: str
    domains: tuple[str, ...]
    keys: tuple[str, ...] = ()
    models: tuple[str, ...] = ()

    def at(self, host: str) -> bool:
        return any(host == domain or host.endswith(f".{domain}") for domain in self.domains)


PROVIDERS = (
    Provider(
        name="OpenAI",
        domains=("openai.com",),
        keys=("sk-proj-", "sk-svcacct-"),
        models=("gpt-3", "gpt-4", "gpt-5", "o1", "o3", "o4-", "chatgpt-"),
    ),
    Provider(name="Anthropic", domains=("anthropic.com",), keys=("sk-ant-api",), models=("claude-",)),
    Provider(name="Google", domains=("googleapis.com",), keys=("AIza",), models=("gemini-",)),
    Provider(name="DeepSeek", domains=("deepseek.com",), models=("deepseek-chat", "deepseek-reasoner")),
    Provider(name="Moonshot", domains=("moonshot.cn", "moonshot.ai"), models=("moonshot-", "kimi-")),
    Provider(name="Alibaba's Model Studio", domains=("aliyuncs.com",)),
    Provider(name="Zhipu", domains=("bigmodel.cn", "z.ai"), models=("glm-",)),
    Provider(name="Mistral", domains=("mistral.ai",), models=("mistral-", "codestral-", "ministral-")),
    Provider(name="xAI", domains=("x.ai",), keys=("xai-",), models=("grok-",)),
    Provider(name="OpenRouter", domains=("openrouter.ai",), keys=("sk-or-",)),
    Provider(name="Groq", domains=("groq.com",), keys=("gsk_",)),
    Provider(name="Together", domains=("together.xyz", "together.ai"), keys=("tgp_",)),
    Provider(name="Fireworks", domains=("fireworks.ai",), keys=("fw_",)),
    Provider(name="Cerebras", domains=("cerebras.ai",), keys=("csk-",)),
    Provider(name="Perplexity", domains=("perplexity.ai",), keys=("pplx-",)),
    Provider(name="NVIDIA", domains=("nvidia.com",), keys=("nvapi-",)),
    Provider(name="Hugging Face", domains=("huggingface.co",), keys=("hf_",)),
    Provider(name="TaoToken", domains=("taotoken.net",)),
)
_LOGINS = {
    "sk-ant-oat": "a login token of Claude Code",
    "sk-ant-ort": "a refresh token of Claude Code",
    "sk-ant-sid": "a session of claude.ai",
    "ya29.": "a login token of Google",
    "gho_": "a login token of GitHub",
    "ghu_": "a login token of GitHub",
}
_ADMIN = ("sk-ant-admin", "sk-admin-")
_JWT = re.compile(r"eyJ[\w-]{8,}\.[\w-]{4,}\.[\w-]*")
_PLACEHOLDER = re.compile(
    r"(?i)(sk-)?(x{3,}|\.{3,}|…+|\*{3,})|.*\byour[-_ ]?(api|key|token|secret).*|<.*>|\$\{?\w+\}?|%\w+%|\{\{.*\}\}"
    r"|(empty|none|null|undefined|changeme|todo|test|dummy|api[-_]?key)"
)


def provider_at(host: str) -> Provider | None:
    """Whose API answers at that host, where it is one of the known."""
    return next((provider for provider in PROVIDERS if provider.at(host.lower())), None)


def login_token(key: str) -> str | None:
    """Which login ("a login token of Claude Code") a key is that is no API key; ``None`` when it does not look so."""
    found = next((what for prefix, what in _LOGINS.items() if key.startswith(prefix)), None)
    return "a login token (a JWT, as Codex keeps in auth.json)" if found is None and _JWT.fullmatch(key) else found


def key_flaw(key: str, host: str) -> str | None:
    """What is wrong with a refused key, in one line with what to do; ``None`` when its looks tell nothing."""
    if not key:
        return "No key was sent, and the server wants one: set api_key_file, or api_key_variable."
    if not (key.isascii() and key.isprintable()) or key != key.strip() or " " in key.removeprefix("Bearer "):
        return "The key holds blanks or characters that no key has: copy it anew, on one line."
    if key.lower().startswith("bearer "):
        return "The key begins with the word Bearer, which is added by itself: give the key alone."
    if key[0] in "\"'`" or key[-1] in "\"'`,;":
        return "The key has quotes or a comma around it: give the key alone."
    if _PLACEHOLDER.fullmatch(key):
        return "The key is a placeholder: put the real one in its place."
    if login := login_token(key):
        return f"The key is {login}, not an API key: those are two systems; make an API key in the provider's console."
    if key.startswith(_ADMIN):
        return "The key is an admin key, which serves no model: make an ordinary API key."
    owner = next((provider for provider in PROVIDERS if key.startswith(provider.keys or "\0")), None)
    if owner is not None and not owner.at(host.lower()):
        return f"The key is one of {owner.name}'s, the URL is {host}: give the key of that host, or {owner.name}'s URL."
    return None


def model_flaw(model: str, host: str) -> str | None:
    """What is wrong with the name of a refused model at a known API, with what to do; ``None`` when nothing shows."""
    here = provider_at(host)
    if here is None:
        return None
    if here.name == "OpenRouter" and "/" not in model:
        return f"OpenRouter's models are named VENDOR/MODEL: write {model} so, as its list of models does."
    owner = next((provider for provider in PROVIDERS if model.startswith(provider.models or "\0")), None)
    if here.models and owner is not None and owner is not here:
        return (
            f"{model} is a model of {owner.name}, the URL is {here.name}'s: name one of {here.name}'s models, "
            f"or change url and key to {owner.name}'s."
        )
    return None
