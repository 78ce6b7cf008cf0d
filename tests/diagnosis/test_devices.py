"""Counters of an engine's GPUs over a window in which something about the GPUs themselves changes."""

from pinchpoint.diagnosis.devices import Devices, devices_of
from pinchpoint.snapshot import GpuReading, Snapshot


def over(*ticks: tuple[GpuReading, ...]) -> Devices:
    return devices_of(tuple(Snapshot(at=gpus[0].at, gpus=gpus) for gpus in ticks), "engine", ("3",))


def card(at: float, errors: float, uuid: str = "GPU-3", *, up: bool = True) -> GpuReading:
    return GpuReading(gpu="3", uuid=uuid, at=at, up=up, ecc_errors_total={"uncorrectable": errors})


def test_a_counter_that_began_anew_hides_no_error_after_it() -> None:
    devices = over(*((card(at, errors),) for at, errors in enumerate((5.0, 6.0, 0.0, 2.0))))
    assert devices.gpu_uncorrectable_errors == 3


def test_the_errors_of_a_card_are_no_news_when_it_moves_up_to_a_lost_ones_index() -> None:
    lost = card(2.0, 1.0, up=False)
    devices = over((card(1.0, 1.0),), (lost, card(2.0, 40.0, "GPU-4")), (lost, card(3.0, 40.0, "GPU-4")))
    assert (devices.gpu_uncorrectable_errors, devices.gpus, devices.gpus_sick) == (0, 1, 1)
