"""The comparison runs, and of pinchpoint it shows what must be so whatever the machine."""

import json
import subprocess
import sys


def test_the_quick_run_shows_a_hung_and_a_lost_gpu_and_seven_that_do_not_notice():
    ended = subprocess.run(
        [sys.executable, "bench/gpu_vs_nvitop.py", "--quick", "--json", "--no-peer"],
        check=False,
        capture_output=True,
        text=True,
        timeout=110,
    )
    assert ended.returncode == 0, ended.stderr
    report = json.loads(ended.stdout)
    values = {figure["what"]: figure["exporters"]["pinchpoint"]["value"] for figure in report["figures"]}
    assert values["families about GPUs"] > 15
    assert values["samples"] > 300
    assert 0 < values["CPU per series, scraped"] < 100
    shown = {fact["what"]: fact["shown"]["pinchpoint"] for fact in report["faults"]}
    for fault in ("hangs", "is lost"):
        assert shown[f"one GPU {fault}: healthy GPUs that show what is, of 7"] == "7"
        assert shown[f"one GPU {fault}: utilisation of GPU 3"] == "absent"
        assert shown[f"one GPU {fault}: says that GPU 3 fails"] == "yes, gpu_up 0"
