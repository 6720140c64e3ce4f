"""GPUs that are lost or hang, drivers that do not start or go away: what is told, and what goes on."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest

from tests.fake_nvml.fake import FakeNvml
from tests.sources.nvml.conftest import Collected, Watch
from yolomon.history import History
from yolomon.messages import english
from yolomon.model import GpuEvent, Header, SourceStatus, Telemetry
from yolomon.sources.nvml import NvmlSource

# ------------------------------------------------------------ a GPU is lost


def test_a_lost_gpu_says_since_when_and_the_others_go_on(nvml: FakeNvml, watch: Watch) -> None:
    nvml.play("system gpus 8")
    seen = watch()
    seen.sample(3)
    before_ts = time.time()
    nvml.play("system gpus 8", "gpu 3 lost")
    lost = seen.sample(3, lambda s: s.state == "lost")
    assert lost.state_since_ts is not None and before_ts <= lost.state_since_ts <= time.time()
    assert (lost.error, lost.utilization_percent, lost.memory_used_bytes) == ("GPU is lost", None, None)
    since = seen.ticks(4, gpu=0)
    assert {s.state for s in seen.samples(3, since)} == {"lost"}
    assert {s.state_since_ts for s in seen.samples(3, since)} == {lost.state_since_ts}
    assert all(s.state == "ok" and s.power_watts for s in seen.samples(7, since))


def test_seven_of_eight_gpus(nvml: FakeNvml, watch: Watch) -> None:
    nvml.play("system gpus 8", "gpu 5 lost")
    status = watch().status("gpu-missing")
    assert status.ok, "NVML itself works"
    assert status.cause is not None and english(status.cause) == "7 of 8 GPUs are there; missing: gpu5"
    assert status.remedy is not None and "dmesg" in english(status.remedy)


def test_a_lost_gpu_is_asked_seldom_and_comes_back(nvml: FakeNvml, watch: Watch) -> None:
    nvml.play("system gpus 2", "gpu 1 lost")
    seen = watch(retry_seconds=0.4)
    seen.sample(1, lambda s: s.state == "lost")
    before = nvml.calls("*", 1)
    seen.ticks(4)
    assert nvml.calls("*", 1) == before
    nvml.play("system gpus 2")
    assert seen.sample(1, lambda s: s.state == "ok").power_watts is not None
    assert seen.status("").ok


def test_a_gpu_that_needs_a_reset_is_lost_with_its_own_words(nvml: FakeNvml, watch: Watch) -> None:
    nvml.play("system gpus 2", "gpu 1 fail * reset-required")
    lost = watch().sample(1, lambda s: s.state == "lost")
    assert lost.error is not None and "re" in lost.error.lower() and lost.error != "GPU is lost"


def test_a_gpu_lost_from_the_start_is_named_by_the_kernel(
    nvml: FakeNvml, watch: Watch, tmp_path: Path
) -> None:
    for bus, uuid in (("0000:10:00.0", "GPU-aaa"), ("0000:11:00.0", "GPU-bbb")):
        folder = tmp_path / "proc/driver/nvidia/gpus" / bus
        folder.mkdir(parents=True)
        (folder / "information").write_text(f"Model: \t\t NVIDIA H200\nIRQ:   51\nGPU UUID: \t {uuid}\n")
    nvml.play("system gpus 2", "gpu 0 uuid GPU-aaa", "gpu 1 uuid GPU-bbb", "gpu 1 lost")
    seen = watch(root=tmp_path)
    header = seen.first(Header, lambda h: len(h.gpus) == 2)
    assert [(g.index, g.uuid, g.name) for g in header.gpus] == [
        (0, "GPU-aaa", "NVIDIA H200"),
        (1, "GPU-bbb", "NVIDIA H200"),
    ]


def test_a_gpu_that_could_not_tell_its_uuid_is_one_gpu_in_the_history(nvml: FakeNvml, tmp_path: Path) -> None:
    nvml.play("system gpus 2", "gpu 1 lost")
    source, seen, history = (
        NvmlSource(interval_seconds=0.05, retry_seconds=0.2, root=tmp_path),
        Collected(),
        History(),
    )
    source.start(seen)
    seen.sample(1, lambda s: s.state == "lost")
    nvml.play("system gpus 2", "gpu 1 uuid GPU-late")
    seen.sample(1, lambda s: s.state == "ok")
    source.stop(3.0)
    for item in seen.items:
        history.add(item)
    assert [(gpu.info.index, gpu.info.uuid[-4:]) for gpu in history.by_index()] == [(0, "0000"), (1, "late")]


def test_reading_that_breaks_is_told_and_begins_anew(nvml: FakeNvml, watch: Watch) -> None:
    breaks = iter([False] * 4 + [True])

    def clock() -> float:
        if threading.current_thread().name == "yolomon-nvml" and next(breaks, False):
            raise OverflowError("the clock broke")
        return time.time()

    seen = watch(clock=clock, retry_seconds=0.05)
    status = seen.first(SourceStatus, lambda s: not s.ok)
    assert status.cause is not None and "the clock broke" in english(status.cause)
    since = len(seen.items)
    assert seen.sample(0, lambda s: s.state == "ok", since).power_watts is not None


# ------------------------------------------------------------ a GPU hangs


def test_a_hung_gpu_has_no_answer_and_the_others_stay_fresh(nvml: FakeNvml, watch: Watch) -> None:
    nvml.play("system gpus 4")
    seen = watch()
    seen.sample(2)
    nvml.play("system gpus 4", "gpu 2 hang nvmlDeviceGetTemperatureV 60")
    silent = seen.sample(2, lambda s: s.state == "no-answer")
    assert silent.state_since_ts is not None and time.time() - silent.state_since_ts < 2
    assert (silent.power_watts, silent.utilization_samples_percent) == (None, ())
    since = seen.ticks(6, gpu=0)
    assert all(s.state == "ok" and s.power_watts for gpu in (0, 1, 3) for s in seen.samples(gpu, since))
    assert {s.state_since_ts for s in seen.samples(2, since)} == {silent.state_since_ts}


def test_a_hung_gpu_answers_again(nvml: FakeNvml, watch: Watch) -> None:
    nvml.play("system gpus 2", "gpu 1 hang * 60 after 0")
    seen = watch()
    seen.sample(1, lambda s: s.state == "no-answer")
    since = len(seen.items)
    nvml.play("system gpus 2")
    assert seen.sample(1, lambda s: s.state == "ok", since).power_watts is not None


def test_a_slow_gpu_is_late_and_not_silent(nvml: FakeNvml, watch: Watch) -> None:
    nvml.play("system gpus 2", "gpu 1 hang nvmlDeviceGetPowerUsage 0.08")  # longer than the tick
    seen = watch(deadline_seconds=2.0)
    seen.ticks(3, gpu=1)
    assert {s.state for s in seen.samples(1)} == {"ok"}
    late = [i for i in seen.items if isinstance(i, Telemetry) and [s.index for s in i.gpus] == [1]]
    assert late, "a late answer comes alone, with its own time"


def test_one_of_64_gpus_hangs(nvml: FakeNvml, watch: Watch) -> None:
    nvml.play("system gpus 64", "gpu 17 hang nvmlDeviceGetPowerUsage 60")
    seen = watch(interval_seconds=0.25, deadline_seconds=0.4)
    seen.sample(17, lambda s: s.state == "no-answer")
    since = seen.ticks(3, gpu=63)
    others = [gpu for gpu in range(64) if gpu != 17]
    assert len(seen.first(Header, lambda h: len(h.gpus) >= 63).gpus) >= 63
    seen.wait(lambda _: all(seen.samples(gpu, since) for gpu in others))
    assert {s.state for gpu in others for s in seen.samples(gpu, since)} == {"ok"}


def test_stop_does_not_wait_for_a_hung_gpu(nvml: FakeNvml) -> None:
    nvml.play("system gpus 2", "gpu 1 hang * 60")
    source, seen = NvmlSource(interval_seconds=0.05, deadline_seconds=0.1), Collected()
    source.start(seen)
    seen.sample(1, lambda s: s.state == "no-answer")
    began = time.monotonic()
    source.stop(1.0)
    assert time.monotonic() - began < 1.5


def test_start_returns_at_once_while_nvml_hangs(
    nvml: FakeNvml, watch: Watch, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("yolomon.sources.nvml.START_PATIENCE_SECONDS", 0.1)
    nvml.play("system gpus 1", "system hang nvmlInitWithFlags 60")
    began = time.monotonic()
    seen = watch()
    assert time.monotonic() - began < 0.1
    status = seen.status("starting")
    assert status.remedy is not None and "nvidia-smi -pm 1" in english(status.remedy)
    nvml.play("system gpus 1")
    seen.sample(0)
    assert seen.status("").ok


# ------------------------------------------------------------ NVML does not start


def failed(seen: Collected) -> tuple[str, str, str]:
    status = seen.first(SourceStatus, lambda s: not s.ok)
    assert status.cause is not None and status.remedy is not None
    return status.reason, english(status.cause), english(status.remedy)


def test_version_mismatch_names_both_versions(nvml: FakeNvml, watch: Watch, tmp_path: Path) -> None:
    (tmp_path / "proc/driver/nvidia").mkdir(parents=True)
    (tmp_path / "proc/driver/nvidia/version").write_text(
        "NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.173.02  Tue Jun 23 08:38:17 UTC 2026\n"
        "GCC version:  gcc version 14.2.0 (Ubuntu 14.2.0-4ubuntu2~24.04.1)\n"
    )
    nvml.play("system nvml 13.580.178.04", "system fail nvmlInitWithFlags version-mismatch")
    reason, cause, remedy = failed(watch(root=tmp_path))
    assert reason == "version-mismatch"
    assert "580.173.02" in cause and "580.178.04" in cause
    assert "training goes on" in remedy


def test_a_container_that_lost_its_devices(nvml: FakeNvml, watch: Watch, tmp_path: Path) -> None:
    (tmp_path / ".dockerenv").touch()
    nvml.play("system fail nvmlInitWithFlags unknown")
    reason, cause, remedy = failed(watch(root=tmp_path))
    assert (reason, "daemon-reload" in cause, "Restart the container" in remedy) == (
        "container-lost",
        True,
        True,
    )


@pytest.mark.parametrize(
    ("marks", "error", "reason", "words"),
    [
        ((), "driver-not-loaded", "no-driver", "modprobe"),
        ((".dockerenv",), "driver-not-loaded", "no-driver", "--gpus all"),
        ((), "12", "no-driver", "Install the NVIDIA driver"),
        (("run/.containerenv",), "12", "no-driver", "--gpus all"),
        (("proc/version",), "12", "no-driver", "wsl --update"),
        ((), "no-permission", "no-permission", "/dev/nvidia"),
        ((), "unknown", "nvml-error", "dmesg"),
        ((), "uninitialized", "nvml-error", "dmesg"),
        ((), "17", "nvml-error", "dmesg"),
    ],
)  # fmt: skip
def test_each_failure_has_its_remedy(
    nvml: FakeNvml,
    watch: Watch,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    marks: tuple[str, ...],
    error: str,
    reason: str,
    words: str,
) -> None:
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    for mark in marks:
        (tmp_path / mark).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / mark).write_text("Linux version 5.15.1-microsoft-standard-WSL2")
    nvml.play(f"system fail nvmlInitWithFlags {error}")
    told, _, remedy = failed(watch(root=tmp_path))
    assert told == reason
    assert words in remedy


def test_a_driver_without_gpus(nvml: FakeNvml, watch: Watch) -> None:
    nvml.play("system gpus 0", "system driver 570.1.2")
    reason, cause, _ = failed(watch())
    assert reason == "no-gpu"
    assert "570.1.2" in cause


def test_nvml_is_tried_again_slowly_and_told_once(nvml: FakeNvml, watch: Watch) -> None:
    nvml.play("system fail nvmlInitWithFlags driver-not-loaded")
    before = nvml.calls("nvmlInitWithFlags")
    seen = watch(retry_seconds=0.25)
    seen.status("no-driver")
    seen.wait(lambda _: nvml.calls("nvmlInitWithFlags") == before + 3 or time.sleep(0.02))
    assert len([i for i in seen.items if isinstance(i, SourceStatus)]) == 1
    nvml.play("system gpus 1")
    seen.sample(0)
    assert seen.status("").ok


# ------------------------------------------------------------ the driver goes away and comes back


def test_while_nvml_works_it_is_not_started_again(nvml: FakeNvml, watch: Watch) -> None:
    nvml.play("system gpus 2", "gpu 1 fail * unknown after 0")
    seen = watch(retry_seconds=0.05)
    seen.sample(0)
    before = nvml.calls("nvmlInitWithFlags"), nvml.calls("nvmlShutdown")
    seen.ticks(8)
    assert (nvml.calls("nvmlInitWithFlags"), nvml.calls("nvmlShutdown")) == before


def test_old_handles_are_kept_through_a_failure_of_all(nvml: FakeNvml, watch: Watch, tmp_path: Path) -> None:
    (tmp_path / ".dockerenv").touch()
    nvml.play("system gpus 2")
    seen = watch(retry_seconds=0.1, root=tmp_path)
    seen.sample(1)
    before = nvml.calls("nvmlInitWithFlags"), nvml.calls("nvmlShutdown")
    nvml.play("system gpus 2", "gpu * fail * unknown")
    assert not seen.status("container-lost").ok
    since = len(seen.items)
    nvml.play("system gpus 2")
    assert seen.first(SourceStatus, lambda s: s.ok, since).reason == ""
    assert seen.sample(1, lambda s: s.power_watts, since).state == "ok"
    assert (nvml.calls("nvmlInitWithFlags"), nvml.calls("nvmlShutdown")) == before


def test_old_handles_that_stay_dead_are_given_up(nvml: FakeNvml, watch: Watch) -> None:
    nvml.play("system gpus 2")
    seen = watch(retry_seconds=0.05)
    seen.sample(1)
    before = nvml.calls("nvmlInitWithFlags")
    nvml.play("system gpus 2", "gpu * fail * unknown")
    seen.wait(lambda _: nvml.calls("nvmlInitWithFlags") > before, 8.0)


def test_a_driver_reload_is_told_and_static_facts_are_read_again(nvml: FakeNvml, watch: Watch) -> None:
    nvml.play("system gpus 2")
    seen = watch()
    seen.sample(1)
    nvml.play("system gpus 2", "system fail * driver-not-loaded")
    assert not seen.status("no-driver").ok
    since = len(seen.items)
    nvml.play("system gpus 2", "gpu 0 slowdown 80")
    header = seen.first(Header, since=since)
    assert header.gpus[0].temperature_slowdown_celsius == 80
    assert seen.sample(1, lambda s: s.state == "ok", since).power_watts is not None
    assert seen.first(SourceStatus, lambda s: s.ok, since).reason == ""


def test_a_gpu_that_a_reload_did_not_bring_back(nvml: FakeNvml, watch: Watch) -> None:
    nvml.play("system gpus 3")
    seen = watch()
    seen.ticks(2, gpu=2)
    nvml.play("system gpus 3", "system fail * uninitialized")
    seen.status("nvml-error")
    gone_ts = time.time()
    nvml.play("system gpus 3", "gpu 1 gone")  # what was NVML's index 2 is its index 1 now
    lost = seen.sample(1, lambda s: s.state == "lost")
    assert lost.state_since_ts is not None and lost.state_since_ts < gone_ts, "since its last reading"
    since = seen.ticks(3, gpu=2)
    assert {s.state for s in seen.samples(2, since)} == {"ok"}, "GPUs keep their index by UUID"
    cause = seen.status("gpu-missing").cause
    assert cause is not None and english(cause) == "2 of 3 GPUs are there; missing: gpu1"


def test_a_gpu_unnamed_before_a_reload_is_not_missing_after_it(
    nvml: FakeNvml, watch: Watch, tmp_path: Path
) -> None:
    nvml.play("system gpus 2", "gpu 1 lost")
    seen = watch(root=tmp_path)
    seen.sample(1, lambda s: s.state == "lost")
    nvml.play("system gpus 2", "system fail * uninitialized")
    seen.status("nvml-error")
    nvml.play("system gpus 2")
    since = len(seen.items)
    seen.sample(1, lambda s: s.state == "ok", since)
    since = seen.ticks(3)
    assert {s.state for s in seen.samples(1, since)} == {"ok"}
    assert {s.index for i in seen.items[since:] if isinstance(i, Telemetry) for s in i.gpus} == {0, 1}


# ------------------------------------------------------------ Xid


def test_an_xid_is_told_once_with_its_gpu(nvml: FakeNvml, watch: Watch) -> None:
    nvml.play("system gpus 4")
    seen = watch()
    seen.ticks(3)
    nvml.play("system gpus 4", "gpu 2 xid 48")
    event = seen.first(GpuEvent)
    assert (event.index, event.xid) == (2, 48)
    nvml.play("system gpus 4", "gpu 2 xid 48", "gpu 0 xid 79")
    assert seen.first(GpuEvent, lambda e: e.index == 0).xid == 79
    assert len([i for i in seen.items if isinstance(i, GpuEvent)]) == 2


@pytest.mark.parametrize(
    "function", ["nvmlEventSetCreate", "nvmlDeviceRegisterEvents", "nvmlEventSetWait_v2"]
)
def test_a_driver_without_events_still_gives_readings(nvml: FakeNvml, watch: Watch, function: str) -> None:
    nvml.play(f"system fail {function} not-supported", f"gpu 0 fail {function} not-supported", "gpu 0 xid 48")
    seen = watch()
    seen.ticks(5)
    assert not [i for i in seen.items if isinstance(i, GpuEvent)]
    assert seen.samples(0)[-1].error is None
