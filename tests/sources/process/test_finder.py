"""Real processes that listen, found by their socket; and containers, in a /proc that is not there."""

import os
import socket
import threading
from collections.abc import Iterator
from dataclasses import replace
from ipaddress import ip_address
from pathlib import Path

import pytest

from pinchpoint.snapshot import EngineProcess, EngineTarget
from pinchpoint.sources.process import Looked, ProcessFinder
from pinchpoint.sources.process.journal import facts_of_unit
from pinchpoint.sources.process.local import own_addresses, where
from tests.fakes.engine_process import EngineProcess as Engine
from tests.fakes.engine_process import free_port
from tests.fakes.proc import FakeProc

BODY = Path("tests/data/vllm-real/c-moderate/010.prom")
TITLES = ["VLLM::EngineCore_DP0", "VLLM::EngineCore_DP1", "VLLM::Worker_DP1_TP0"]
CONTAINER = "c0ffee" + "1" * 58


def target(url: str, **more: str) -> EngineTarget:
    return EngineTarget(engine="chat", url=url, **more)  # type: ignore[arg-type]


def look(finder: ProcessFinder, wanted: EngineTarget) -> EngineProcess | None:
    return finder.look([wanted]).processes.get("chat")


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    words = ("--model", "m", "--max-num-seqs", "24", "-tp", "2", "--api-key", "s3cret")
    with Engine(tmp_path, *words, body=BODY, children=TITLES) as engine:
        yield engine


def test_the_process_that_listens_is_found_with_its_words_its_log_and_its_tree(engine: Engine) -> None:
    looked = ProcessFinder().look([target(engine.url)])
    found = looked.processes["chat"]
    cores = [engine.child(title) for title in TITLES]
    assert found.pid == engine.pid
    assert found.pids == tuple(sorted([engine.pid, *cores]))
    assert found.pids_by_replica == {"0": (cores[0],), "1": tuple(sorted(cores[1:]))}
    assert found.facts.known() == {
        "kind": "vllm", "model": "m", "max_num_seqs": 24, "tensor_parallel_size": 2,
        "kv_cache_capacity_tokens": 69888.0,
    }  # fmt: skip
    assert found.facts.origins["max_num_seqs"] == "command_line"
    assert found.facts.origins["kv_cache_capacity_tokens"] == "log"
    assert {engine.pid, os.getpid()} <= looked.living
    assert "s3cret" not in repr(looked)


@pytest.mark.parametrize("url", ["http://localhost:{}", "http://127.0.0.1:{}/", f"http://{socket.gethostname()}:{{}}"])
def test_an_engine_on_this_host_is_found_by_any_of_its_names(engine: Engine, url: str) -> None:
    found = look(ProcessFinder(), target(url.format(engine.port)))
    assert found is not None
    assert found.pid == engine.pid


def test_an_engine_elsewhere_is_not_looked_for(engine: Engine) -> None:
    assert ProcessFinder().look([target(f"http://192.0.2.7:{engine.port}")]) == Looked()
    assert look(ProcessFinder(), target(f"http://[::1]:{engine.port}")) is None  # it listens on IPv4 alone


def test_what_is_no_engine_tells_nothing_and_we_are_none_ourselves(engine: Engine) -> None:
    with socket.create_server(("127.0.0.1", 0)) as own:
        assert look(ProcessFinder(), target(f"http://127.0.0.1:{own.getsockname()[1]}")) is None
    assert look(ProcessFinder(), target(f"http://127.0.0.1:{free_port()}")) is None


def test_a_restarted_engine_is_another_process_with_other_words(tmp_path: Path) -> None:
    finder, port = ProcessFinder(), free_port()
    with Engine(tmp_path, "--max-num-seqs", "8", body=BODY, port=port) as engine:
        first = look(finder, target(engine.url))
        again = look(finder, target(engine.url))
    assert look(finder, target(engine.url)) is None
    with Engine(tmp_path, "--max-num-seqs", "16", body=BODY, port=port) as engine:
        second = look(finder, target(engine.url))
    assert first == again
    assert first is not None
    assert second is not None
    assert first.pid != second.pid
    assert [found.facts.max_num_seqs for found in (first, second)] == [8, 16]


