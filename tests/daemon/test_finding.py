"""Engines come and go while the daemon runs: in files, on a server, over a reload, in shards and in a fleet."""

import http.server
import json
import os
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fakes.daemon import RunningDaemon

EXPOSITION = Path("tests/data/vllm-real/c-moderate/010.prom").read_bytes()


class Fleet(http.server.ThreadingHTTPServer):
    """Every path that ends in /metrics is an engine; /engines is a list of them, as JSON or as it is given."""

    daemon_threads = True
    request_queue_size = 128
    listed: bytes = b"[]"

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            assert isinstance(self.server, Fleet)
            if self.path == "/engines":
                self.answer("application/json", self.server.listed)
            elif self.path.endswith("/metrics"):
                self.answer("text/plain; version=0.0.4", EXPOSITION)
            else:
                self.send_error(404)

        def answer(self, kind: str, body: bytes) -> None:
            self.send_response(200)
            self.send_header("Content-Type", kind)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None: ...

    def __init__(self, port: int = 0) -> None:
        super().__init__(("127.0.0.1", port), self.Handler)
        threading.Thread(target=self.serve_forever, args=(0.05,), daemon=True).start()

    def handle_error(self, *_: object) -> None: ...

    def end(self) -> None:
        self.shutdown()
        self.server_close()

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.server_address[1]}"

    def groups(self, *names: str, **labels: str) -> str:
        """A list of these engines, each a path of this server."""
        return json.dumps(
            [
                {"targets": [self.address], "labels": {"engine": n, "__metrics_path__": f"/{n}/metrics", **labels}}
                for n in names
            ]
        )


@pytest.fixture
def fleet() -> Iterator[Fleet]:
    server = Fleet()
    try:
        yield server
    finally:
        server.end()


@pytest.fixture
def lists(tmp_path: Path) -> Path:
    folder = tmp_path / "lists"
    folder.mkdir()
    return folder


@pytest.fixture
def config(tmp_path: Path, lists: Path) -> Path:
    file = tmp_path / "pinchpoint.yaml"
    file.write_text(
        "gpu: {enabled: false}\nhost: {enabled: false}\nengines: {interval_seconds: 1}\ntick_seconds: 0.2\n"
        f"discovery: {{files: [{{name: fleet, look_seconds: 0.5, paths: ['{lists}/*.json']}}]}}\n"
    )
    return file


def put(path: Path, content: str) -> None:
    """Replaces a file whole."""
    path.with_suffix(".new").write_text(content)
    os.replace(path.with_suffix(".new"), path)


def watched(daemon: RunningDaemon) -> dict[str, float]:
    name = "pinchpoint_engine_up"
    return {dict(key)["engine"]: value for key, value in daemon.samples(name).get(name, {}).items()}


def wait_for_engines(daemon: RunningDaemon, *names: str) -> None:
    wanted = dict.fromkeys(names, 1.0)
    daemon.wait_for(lambda: watched(daemon) == wanted, f"the engines {names} to be up, {watched(daemon)} are")


def of_engine(daemon: RunningDaemon, engine: str) -> set[str]:
    """The names of the metrics that have a series with this engine."""
    return {
        name
        for name, series in daemon.samples().items()
        for key in series
        if ("engine", engine) in key or dict(key).get("source") == f"engine/{engine}"
    }


def test_engines_in_a_file_come_change_and_go_without_a_restart(
    tmp_path: Path, config: Path, lists: Path, fleet: Fleet
) -> None:
    put(lists / "a.json", fleet.groups("one", "two"))
    with RunningDaemon(tmp_path, "--config.file", str(config)) as daemon:
        wait_for_engines(daemon, "one", "two")
        assert daemon.series("pinchpoint_discovery_targets", discovery="file/fleet") == [2.0]
        assert daemon.series("pinchpoint_source_up", source="discovery/file/fleet") == [1.0]
        put(lists / "b.json", fleet.groups("three"))
        wait_for_engines(daemon, "one", "two", "three")
        daemon.wait_for(lambda: "pinchpoint_bottleneck" in of_engine(daemon, "two"), "a verdict")
        assert len(of_engine(daemon, "two")) > 20
        put(lists / "a.json", fleet.groups("one"))
        wait_for_engines(daemon, "one", "three")
        assert of_engine(daemon, "two") == set(), "its series end with it"
        (lists / "b.json").unlink()
        wait_for_engines(daemon, "one")
        assert daemon.terminate() == (pytest.approx(1, abs=1), 0)
        assert "Traceback" not in daemon.log


