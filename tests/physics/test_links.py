"""Links by the words of nvidia-smi topo."""

import pytest

from pinchpoint.physics import GPUS, ModelShape, communication_seconds, link_peak
from pinchpoint.physics.published import LLAMA_3_3_70B

H100, A800, L4 = (GPUS[name] for name in ("NVIDIA H100 80GB HBM3", "NVIDIA A800-SXM4-80GB", "NVIDIA L4"))


def test_one_direction_of_nvlink_is_half_of_what_the_data_sheet_prints():
    assert link_peak("NV18", H100).bytes_per_second == 450e9
    assert link_peak("NV8", A800).bytes_per_second == 200e9
    assert link_peak("NV4", H100).bytes_per_second == 100e9


def test_more_nvlinks_than_the_card_has_are_no_more():
    assert link_peak("NV18", A800) == link_peak("NV8", A800)


def test_the_farther_the_slower():
    speeds = [link_peak(word, H100).bytes_per_second for word in ("NV18", "PIX", "PHB", "NODE", "SYS")]
    delays = [link_peak(word, H100).latency_seconds for word in ("NV18", "PIX", "PHB", "NODE", "SYS")]
    assert speeds == sorted(speeds, reverse=True)
    assert delays == sorted(delays)
    assert link_peak("PXB", L4).bytes_per_second == pytest.approx(31.5e9, rel=0.001)  # generation 4, 16 lanes


@pytest.mark.parametrize("word", ["X", "", "NV", "NVX", "C2C"])
def test_an_unknown_word_is_no_link(word):
    assert link_peak(word, H100) is None


def test_a_card_without_nvlink_has_no_nvlink():
    assert link_peak("NV18", L4) is None


def test_the_all_reduces_of_a_long_step_take_the_time_of_their_bytes_and_of_a_short_one_that_of_their_number():
    shape, link = ModelShape.from_config(LLAMA_3_3_70B), link_peak("PIX", H100)
    assert communication_seconds(shape, 8192, 2, link) == pytest.approx(160 * 8192 * 8192 * 2 / 63e9, rel=0.01)
    assert communication_seconds(shape, 1, 2, link) == pytest.approx(160 * 8.6e-6, rel=0.05)
    assert communication_seconds(shape, 8192, 1, link) == 0
