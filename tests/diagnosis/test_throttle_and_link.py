"""Heat, power and PCIe are judged by effect: bits and idle links alone are no fault."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.synthetic.labelled import Labelled
from tests.synthetic.plan import A100, RTX3090, V100, Plan
from tests.synthetic.recorded import changed, replaced
from tests.synthetic.scenarios import simulate
from yolomon.diagnosis.run_recording import diagnose
from yolomon.model import Finding, GpuSample, Item, Telemetry


def findings(run: Labelled, *codes: str) -> list[Finding]:
    return [f for f in diagnose(run.items) if f.code in codes]


def with_gpus(run: Labelled, change_gpu: Callable[[float, GpuSample], Any]) -> Labelled:
    start = run.items[0].ts

    def change(item: Item) -> Item:
        if isinstance(item, Telemetry):
            return replaced(item, gpus=tuple(change_gpu(item.ts - start, gpu) for gpu in item.gpus))
        return item

    return changed(run, "gpus", change)


def working(gpu: GpuSample) -> bool:
    return (gpu.utilization_percent or 0) > 80


def test_a_hot_gpu_at_a_third_of_its_clock_is_critical() -> None:
    """88 C, 450 to 550 of 1755 MHz at 100 % utilization (matt.sh): steps went from 0.7 to 1.2 s."""
    run = simulate(Plan(name="hot", seed=1, gpu=RTX3090))

    def hot(ts: float, gpu: GpuSample) -> Any:
        if ts < 90 or not working(gpu):
            return gpu
        return replaced(gpu, sm_clock_mhz=500.0, temperature_celsius=88.0, clock_event_reasons=0x20)

    (finding,) = findings(with_gpus(run, hot), "thermal-throttle")
    assert finding.severity == "critical"
    assert finding.evidence["temperature_celsius"] == 88
    assert "nvidia-smi -i 0 -pl 245" in str(finding.remedy)
    assert abs(finding.onset_ts - run.items[0].ts - 90) < 10


def test_a_thermal_bit_at_the_full_clock_costs_nothing() -> None:
    run = simulate(Plan(name="bit", seed=2))
    run = with_gpus(run, lambda ts, gpu: replaced(gpu, clock_event_reasons=0x20 | 4))
    assert not findings(run, "thermal-throttle")


def test_heat_from_the_start_is_seen_against_the_peers() -> None:
    """Without a warm clock of its own the GPU is compared with its equals in the job."""
    run = simulate(Plan(name="peers", seed=3, gpu=A100, ranks=4))

    def hot(ts: float, gpu: GpuSample) -> Any:
        if gpu.index != 2 or not working(gpu):
            return gpu
        return replaced(gpu, sm_clock_mhz=900.0, clock_event_reasons=0x40, temperature_celsius=91.0)

    (finding,) = findings(with_gpus(run, hot), "thermal-throttle")
    assert finding.target == "gpu2"
    assert finding.evidence["reference"] == "peers"


def test_the_software_power_cap_in_most_samples_is_no_fault() -> None:
    """ninfer-3090#72: 161 of 168 samples of a healthy run; on H100 at 690 of 700 W all of them."""
    run = simulate(Plan(name="cap", seed=4, power_share=0.99, seconds=400.0))
    run = with_gpus(run, lambda ts, gpu: replaced(gpu, clock_event_reasons=4))
    assert not findings(run, "power-throttle", "thermal-throttle")


def test_one_gpu_of_the_job_capped_lower_than_its_peers() -> None:
    """l4rz: one of four V100 ran at 150 W."""
    run = simulate(Plan(name="150 W", seed=5, gpu=V100, ranks=4, power_share=0.95))

    def capped(ts: float, gpu: GpuSample) -> Any:
        if gpu.index != 1:
            return gpu
        slow = gpu.slow and replaced(gpu.slow, power_limit_watts=150.0)
        power = min(gpu.power_watts or 0.0, 150.0)
        clock = 900.0 if working(gpu) else gpu.sm_clock_mhz
        return replaced(gpu, slow=slow, power_watts=power, clock_event_reasons=4, sm_clock_mhz=clock)

    (finding,) = findings(with_gpus(run, capped), "power-throttle")
    assert (finding.target, finding.severity) == ("gpu1", "warning")
    assert finding.evidence["power_limit_watts"] == 150
    assert "nvidia-smi -i 1 -pl 300" in str(finding.remedy)


def test_the_power_brake_is_critical() -> None:
    run = simulate(Plan(name="brake", seed=6))
    run = with_gpus(run, lambda ts, gpu: replaced(gpu, clock_event_reasons=0x88) if ts > 60 else gpu)
    (finding,) = findings(run, "power-throttle")
    assert finding.severity == "critical"


def test_an_idle_link_sleeps() -> None:
    """A40 at idle: generation 1 of 4, P8, 21 W; under load it wakes."""
    run = simulate(Plan(name="asleep", seed=7, gpu=RTX3090, start_seconds=120.0, seconds=150.0))
    assert not findings(run, "pcie-degraded")


def test_a_riser_with_one_lane_under_load() -> None:
    """darknet#2807: a mining board's riser, generation 1 with one lane."""
    run = simulate(
        Plan(name="riser", seed=8, gpu=RTX3090, ranks=4, rank=3, fault="narrow-link", seconds=260.0)
    )
    (finding,) = findings(run, "pcie-degraded")
    assert (finding.target, finding.severity) == ("gpu3", "warning")
    assert finding.evidence["width_lanes"] == 1
    assert finding.evidence["peers_differ"] == "yes"


def test_eight_lanes_by_design_are_information_only() -> None:
    run = simulate(Plan(name="x8", seed=9, gpu=RTX3090, ranks=2, seconds=200.0))

    def split(ts: float, gpu: GpuSample) -> Any:
        return replaced(gpu, slow=gpu.slow and replaced(gpu.slow, pcie_width=8))

    found = findings(with_gpus(run, split), "pcie-degraded")
    assert found and {f.severity for f in found} == {"info"}


def test_replays_above_the_limit_of_dcgm() -> None:
    """16 a minute are allowed on generation 4 with 16 lanes (0.96 a lane)."""
    run = simulate(Plan(name="replays", seed=10, gpu=RTX3090, seconds=200.0))

    def replays(per_minute: float) -> Callable[[float, GpuSample], Any]:
        def change(ts: float, gpu: GpuSample) -> Any:
            slow = gpu.slow and replaced(gpu.slow, pcie_replays=int(ts * per_minute / 60), pcie_generation=4)
            return replaced(gpu, slow=slow)

        return change

    assert not findings(with_gpus(run, replays(10)), "pcie-degraded")
    assert findings(with_gpus(run, replays(60)), "pcie-degraded")
