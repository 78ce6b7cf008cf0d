"""The rules as the Prometheus Operator takes them, by the schema of its PrometheusRule, in which no key is unknown."""

from pathlib import Path
from typing import Annotated, Literal

import pytest
import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from pinchpoint.alerting import Links, prometheus_rule, recording_rules_file, rules_file

FILE = Path("alerts/pinchpoint.prometheusrule.yaml")
Duration = Annotated[
    str, Field(pattern=r"^(0|(\d+y)?(\d+w)?(\d+d)?(\d+h)?(\d+m)?(\d+s)?(\d+ms)?)$", min_length=1, max_length=20)
]


class Strict(BaseModel):
    """A part of ``monitoring.coreos.com/v1`` PrometheusRule, as its CRD describes it in the Operator 0.65 to 0.80."""

    model_config = ConfigDict(extra="forbid", strict=True)


class Rule(Strict):
    record: str | None = None
    alert: str | None = None
    expr: str
    for_: Duration | None = Field(default=None, alias="for")
    keep_firing_for: Duration | None = None
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None


class Group(Strict):
    name: Annotated[str, Field(min_length=1)]
    interval: Duration | None = None
    rules: list[Rule] | None = None


class Spec(Strict):
    groups: list[Group]


class Metadata(Strict):
    name: Annotated[str, Field(pattern=r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$", max_length=253)]
    labels: dict[str, str]


class PrometheusRule(Strict):
    apiVersion: Literal["monitoring.coreos.com/v1"]  # noqa: N815
    kind: Literal["PrometheusRule"]
    metadata: Metadata
    spec: Spec


def test_the_committed_resource_is_the_generated_one():
    assert FILE.read_text() == prometheus_rule()


def test_the_operator_s_schema_takes_it():
    resource = PrometheusRule.model_validate(yaml.safe_load(FILE.read_text()))
    names = [group.name for group in resource.spec.groups]
    assert len(names) == len(set(names))


@pytest.mark.parametrize(("key", "value"), [("keepFiringFor", "5m"), ("for", "five minutes"), ("labels", {"a": 1})])
def test_what_the_operator_would_not_take_is_found(key, value):
    resource = yaml.safe_load(FILE.read_text())
    resource["spec"]["groups"][0]["rules"][0][key] = value
    with pytest.raises(ValidationError):
        PrometheusRule.model_validate(resource)


def test_it_holds_the_rules_of_both_plain_files():
    plain = [yaml.safe_load(text)["groups"] for text in (rules_file(), recording_rules_file())]
    assert yaml.safe_load(FILE.read_text())["spec"]["groups"] == [group for groups in plain for group in groups]


def test_its_links_lead_to_the_site_s_own_pages():
    text = prometheus_rule(Links(grafana_url="https://grafana.mysite.net", runbook_url="https://wiki.mysite.net"))
    assert "https://grafana.mysite.net/d/pinchpoint-engine?var-job=" in text
    assert "https://wiki.mysite.net/PinchpointKVCacheHigh.md" in text
