"""Remedies for what can be told apart within an outcome. Pure: a function a case, the first that knows a line wins."""

import re
from collections.abc import Callable, Mapping

from pinchpoint.snapshot import ProbeOutcome
from pinchpoint.sources.probe.case import Case
from pinchpoint.sources.probe.cause import Cause
from pinchpoint.sources.probe.credential import key_flaw, login_token, model_flaw
from pinchpoint.sources.probe.presets import PRESETS, preset_at

_NAME = re.compile(r"[\w.\[\]-]{1,40}")
_ALIASES = re.compile(r"Valid aliases: ([^.\n]{1,200}(?:\.\d[^.\n]{0,100})*)")


def _says(case: Case, *phrases: str) -> bool:
    """Whether the server, or the transport, says one of these (lower case)."""
    message = case.judgement.message.lower()
    return case.judgement.facts.says(*phrases) or any(phrase in message for phrase in phrases)


# --- the way there ---


def _proxy_ignored(case: Case) -> str | None:
    if not case.hosted or case.target.proxy is not None or not case.proxy_variables:
        return None
    names = " and ".join(case.proxy_variables)
    return f"No direct way there; {names} is set, which probes don't follow: set the target's proxy if that is the way."


def _bare_name(case: Case) -> str | None:
    if "." in case.host or ":" in case.host:
        return None
    return f"The name {case.host} does not resolve here: containers and pods know names that this host does not."


def _port(case: Case) -> str | None:
    if case.hosted:
        return None
    return (
        f"Nothing listens at {case.host}:{case.port}: start the server, or correct the port "
        "(`ss -ltn` lists those in use)."
    )


def _certificate(case: Case) -> str | None:
    if _says(case, "expired", "not yet valid"):
        return f"The certificate of {case.host} is out of date: renew it there; look at this host's clock too."
    if _says(case, "hostname mismatch", "ip address mismatch", "not valid for"):
        return f"The certificate is for another name than {case.host}: write the name that it holds into url."
    if _says(case, "self-signed", "self signed", "unable to get", "unable to verify"):
        return "Nobody whom this host trusts has signed the certificate: add its CA to the system's (SSL_CERT_FILE)."
    if _says(case, "wrong version number", "record layer", "unknown protocol", "http request"):
        return f"{case.host}:{case.port} speaks http, not https: begin url with http://."
    return None


def _proxy(case: Case) -> str | None:
    status = case.judgement.status
    if status == 407 or _says(case, "proxy answers 407"):
        return "The proxy wants a login, which cannot be given to it here: have it admit this host, or use another."
    if case.target.proxy is not None and status is None:
        if case.loopback:
            return "The target is on this very host and needs no proxy: remove the target's proxy."
        return "The target's proxy does not answer or refuses: check that it runs, its address, and what it lets pass."
    if status is None:
        return None
    if case.hosted:
        return f"The provider's gateway has no healthy server (HTTP {status}): if it lasts, see its status page."
    if status == 504:
        return "The gateway gave up waiting: raise its read timeout (nginx: proxy_read_timeout) above first_token."
    return f"The gateway finds no healthy engine behind it (HTTP {status}): is the engine up, at the address it has?"


# --- key, model, URL ---


def _key(case: Case) -> str | None:
    if case.judgement.cause is Cause.KEY_UNREADABLE:
        return "The key can't be read: make api_key_file a file that this process may read, with the key alone in it."
    if not case.key and case.target.api_key_variable is not None:
        return f"No key was sent: set {case.target.api_key_variable} in this process's environment, or api_key_file."
    return key_flaw(case.key, case.host)


def _login(case: Case) -> str | None:
    """A login is refused in many words, and not all of them speak of the key."""
    return key_flaw(case.key, case.host) if login_token(case.key) else None


def _own_key(case: Case) -> str | None:
    if case.hosted:
        return None
    return "The key was refused: give the one that the server was started with (vLLM: --api-key) in api_key_file."


def _forbidden(case: Case) -> str | None:
    if case.judgement.cause is Cause.STREAM_NOT_ALLOWED:
        return (
            "This organisation may not stream this model: verify it in the provider's console, or name another model."
        )
    if case.judgement.cause is Cause.HTML_PAGE:
        return "A firewall in front of the API turns this host's address away: have it admitted, or go by another way."
    if _says(case, "country", "region", "location"):
        return "The provider does not serve this region: probe from another, or another provider."
    return None


def _model(case: Case) -> str | None:
    name = case.asked_model
    if case.judgement.cause is Cause.NO_MODEL_LIST or not name:
        return "The server lists no model: name the one to ask in the target's model."
    if _says(case, "无可用渠道", "no available channel"):
        return f"The aggregator has no channel for {name} in this key's group: name a model it lists, or change group."
    if flaw := model_flaw(name, case.host):
        return flaw
    if aliases := _ALIASES.search(case.judgement.facts.message):
        return f"The server has no model {name}; it serves {case.quoted(aliases[1])}: write that into model."
    if case.hosted:
        return f"The provider has no model {name} for this key: write model as its list at /v1/models has it."
    return (
        f"No model {name} there: write its served name (vLLM: --served-model-name, else its path), or leave model out."
    )


