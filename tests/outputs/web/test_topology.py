"""The page's matrix of how the GPUs are connected."""

import html
import re
from dataclasses import replace
from itertools import combinations

from pinchpoint.diagnosis.topology import node_topology
from pinchpoint.outputs.scene import Scene
from pinchpoint.outputs.web.page import page
from pinchpoint.outputs.web.status import status
from pinchpoint.snapshot import NvLink, PeerLink
from tests.outputs.web import scenes


def connected(words: dict[str, str], other: str = "SYS", scene: Scene | None = None) -> Scene:
    """The full node with its GPUs connected by ``words`` (by pair, "01"), the others by ``other``."""
    scene = scene or scenes.full_node()
    gpus = [gpu.gpu for gpu in scene.snapshot.gpus]
    links = tuple(PeerLink(a, b, words.get(a + b, other), "ok") for a, b in combinations(gpus, 2))
    snapshot = replace(scene.snapshot, links=links)
    return replace(scene, snapshot=snapshot, topology=node_topology(snapshot, {}))


def rows(scene: Scene) -> list[list[str]]:
    table = re.search(r'<table class="matrix".*?</table>', page(scene), re.DOTALL)
    assert table
    cells = (re.findall(r"<t[hd].*?>(.*?)</t[hd]>", row, re.DOTALL) for row in table[0].split("<tr>")[1:])
    return [[html.unescape(re.sub(r"<.*?>", "", cell)) for cell in row] for row in cells]


def test_the_page_draws_the_matrix_of_nvidia_smi() -> None:
    drawn = rows(connected({"01": "NV4", "23": "PIX"}))
    assert drawn[0] == ["", *"01234567"]
    assert drawn[1] == ["0", "X", "NV4", *["SYS"] * 6]
    assert drawn[4] == ["3", "SYS", "SYS", "PIX", "X", *["SYS"] * 4]


def test_the_page_says_what_the_links_mean_for_each_engine_on_several_gpus() -> None:
    text = page(connected({"01": "NV4"}))
    assert "<b>tensor parallelism is fine</b>" in text
    assert "GPU 2 and GPU 3 are on different CPU sockets (SYS)." in html.unescape(text)
    assert "SYS: between CPU sockets" in text
    assert "PIX:" not in text  # no word is explained that is not there


def test_a_link_that_was_lost_is_named_and_one_that_was_never_up_is_not() -> None:
    scene = connected({}, "NV18")
    down = tuple(
        replace(gpu, nvlinks=(NvLink(link="3", up=False), NvLink(link="9", up=False)))
        for gpu in scene.snapshot.gpus[:1]
    )
    snapshot = replace(scene.snapshot, gpus=(*down, *scene.snapshot.gpus[1:]))
    lost = replace(scene, topology=node_topology(snapshot, {down[0].uuid: frozenset({"9"})}))
    assert "GPU 0: NVLink up before and down now (9)." in page(lost)
    assert "down now" not in page(replace(scene, topology=node_topology(snapshot, {})))


def test_a_node_with_nothing_to_connect_has_no_matrix() -> None:
    for scene in (scenes.full_node(), scenes.healthy(), scenes.empty()):
        assert "How the GPUs are connected" not in page(scene)
        assert status(scene)["topology"] is None


def test_the_status_holds_what_the_page_draws() -> None:
    topology = status(connected({"01": "NV4"}))["topology"]
    assert isinstance(topology, dict)
    assert topology["gpus"] == [*"01234567"]
    assert topology["matrix"][0][:3] == ["X", "NV4", "SYS"]
    assert {j["engine"]: j["verdict"] for j in topology["judgements"]} == {"chat": "tp_fine", "code": "use_dp"}
    assert topology["links_lost"] == {}


def test_words_from_a_recording_stay_text() -> None:
    drawn = page(connected({}, scenes.HOSTILE))
    assert "<script>alert" not in drawn
