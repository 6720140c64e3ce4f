"""Rules, thresholds and the catalog tell the same."""

from __future__ import annotations

import json
from importlib import resources

import pytest

from tests.synthetic.labelled import Labelled
from tests.synthetic.plan import RTX3090
from tests.synthetic.scenarios import faulty_plans, simulate
from yolomon.diagnosis.catalog import CATALOG, explain, sections, thresholds_of
from yolomon.diagnosis.rules import ALL_RULES
from yolomon.diagnosis.run_recording import diagnose
from yolomon.diagnosis.thresholds import DECLARED
from yolomon.messages import translator


def test_every_code_that_a_rule_can_raise_is_explained_and_no_other() -> None:
    assert {code for make in ALL_RULES for code in make().codes} == set(CATALOG)


def test_every_threshold_belongs_to_a_code() -> None:
    assert {name.split(".")[0] for name in DECLARED} <= set(CATALOG)


def test_what_explains_a_code_is_a_code() -> None:
    assert {cause for entry in CATALOG.values() for cause in entry.explained_by} <= set(CATALOG)


@pytest.mark.parametrize("code", sorted(CATALOG))
def test_an_entry_is_complete(code: str) -> None:
    entry = CATALOG[code]
    assert entry.code == code
    assert entry.severities
    assert entry.signals
    assert entry.fooled_by
    assert entry.remedies


def test_the_explanation_shows_the_numbers_the_rule_uses() -> None:
    text = explain("thermal-throttle")
    for threshold in thresholds_of("thermal-throttle"):
        assert f"{threshold.name} = {threshold.default:g}" in text.replace("\n    ", " ")
    assert "thermal-throttle.busy = 70" in explain("thermal-throttle", values={"thermal-throttle.busy": 70.0})


def test_remedies_are_numbered_in_the_order_to_try() -> None:
    (section,) = [s for s in sections("shm-low") if s.ordered]
    assert "--ipc=host" in str(section.lines[0])
    assert "1. docker run" in explain("shm-low")


def test_the_explanation_is_told_in_chinese() -> None:
    text = explain("nan-loss", translator("zh_CN"))
    assert "loss 变成 NaN" in text
    assert "依次可以尝试" in text


def test_an_unknown_code_is_an_error() -> None:
    with pytest.raises(KeyError):
        explain("no-such-code")


def test_findings_keep_to_the_severities_of_the_catalog() -> None:
    plans = {plan.fault: plan for plan in faulty_plans(thorough=False) if plan.gpu is not RTX3090}
    runs: list[Labelled] = [simulate(plans[fault]) for fault in ("heat", "ecc", "freeze", "xid", "small-shm")]
    for run in runs:
        for finding in diagnose(run.items):
            assert finding.severity in CATALOG[finding.code].severities, finding


def test_every_threshold_is_told_in_chinese() -> None:
    known: set[str] = set()
    for part in (resources.files("yolomon") / "locales" / "zh_CN").iterdir():
        known |= set(json.loads(part.read_text("utf-8")))
    assert sorted({t.about for t in DECLARED.values()} - known) == []
