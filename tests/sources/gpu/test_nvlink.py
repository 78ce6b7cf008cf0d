"""One GPU's NVLinks, read through the C fake."""

from collections.abc import Callable

import pytest

from pinchpoint.sources.gpu.history import Remote
from tests.fakes.nvml import FakeNvml
from tests.fakes.nvml.scenarios import gb200_18_links, h100x8_nvswitch, l40s_x4_two_sockets
from tests.sources.gpu.conftest import Opened

Opening = Callable[..., Opened]
MEDIUM = 15.0  # seconds between two readings of links


def test_each_link_tells_its_state_version_and_bytes(fake: FakeNvml, opened: Opening) -> None:
    h100x8_nvswitch(fake)
    fake.set("gpu 0 field.138@3 2048", "gpu 0 field.139@3 1024", "gpu 0 nvlink@5 0")
    one = opened()
    one.device.history.remotes = {3: Remote("switch", "00000000:08:00.0")}
    gpu = one.read()
    third, fifth = gpu.nvlinks[3], gpu.nvlinks[5]
    assert (third.up, third.version, third.remote, third.remote_pci_bus_id) == (True, 4.0, "switch", "00000000:08:00.0")
    assert (third.transmit_bytes_total, third.receive_bytes_total) == (2048 * 1024, 1024 * 1024)  # the driver has KiB
    assert (fifth.up, fifth.remote) == (False, None)
    assert (gpu.nvlink_transmit_bytes_total, gpu.nvlink_receive_bytes_total) == (2048 * 1024, 1024 * 1024)


def test_errors_are_counted_by_kind(fake: FakeNvml, opened: Opening) -> None:
    h100x8_nvswitch(fake)
    fake.set("gpu 0 field.161@2 7", "gpu 0 field.163@2 9")
    assert opened().read().nvlinks[2].errors_total == {"replay": 7, "recovery": 0, "crc": 9}


def test_blackwell_counts_bytes_and_errors_under_other_ids(fake: FakeNvml, opened: Opening) -> None:
    gb200_18_links(fake)
    fake.set(*(f"gpu * field.{i} -1" for i in (138, 139)), "gpu 0 field.202@0 5000", "gpu 0 field.204@0 6000")
    fake.set("gpu 0 field.208@0 3", "gpu 0 field.214@0 1")
    gpu = opened().read()
    first = gpu.nvlinks[0]
    assert (first.version, first.transmit_bytes_total, first.receive_bytes_total) == (5.0, 5000, 6000)  # no KiB here
    assert (gpu.nvlink_transmit_bytes_total, gpu.nvlink_receive_bytes_total) == (5000, 6000)
    assert (first.errors_total["receive"], first.errors_total["recovery_failed"]) == (3, 1)


def test_before_the_error_fields_there_were_error_counters(fake: FakeNvml, opened: Opening) -> None:
    h100x8_nvswitch(fake)
    fake.set(*(f"gpu * field.{i} -1" for i in (161, 162, 163)), "gpu 0 nvlink_error.1@4 2", "gpu 0 nvlink_error.3 -1")
    assert opened().read().nvlinks[4].errors_total == {"replay": 0, "recovery": 2, "crc": 0}


def test_a_card_without_links_says_so_and_is_not_asked_for_each(fake: FakeNvml, opened: Opening) -> None:
    l40s_x4_two_sockets(fake)
    one = opened()
    gpu = one.read()
    assert gpu.nvlinks == ()
    assert gpu.nvlink_receive_bytes_total is None
    assert gpu.unavailable["nvlinks"] == gpu.unavailable["nvlink_receive_bytes_total"] == "not_supported"
    one.read(MEDIUM)
    assert len(fake.calls("nvmlDeviceGetNvLinkState")) <= 1


@pytest.mark.parametrize("beyond", ["!2", "!3"])
def test_without_a_link_count_the_walk_ends_at_either_refusal(fake: FakeNvml, opened: Opening, beyond: str) -> None:
    h100x8_nvswitch(fake)
    fake.set("gpu * field.91 -1", f"gpu * nvlink_beyond {beyond}")
    assert len(opened().read().nvlinks) == 18


def test_what_a_link_refused_while_it_was_down_is_asked_again_once_it_is_up(fake: FakeNvml, opened: Opening) -> None:
    h100x8_nvswitch(fake)
    fake.set("gpu 0 nvlink@7 0", "gpu 0 field.138@7 -1")
    one = opened()
    assert one.read().nvlinks[7].transmit_bytes_total is None
    fake.set("gpu 0 nvlink@7 1", "gpu 0 field.138@7 4")
    assert one.read(MEDIUM).nvlinks[7].transmit_bytes_total == 4096


def test_a_blank_counter_is_dropped(fake: FakeNvml, opened: Opening) -> None:
    h100x8_nvswitch(fake)
    fake.set("gpu 0 field.139@1 9223372036854775794")
    assert opened().read().nvlinks[1].receive_bytes_total is None


def test_a_counter_that_fails_once_is_absent_and_not_replaced_by_one_that_counts_otherwise(
    fake: FakeNvml, opened: Opening
) -> None:
    h100x8_nvswitch(fake)
    fake.set("gpu 0 field.138@1 4", "gpu 0 field.202@1 9000000")
    one = opened()
    assert one.read().nvlinks[1].transmit_bytes_total == 4096
    fake.set("gpu 0 field.138@1 !999")
    assert one.read(MEDIUM).nvlinks[1].transmit_bytes_total is None
    fake.set("gpu 0 field.138@1 5")
    assert one.read(MEDIUM).nvlinks[1].transmit_bytes_total == 5120


def test_links_are_read_at_the_medium_pace_and_all_their_counters_in_one_call(fake: FakeNvml, opened: Opening) -> None:
    h100x8_nvswitch(fake)
    one = opened()
    one.read()
    states, batches = (len(fake.calls(f"nvmlDeviceGet{call}")) for call in ("NvLinkState", "FieldValues"))
    links = one.read().nvlinks
    assert len(links) == 18
    assert len(fake.calls("nvmlDeviceGetNvLinkState")) == states
    assert len(fake.calls("nvmlDeviceGetFieldValues")) == batches + 1  # the fast tier's
    one.read(MEDIUM)
    assert len(fake.calls("nvmlDeviceGetFieldValues")) == batches + 1 + 3  # fast, medium, and the links'
