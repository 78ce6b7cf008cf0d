"""The ledger of Xids."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pinchpoint.snapshot import GpuReading, Reason, XidCount
from pinchpoint.sources.gpu.xids import KERNEL, MATCH_SECONDS, MAX_GPUS, NVML, XidLedger, pci_address

GPU = GpuReading(gpu="0", uuid="GPU-0", at=1.0, pci_bus_id="00000000:3B:00.0")
LOST = GpuReading(gpu="0", uuid="GPU-0", at=2.0, up=False, pci_bus_id="00000000:3B:00.0")
SOURCES = st.sampled_from([NVML, KERNEL])


def told(*tellings: tuple[str, float]) -> XidLedger:
    ledger = XidLedger()
    ledger.know(GPU)
    for source, at in tellings:
        ledger.tell("GPU-0" if source == NVML else "0000:3b:00", 79, source, at)
    return ledger


def total(ledger: XidLedger) -> float:
    return ledger.onto(GPU, None).xid_errors_total.get("79", 0)


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("00000000:3B:00.0", "0000:3b:00"),
        ("0000:3b:00", "0000:3b:00"),
        ("3b:00", "0000:3b:00"),
        ("00010000:C1:00.0", "10000:c1:00"),
        ("3b", None),
        ("", None),
        ("GPU-0", None),
    ],
)
def test_an_address_is_the_same_however_it_is_spelt(text: str, address: str | None) -> None:
    assert pci_address(text) == address


@given(st.permutations([NVML] * 3 + [KERNEL] * 2))
def test_in_whatever_order_both_tell_each_error_is_counted_once(order: list[str]) -> None:
    assert total(told(*((source, number * 0.1) for number, source in enumerate(order)))) == 3


@given(st.lists(st.tuples(SOURCES, st.floats(0, 60)), max_size=40))
def test_no_error_is_counted_more_than_once_a_telling_nor_less_than_each_source_tells(
    tellings: list[tuple[str, float]],
) -> None:
    ordered = sorted(tellings, key=lambda telling: telling[1])
    count = total(told(*ordered))
    each = [sum(source == name for source, _ in ordered) for name in (NVML, KERNEL)]
    assert max(each) <= count <= sum(each)


def test_the_two_are_about_one_error_only_within_a_few_seconds() -> None:
    assert total(told((NVML, 10.0), (KERNEL, 10.0 + MATCH_SECONDS))) == 1
    assert total(told((NVML, 10.0), (KERNEL, 10.1 + MATCH_SECONDS))) == 2


def test_a_reading_is_the_same_object_while_nothing_changes_and_its_parts_while_they_do_not() -> None:
    ledger = told((NVML, 5.0))
    shown = ledger.onto(GPU, None)
    assert shown.xids == (XidCount(xid="79", source=NVML, total=1, last_at=5.0),)
    assert ledger.onto(GPU, None) is shown
    later = ledger.onto(GpuReading(gpu="0", uuid="GPU-0", at=3.0, pci_bus_id=GPU.pci_bus_id), None)
    assert later.xids is shown.xids
    assert later.xid_errors_total is shown.xid_errors_total
    ledger.tell("GPU-0", 48, NVML, 6.0)
    assert ledger.onto(GPU, None).xid_errors_total == {"48": 1, "79": 1}


def test_what_may_be_missed_is_said_of_a_gpu_that_is_up() -> None:
    ledger = told()
    assert ledger.onto(GPU, Reason.DRIVER_ERROR).unavailable == {"xid_errors_total": "driver_error"}
    assert ledger.onto(LOST, Reason.DRIVER_ERROR).unavailable == {}
    assert ledger.onto(GPU, None).unavailable == {}


def test_a_lost_gpu_keeps_its_errors() -> None:
    assert told((NVML, 5.0)).onto(LOST, None).xid_errors_total == {"79": 1}


def test_an_error_at_an_address_is_the_gpus_that_turns_up_there() -> None:
    ledger = XidLedger()
    ledger.tell("0000:3b:00", 79, KERNEL, 1.0)
    ledger.tell("0000:3c:00", 79, KERNEL, 1.0)
    assert total(ledger) == 1
    ledger.tell("GPU-0", 79, NVML, 2.0)  # the same one, by its event
    assert total(ledger) == 1


def test_addresses_without_end_take_no_memory_without_end() -> None:
    ledger = told()
    for bus in range(256):
        for domain in range(8):
            ledger.tell(f"{domain:04x}:{bus:02x}:01", 79, KERNEL, 1.0)
    assert len(ledger._counts) == MAX_GPUS
    ledger.tell("0000:3b:00", 79, KERNEL, 1.0)  # a GPU that NVML shows is counted all the same
    assert total(ledger) == 1
