"""load-imbalance: the GPU that is busy less is the one the others wait for."""

from __future__ import annotations

import pytest

from tests.diagnosis.scene import GIB, Scene
from yolomon.model import GpuProcess


def straggling(slow: int, ranks: int = 2, busy: float = 25.0, **kwargs: object) -> Scene:
    scene = Scene(ranks, **kwargs).start()  # type: ignore[arg-type]
    scene.train(40)
    scene.step_seconds = 0.5
    for gpu in scene.gpus:
        gpu.busy = busy if gpu.index == slow else 95.0
        gpu.sm = 20.0 if gpu.index == slow else 33.0
        gpu.power = 255.0
    return scene.train(40)


@pytest.mark.parametrize("slow", [0, 1])
def test_the_slow_rank_is_named_whichever_it_is(slow: int) -> None:
    found = [f for f in straggling(slow).findings() if f.code == "load-imbalance"]
    assert [(f.target, f.severity) for f in found] == [(f"gpu{slow}", "warning")]
    assert found[0].evidence["step_seconds"] == pytest.approx(0.5)
    assert found[0].evidence["step_seconds_before"] == pytest.approx(0.2)
    assert "steps take 0.5 s, 0.2 s before" in str(found[0].summary)


def test_it_began_when_the_data_say() -> None:
    scene = straggling(1)
    found = next(f for f in scene.findings() if f.code == "load-imbalance")
    began = scene.now - 40
    assert abs(found.onset_ts - began) < 4
    assert found.raised_ts - began < 25


def test_one_of_sixteen() -> None:
    assert straggling(11, ranks=16).said("load-imbalance") == [("load-imbalance", "gpu11", "warning")]


def test_a_tenth_of_a_second_on_a_short_step() -> None:
    assert straggling(1, busy=52.0).said("load-imbalance") == [("load-imbalance", "gpu1", "warning")]


def test_a_log_of_rank_0_alone_is_enough() -> None:
    found = [f for f in straggling(1, logging_ranks=[0]).findings() if f.code == "load-imbalance"]
    assert [f.target for f in found] == ["gpu1"]
    assert any("not all ranks" in str(m) for m in found[0].unseen)


def test_without_gpm_the_utilization_serves() -> None:
    found = [f for f in straggling(1, gpm=False).findings() if f.code == "load-imbalance"]
    assert [(f.target, f.confidence) for f in found] == [("gpu1", "medium")]


def test_it_is_over_when_the_ranks_are_equal_again() -> None:
    scene = straggling(1)
    for gpu in scene.gpus:
        gpu.work()
    found = next(f for f in scene.train(60).findings() if f.code == "load-imbalance")
    assert found.cleared_ts is not None


def test_not_while_rank_0_validates_and_saves() -> None:
    scene = Scene(2).start()
    for _ in range(6):
        scene.batches = 10**6
        scene.train(5).turn(validate=3.0, save=2.0)
    assert scene.said("load-imbalance") == []


def test_not_when_ranks_differ_as_healthy_ones_do() -> None:
    scene = Scene(2).start()
    scene.gpus[0].busy = 72.0
    assert scene.train(60).said("load-imbalance") == []


def test_not_between_unrelated_jobs() -> None:
    """The other GPU belongs to another user: two jobs are never compared."""
    scene = Scene(1, gpus=2).start()
    other = scene.gpus[1]
    other.others = [GpuProcess(pid=77, memory_used_bytes=20 * GIB)]
    other.busy = 100.0
    scene.gpus[0].busy = 30.0
    assert scene.train(60).said("load-imbalance") == []


def test_not_when_all_wait_for_input() -> None:
    scene = Scene(2).start()
    scene.data_share = [0.8, 0.8]
    scene.gpus[0].busy, scene.gpus[1].busy = 10.0, 14.0
    assert scene.train(60).said("load-imbalance") == []


def test_extra_contexts_on_gpu_0() -> None:
    """7 processes of 500 MB on GPU 0, cured by set_device (pi-GAN#22)."""
    scene = Scene(8).start()
    scene.gpus[0].others = [GpuProcess(pid=Scene.pid(r), memory_used_bytes=700_000_000) for r in range(1, 8)]
    for gpu in scene.gpus:
        gpu.used = 10 * GIB
    found = [f for f in scene.train(60).findings() if f.code == "load-imbalance"]
    assert [(f.target, f.evidence["extra_contexts"]) for f in found] == [("gpu0", 7)]
    assert "set_device" in str(found[0].remedy)


def test_one_process_on_two_gpus_is_dataparallel() -> None:
    """A real YOLOv7 run: one pid on two GPUs, 67 % and 53 % busy, under any line of imbalance."""
    scene = Scene(1, gpus=2).start()
    second = scene.gpus[1]
    second.others = [GpuProcess(pid=Scene.pid(0), memory_used_bytes=11 * GIB)]
    scene.gpus[0].busy, second.busy = 67.0, 53.0
    found = [f for f in scene.train(60).findings() if f.code == "load-imbalance"]
    assert [f.target for f in found] == ["gpu0"]
    assert "DDP" in str(found[0].remedy)
