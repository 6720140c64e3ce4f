"""data-starvation, bursty-load, gpu-underused: little work, and why."""

from __future__ import annotations

import msgspec
import pytest

from tests.diagnosis.scene import GIB, Scene
from yolomon.diagnosis.run_recording import diagnose
from yolomon.model import ProcessSample, RunInfo, TrainRecord

LITTLE = ("data-starvation", "bursty-load", "gpu-underused")


def starving(share: float, workers: int = 8, **kwargs: object) -> Scene:
    scene = Scene(1, run=RunInfo(epochs=100, batch_size=32, workers=workers, world_size=1), **kwargs)  # type: ignore[arg-type]
    scene.start()
    scene.data_share = [share]
    scene.gpus[0].busy = 100 * (1 - share)
    return scene


def test_workers_0_is_said_with_what_to_set() -> None:
    scene = starving(0.88, workers=0, cores=16)
    found = next(f for f in scene.train(40).findings() if f.code == "data-starvation")
    assert (found.target, found.severity) == ("gpu0", "warning")
    assert found.evidence["data_share_percent"] == pytest.approx(88, abs=1)
    assert str(found.remedy) == "set workers=8 (16 cores, 1 GPU)"
    assert found.raised_ts - scene.items[0].ts < 25


def test_workers_at_their_limit_are_told_from_other_causes() -> None:
    scene = starving(0.6)
    for pid in range(2000, 2008):
        scene.more.append(ProcessSample(pid=pid, parent_pid=Scene.pid(0), name="pt_data_worker"))
        scene.cpu[pid] = 0.98
    found = next(f for f in scene.train(40).findings() if f.code == "data-starvation")
    assert found.evidence["bottleneck"] == "workers"
    assert str(found.remedy) == "set workers=16 (32 cores)"


def test_all_cores_busy() -> None:
    scene = starving(0.6)
    scene.host_cpu = 97.0
    found = next(f for f in scene.train(40).findings() if f.code == "data-starvation")
    assert found.evidence["bottleneck"] == "cores"
    assert "workers=" not in str(found.remedy)


def test_yolox_114_data_time_of_0_493_in_0_679() -> None:
    scene = starving(0.493 / 0.679, step_seconds=0.679)
    assert scene.train(60).said("data-starvation") == [("data-starvation", "gpu0", "warning")]


def test_all_ranks_starving_is_one_finding_on_the_run() -> None:
    scene = Scene(2).start()
    scene.data_share = [0.7, 0.75]
    for gpu in scene.gpus:
        gpu.busy = 30.0
    assert scene.train(40).said("data-starvation", "load-imbalance") == [
        ("data-starvation", "run", "warning")
    ]


def test_one_rank_starving_is_that_gpu_and_explains_the_imbalance() -> None:
    scene = Scene(2).start()
    scene.data_share = [0.0, 0.7]
    scene.gpus[1].busy, scene.gpus[0].busy = 30.0, 97.0
    findings = scene.train(60).engine().findings()
    assert [(f.code, f.target) for f in findings] == [("data-starvation", "gpu1")]
    assert "load-imbalance" in findings[0].related


def test_a_fifth_of_the_step_is_not_enough() -> None:
    assert starving(0.2).train(60).said("data-starvation") == []


def test_one_batch_that_comes_late_is_no_starvation() -> None:
    scene = starving(0.01)
    scene.batches = 10**6
    scene.train(30)
    step, scene.step_seconds, scene.data_share = scene.step_seconds, 14.0, [0.98]
    scene.gpus[0].busy = 1.0
    scene.wait(14)
    scene._batch(scene.now)
    scene.step_seconds, scene.data_share, scene.gpus[0].busy = step, [0.01], 90.0
    assert scene.train(40).said("data-starvation") == []


def test_the_first_batch_of_an_epoch_is_the_loaders_start() -> None:
    scene = Scene(1).start()
    scene.batches = 25  # 5 s
    for _ in range(8):
        scene.data_share = [0.9]
        scene._batch(scene.now + 0.1)  # the first batch waits for the workers
        scene.data_share = [0.01]
        scene.train(5)
    assert scene.said("data-starvation") == []


def test_a_small_model_at_full_speed_is_underused_not_starving() -> None:
    """RTX A4000 with v8n: 8 to 9 % busy at full speed (ultralytics#7272)."""
    scene = starving(0.02)
    scene.gpus[0].busy = 9.0
    scene.batches = 10**6
    found = [f for f in scene.train(150).findings() if f.code in LITTLE]
    assert [(f.code, f.severity) for f in found] == [("gpu-underused", "info")]
    assert "batch=-1" in str(found[0].remedy)


def test_without_data_time_the_gpu_and_the_trainers_core_tell() -> None:
    scene = starving(0.0, workers=0)
    scene.gpus[0].busy = 7.0
    scene.train(60)

    bare = [
        msgspec.structs.replace(i, roles=msgspec.structs.replace(i.roles, data_seconds=None))
        if isinstance(i, TrainRecord) else i
        for i in scene.items
    ]  # fmt: skip
    found = [f for f in diagnose(bare) if f.code == "data-starvation"]
    assert [(f.target, f.confidence) for f in found] == [("gpu0", "medium")]
    assert "no data time" in str(found[0].unseen[0])


def test_without_data_time_all_gpus_starving_is_one_finding_on_the_run() -> None:
    scene = Scene(2, cores=32).start()
    for rank, gpu in enumerate(scene.gpus):
        gpu.busy, gpu.power = 10.0, 150.0
        for worker in range(2):
            pid = 5000 + 10 * rank + worker
            scene.more.append(ProcessSample(pid=pid, parent_pid=Scene.pid(rank), name="pt_data_worker"))
            scene.cpu[pid] = 1.0
    items = [
        msgspec.structs.replace(item, roles=msgspec.structs.replace(item.roles, data_seconds=None))
        if isinstance(item, TrainRecord)
        else item
        for item in scene.train(60).items
    ]
    found = [f for f in diagnose(items) if f.code == "data-starvation"]
    assert [f.target for f in found] == ["run"]
    assert str(found[0].summary).startswith("all 2 GPUs")


def test_idle_gaps_within_epochs_are_bursts() -> None:
    scene = Scene(1).start()
    scene.batches = 10**6

    def gaps(s: Scene) -> None:
        if int(s.now) % 5 == 0:
            s.gpus[0].rest()
        else:
            s.gpus[0].work()

    assert scene.train(240, gaps).said("bursty-load") == [("bursty-load", "gpu0", "warning")]


def test_epoch_turns_are_no_bursts() -> None:
    scene = Scene(1).start()
    scene.batches = 25
    for _ in range(40):
        scene.train(5)
    assert scene.said(*LITTLE) == []


def test_a_batch_that_fills_the_gpu_gets_no_advice_to_raise_it() -> None:
    scene = starving(0.02)
    scene.gpus[0].busy, scene.gpus[0].used = 40.0, 130 * GIB
    scene.batches = 10**6
    found = next(f for f in scene.train(150).findings() if f.code == "gpu-underused")
    assert "batch=-1" not in str(found.remedy)


def test_one_rank_without_a_gpu_in_sight_is_called_training() -> None:
    """A log alone: which GPU it was is not known, and there are no ranks to speak of."""
    scene = starving(0.5).train(40)
    log = [item for item in scene.items if isinstance(item, TrainRecord)]
    found = [f for f in diagnose(log) if f.code == "data-starvation"]
    assert [f.target for f in found] == ["run"]
    assert str(found[0].summary).startswith("training waits for input 50 % of each step")
