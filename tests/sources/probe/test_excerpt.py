"""What a server said, made safe to show."""

import json
import string
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Callable
from time import process_time
from urllib.parse import quote

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from pinchpoint.sources.probe.excerpt import MAX_CHARACTERS, MIN_PART, excerpt

ALNUM = string.ascii_letters + string.digits


@pytest.mark.parametrize("key", ["canary-key+/=0815", "canary~key4", "%canary%key%"])
@pytest.mark.parametrize(
    "echo",
    [
        lambda key: quote(key, safe=""),
        lambda key: "".join(f"%{ord(character):02X}" for character in key),
        str.upper,
        lambda key: b64encode(key.encode()).decode(),
        lambda key: urlsafe_b64encode(key.encode()).decode().rstrip("="),
    ],
)
def test_the_key_is_known_in_capitals_as_part_of_a_url_and_in_base64(key: str, echo: Callable[[str], str]):
    assert excerpt(f"no {echo(key)} here", (key,)).replace("=", "") == "no [redacted] here"


def test_a_key_that_is_also_a_word_takes_no_words_out_in_another_case():
    assert excerpt("an empty answer to EMPTY", ("EMPTY",)) == "an empty answer to [redacted]"


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("Incorrect API key provided: sk-proj-abc123def456.", "Incorrect API key provided: [redacted]"),
        ("got 'Authorization: Bearer abcdef'", "got 'Authorization: Bearer [redacted]'"),
        ("cannot reach http://user:pw@host:80/x", "cannot reach http://[redacted]@host:80/x"),
        ('{"api_key": "short1"}', '{"api_key": "[redacted]"}'),
        (r'{"message": "{\"token\": \"short1\"}"}', '{"message": "{"token": "[redacted]"}"}'),
        (r'{"message": "for\njane\u0040corp.example"}', '{"message": "for [redacted]"}'),
        ("key 0123456789abcdef0123456789abcdef is unknown", "key [redacted] is unknown"),
        ("key 5c9a6f1e2b3d4c5f8a7b6c5d4e3f2a1b.AbCdEfGhIjKlMnOp", "key [redacted]"),
        ("two\nlines\t and \x1b[31mcolour\x1b[0m", "two lines and [31mcolour[0m"),
        ("in organization `org_01hrsvc1b8ey0anvbgha0xckf2` on", "in organization `[redacted]` on"),
        ("Your account org-abc123<ak-xyz1234> is suspended", "Your account [redacted]<[redacted]> is suspended"),
        ("project_number:123456789012 is off", "project_number:[redacted] is off"),
        ("user id is A-1234, projects/98765/locations", "user id is [redacted], projects/[redacted]/locations"),
        ("用户ID: u12345 没有权限", "用户ID: [redacted] 没有权限"),
        ("jane.doe+x@corp.example.com may not", "[redacted] may not"),
        ("arn:aws:iam::123456789012:user/jane denied", "[redacted] denied"),
    ],
)
def test_keys_names_of_accounts_and_control_characters_do_not_get_out(said: str, shown: str):
    assert excerpt(said) == shown


@pytest.mark.parametrize(
    "said",
    [
        "No model mistralai/Mistral-7B-Instruct-v0.3 here",
        "skipping Llama-4-Maverick-17B-128E-Instruct-FP8 and Qwen/Qwen3-235B-A22B-Instruct-2507-FP8",
        "max_tokens: 4096 is too large; this model's maximum context length is 2048 tokens.",
        "the user account is disabled; a user-friendly team_name",
        "GenerateContentInputTokensPerModelPerMinute-FreeTier",
        "EngineCore encountered an issue. See stack trace (above) for the root cause.",
        "用户剩余额度: ＄2.53, 需要预扣费额度: ＄2.62",
    ],
)
def test_what_helps_stays(said: str):
    assert excerpt(said) == said


def test_the_targets_own_key_is_masked_whatever_it_looks_like():
    assert excerpt("you sent hunter2, really", ("hunter2",)) == "you sent [redacted], really"


def test_a_dummy_key_does_not_take_letters_out_of_words():
    assert excerpt("no extra text", ("x",)) == "no extra text"


