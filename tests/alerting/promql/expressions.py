"""Expressions over the series of ``trouble``: every construct of the subset at least once."""

SELECTORS = """
gauge
gauge{engine="a"}
gauge{engine=~"a|b", replica!="0"}
gauge{engine!~"a.*"}
gauge{empty=""}
gauge{missing!="x"}
gauge{engine=~".+", missing=~"|x"}
gauge offset 1m
gauge offset 7m
single
nothing
""".strip().splitlines()

ARITHMETIC = """
-gauge
1 - gauge
gauge * 100
gauge / 0
gauge / single
gauge + on () group_left () single
gauge - gauge
2 * 3 - -1
gauge > 0.5
0.5 < gauge
gauge >= bool 0.5
1 >= bool gauge
gauge == 1
gauge != 1
1 > bool 2
3 >= bool 2
gauge > 0.2 < 1
(gauge + 1) / (gauge + 1)
gauge / on (engine) group_left () limit
gauge * on (engine, job) group_left (zone) limit
limit - on (engine) group_right () gauge
limit < on (engine) group_right (zone) gauge
limit > bool on (engine) group_right () gauge
gauge / ignoring (replica, zone) group_left () limit
gauge{replica="0"} - ignoring (replica) gauge{replica="1"}
gauge{replica="0"} > ignoring (replica) gauge{replica="1"}
gauge{replica="0"} > on (engine) gauge{replica="1"}
gauge / on (engine) limit
limit / on (engine) gauge
gauge / on (job) group_left () limit
sum by (engine) (gauge) / on (engine) limit
""".strip().splitlines()

SETS = """
gauge and on (engine) limit > 0.5
gauge and limit
gauge unless on (engine) limit > 0.5
gauge{replica="0"} unless gauge{replica="1"}
gauge or limit
gauge{replica="0"} or ignoring (replica) gauge
gauge > 1 or on (engine) limit
gauge and on () vector(1)
gauge and on () (single > 0.5)
nothing or vector(0)
gauge or on () vector(0)
""".strip().splitlines()

AGGREGATIONS = """
sum(gauge)
sum by (engine) (gauge)
sum without (replica) (gauge)
sum without () (gauge)
avg by (engine) (gauge)
min(gauge)
max by (replica, nothing) (gauge)
max without (engine) (gauge)
count(gauge > 0.5)
count by (engine) (errors_total)
group(gauge)
topk(2, errors_total)
topk by (engine) (1, errors_total)
bottomk(2, requests_total)
topk(0, gauge)
sum(nothing)
count(nothing) or vector(0)
""".strip().splitlines()

RANGES = [
    f"{function}({series}[{length}])"
    for function in ["rate", "increase", "resets", "changes", "delta", "deriv"]
    for series, length in (("errors_total", "5m"), ("requests_total", "1m"), ("errors_total", "30m"))
] + [
    f"{function}_over_time(gauge[{length}])"
    for function in ["avg", "max", "min", "sum", "count", "last", "present"]
    for length in ("20s", "5m", "30m")
] + """
rate(errors_total[5m] offset 10m)
increase(errors_total{engine="a"}[1h])
predict_linear(requests_total[15m], 1800)
predict_linear(gauge[5m], 600)
predict_linear(requests_total[15m] offset 5m, -60)
deriv(limit[30m])
delta(limit[10m])
quantile_over_time(0.95, gauge[10m])
quantile_over_time(0, limit[10m])
quantile_over_time(1.5, limit[10m])
quantile_over_time(scalar(single), limit[10m])
sum without (reason) (increase(errors_total[10m])) / increase(requests_total[10m]) > 0.5 and requests_total >= 3
(1 - rate(errors_total{reason="dns"}[5m]) / on (engine, replica, job) rate(requests_total[5m])) > 0.1037
absent_over_time(gauge{engine="a", replica="0"}[1m])
absent_over_time(nothing{a="b", c!="d", e=~"f", g="h", g="i"}[5m])
""".strip().splitlines()  # fmt: skip

FUNCTIONS = """
abs(-gauge)
clamp_min(gauge, 0.5)
clamp_max(gauge, 0.5)
clamp(gauge, 0.2, 0.5)
clamp(gauge, 0.5, 0.2)
time()
time() - single
timestamp(gauge)
timestamp(gauge offset 1m)
timestamp(gauge + 1)
time() - timestamp(single)
vector(time())
vector(1)
scalar(single)
scalar(gauge)
scalar(single) + 1
single >= scalar(single)
absent(nothing)
absent(nothing{a="b", c!="d", e=~"f"})
absent(nothing{a!="x", a="y"})
absent((nothing{a="b"}))
absent(gauge)
absent(sum(nothing))
absent(single)
histogram_quantile(0.5, ttft_bucket)
histogram_quantile(0.95, sum by (le) (rate(ttft_bucket[5m])))
histogram_quantile(0.99, sum by (engine, le) (increase(ttft_bucket[10m])))
histogram_quantile(2, ttft_bucket)
histogram_quantile(0.5, gauge)
histogram_quantile(0.9, ttft_bucket{le!="+Inf"})
""".strip().splitlines()

EXPRESSIONS = [*SELECTORS, *ARITHMETIC, *SETS, *AGGREGATIONS, *RANGES, *FUNCTIONS]
