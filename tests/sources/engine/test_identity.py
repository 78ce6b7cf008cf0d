"""What /v1/models says, and who is silent."""

import json
from pathlib import Path

import pytest

from pinchpoint.snapshot import EngineFacts
from pinchpoint.sources.engine.identity import REFRESH_SECONDS, Identity, facts_in
from pinchpoint.sources.http import Answer

REAL = json.loads(Path("tests/data/vllm-real/errors/models.json").read_text())["body"].encode()


class Server:
    """Answers as given; ``None`` is silence."""

    def __init__(self, **answers: Answer | None) -> None:
        self.answers = answers
        self.asked: list[str] = []

    async def __call__(self, path: str, most: int) -> Answer | None:
        self.asked.append(path)
        return self.answers.get(path.rpartition("/")[2])


def says(body: bytes, status: int = 200) -> Answer:
    return Answer(status, 0.0, body if status == 200 else b"")


async def told(**answers: Answer | None) -> EngineFacts:
    identity = Identity()
    await identity.refresh(Server(**answers), 0.0)
    return identity.onto(EngineFacts(kind="vllm", max_num_seqs=8))


async def test_a_real_server_says_its_version_and_its_models_length() -> None:
    facts = await told(version=says(b'{"version": "0.32.0"}'), models=says(REAL))
    assert (facts.version, facts.model, facts.max_model_len) == ("0.32.0", "tiny-qwen2", 2048)
    assert facts.origins == {"model": "models", "max_model_len": "models"}


@pytest.mark.parametrize("models", [None, says(b"", 401), says(b"", 404)])
async def test_a_refusal_and_silence_say_nothing(models: Answer | None) -> None:
    assert await told(models=models) == EngineFacts(kind="vllm", max_num_seqs=8)


def test_adapters_are_not_the_model() -> None:
    adapter, base = {"id": "lora", "parent": "m", "max_model_len": None}, {"id": "m", "max_model_len": 4096}
    facts = facts_in(json.dumps({"data": [adapter, base]}).encode())
    assert (facts.model, facts.max_model_len) == ("m", 4096)


def test_of_several_models_only_what_is_true_of_all_is_said() -> None:
    def of(*models: dict[str, object]) -> tuple[str | None, int | None]:
        facts = facts_in(json.dumps({"data": models}).encode())
        return facts.model, facts.max_model_len

    names = ({"id": "a", "root": "/m", "max_model_len": 4096}, {"id": "b", "root": "/m", "max_model_len": 4096})
    assert of(*names) == ("a", 4096)
    assert of({"id": "a", "max_model_len": 4096}, {"id": "b", "max_model_len": 8192}) == (None, None)
    assert of({"id": "a"}, {"id": "b"}) == (None, None)  # Ollama lists all that it could load


@pytest.mark.parametrize(
    "body",
    [
        b"", b"[]", b"[" * 5000, b'{"data": 3}', b'{"data": [3, null]}', b'{"data": [{"id": "\\u0000"}]}',
        b'{"data": [{"id": 7, "max_model_len": true}]}', b'{"data": [{"max_model_len": -1}]}',
        b'{"data": [{"max_model_len": 1e400}]}',
    ],
)  # fmt: skip
def test_an_answer_that_makes_no_sense_says_nothing(body: bytes) -> None:
    assert facts_in(body) == EngineFacts()


@pytest.mark.parametrize("answer", [None, says(b"", 401), says(b"", 503)])
async def test_a_later_refusal_takes_back_nothing(answer: Answer | None) -> None:
    server, identity = Server(version=says(b'{"version": "0.32.0"}'), models=says(REAL)), Identity()
    await identity.refresh(server, 0.0)
    server.answers = {"version": answer, "models": answer}
    await identity.refresh(server, REFRESH_SECONDS + 1)
    facts = identity.onto(EngineFacts())
    assert (len(server.asked), facts.version, facts.max_model_len) == (4, "0.32.0", 2048)


async def test_it_is_asked_at_the_start_after_a_restart_and_every_ten_minutes() -> None:
    server, identity = Server(models=says(REAL)), Identity()
    for now in (0.0, 5.0, REFRESH_SECONDS, REFRESH_SECONDS + 1):
        await identity.refresh(server, now)
    assert server.asked == ["/version", "/v1/models"] * 2
    identity.forget()
    assert identity.onto(EngineFacts()).max_model_len is None
    await identity.refresh(server, REFRESH_SECONDS + 2)
    assert len(server.asked) == 6
