"""A rule that is a little wrong does not pass its cases: thresholds, times, words and matchers are each held by one."""

import re
from collections.abc import Iterator
from dataclasses import replace

import pytest

from pinchpoint.alerting import ALERTS, Alert, Severity
from tests.alerting.rule_cases import survivors

# By hand: what only its author can know to be wrong.
WRONG_EXPRESSIONS = [
    ("PinchpointKVCacheHigh", "> 0.90", ">= 0.90"),
    ("PinchpointKVCacheSaturated", "avg_over_time(", "min_over_time("),
    ("PinchpointKVCacheSaturated", "\nand (", "\nor ("),
    ("PinchpointKVCacheFilling", "\nand ", "\nor "),
    ("PinchpointTTFTBudgetBurnFast", "without (replica, model)", "without (model)"),
    ("PinchpointTTFTBudgetBurnFast", "[5m]", "[1h]"),
    ("PinchpointTTFTBudgetBurnSlow", "[30m]", "[6h]"),
    ("PinchpointTPOTBudgetBurnFast", 'signal="tpot"', 'signal="ttft"'),
    ("PinchpointTPOTBudgetBurnFast", "[5m]", "[1h]"),
    ("PinchpointTPOTBudgetBurnSlow", "[30m]", "[6h]"),
    ("PinchpointEngineDown", "on (job, instance, engine)", "on (job, engine)"),
    ("PinchpointEngineDown", "on (job, instance, engine)", "on (job)"),
    ("PinchpointEngineStalled", 'class="stalled"', 'class="compute"'),
    ("PinchpointReplicasImbalanced", 'class="imbalance"', 'class="kv_capacity"'),
    ("PinchpointGPUMemoryGrowing", 'class="memory_growth"', 'class="stalled"'),
    ("PinchpointBottleneckPersistent", 'class!~"', 'class=~"'),
    ("PinchpointProbeFailing", "[10m]) >= 3", "[10m]) >= 1"),
    ("PinchpointProbeFailing", "sum without (reason)", "sum without (placement)"),
    ("PinchpointProbeFailing", "max without (reason)", "max without (placement)"),
    ("PinchpointProbeUnanswered", 'placement="local", ', ""),
    ("PinchpointHostedSlowToo", "\nand ", "\nor "),
    ("PinchpointHostedSlowToo", '{signal="ttft"}', '{signal="tpot"}'),
    ("PinchpointProbeSpendCapNear", 'tokens{period="day"}', 'tokens{period="month"}'),
    ("PinchpointProbeSpendCapReached", "sum without (cause)", "sum without (placement)"),
    ("PinchpointGPUsMissing", "<", "<="),
    ("PinchpointGPUThermalSlowdown", "hw_thermal", "sw_thermal"),
    ("PinchpointGPUPowerBrake", "hw_power_brake", "sw_power_cap"),
    ("PinchpointGPUPCIeDegraded", "<", "<="),
    ("PinchpointGPUPCIeDegraded", "unified", "framebuffer"),
    ("PinchpointGPUNVLinkDegraded", "< on", "<= on"),
    ("PinchpointGPUNVLinkDegraded", "> 0\nand", ">= 0\nand"),
    ("PinchpointXid", "max without (source) ", ""),
    ("PinchpointXid", "48|", "48|31|"),
    ("PinchpointGPUMemoryErrors", '"uncorrectable"', '"correctable"'),
    ("PinchpointGPURowRemapFailure", "failure", "failure|pending"),
    ("PinchpointGPURowRemapFailure", "failure", "pending"),
    ("PinchpointGPUMemoryRepairPending", "\nor", "\nand"),
    ("PinchpointGPUDrainAdvised", "drain_.*", ".*"),
    ("PinchpointSourceStale", "unless on (job, instance)", "unless on (job)"),
    ("PinchpointSourceStale", "unless", "and"),
    ("PinchpointEventLoopLagging", "avg_over_time", "max_over_time"),
    ("PinchpointTargetAbsent", " unless on ()", " or on ()"),
    ("PinchpointTargetAbsent", 'up{job=~".*pinchpoint.*"} == 0\n', 'up{job=~".*nothing.*"} == 0\n'),
    ("PinchpointTargetAbsent", "absent(pinchpoint_build_info)", "absent(up)"),
]
# The text of a threshold, of which one moved by a tenth (or by one, where things are counted) is noticed.
THRESHOLD = re.compile(r"(?<=[<>=] )\d+(?:\.\d+)?(?= |\n|$|\)|:)")
ALTERNATIVES = re.compile(r'(?<==~"|!~")[^"]*\|[^"]*(?=")')


def wrong_thresholds(alert: Alert) -> Iterator[Alert]:
    for found in THRESHOLD.finditer(alert.expr):
        number = float(found.group())
        if "." in found.group():
            moved = (0.8 * number, min(1.2 * number, (number + 1) / 2) if number < 1 else 1.2 * number)
        elif number <= 10:
            moved = (number - 1, number + 1) if number else (1, 2)
        else:
            moved = (0.8 * number, 1.2 * number)
        for other in moved:
            yield replace(alert, expr=f"{alert.expr[: found.start()]}{other:g}{alert.expr[found.end() :]}")


def wrong_alternatives(alert: Alert) -> Iterator[Alert]:
    for found in ALTERNATIVES.finditer(alert.expr):
        words = found.group().split("|")
        for word in words:
            others = "|".join(each for each in words if each != word)
            yield replace(alert, expr=f"{alert.expr[: found.start()]}{others}{alert.expr[found.end() :]}")


def wrong_times(alert: Alert) -> Iterator[Alert]:
    if alert.for_seconds:
        yield replace(alert, for_seconds=0)
        yield replace(alert, for_seconds=4 * alert.for_seconds)
    if alert.keep_firing_for_seconds:
        yield replace(alert, keep_firing_for_seconds=0)
        yield replace(alert, keep_firing_for_seconds=20 * alert.keep_firing_for_seconds)


def wrong(alert: Alert) -> list[Alert]:
    by_hand = [(right, other) for name, right, other in WRONG_EXPRESSIONS if name == alert.name]
    assert all(right in alert.expr for right, _ in by_hand)
    found = [replace(alert, expr=alert.expr.replace(right, other)) for right, other in by_hand]
    found += [*wrong_thresholds(alert), *wrong_alternatives(alert), *wrong_times(alert)]
    if alert.severity is not Severity.NONE:
        found.append(replace(alert, severity=Severity.NONE))
    return found


@pytest.mark.parametrize("alert", [alert for alert in ALERTS if wrong(alert)], ids=lambda alert: alert.name)
def test_a_rule_that_is_a_little_wrong_does_not_pass_its_cases(tmp_path, alert):
    left = survivors(tmp_path, [alert, *wrong(alert)])
    assert left[:1] == [alert]  # the right one passes, or nothing is proven
    assert [(a.expr, a.for_seconds, a.keep_firing_for_seconds, str(a.severity)) for a in left[1:]] == []


def test_only_the_watchdog_can_t_be_wrong():
    assert [alert.name for alert in ALERTS if not wrong(alert)] == ["PinchpointWatchdog"]


def test_what_is_wrong_by_hand_is_an_alert_s():
    assert {name for name, _, _ in WRONG_EXPRESSIONS} <= {alert.name for alert in ALERTS}
