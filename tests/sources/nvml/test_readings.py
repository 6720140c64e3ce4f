"""What a healthy or a limited GPU gives: values, tiers, fallbacks."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from tests.fake_nvml.fake import FakeNvml
from tests.sources.nvml.conftest import Watch
from yolomon.model import Header

V2 = "nvmlDeviceGetMemoryInfo_v2"


def test_a_gpu_is_told_before_its_first_reading(nvml: FakeNvml, watch: Watch) -> None:
    nvml.play("system gpus 2", "gpu 1 uuid GPU-abc", "gpu 1 slowdown 91")
    seen = watch()
    seen.sample(1)
    assert isinstance(seen.items[0], Header)
    told = [item for item in seen.items if isinstance(item, Header)]  # a late GPU is in the next
    zero, one = told[-1].gpus
    assert (zero.index, zero.name, zero.pci_bus_id) == (0, "NVIDIA H200", "00000000:10:00.0")
    assert (one.uuid, one.temperature_slowdown_celsius, one.temperature_shutdown_celsius) == (
        "GPU-abc",
        91,
        95,
    )
    assert (one.memory_total_bytes, one.memory_reserved_bytes) == (150754820096, 512 << 20)
    assert (one.memory_api, one.compute_capability, one.gpm_supported) == ("v2", "9.0", True)
    assert (one.pcie_generation_max, one.pcie_width_max, one.sm_clock_max_mhz) == (5, 16, 1980)
    assert (one.power_limit_watts, one.power_limit_default_watts) == (700.0, 700.0)


def test_the_fast_tier(nvml: FakeNvml, watch: Watch) -> None:
    nvml.play(
        "gpu 0 util 73", "gpu 0 memory-util 31", "gpu 0 memory-used 20G", "gpu 0 temperature 64",
        "gpu 0 power 412.5", "gpu 0 sm-clock 1755", "gpu 0 reasons 0x4", "gpu 0 pstate 2",
    )  # fmt: skip
    sample = watch().sample(0)
    assert (sample.state, sample.error) == ("ok", None)
    assert (sample.utilization_percent, sample.memory_utilization_percent) == (73, 31)
    assert sample.memory_used_bytes == 20 << 30, "what the driver reserves is not in it"
    assert (sample.temperature_celsius, sample.power_watts) == (64, 412.5)
    assert (sample.sm_clock_mhz, sample.memory_clock_mhz) == (1755, 3201)
    assert (sample.clock_event_reasons, sample.performance_state) == (4, 2)


def test_the_slow_tier(nvml: FakeNvml, watch: Watch) -> None:
    nvml.play(
        "gpu 0 process 71 3G", "gpu 0 process 72 1G graphics", "gpu 0 process 73 none",
        "gpu 0 ecc-corrected 5", "gpu 0 ecc-uncorrected 1", "gpu 0 remap-pending 1", "gpu 0 pcie-gen 4",
        "gpu 0 power-limit 650", "gpu 0 thermal-violation 12000", "gpu 0 fan 44", "gpu 0 pcie-replays 3",
        "gpu 0 memory-temperature 81",
    )  # fmt: skip
    slow = watch().sample(0, lambda sample: sample.slow).slow
    assert slow is not None and slow.processes is not None
    assert [(p.pid, p.memory_used_bytes, p.kind) for p in slow.processes] == [
        (71, 3 << 30, "compute"), (73, None, "compute"), (72, 1 << 30, "graphics"),
    ]  # fmt: skip
    assert (slow.ecc_corrected, slow.ecc_uncorrected) == (5, 1)
    assert (slow.remapped_rows_pending, slow.remapped_rows_failed) == (True, False)
    assert (slow.pcie_generation, slow.pcie_width, slow.pcie_replays) == (4, 16, 3)
    assert (slow.power_limit_watts, slow.thermal_violation_ns) == (650.0, 12000)
    assert (slow.fan_percent, slow.memory_temperature_celsius) == (44, 81)


def test_the_slow_tier_is_not_read_each_time(nvml: FakeNvml, watch: Watch) -> None:
    seen = watch(slow_interval_seconds=0.5)
    seen.ticks(8)
    slow = [sample.slow is not None for sample in seen.samples(0)[:8]]
    assert slow == [True, True, False, False, False, False, False, False]


def test_energy_is_in_joules_and_grows(nvml: FakeNvml, watch: Watch) -> None:
    nvml.play("gpu 0 power 500", "gpu 0 counter energy 7000000")
    seen = watch()
    first = seen.sample(0, lambda s: s.slow and s.slow.energy_joules).slow
    assert first is not None and first.energy_joules is not None
    assert 7000 <= first.energy_joules < 7000 + 500 * 60
    seen.sample(0, lambda s: s.slow and s.slow.energy_joules > first.energy_joules)


def test_a_stall_between_two_reads_is_in_the_drivers_samples(nvml: FakeNvml, watch: Watch) -> None:
    # 100 % for 200 ms, then 200 ms of nothing; each read's own value sees one of the two
    nvml.play("gpu 0 util square 0 100 0.4 0.5", "gpu 0 sample-period 0.05")
    seen = watch(interval_seconds=0.4)
    sample = seen.sample(0, lambda s: len(s.utilization_samples_percent) >= 7)
    assert {0.0, 100.0} == set(sample.utilization_samples_percent)


def test_no_sample_of_the_buffer_is_told_twice(nvml: FakeNvml, watch: Watch) -> None:
    nvml.play("gpu 0 util saw 0 100 10", "gpu 0 sample-period 0.1")  # a new value each 100 ms
    seen = watch()
    seen.ticks(12)
    told = [percent for sample in seen.samples(0) for percent in sample.utilization_samples_percent]
    assert len(told) >= 10
    assert len(set(told)) == len(told)
    steps = [(after - before) % 100 for before, after in itertools.pairwise(told)]
    assert all(step <= 2 for step in steps), "in order"


def test_gpm_gives_means_between_two_slow_reads(nvml: FakeNvml, watch: Watch) -> None:
    nvml.play("gpu 0 gpm-sm 41", "gpu 0 gpm-tensor 12", "gpu 0 pcie-rx 2097152", "gpu 0 nvlink-tx 1048576")
    seen = watch()
    gpm = seen.sample(0, lambda s: s.gpm).gpm
    assert gpm is not None
    assert gpm.sm_active_percent == pytest.approx(41)
    assert gpm.tensor_active_percent == pytest.approx(12)
    assert gpm.pcie_rx_mib_per_second == pytest.approx(2048)
    assert gpm.nvlink_tx_mib_per_second == pytest.approx(1024)


def test_gpm_reads_closer_than_100_ms_are_skipped_and_not_errors(nvml: FakeNvml, watch: Watch) -> None:
    seen = watch(slow_interval_seconds=0.05)  # a slow read each 50 ms
    seen.ticks(8)
    assert sum(sample.gpm is not None for sample in seen.samples(0)) >= 2
    assert {sample.error for sample in seen.samples(0)} == {None}


def test_with_gpm_pcie_is_never_asked_by_the_call_that_blocks(nvml: FakeNvml, watch: Watch) -> None:
    before = nvml.calls("nvmlDeviceGetPcieThroughput")
    watch().ticks(8)
    assert nvml.calls("nvmlDeviceGetPcieThroughput") == before


def test_without_gpm_pcie_is_counted_in_bytes(nvml: FakeNvml, watch: Watch) -> None:
    # beyond 4 GiB, so known not to wrap there
    nvml.play(
        "gpu 0 gpm none",
        "gpu 0 pcie-tx 5000",
        "gpu 0 counter pcie-tx 8000000",
        "gpu 0 counter pcie-rx 8000000",
    )
    before = nvml.calls("nvmlDeviceGetPcieThroughput")
    seen = watch()
    sample = seen.sample(0, lambda s: s.slow and s.slow.pcie_tx_kib_per_second is not None)
    assert sample.slow is not None
    assert sample.slow.pcie_tx_kib_per_second == pytest.approx(5000, rel=0.2)
    assert (sample.gpm, nvml.calls("nvmlDeviceGetPcieThroughput")) == (None, before)


def test_a_byte_counter_that_wraps_is_not_trusted(nvml: FakeNvml, watch: Watch) -> None:
    nvml.play("gpu 0 gpm none", "gpu 0 pcie-counter-bits 32", "gpu 0 pcie-rx 12000000", "gpu 0 pcie-tx 0")
    seen = watch(slow_interval_seconds=0.25)
    since = seen.ticks(8)
    rates = {s.slow.pcie_rx_kib_per_second for s in seen.samples(0, since) if s.slow}
    assert rates == {12000000}, "the call that blocks for 20 ms stands in, in the slow tier"


def test_a_counter_that_went_backwards_gives_no_rate(nvml: FakeNvml, watch: Watch) -> None:
    nvml.play("gpu 0 nvlink-tx 100", "gpu 0 counter nvlink-tx 900000")
    seen = watch()
    seen.sample(0, lambda s: s.slow and s.slow.nvlink_tx_kib_per_second is not None)
    since = len(seen.items)
    nvml.play("gpu 0 nvlink-tx 100", "gpu 0 counter nvlink-tx 0")
    seen.sample(0, lambda s: s.slow and s.slow.nvlink_tx_kib_per_second is None, since)
    rates = [s.slow.nvlink_tx_kib_per_second for s in seen.samples(0) if s.slow]
    assert all(rate is None or rate >= 0 for rate in rates)


# ------------------------------------------------------------ what a GPU cannot do


def test_not_supported_is_none_and_is_not_asked_again(nvml: FakeNvml, watch: Watch) -> None:
    nvml.play("system gpus 2", "gpu 0 fail nvmlDeviceGetPowerUsage not-supported")
    before = nvml.calls("nvmlDeviceGetPowerUsage", 0)
    seen = watch()
    seen.ticks(6)
    sample = seen.samples(0)[-1]
    assert (sample.power_watts, sample.error) == (None, None)
    assert sample.temperature_celsius is not None
    assert nvml.calls("nvmlDeviceGetPowerUsage", 0) == before + 1
    assert seen.sample(1).power_watts is not None, "remembered for that GPU only"


def test_another_error_is_none_now_and_is_asked_again(nvml: FakeNvml, watch: Watch) -> None:
    nvml.play("gpu 0 fail nvmlDeviceGetPowerUsage unknown")
    seen = watch()
    sample = seen.sample(0)
    assert (sample.power_watts, sample.error) == (None, "PowerUsage: Unknown Error")
    assert sample.state == "ok"
    since = len(seen.items)
    nvml.play("gpu 0 power 100")
    assert seen.sample(0, lambda s: s.power_watts, since).power_watts == 100.0
    assert seen.sample(0, lambda s: s.error is None, since)


def test_each_function_may_be_missing_alone(nvml: FakeNvml, watch: Watch) -> None:
    functions = (
        "nvmlDeviceGetUtilizationRates", "nvmlDeviceGetClockInfo", "nvmlDeviceGetPerformanceState",
        "nvmlDeviceGetSamples", "nvmlDeviceGetFieldValues", "nvmlGpmQueryDeviceSupport",
        "nvmlDeviceGetTotalEnergyConsumption", "nvmlDeviceGetMigMode", "nvmlDeviceGetPciInfo_v3",
        "nvmlDeviceGetEnforcedPowerLimit", "nvmlDeviceGetTemperatureThreshold",
        "nvmlDeviceGetViolationStatus",
    )  # fmt: skip
    nvml.play("gpu 0 fan 10", *(f"gpu 0 fail {function} not-supported" for function in functions))
    seen = watch()
    sample = seen.sample(0, lambda s: s.slow)
    assert sample.slow is not None
    assert (sample.utilization_percent, sample.sm_clock_mhz, sample.utilization_samples_percent) == (
        None,
        None,
        (),
    )
    assert (sample.slow.energy_joules, sample.slow.thermal_violation_ns) == (None, None)
    assert (sample.slow.ecc_corrected, sample.slow.remapped_rows_failed) == (0, False), (
        "by their older functions"
    )
    assert sample.slow.memory_temperature_celsius is None
    assert (sample.slow.fan_percent, sample.temperature_celsius is not None) == (10, True)
    header = seen.first(Header)
    assert (header.gpus[0].power_limit_watts, header.gpus[0].mig_enabled) == (None, None)
    assert header.gpus[0].temperature_slowdown_celsius is None


@pytest.mark.parametrize("error", ["function-not-found", "not-supported"])
def test_without_memory_v2_the_old_structure_is_read_and_named(
    nvml: FakeNvml, watch: Watch, error: str
) -> None:
    nvml.play("gpu 0 memory-used 20G", "gpu 0 memory-reserved 1G", f"gpu 0 fail {V2} {error}")
    seen = watch()
    assert seen.sample(0).memory_used_bytes == 21 << 30, (
        "with what the driver reserves: v1 cannot tell it apart"
    )
    info = seen.first(Header).gpus[0]
    assert (info.memory_api, info.memory_reserved_bytes, info.unified_memory) == ("v1", None, False)


def test_the_old_names_of_temperature_and_clock_reasons(nvml: FakeNvml, watch: Watch) -> None:
    nvml.play(
        "gpu 0 temperature 55", "gpu 0 reasons 8",
        "gpu 0 fail nvmlDeviceGetTemperatureV function-not-found",
        "gpu 0 fail nvmlDeviceGetCurrentClocksEventReasons function-not-found",
    )  # fmt: skip
    sample = watch().sample(0)
    assert (sample.temperature_celsius, sample.clock_event_reasons) == (55, 8)


def test_unified_memory(nvml: FakeNvml, watch: Watch, tmp_path: Path) -> None:
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc/meminfo").write_text("MemTotal:       125000000 kB\nMemFree: 5 kB\n")
    nvml.play("gpu 0 memory-total none", "gpu 0 process 7 3G", "gpu 0 process 8 1G")
    seen = watch(root=tmp_path)
    assert seen.sample(0, lambda s: s.memory_used_bytes).memory_used_bytes == 4 << 30
    info = seen.first(Header).gpus[0]
    assert (info.unified_memory, info.memory_total_bytes) == (True, 125000000 * 1024)
    assert (info.pcie_generation_max, info.memory_api) == (None, None)
    slow = seen.sample(0, lambda s: s.slow).slow
    assert slow is not None and (slow.pcie_generation, slow.pcie_tx_kib_per_second) == (None, None)


def test_memory_that_fails_is_not_taken_for_unified(nvml: FakeNvml, watch: Watch) -> None:
    nvml.play(f"gpu 0 fail {V2} unknown")
    seen = watch()
    assert seen.sample(0).memory_used_bytes is None
    info = seen.first(Header).gpus[0]
    assert (info.unified_memory, info.memory_total_bytes) == (False, None)


def test_mig_has_no_utilization_of_the_whole(nvml: FakeNvml, watch: Watch) -> None:
    nvml.play("gpu 0 mig 3", "gpu 0 fail nvmlGpmSampleGet not-supported")
    seen = watch()
    seen.ticks(4)
    sample = seen.samples(0)[-1]
    assert (sample.utilization_percent, sample.utilization_samples_percent, sample.error) == (None, (), None)
    assert sample.power_watts is not None
    assert seen.first(Header).gpus[0].mig_enabled is True


def test_mig_instances_are_told_one_by_one(nvml: FakeNvml, watch: Watch) -> None:
    nvml.play("gpu 0 mig 2", "gpu 0 memory-total 100G", "gpu 0 memory-used 20G", "gpu 0 memory-reserved 0")
    seen = watch()
    slow = seen.sample(0, lambda s: s.slow and s.slow.mig_instances and s.slow.mig_instances[0].gpm).slow
    assert slow is not None and slow.mig_instances is not None
    assert [(i.gpu_instance, i.name) for i in slow.mig_instances] == [
        (1, "NVIDIA H200 MIG 1g.18gb"), (2, "NVIDIA H200 MIG 1g.18gb"),
    ]  # fmt: skip
    assert {(i.memory_total_bytes, i.memory_used_bytes) for i in slow.mig_instances} == {(50 << 30, 10 << 30)}
    assert len({i.uuid for i in slow.mig_instances}) == 2
    assert all(i.gpm is not None and i.gpm.sm_active_percent for i in slow.mig_instances)
    since = len(seen.items)
    nvml.play("gpu 0 mig 1")
    seen.sample(0, lambda s: s.slow and len(s.slow.mig_instances or ()) == 1, since)


def test_a_gpu_without_mig_has_no_instances(nvml: FakeNvml, watch: Watch) -> None:
    slow = watch().sample(0, lambda s: s.slow).slow
    assert slow is not None and slow.mig_instances is None


def test_a_name_is_data(nvml: FakeNvml, watch: Watch) -> None:
    nvml.play(r'gpu 0 name "Odd \xff\e[31m[bold]\nGPU"')
    seen = watch()
    assert seen.first(Header).gpus[0].name == "Odd �[31m[bold]GPU"


def test_a_pid_out_of_range_is_dropped_and_counted(nvml: FakeNvml, watch: Watch) -> None:
    nvml.play("gpu 0 process 4294967295 1G", "gpu 0 process 0 1G", "gpu 0 process 12 1G")
    sample = watch().sample(0, lambda s: s.slow)
    assert sample.slow is not None and sample.slow.processes is not None
    assert [process.pid for process in sample.slow.processes] == [12]
    assert sample.error is not None and "out of range" in sample.error


def test_no_processes_and_processes_unknown_differ(nvml: FakeNvml, watch: Watch) -> None:
    nvml.play(
        "system gpus 2",
        *(f"gpu 1 fail nvmlDeviceGet{kind}RunningProcesses_v{v} not-supported"
          for kind in ("Compute", "Graphics", "MPSCompute") for v in (2, 3)),
    )  # fmt: skip
    seen = watch()
    known, unknown = (seen.sample(gpu, lambda s: s.slow).slow for gpu in (0, 1))
    assert known is not None and known.processes == ()
    assert unknown is not None and unknown.processes is None
