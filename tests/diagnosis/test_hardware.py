"""Lost GPUs, Xid errors, memory errors and an NVML that cannot be read."""

from __future__ import annotations

from typing import Any

import pytest

from tests.synthetic.labelled import Labelled
from tests.synthetic.plan import A100, Plan
from tests.synthetic.recorded import changed, replaced
from tests.synthetic.scenarios import simulate
from yolomon.diagnosis.rules.xid_table import UNKNOWN, XIDS, meaning_of
from yolomon.diagnosis.run_recording import diagnose
from yolomon.messages import msg
from yolomon.model import Finding, GpuEvent, Item, SourceStatus, Telemetry

BASE = Plan(name="base", seed=1, gpu=A100, ranks=8, seconds=150.0)


def findings(run: Labelled, *codes: str) -> list[Finding]:
    return [f for f in diagnose(run.items) if f.code in codes]


def with_items(run: Labelled, *more: Item) -> Labelled:
    return replaced(run, items=sorted([*run.items, *more], key=lambda item: item.ts))


@pytest.fixture(scope="module")
def base() -> Labelled:
    return simulate(BASE)


def test_a_gpu_that_fell_off_the_bus_is_lost_while_the_others_go_on() -> None:
    """nvitop#139: one GPU is lost; the row says so with the time."""
    run = simulate(replaced(BASE, fault="gpu-lost", rank=2))
    (finding,) = findings(run, "gpu-lost")
    assert (finding.target, finding.severity) == ("gpu2", "critical")
    assert finding.onset_ts == run.truths[0].onset_ts


def test_seven_of_eight_gpus(base: Labelled) -> None:
    """dcgm-exporter#348: a GPU vanishes from the list and nobody notices."""
    status = SourceStatus(
        ts=base.items[0].ts + 50, source="nvml", ok=True, reason="gpu-missing",
        cause=msg("{here} of {total} GPUs are there; missing: {names}", here=7, total=8, names="gpu5"),
    )  # fmt: skip
    (finding,) = findings(with_items(base, status), "gpu-lost")
    assert str(finding.summary).startswith("7 of 8 GPUs")


def test_a_gpu_that_stops_being_read_has_vanished(base: Labelled) -> None:
    start = base.items[0].ts

    def change(item: Item) -> Item:
        if isinstance(item, Telemetry) and item.ts > start + 60:
            return replaced(item, gpus=tuple(g for g in item.gpus if g.index != 5))
        return item

    (finding,) = findings(changed(base, "7", change), "gpu-lost")
    assert finding.target == "gpu5"


def test_all_gpus_silent_at_once_is_no_lost_gpu(base: Labelled) -> None:
    """An SSH drop: all vanish together."""
    start = base.items[0].ts
    run = changed(base, "drop", lambda i: None if isinstance(i, Telemetry) and 60 < i.ts - start < 120 else i)
    assert not findings(run, "gpu-lost")


def no_answer(item: Item, since: float) -> Any:
    if isinstance(item, Telemetry) and item.ts >= since:
        return replaced(
            item,
            gpus=tuple(
                type(g)(index=g.index, state="no-answer", state_since_ts=since) if g.index == 1 else g
                for g in item.gpus
            ),
        )
    return item


def test_a_gpu_whose_calls_hang(base: Labelled) -> None:
    """gpu-monitoring-tools#46: NVML hangs on a sick GPU."""
    since = base.items[0].ts + 60
    (finding,) = findings(changed(base, "hangs", lambda item: no_answer(item, since)), "gpu-lost")
    assert finding.target == "gpu1"
    assert 25 < finding.raised_ts - since < 45


@pytest.mark.parametrize(
    ("xid", "severity"),
    [(13, "warning"), (31, "warning"), (48, "critical"), (63, "info"), (74, "critical"),
     (79, "critical"), (94, "warning"), (95, "critical"), (119, "critical")],
)  # fmt: skip
def test_xid_meanings(base: Labelled, xid: int, severity: str) -> None:
    """DCGM's health checks: 48, 74, 79, 95, 119, 120 and 140 fail; 94 hits one program only."""
    event = GpuEvent(ts=base.items[0].ts + 60, index=3, xid=xid)
    (finding,) = findings(with_items(base, event), "xid")
    assert (finding.target, finding.severity) == ("gpu3", severity)
    assert finding.evidence["xid"] == xid
    assert str(XIDS[xid].meaning) in str(finding.summary)


def test_xid_43_follows_the_error_before_it(base: Labelled) -> None:
    start = base.items[0].ts
    events = [GpuEvent(ts=start + 60 + i, index=0, xid=xid) for i, xid in enumerate((45, 79, 43))]
    (finding,) = findings(with_items(base, *events), "xid")
    assert finding.evidence["xid"] == 79


def test_an_unknown_xid_is_said_as_such() -> None:
    assert meaning_of(9999) is UNKNOWN


def test_lifetime_ecc_counts_are_history_and_new_ones_count() -> None:
    """NVIDIA/semantic-segmentation#33: an uncorrectable error at epoch 18 on one of 8 GPUs."""
    run = simulate(replaced(BASE, fault="ecc", rank=5))
    (finding,) = findings(run, "ecc-error")
    assert (finding.target, finding.severity) == ("gpu5", "critical")
    healthy = simulate(BASE)  # 3 corrected ones from before on each
    assert not findings(healthy, "ecc-error")


def test_remapped_rows(base: Labelled) -> None:
    def remapped(**fields: bool) -> Labelled:
        def change(item: Item) -> Item:
            if not isinstance(item, Telemetry):
                return item
            return replaced(
                item,
                gpus=tuple(
                    replaced(g, slow=g.slow and replaced(g.slow, **fields)) if g.index == 4 else g
                    for g in item.gpus
                ),
            )

        return changed(base, "rows", change)

    (pending,) = findings(remapped(remapped_rows_pending=True), "row-remap")
    assert (pending.target, pending.severity) == ("gpu4", "info")
    (failed,) = findings(remapped(remapped_rows_failed=True), "row-remap")
    assert failed.severity == "critical"


@pytest.mark.parametrize(
    ("reason", "severity"),
    [("version-mismatch", "warning"), ("container-lost", "warning"), ("no-gpu", "info")],
)
def test_nvml_that_cannot_be_read(reason: str, severity: str) -> None:
    """nvidia-container-toolkit#48: the container lost its devices and training goes on; no GPU is a fact."""
    status = SourceStatus(ts=1.0, source="nvml", ok=False, reason=reason, cause=msg("the source's own words"))
    ticks = [Telemetry(ts=float(t)) for t in range(2, 12)]
    found = diagnose([status, *ticks])
    assert [(f.code, f.target, f.severity) for f in found] == [("nvml-unavailable", "host", severity)]
    assert str(found[0].cause) == "the source's own words"
