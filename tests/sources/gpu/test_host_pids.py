"""What /proc says of a process, in the forms that kernels, container engines and programs give it."""

import os
from pathlib import Path

import pytest

from pinchpoint.sources.gpu.host_pids import MAX_COMMAND, HostPids, HostProcess
from tests.fakes.proc import A_CONTAINERS, FakeProc

ID, OTHER = "c0ffee" + "1" * 58, "d" * 64
UID, UNDERSCORED = "6c1d4a3e-8f0b-4d55-9a3e-0123456789ab", "6c1d4a3e_8f0b_4d55_9a3e_0123456789ab"


@pytest.mark.parametrize(
    ("cgroup", "container", "pod_uid"),
    [
        ("/", None, None),
        ("/system.slice/vllm.service", None, None),
        ("/user.slice/user-1000.slice/session-3.scope", None, None),
        (f"/system.slice/docker-{ID}.scope", ID, None),
        (f"12:devices:/docker/{ID}\n1:name=systemd:/docker/{ID}\n0::/\n", ID, None),
        (f"/machine.slice/libpod-{ID}.scope/container", ID, None),
        (f"/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-{ID}.scope", ID, None),
        (
            f"/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod{UNDERSCORED}.slice/cri-containerd-{ID}.scope",
            ID,
            UID,
        ),
        (f"/kubepods.slice/kubepods-pod{UNDERSCORED}.slice/crio-{ID}.scope/container", ID, UID),
        (f"/kubepods/besteffort/pod{UID}/{ID}", ID, UID),
        (f"/kubepods/pod{'ab' * 16}/{ID}", ID, "ab" * 16),  # a static pod
        (f"/../../kubepods-pod{UNDERSCORED}.slice/cri-containerd-{ID}.scope", ID, UID),  # seen from another cgroup
        (f"/docker/{OTHER}/kubepods/burstable/pod{UID}/{ID}", ID, UID),  # kind: a node in a container
        (f"/system.slice/cri-{'f' * 65}.scope", None, None),
    ],
)
def test_container_and_pod_are_found_in_every_engines_cgroup(
    tmp_path: Path, cgroup: str, container: str | None, pod_uid: str | None
) -> None:
    proc = FakeProc(tmp_path)
    proc.add(4711, cgroup=cgroup)
    told = HostPids(proc.folder).describe(4711)
    assert (told.container, told.pod_uid) == (container, pod_uid)


@pytest.mark.parametrize(
    ("comm", "command"),
    [
        (b"python3", "python3"),
        (b"VLLM::EngineCor", "VLLM::EngineCor"),  # the kernel keeps 15 bytes
        (b"cuda worker 1", "cuda worker 1"),
        (b"", None),
        (b" \n", None),
        (b"evil\x1b[2J\nname", "evil?[2J?name"),
        (b"\xff\xfe", "\ufffd\ufffd"),
        (b"x" * 100_000, "x" * MAX_COMMAND),
    ],
)
def test_a_command_is_cut_and_has_no_control_characters(tmp_path: Path, comm: bytes, command: str | None) -> None:
    proc = FakeProc(tmp_path)
    proc.add(4711, comm)
    assert HostPids(proc.folder).describe(4711).command == command


def test_of_a_process_that_hangs_nothing_is_read_that_waits_for_its_memory_lock(tmp_path: Path) -> None:
    proc = FakeProc(tmp_path)
    proc.add(4711)
    for file in ("cmdline", "environ", "maps", "smaps"):
        os.mkfifo(proc.folder / "4711" / file)  # to open it is to wait
    assert HostPids(proc.folder).describe(4711).command == "python3"


def test_a_process_that_has_ended_has_nothing_to_tell(tmp_path: Path) -> None:
    proc = FakeProc(tmp_path)
    proc.add(4711)
    host = HostPids(proc.folder)
    assert host.alive(4711)
    proc.end(4711)
    assert not host.alive(4711)
    assert host.describe(4711) == HostProcess()


def test_from_a_namespace_of_our_own_a_pid_is_another_process(tmp_path: Path) -> None:
    proc = FakeProc(tmp_path, A_CONTAINERS)
    proc.add(1, b"pinchpoint")
    host = HostPids(proc.folder)
    assert not host.visible
    assert host.describe(1) == HostProcess()
    assert not HostPids(tmp_path / "nothing").visible


def test_this_very_process_is_told_where_the_kernel_lets_us() -> None:
    host = HostPids()
    assert (host.describe(os.getpid()).command is not None) == host.visible
    assert host.alive(os.getpid())


def test_where_the_processes_of_others_are_hidden_none_of_them_seems_to_have_ended(tmp_path: Path) -> None:
    proc = FakeProc(tmp_path)
    proc.end(1)  # /proc with hidepid, for a user who is not root
    assert not HostPids(proc.folder).visible
