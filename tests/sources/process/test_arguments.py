"""Command lines as people write them: the facts in them, and nothing else of them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pinchpoint.snapshot import EngineFacts
from pinchpoint.sources.process.arguments import config_file, facts_of, port_of
from pinchpoint.sources.process.command import command_of


def facts(line: str, variables: dict[str, str] | None = None, config: str = "") -> dict[str, object]:
    return facts_of(command_of(line.split()), variables, config).known()


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        ("vllm serve m", "vllm"),
        ("/opt/venv/bin/vllm serve m", "vllm"),
        ("/usr/bin/python3.12 /opt/venv/bin/vllm serve m", "vllm"),
        ("python3 -u -X faulthandler -m vllm.entrypoints.openai.api_server --model m", "vllm"),
        ("python -mvllm.entrypoints.openai.api_server --model m", "vllm"),
        ("python3 /src/vllm/entrypoints/openai/api_server.py --model m", "vllm"),
        ("VLLM::EngineCore_DP0", "vllm"),
        ("python3 -m sglang.launch_server --model-path m", "sglang"),
        ("sglang::scheduler_TP0", "sglang"),
        ("text-generation-launcher --model-id m", "tgi"),
        ("/usr/local/bin/text-generation-router --tokenizer-name m", "tgi"),
        ("/app/llama-server -m m.gguf", "llamacpp"),
        ("lmdeploy serve api_server m", "lmdeploy"),
        ("/usr/bin/python3 /usr/local/bin/trtllm-serve m", "trtllm"),
        ("trtllm-serve serve m", "trtllm"),
        ("tritonserver --model-repository=/models", "triton"),
        ("vllm bench serve --model m", ""),
        ("vllm", ""),
        ("bash -c vllm serve m", ""),
        ("python3 app.py --model vllm serve", ""),
        ("nginx: worker process", ""),
        ("", ""),
    ],
)
def test_an_engine_is_known_by_the_program_that_its_command_line_starts(line: str, kind: str) -> None:
    assert command_of(line.split()).kind == kind


@pytest.mark.parametrize(
    "line",
    [
        "vllm serve m --max-num-seqs 16 --tensor-parallel-size 2",
        "vllm serve m --max-num-seqs=16 --tensor-parallel-size=2",
        "vllm serve m --max_num_seqs 16 --tensor_parallel_size=2",
        "vllm serve m -tp 2 --max-num-seqs 16",
        "vllm serve m -tp=2 --max-num-seqs 16",
        "vllm serve m --max-num-seqs 8 -tp 4 --max-num-seqs 16 -tp 2",  # the last one counts
        "vllm serve m --tensor-parallel 2 --max-num-seq 16",  # cut short, as argparse allows
        "vllm serve m --enforce-eager --max-num-seqs 16 --trust-remote-code -tp 2",
        "python3 -m vllm.entrypoints.openai.api_server --model m --max-num-seqs 16 -tp 2",
    ],
)
def test_every_spelling_of_vllms_options_says_the_same(line: str) -> None:
    assert facts(line) == {"kind": "vllm", "model": "m", "max_num_seqs": 16, "tensor_parallel_size": 2}


def test_all_that_vllm_can_be_told_is_heard() -> None:
    assert facts(
        "vllm serve org/m --served-model-name chat chat-2 --max-num-batched-tokens 8192 --max-model-len 128k -dp 2 "
        "-pp 2 --gpu-memory-utilization 0.85 --block-size 32 --kv-cache-dtype fp8 --quantization awq "
        "--no-enable-prefix-caching"
    ) == {
        "kind": "vllm",
        "model": "chat",
        "max_num_batched_tokens": 8192,
        "max_model_len": 128_000,
        "data_parallel_size": 2,
        "pipeline_parallel_size": 2,
        "gpu_memory_utilization": 0.85,
        "block_size": 32,
        "kv_cache_dtype": "fp8",
        "quantization": "awq",
        "enable_prefix_caching": False,
    }


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("2048", 2048),
        ("128k", 128_000),
        ("128K", 131_072),
        ("25.6k", 25_600),
        ("1M", 1_048_576),
        ("1m", 1_000_000),
        ("auto", None),
        ("-1", None),
        ("1.5K", None),  # vLLM refuses it
        ("0", None),
        ("nan", None),
        ("9" * 30, None),
        ("", None),
    ],
)
def test_numbers_are_read_as_vllm_reads_them(text: str, tokens: int | None) -> None:
    assert facts(f"vllm serve m --max-model-len={text}").get("max_model_len") == tokens


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (
            ("sglang serve --model-path m --tp-size 2 --dp 2 --max-running-requests 64 --context-length 8192 "
             "--mem-fraction-static 0.8 --disable-radix-cache --page-size 16"),
            {
                "tensor_parallel_size": 2, "data_parallel_size": 2, "max_num_seqs": 64, "max_model_len": 8192,
                "gpu_memory_utilization": 0.8, "enable_prefix_caching": False, "block_size": 16, "model": "m",
            },
        ),
        (
            ("text-generation-launcher --model-id m --max-concurrent-requests 128 --max-batch-total-tokens 16000 "
             "--max-total-tokens 4096 --num-shard 4"),
            {
                "model": "m", "kv_cache_capacity_tokens": 16000, "max_model_len": 4096, "tensor_parallel_size": 4,
            },
        ),
        (
            "llama-server -m /models/m.gguf -np 4 -c 32768 -ctk q8_0 --alias chat",
            {"max_num_seqs": 4, "kv_cache_capacity_tokens": 32768, "kv_cache_dtype": "q8_0", "model": "chat"},
        ),
        ("llama-server -m m.gguf -np -1 -c 0", {}),
        (
            "lmdeploy serve api_server m --tp 2 --max-batch-size 128 --session-len 8192 --cache-max-entry-count 0.8",
            {"model": "m", "tensor_parallel_size": 2, "max_num_seqs": 128, "max_model_len": 8192},
        ),
        (
            "trtllm-serve m --max_batch_size 64 --max_num_tokens 8192 --max_seq_len 4096 --tp_size 2 --pp_size 2",
            {
                "model": "m", "max_num_seqs": 64, "max_num_batched_tokens": 8192, "max_model_len": 4096,
                "tensor_parallel_size": 2, "pipeline_parallel_size": 2,
            },
        ),
    ],
)  # fmt: skip
def test_each_other_engines_own_words_are_heard(line: str, said: dict[str, object]) -> None:
    told = facts(line)
    del told["kind"]
    told.pop("model", None) if "model" not in said else None
    assert told == said


def test_a_configuration_file_is_heard_below_the_command_line() -> None:
    line = "vllm serve --config /etc/vllm.yaml --max-num-seqs 16"
    assert config_file(command_of(line.split())) == "/etc/vllm.yaml"
    config = "model: m\nmax-num-seqs: 99\nmax_model_len: 128k\nno-enable-prefix-caching: true\napi-key: hush\n"
    assert facts(line, config=config) == {
        "kind": "vllm", "model": "m", "max_num_seqs": 16, "max_model_len": 128_000, "enable_prefix_caching": False,
    }  # fmt: skip


@pytest.mark.parametrize("config", ["[1, 2]", "a: [", "&a [*a]", "x" * 1000, "? {a: b}\n: c", "a: 2001-99-99"])
def test_a_configuration_file_that_is_none_says_nothing(config: str) -> None:
    assert facts("vllm serve m", config=config) == {"kind": "vllm", "model": "m"}


def test_the_environment_is_heard_where_the_engine_hears_it() -> None:
    variables = {"MAX_BATCH_TOTAL_TOKENS": "9000", "MODEL_ID": "m", "NUM_SHARD": "2"}
    assert facts("text-generation-launcher --num-shard 4", variables) == {
        "kind": "tgi", "model": "m", "kv_cache_capacity_tokens": 9000, "tensor_parallel_size": 4,
    }  # fmt: skip


def test_a_port_is_that_of_the_words_or_of_the_kind() -> None:
    ports = {
        "vllm serve m --port 9000": 9000,
        "vllm serve m": 8000,
        "python3 -m sglang.launch_server": 30_000,
        "text-generation-launcher -p 80": 80,
        "nginx": None,
    }
    assert {line: port_of(command_of(line.split())) for line in ports} == ports


def test_secrets_of_a_command_line_are_not_kept() -> None:
    line = "vllm serve m --api-key s3cret --hf-token=s3cret --ssl-keyfile s3cret --max-num-seqs 16 s3cret"
    told = facts_of(command_of(line.split()), {"VLLM_API_KEY": "s3cret"}, "api-key: s3cret\nhf_token: [s3cret]\n")
    assert "s3cret" not in repr(told)
    assert told.max_num_seqs == 16


@given(st.lists(st.text(max_size=20) | st.sampled_from(["--max-num-seqs", "-tp", "--config", "=", "serve", "--"])))
def test_whatever_a_command_line_holds_it_is_read(words: list[str]) -> None:
    told = facts_of(command_of(["vllm", "serve", *words]), {}, "\n".join(words))
    assert isinstance(told, EngineFacts)
    assert told.max_num_seqs is None or told.max_num_seqs >= 1


@pytest.mark.parametrize(
    "value", ["!!bool x", '!!int ""', "!!timestamp x", "0x" + "f" * 60_000, "1" + ":59" * 20_000, "[" * 60_000]
)
def test_a_value_that_yaml_can_not_construct_costs_the_configuration_file_and_no_more(value: str) -> None:
    assert facts("vllm serve m --max-num-seqs 16", config=f"x: {value}") == {
        "kind": "vllm", "model": "m", "max_num_seqs": 16,
    }  # fmt: skip