def test_a_key_at_the_cut_is_masked_before_it_is_cut():
    assert "sk-" not in excerpt("x " * 97 + "sk-live-0123456789")


def test_a_key_where_reading_ends_is_not_shown_in_half():
    assert excerpt(" " * 19_990 + "abcdefghijklmnop", ("abcdefghijklmnop",)) == ""


def bodies(least: int, alphabet: str = ALNUM) -> st.SearchStrategy[str]:
    return st.text(alphabet, min_size=least, max_size=60).map("7{}7".format)  # no digit is in what stands around it


SECRETS: dict[str, tuple[st.SearchStrategy[str], str]] = {
    **{
        f"a key that begins with {make}": (bodies(16, ALNUM + "-_"), make + "{}")
        for make in ("sk-", "sk-proj-", "sk-ant-api03-", "sk-ant-oat01-", "sk-or-v1-", "gsk_", "hf_", "nvapi-", "AIza")
    },
    "a token of an unknown make": (bodies(30).filter(lambda body: sum(c.isdigit() for c in body) >= 6), "{}"),
    "a bearer": (bodies(4), "Bearer {}"),
    "a password": (bodies(4), "password={}"),
    "a JWT": (bodies(8), "eyJhbGciOiJIUzI1NiJ9.eyJz{}.c2ln"),
    "a mail address": (bodies(3), "{}@corp.example"),
    "a mail address of a company": (bodies(3), "jane@{}.example"),
    "an organisation": (bodies(20), "org-{}"),
    "a project": (bodies(20), "proj_{}"),
    "an account number": (st.integers(10**8, 10**12).map(str), "account id: {}"),
    "a user": (st.integers(10**4, 10**9).map(str), "user {}"),
    "a tenant": (st.uuids().map(str), "{}"),
    "user info": (bodies(6), "https://{}@host/path"),
}
AROUND = st.text(st.sampled_from(" .,:;'\"()<>`\n=") | st.sampled_from(string.ascii_letters), max_size=40)
DELIMITER = st.sampled_from([" ", "'", '"', "`", "(", "<", "\n", ", "])


@pytest.mark.parametrize("kind", SECRETS)
@given(data=st.data())
@settings(max_examples=60)
def test_a_secret_anywhere_in_a_message_does_not_get_out(kind: str, data: st.DataObject):
    bodies_of_kind, form = SECRETS[kind]
    core = data.draw(bodies_of_kind)
    before, after = data.draw(AROUND) + data.draw(DELIMITER), data.draw(DELIMITER) + data.draw(AROUND)
    said: object = before + form.format(core) + after
    for _ in range(data.draw(st.integers(0, 2))):
        said = json.dumps({"error": {"message": said}})
    assert core not in excerpt(str(said))


@given(key=st.text(ALNUM + "-_.+/", min_size=16, max_size=80), before=AROUND, after=AROUND, data=st.data())
@example(key="0" * 16, before="", after="", data=None)
def test_no_part_of_the_targets_key_that_gives_it_away_gets_out(key: str, before: str, after: str, data):
    shown = key if data is None else data.draw(st.sampled_from([key, key[:MIN_PART], key[:-4], key[-12:], key[4:]]))
    line = excerpt(f"{before} {shown} {after}", (key,))
    assert key[:MIN_PART] not in line
    assert key[-MIN_PART:] not in line


@given(st.text(max_size=2000))
def test_an_excerpt_is_one_short_printable_line(said: str):
    line = excerpt(said)
    assert len(line) <= MAX_CHARACTERS
    assert line.isprintable()


@pytest.mark.parametrize(
    "said",
    ["{", "a.", "a" * 31 + " ", "a1", "://a", "x=", "token ", "bearer ", "sk-", "-", "eyJ", "a@", "org-", "user id ",
     "account ", "用户", "arn:", "0-", "key-tail", "api_key"],
)  # fmt: skip
def test_a_long_text_costs_no_more_than_its_length(said: str):
    started = process_time()
    excerpt(said * (20_000 // len(said)), ("key-0123456789-tail",))
    assert process_time() - started < 0.2