def test_a_configuration_file_is_read_where_the_process_sees_it(tmp_path: Path) -> None:
    (tmp_path / "vllm.yaml").write_text("max-num-seqs: 48\napi-key: s3cret\n")
    with Engine(tmp_path, "--config", str(tmp_path / "vllm.yaml"), "-tp", "2", body=BODY) as engine:
        found = look(ProcessFinder(), target(engine.url))
    assert found is not None
    assert (found.facts.max_num_seqs, found.facts.tensor_parallel_size) == (48, 2)
    assert "s3cret" not in repr(found)


def test_a_log_that_the_operator_names_is_read_without_a_process(tmp_path: Path) -> None:
    log = "tests/data/vllm-real/startup-logs/base.log"
    found = look(ProcessFinder(), target("http://192.0.2.7:8000", log_file=log))
    assert found is not None
    assert (found.pid, found.pids, found.facts.max_num_seqs) == (0, (), 16)
    assert found.facts.origins["max_num_seqs"] == "log"
    assert look(ProcessFinder(), target("http://192.0.2.7:8000", log_file=str(tmp_path / "none"))) is None


def journalctl(folder: Path, body: str) -> str:
    program = folder / "journalctl"
    program.write_text(f"#!/bin/sh\n{body}\n")
    program.chmod(0o755)
    return str(program)


def test_the_journal_is_asked_for_a_unit_since_its_start(tmp_path: Path) -> None:
    entry = '{"MESSAGE":"non-default args: {%smax_num_seqs%s: 16}"}'.replace("%s", "'\"'\"'")
    program = journalctl(
        tmp_path, f"echo \"$@\" > {tmp_path}/asked\necho '{entry}'\necho '{{\"MESSAGE\":[1,2]}}'\necho cut"
    )
    assert facts_of_unit("vllm@chat.service", 1_700_000_000.7, program=program).max_num_seqs == 16
    asked = (tmp_path / "asked").read_text().split()
    assert {"--unit=vllm@chat.service", "--since=@1700000000", "--output=json"} <= set(asked)


@pytest.mark.parametrize("unit", ["--flush", "a b", "", "x" * 300, "a\nb"])
def test_a_unit_can_be_no_option_of_the_journal(unit: str) -> None:
    with pytest.raises(ValueError, match="no name of a systemd unit"):
        facts_of_unit(unit, program="/bin/false")


def test_a_journal_without_end_is_cut(tmp_path: Path) -> None:
    program = journalctl(tmp_path, 'while :; do echo "{\\"MESSAGE\\": \\"Using max model len 2048\\"}"; done')
    assert facts_of_unit("vllm.service", program=program).max_model_len == 2048


