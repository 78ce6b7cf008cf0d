"""Whether the GPUs of a node are alike and reach each other."""

from dataclasses import replace

import pytest

from pinchpoint.diagnosis.consistency import Finding, inconsistencies
from pinchpoint.snapshot import GpuReading, GpuState, PeerLink

H100 = GpuReading(
    gpu="0",
    uuid="GPU-0",
    at=0.0,
    name="NVIDIA H100",
    driver="580.95.05",
    nvml="13.580.95.05",
    memory_total_bytes=80 * 2.0**30,
    power_limit_watts=700.0,
    persistence_mode=True,
    ecc_mode=True,
    mig_mode=False,
    pcie_link_generation_max=5.0,
    pcie_link_width_max=16.0,
)


def node(count: int = 4, **odd: object) -> list[GpuReading]:
    """Equal GPUs, but for the last."""
    gpus = [replace(H100, gpu=str(index), uuid=f"GPU-{index}") for index in range(count)]
    return [*gpus[:-1], replace(gpus[-1], **odd)]  # type: ignore[arg-type]


def only(findings: tuple[Finding, ...]) -> Finding:
    (finding,) = findings
    return finding


def test_equal_gpus_that_reach_each_other_are_no_finding() -> None:
    links = [PeerLink("0", "1", "NV18", "ok"), PeerLink("0", "2", "NV18")]
    assert inconsistencies(node(), links) == ()
    assert inconsistencies(()) == ()
    assert inconsistencies([H100]) == ()


@pytest.mark.parametrize(
    ("odd", "check", "text"),
    [
        ({"driver": "570.1"}, "driver", "driver versions differ: 580.95.05 on GPUs 0, 1 and 2; 570.1 on GPU 3"),
        ({"name": "NVIDIA L40S"}, "model", "models differ: NVIDIA H100 on GPUs 0, 1 and 2; NVIDIA L40S on GPU 3"),
        (
            {"memory_total_bytes": 79 * 2.0**30},
            "memory",
            "memory sizes differ: 80.0 GiB on GPUs 0, 1 and 2; 79.0 GiB on GPU 3",
        ),
        ({"power_limit_watts": 500.0}, "power_limit", "power limits differ: 700 W on GPUs 0, 1 and 2; 500 W on GPU 3"),
        ({"ecc_mode": False}, "ecc_mode", "ECC modes differ: on on GPUs 0, 1 and 2; off on GPU 3"),
        ({"mig_mode": True}, "mig_mode", "MIG modes differ: off on GPUs 0, 1 and 2; on on GPU 3"),
        (
            {"pcie_link_width_max": 8.0},
            "pcie_link",
            "PCIe links at best differ: generation 5, 16 lanes on GPUs 0, 1 and 2; generation 5, 8 lanes on GPU 3",
        ),
    ],
)
def test_what_differs_is_said_with_the_gpus_and_a_remedy(odd: dict[str, object], check: str, text: str) -> None:
    findings = {finding.check: finding for finding in inconsistencies(node(**odd))}
    assert findings[check].text == text
    assert set(findings[check].gpus) == {"0", "1", "2", "3"}
    assert findings[check].remedy
    assert set(findings) - {"library"} == {check}


def test_persistence_mode_off_is_a_finding_even_of_all() -> None:
    finding = only(inconsistencies([replace(H100, persistence_mode=False)]))
    assert (finding.check, finding.gpus) == ("persistence_mode", ("0",))
    assert "nvidia-smi -pm 1" in finding.remedy


def test_a_library_of_another_release_than_the_driver_is_a_finding() -> None:
    gpus = [replace(H100, nvml="12.570.86.10"), replace(H100, gpu="1", nvml="12.570.86.10")]
    finding = only(inconsistencies(gpus))
    assert (finding.check, finding.gpus) == ("library", ("0", "1"))
    assert "12.570.86.10" in finding.text


def test_other_models_have_other_limits_and_that_is_said_once() -> None:
    odd = {"name": "NVIDIA L40S", "power_limit_watts": 350.0, "memory_total_bytes": 45 * 2.0**30, "ecc_mode": False}
    assert only(inconsistencies(node(**odd))).check == "model"


def test_what_is_unknown_and_who_is_down_take_no_part() -> None:
    assert inconsistencies(node(power_limit_watts=None, ecc_mode=None, driver=None, persistence_mode=None)) == ()
    assert inconsistencies(node(up=False, state=GpuState.LOST, power_limit_watts=1.0)) == ()


def test_pairs_that_can_not_read_each_other_are_named_by_reason() -> None:
    links = [
        PeerLink("0", "1", "PIX", "ok"),
        PeerLink("0", "2", "SYS", "chipset_not_supported"),
        PeerLink("2", "0", "SYS", "chipset_not_supported"),
        PeerLink("1", "2", "SYS", "disabled_by_regkey"),
    ]
    chipset, regkey = inconsistencies(node(), links)
    assert (chipset.check, chipset.gpus) == ("p2p", ("0", "2"))
    assert chipset.text == "GPUs can't read each other's memory (chipset not supported): 0–2"
    assert "modprobe.d" in regkey.remedy


def test_sixteen_gpus_make_no_wall_of_pairs() -> None:
    links = [PeerLink(str(a), str(b), "SYS", "not_supported") for a in range(16) for b in range(a + 1, 16)]
    finding = only(inconsistencies(node(16), links))
    assert finding.text.endswith("and 114 pairs more")
    assert len(finding.text) < 200
    assert finding.gpus[-1] == "15"