def test_a_half_written_list_stays_as_it_was_is_said_once_and_heals(
    tmp_path: Path, config: Path, lists: Path, fleet: Fleet
) -> None:
    put(lists / "a.json", fleet.groups("one", "two"))
    with RunningDaemon(tmp_path, "--config.file", str(config)) as daemon:
        wait_for_engines(daemon, "one", "two")
        (lists / "a.json").write_text(fleet.groups("one", "two", "three")[:-40])
        daemon.wait_for_series("pinchpoint_source_up", 0.0, source="discovery/file/fleet")
        daemon.wait_for_series("pinchpoint_metric_unavailable", 1.0, source="discovery/file/fleet", reason="invalid")
        failures = "pinchpoint_discovery_failures_total"
        daemon.wait_for(lambda: daemon.series(failures, reason="invalid") > [2.0], "further looks")
        assert watched(daemon) == {"one": 1.0, "two": 1.0}
        said = [line for line in daemon.log.splitlines() if "discovery fails" in line]
        assert len(said) == 1
        assert f"{lists}/a.json:1 is no valid JSON" in said[0]
        assert "The last good list stays in force (2 engines)." in said[0]
        missing = json.loads(daemon.get("/api/v1/status"))["missing"]
        assert [row["reason"] for row in missing if row["source"] == "discovery/file/fleet"] == ["invalid"]
        put(lists / "a.json", fleet.groups("one", "two", "three"))
        wait_for_engines(daemon, "one", "two", "three")
        daemon.wait_for_series("pinchpoint_source_up", 1.0, source="discovery/file/fleet")
        assert daemon.log.count("discovery is back") == 1


def test_bad_items_among_good_ones_are_refused_by_name(tmp_path: Path, config: Path, lists: Path, fleet: Fleet) -> None:
    groups = json.loads(fleet.groups("one"))
    groups += [{"targets": ["http://a:1"]}, {"targets": ["a:1"], "labels": {"__pinchpoint_kind": "vlmm"}}]
    groups += json.loads(fleet.groups("one", __param_twice="1"))
    put(lists / "a.json", json.dumps(groups))
    with RunningDaemon(tmp_path, "--config.file", str(config)) as daemon:
        wait_for_engines(daemon, "one")
        assert daemon.series("pinchpoint_discovery_refused_targets") == [2.0]
        assert daemon.series("pinchpoint_source_up", source="discovery/file/fleet") == [1.0]
        refused = [line for line in daemon.log.splitlines() if "engines are refused" in line]
        assert len(refused) == 2
        assert "group 2: target 'http://a:1' is a URL; give host:port" in refused[0]
        assert "group 3: target 'a:1' kind: " in refused[0]
        assert f"engine one at http://{fleet.address} (file/fleet) has the name of engine one at" in refused[1]


def test_a_fact_that_changes_in_the_list_does_not_begin_the_engine_anew(
    tmp_path: Path, config: Path, lists: Path, fleet: Fleet
) -> None:
    put(lists / "a.json", fleet.groups("one", __pinchpoint_max_num_seqs="64"))
    with RunningDaemon(tmp_path, "--config.file", str(config)) as daemon:
        daemon.wait_for_series("pinchpoint_engine_max_num_seqs", 64.0, engine="one")
        verdict = "pinchpoint_bottleneck_class_seconds_total"
        daemon.wait_for(lambda: sum(daemon.series(verdict, engine="one")) > 1, "a second of verdicts")
        before = sum(daemon.series(verdict, engine="one"))
        runs = daemon.series("pinchpoint_job_runs_total", job_name="engine/one")
        put(lists / "a.json", fleet.groups("one", __pinchpoint_max_num_seqs="128"))
        daemon.wait_for_series("pinchpoint_engine_max_num_seqs", 128.0, engine="one")
        assert sum(daemon.series(verdict, engine="one")) > before
        assert daemon.series("pinchpoint_job_runs_total", job_name="engine/one") > runs
        assert "engine restarted" not in daemon.log


def test_a_server_that_goes_down_leaves_its_engines_and_is_heard_again_when_it_is_back(
    tmp_path: Path, config: Path, fleet: Fleet
) -> None:
    cmdb = Fleet()
    port = cmdb.server_address[1]
    cmdb.listed = fleet.groups("one").encode()
    config.write_text(
        f"{config.read_text().splitlines()[2]}\ngpu: {{enabled: false}}\ntick_seconds: 0.2\ndiscovery: {{http: "
        f"[{{name: cmdb, url: 'http://127.0.0.1:{port}/engines', interval_seconds: 1}}]}}\n"
    )
    with RunningDaemon(tmp_path, "--config.file", str(config)) as daemon:
        wait_for_engines(daemon, "one")
        cmdb.end()
        daemon.wait_for_series("pinchpoint_source_up", 0.0, source="discovery/http/cmdb")
        assert daemon.series("pinchpoint_metric_unavailable", source="discovery/http/cmdb", reason="connect_refused")
        assert watched(daemon) == {"one": 1.0}
        cmdb = Fleet(port)
        cmdb.listed = fleet.groups("one", "two").encode()
        try:
            wait_for_engines(daemon, "one", "two")
            daemon.wait_for_series("pinchpoint_source_up", 1.0, source="discovery/http/cmdb")
            cmdb.listed = b"[]"
            wait_for_engines(daemon)
        finally:
            cmdb.end()