def _path(case: Case) -> str | None:
    location = case.judgement.location
    if location:
        where = case.quoted(location.partition("?")[0].removesuffix("/chat/completions"))
        return f"The server sends us on to {where}: if that is the API, write it into url."
    if case.judgement.facts.has_code("deploymentnotfound"):
        return "Azure has no deployment of that name at this resource: write the deployment's name, not the model's."
    if case.judgement.cause is Cause.NO_MODEL_LIST:
        return "No list of models there: check the target's url, or name the model in the target's model."
    name = preset_at(case.target.url)
    home = PRESETS[name].urls.get(case.target.dialect) if name is not None else None
    if home and home != case.target.url:
        return f"No such API at that path: {name}'s base URL is {home}; write that, or `preset: {name}` without url."
    return None


def _not_the_api(case: Case) -> str | None:
    where = f"{case.host}:{case.port}"
    match case.judgement.cause:
        case Cause.NO_HTTP if case.target.url.startswith("http:"):
            return f"{where} does not speak http: write https://, or find whose port it is (`ss -ltnp`)."
        case Cause.HTML_PAGE if case.hosted:
            return (
                "A web page, not an API, is at that address: write the API's base URL, not the site's or the console's."
            )
        case Cause.HTML_PAGE:
            return f"Another program serves web pages at {where} (`ss -ltnp` names it): correct the port, or free it."
        case Cause.NO_CHOICES:
            return "The answer has no choices: check path (/v1/chat/completions), dialect and the model's name."
    return None


# --- limits ---


def _wait(case: Case) -> str | None:
    seconds = case.judgement.retry_after_seconds
    if not seconds:
        return None
    return (
        f"Too many requests for this account, which is to wait {seconds:.4g} s: "
        "lengthen interval_seconds, or raise its limit."
    )


def _context(case: Case) -> str | None:
    words, tokens = case.target.prompt_words, case.target.max_tokens
    return f"The probe is longer than the model's context: lower prompt_words ({words}) or max_tokens ({tokens})."


def _request(case: Case) -> str | None:
    if case.judgement.cause is Cause.HTTPS_WANTED:
        return "That port speaks https: begin url with https://."
    if _says(case, "provide a chat template", "not define a chat template", "no chat template"):
        return "The model has no chat template, as base models have none: start the server with --chat-template."
    if case.judgement.status == 405:
        return "No chat API at that path, with or without /v1: check the target's url."
    parameter = case.judgement.facts.param or ""
    if _NAME.fullmatch(parameter):
        return f"The server refuses {case.quoted(parameter)}: change it, or leave it out, in the target's parameters."
    return None


def _loading(case: Case) -> str | None:
    return "The model is still loading: wait until it is ready." if _says(case, "loading model") else None


# --- the answer ---


def _before_the_first_token(case: Case) -> str | None:
    if "; 0 chunks" not in case.judgement.message:
        return None
    return "It broke off before the first text: a balancer's idle timeout (often 60 s), or the engine went down."


def _lump(case: Case) -> str | None:
    match case.judgement.cause:
        case Cause.WHOLE:
            return (
                "The server ignores stream=true and sends a whole answer: allow streaming in the gateway or the model."
            )
        case Cause.BUFFERED:
            return (
                "A proxy holds the text back: turn its buffering off (nginx: proxy_buffering off) and its compression."
            )
    return None


def _empty(case: Case) -> str | None:
    match case.judgement.cause:
        case Cause.REASONING_BUDGET:
            return "Reasoning used up every token: set max_tokens 1024 or more, or parameters.reasoning_effort low."
        case Cause.TOOL_ONLY:
            return "The model called a tool that nobody offered: look at the gateway's tools or system prompt."
        case Cause.REFUSAL:
            return "The model refused a harmless prompt: look at the gateway's system prompt, or name another model."
    return None


REMEDIES_BY_CASE: Mapping[ProbeOutcome, tuple[Callable[[Case], str | None], ...]] = {
    ProbeOutcome.DNS: (_proxy_ignored, _bare_name),
    ProbeOutcome.CONNECT_REFUSED: (_proxy_ignored, _port),
    ProbeOutcome.CONNECT_TIMEOUT: (_proxy_ignored,),
    ProbeOutcome.TLS: (_certificate, _proxy_ignored),
    ProbeOutcome.RESET: (_proxy_ignored,),
    ProbeOutcome.PROXY: (_proxy,),
    ProbeOutcome.AUTH: (_key, _own_key),
    ProbeOutcome.FORBIDDEN: (_forbidden, _login),
    ProbeOutcome.MODEL_NOT_FOUND: (_model,),
    ProbeOutcome.NOT_FOUND: (_path,),
    ProbeOutcome.INVALID_RESPONSE: (_not_the_api,),
    ProbeOutcome.RATE_LIMITED: (_wait,),
    ProbeOutcome.CONTEXT_LENGTH: (_context,),
    ProbeOutcome.BAD_REQUEST: (_login, _request),
    ProbeOutcome.OVERLOADED: (_loading,),
    ProbeOutcome.TRUNCATED: (_before_the_first_token,),
    ProbeOutcome.NOT_STREAMED: (_lump,),
    ProbeOutcome.EMPTY_OUTPUT: (_empty,),
}
