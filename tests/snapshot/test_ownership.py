"""Which GPUs an engine's processes are on."""

from pinchpoint.snapshot import GpuProcess, GpuReading, gpus_of_process_tree


def gpu(index: int, *pids: int) -> GpuReading:
    processes = tuple(GpuProcess(pid=pid, kind="compute") for pid in pids)
    return GpuReading(gpu=str(index), uuid=f"GPU-{index}", at=0.0, processes=processes)


def test_the_gpus_of_an_engine_are_those_of_its_whole_tree() -> None:
    node = (gpu(0, 100, 7), gpu(1, 101), gpu(2, 7), gpu(3))
    assert gpus_of_process_tree([99, 100, 101], node) == ("0", "1")


def test_a_gpu_that_two_engines_share_is_of_both() -> None:
    node = (gpu(0, 100, 200),)
    assert gpus_of_process_tree({100}, node) == gpus_of_process_tree({200}, node) == ("0",)


def test_without_processes_nothing_is_known() -> None:
    assert gpus_of_process_tree([100], (gpu(0), gpu(1))) == ()
    assert gpus_of_process_tree([], (gpu(0, 100),)) == ()
