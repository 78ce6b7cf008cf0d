"""The part of an exposition that tells of one probe target, whatever others are called."""

from pinchpoint.outputs.web.probed import of_target

NAME = "pinchpoint_probe_ttft_seconds"


def test_a_label_that_looks_like_a_family_is_a_label():
    family = f'# HELP {NAME} x\n# TYPE {NAME} gauge\n{NAME}{{target="t",placement="local"}} 1\n'
    before = f'# HELP a x\n# TYPE a gauge\na{{engine="# HELP {NAME} "}} 1\n'
    assert of_target(family.encode(), "t").decode() == family
    assert of_target((before + family).encode(), "t").decode() == family