def test_a_journal_that_hangs_is_waited_for_only_so_long(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pinchpoint.sources.process.journal.TIMEOUT_SECONDS", 0.2)
    assert facts_of_unit("vllm.service", program=journalctl(tmp_path, "exec sleep 600")).known() == {}


class Host:
    """A host of files: processes with command lines, parents, sockets and network namespaces."""

    def __init__(self, folder: Path) -> None:
        self.proc = FakeProc(folder)
        self.root = self.proc.folder
        self.namespace("self", "host", {})

    def process(
        self, pid: int, parent: int, *words: str, sockets: tuple[int, ...] = (), cgroup: str = "/", space: str = "host"
    ) -> None:
        self.proc.add(pid, words[0].rpartition("/")[2][:15].encode(), cgroup)
        folder = self.root / str(pid)
        folder.joinpath("cmdline").write_text("\0".join(words) + "\0")
        folder.joinpath("stat").write_text(f"{pid} (a (b) c) S {parent} " + "0 " * 17 + "77 0")
        (folder / "fd").mkdir()
        for number, inode in enumerate(sockets, 3):
            (folder / f"fd/{number}").symlink_to(f"socket:[{inode}]")
        (folder / "ns").mkdir()
        (folder / "ns/net").symlink_to(space)

    def namespace(self, pid: int | str, name: str, listeners: dict[tuple[str, int], int], address: str = "") -> None:
        """The network as ``pid`` sees it: who listens where, with which inode."""
        net = self.root / str(pid) / "net"
        net.mkdir(parents=True, exist_ok=True)
        tables: dict[str, list[str]] = {"tcp": [], "tcp6": []}
        for (host, port), inode in listeners.items():
            raw = ip_address(host).packed
            text = "".join(raw[at : at + 4][::-1].hex().upper() for at in range(0, len(raw), 4))
            remote, queues = f"{'0' * len(text)}:0000", "00000000:00000000 00:00000000 00000000"
            line = f"0: {text}:{port:04X} {remote} 0A {queues} {os.getuid()} 0 {inode} 1"
            tables["tcp" if len(raw) == 4 else "tcp6"].append(line)
        for table, lines in tables.items():
            (net / table).write_text("\n".join(["  sl  local_address", *lines, "1: 0 0 01 0 0 0 0 0 0"]) + "\n")
        (net / "fib_trie").write_text(f"           |-- {address}\n              /32 host LOCAL\n" if address else "")
        if pid == "self" and not (self.root / "self/ns/net").is_symlink():
            (self.root / "self/ns/net").symlink_to(name)

    def finder(self) -> ProcessFinder:
        return ProcessFinder(self.root, addresses=lambda: frozenset({ip_address("10.1.2.3")}), own_pid=9)


@pytest.fixture
def host(tmp_path: Path) -> Host:
    host = Host(tmp_path)
    host.process(7, 1, "/bin/sh", "-c", "vllm serve m")
    return host


def test_several_api_servers_have_one_root_and_their_launcher_is_no_shell(host: Host) -> None:
    host.namespace("self", "host", {("0.0.0.0", 8000): 501})
    host.process(100, 7, "/usr/bin/python3", "/usr/bin/vllm", "serve", "m", "-dp", "2", sockets=(501,))
    host.process(101, 100, "VLLM::ApiServer_0", sockets=(501,))
    host.process(102, 100, "VLLM::ApiServer_1", sockets=(501,))
    host.process(110, 100, "VLLM::EngineCore_DP0")
    host.process(111, 110, "VLLM::Worker_TP0")
    host.process(112, 110, "VLLM::Worker_TP1")
    host.process(120, 100, "VLLM::EngineCore_DP1")
    host.process(121, 120, "VLLM::Worker_DP1_TP0_EP2")
    host.process(300, 1, "VLLM::EngineCore_DP1")  # another engine's
    found = look(host.finder(), target("http://10.1.2.3:8000"))
    assert found is not None
    assert (found.pid, found.facts.data_parallel_size) == (100, 2)
    assert found.pids == (100, 101, 102, 110, 111, 112, 120, 121)
    assert found.pids_by_replica == {"0": (110, 111, 112), "1": (120, 121)}


def test_a_launcher_above_the_server_speaks_first_and_its_server_completes_it(host: Host) -> None:
    host.namespace("self", "host", {("::", 3000): 501})
    host.process(100, 7, "text-generation-launcher", "--model-id", "m", "--num-shard", "2")
    host.process(101, 100, "text-generation-router", "--max-batch-total-tokens", "16000", sockets=(501,))
    host.process(102, 100, "/usr/bin/python3", "text-generation-server", "serve")
    found = look(host.finder(), target("http://127.0.0.1:3000"))
    assert found is not None
    assert (found.pid, found.facts.kind, found.pids) == (100, "tgi", (100, 101, 102))
    assert (found.facts.tensor_parallel_size, found.facts.kv_cache_capacity_tokens) == (2, 16000)


def test_process_1_that_holds_a_socket_for_others_is_not_the_engine_unless_it_is(host: Host) -> None:
    host.namespace("self", "host", {("0.0.0.0", 8000): 501})
    host.process(100, 1, "vllm", "serve", "m", sockets=(501,))
    (host.root / "1/fd").mkdir()
    (host.root / "1/fd/3").symlink_to("socket:[501]")
    (host.root / "1/stat").write_text("1 (systemd) S 0 " + "0 " * 17 + "1 0")
    (host.root / "1/cmdline").write_text("/sbin/init\0")
    found = look(host.finder(), target("http://127.0.0.1:8000"))
    assert found is not None
    assert found.pid == 100
    (host.root / "1/cmdline").write_text("vllm\0serve\0m\0")  # in a container that we share
    found = look(host.finder(), target("http://127.0.0.1:8000"))
    assert found is not None
    assert found.pid == 1


def test_where_descriptors_are_hidden_a_command_line_that_names_the_port_tells_if_it_is_the_only_one(
    host: Host,
) -> None:
    host.namespace("self", "host", {("0.0.0.0", 8000): 501, ("127.0.0.1", 9000): 502})
    host.process(100, 7, "vllm", "serve", "m", "--max-num-seqs", "16")
    host.process(200, 7, "vllm", "serve", "m", "--port", "9000")
    finder = host.finder()
    found = look(finder, target("http://127.0.0.1:8000"))
    assert found is not None
    assert (found.pid, found.facts.max_num_seqs) == (100, 16)
    host.process(300, 7, "vllm", "serve", "other")  # in another network namespace, perhaps
    assert look(finder, target("http://127.0.0.1:8000")) is None
    found = look(finder, target("http://127.0.0.1:9000"))
    assert found is not None
    assert found.pid == 200


@pytest.fixture
def docker(host: Host) -> Host:
    """Docker publishes port 8000 by a proxy; the engine, with workers that Ray has started, is in a container."""
    host.namespace("self", "host", {("0.0.0.0", 8000): 501, ("::", 8000): 502})
    words = ("-proto", "tcp", "-host-ip", "0.0.0.0", "-host-port", "8000", "-container-ip", "172.17.0.2")
    host.process(50, 1, "/usr/bin/docker-proxy", *words, "-container-port", "80", sockets=(501,))
    cgroup = f"/system.slice/docker-{CONTAINER}.scope"
    host.process(100, 40, "vllm", "serve", "m", "-tp", "4", sockets=(601,), cgroup=cgroup, space="docker")
    host.process(101, 100, "VLLM::EngineCore", cgroup=cgroup, space="docker")
    host.process(150, 40, "ray::RayWorkerWrapper", cgroup=cgroup, space="docker")
    host.process(160, 40, "/bin/sh", cgroup=f"/docker/{'d' * 64}", space="other")
    host.namespace(100, "docker", {("0.0.0.0", 80): 601}, "172.17.0.2")
    host.namespace(160, "other", {("0.0.0.0", 80): 602}, "172.17.0.3")
    return host


def test_behind_dockers_proxy_the_engine_in_the_container_is_found_with_all_of_it(docker: Host) -> None:
    found = look(docker.finder(), target("http://127.0.0.1:8000"))
    assert found is not None
    assert (found.pid, found.facts.kind, found.facts.tensor_parallel_size) == (100, "vllm", 4)
    assert found.pids == (100, 101, 150)


def test_dockers_proxy_itself_is_no_engine(docker: Host) -> None:
    docker.namespace(100, "docker", {}, "172.17.0.2")
    assert look(docker.finder(), target("http://127.0.0.1:8000")) is None


def test_processes_that_end_while_they_are_looked_at_are_no_error(tmp_path: Path) -> None:
    ending = threading.Event()

    def churn() -> None:
        while not ending.is_set():
            os.waitpid(os.posix_spawn("/bin/true", ["true"], {}), 0)

    thread = threading.Thread(target=churn)
    thread.start()
    try:
        with Engine(tmp_path, body=BODY) as engine:
            for _ in range(20):
                finder = ProcessFinder()
                assert look(finder, target(engine.url)) is not None
    finally:
        ending.set()
        thread.join()


def test_the_addresses_of_this_host_are_known_without_a_name_server() -> None:
    own = own_addresses()
    assert ip_address("127.0.0.1") in own
    assert where("http://127.9.9.9:1", own) == (ip_address("127.9.9.9"),)
    assert where("http://vllm.example:8000", own) == ()
    assert where("http://[2001:db8::1]:8000", own) == ()
    assert replace(target("http://h:1"), url="http://localhost").url  # a URL without a port is fine
    assert look(ProcessFinder(), target("http://localhost")) is None