def test_a_reload_opens_and_ends_finders_and_a_bad_one_changes_nothing(
    tmp_path: Path, config: Path, lists: Path, fleet: Fleet
) -> None:
    put(lists / "a.json", fleet.groups("one"))
    put(lists / "other.yml", f"- targets: ['{fleet.address}']\n  labels: {{engine: two}}\n")
    first = config.read_text()
    with RunningDaemon(tmp_path, "--config.file", str(config), "--web.enable-lifecycle") as daemon:
        wait_for_engines(daemon, "one")

        def reload() -> tuple[int, str]:
            request = urllib.request.Request(f"{daemon.url}/-/reload", method="POST")
            try:
                with urllib.request.urlopen(request, timeout=10) as answer:
                    return answer.status, ""
            except urllib.error.HTTPError as error:
                return error.code, error.read().decode()

        config.write_text(first.replace("*.json", "other.yml").replace("name: fleet", "name: other"))
        assert reload() == (200, "")
        wait_for_engines(daemon, "two")
        assert daemon.series("pinchpoint_discovery_targets") == [1.0]
        assert daemon.series("pinchpoint_source_up", source="discovery/file/fleet") == []
        config.write_text(first.replace(f"{lists}/", ""))
        code, said = reload()
        assert code >= 400
        assert "discovery.files.0.paths.0: is no absolute path" in said
        wait_for_engines(daemon, "two")
        config.write_text(first)
        daemon.hang_up()
        wait_for_engines(daemon, "one")


def test_shards_share_a_fleet_and_each_says_which_it_is(
    tmp_path: Path, config: Path, lists: Path, fleet: Fleet
) -> None:
    engines = [f"engine-{n}" for n in range(12)]
    put(lists / "a.json", fleet.groups(*engines[:6]))
    named = "\n".join(f"    - {{name: {n}, url: 'http://{fleet.address}/{n}'}}" for n in engines[6:])
    config.write_text(
        config.read_text().replace("{interval_seconds: 1}", f"\n  interval_seconds: 1\n  targets:\n{named}")
    )
    parts: list[set[str]] = []
    for number in range(2):
        with RunningDaemon(tmp_path, "--config.file", str(config), "--shard", f"{number}/2") as daemon:
            daemon.wait_for_series("pinchpoint_discovery_targets", 6.0, discovery="file/fleet")
            daemon.wait_for(lambda daemon=daemon: set(watched(daemon).values()) == {1.0}, "its engines to be up")
            assert daemon.series("pinchpoint_shard_info", shard=str(number), shards="2") == [1.0]
            parts.append(set(watched(daemon)))
    assert sorted([*parts[0], *parts[1]]) == sorted(engines)
    assert all(parts)


def test_a_fleet_is_watched_off_the_node_without_a_word_of_gpus(
    tmp_path: Path, config: Path, lists: Path, fleet: Fleet
) -> None:
    put(lists / "a.json", fleet.groups(*(f"engine-{n}" for n in range(30))))
    text = config.read_text().replace("{interval_seconds: 1}", "{interval_seconds: 2}")
    config.write_text(text + "processes: {enabled: false}\n")  # this fleet is on this host
    with RunningDaemon(tmp_path, "--config.file", str(config)) as daemon:
        daemon.wait_for(lambda: list(watched(daemon).values()) == [1.0] * 30, "all engines to be up")
        samples = daemon.samples()
        assert {name for name in samples if name.startswith(("pinchpoint_gpu", "pinchpoint_host"))} == set()
        told = (samples["pinchpoint_source_up"], samples.get("pinchpoint_metric_unavailable", {}))
        sources = {dict(key)["source"] for series in told for key in series}
        assert {source for source in sources if not source.startswith(("engine/", "discovery/file/fleet"))} == set()
        assert "no_library" not in daemon.log
        page = daemon.get("/").decode()
        assert "engine-29" in page
        assert "NVML" not in page
        status = json.loads(daemon.get("/api/v1/status"))
        assert (len(status["engines"]), status["gpus"], status["missing"]) == (30, [], [])


def test_a_list_without_engines_is_said_on_the_page(tmp_path: Path, config: Path, lists: Path) -> None:
    (lists / "a.json").write_text("[]")
    with RunningDaemon(tmp_path, "--config.file", str(config), "--shard", "1/4") as daemon:
        daemon.wait_for_series("pinchpoint_discovery_targets", 0.0, discovery="file/fleet")
        said = b"file/fleet (0 engines). This is shard 1 of 4, counted from 0."
        daemon.wait_for(lambda: said in daemon.get("/"), "the page to say so")
