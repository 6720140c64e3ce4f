"""collective-hang, stall, trainer-ended, trainer-died: nothing goes on any more."""

from __future__ import annotations

import msgspec
import pytest

from tests.diagnosis.scene import GIB, Scene
from yolomon.model import ProcessSample, Telemetry

GONE = ("collective-hang", "stall", "trainer-died")


def hanging(stopped: int, ranks: int = 2, **kwargs: object) -> Scene:
    scene = Scene(ranks, **kwargs).start()  # type: ignore[arg-type]
    scene.batches = 10**6
    scene.train(30)
    for gpu in scene.gpus[:ranks]:
        if gpu.index == stopped:
            gpu.rest()
        else:
            gpu.spin()
    scene.cpu[Scene.pid(stopped)] = 0.0
    return scene.wait(30)


@pytest.mark.parametrize("stopped", [0, 1, 5])
def test_the_rank_that_stopped_is_named_within_20_seconds(stopped: int) -> None:
    scene = hanging(stopped, ranks=8)
    found = [f for f in scene.findings() if f.code in GONE]
    assert [(f.code, f.target, f.severity) for f in found] == [
        ("collective-hang", f"gpu{stopped}", "critical")
    ]
    assert found[0].raised_ts - (scene.now - 30) < 20
    assert found[0].evidence["process_cpu_percent"] == pytest.approx(0.0, abs=5)


def test_the_hang_hides_the_stall_and_the_imbalance() -> None:
    assert {f.code for f in hanging(1).findings() if f.severity != "info"} == {"collective-hang"}


def test_without_processes_the_gpus_tell() -> None:
    found = [f for f in hanging(1, processes=False).findings() if f.code == "collective-hang"]
    assert [f.target for f in found] == ["gpu1"]
    assert found[0].unseen


def test_no_hang_while_rank_0_validates_for_a_minute() -> None:
    scene = Scene(2).start()
    scene.train(25).turn(validate=60)
    assert scene.train(10).said(*GONE) == []


def test_no_hang_when_a_step_is_late_once() -> None:
    scene = Scene(2).start()
    scene.batches = 10**6
    scene.train(30)
    scene.gpus[0].spin()
    scene.gpus[1].rest()
    scene.wait(6)
    for gpu in scene.gpus:
        gpu.work()
    assert scene.train(20).said(*GONE) == []


def test_a_run_with_known_long_gaps_is_given_more_time() -> None:
    """One step took 195 s when label assignment fell back to the CPU (ultralytics#25990)."""
    scene = Scene(1).start()
    scene.batches = 10**6
    scene.train(30)
    scene.gpus[0].rest()
    scene.wait(9)
    scene.gpus[0].work()
    scene.train(20)
    scene.gpus[0].rest()
    scene.wait(20)
    scene.gpus[0].work()
    assert scene.train(10).said(*GONE) == []


def test_a_frozen_loop_is_a_stall() -> None:
    scene = Scene(1).start()
    scene.batches = 10**6
    scene.train(30)
    scene.gpus[0].rest()
    scene.cpu[Scene.pid(0)] = 0.0
    found = [f for f in scene.wait(40).findings() if f.code in GONE]
    assert [(f.code, f.target, f.severity) for f in found] == [("stall", "run", "warning")]
    assert "sleeps" in str(found[0].cause)


@pytest.mark.parametrize("ranks", [1, 2])
def test_a_process_that_somebody_stopped_is_told_as_such(ranks: int) -> None:
    scene = Scene(ranks).start()
    scene.batches = 10**6
    scene.train(30)
    began = len(scene.items)
    for gpu in scene.gpus[1:]:
        gpu.spin()
    scene.gpus[0].rest()
    scene.cpu[Scene.pid(0)] = 0.0
    scene.wait(30)
    for place in range(began, len(scene.items)):
        item = scene.items[place]
        if isinstance(item, Telemetry) and item.processes is not None:
            processes = tuple(
                msgspec.structs.replace(p, status="stopped") if p.pid == Scene.pid(0) else p
                for p in item.processes
            )
            scene.items[place] = msgspec.structs.replace(item, processes=processes)
    found = next(f for f in scene.findings() if f.code in GONE)
    assert f"kill -CONT {Scene.pid(0)}" in str(found.remedy)


def test_a_long_stall_becomes_critical() -> None:
    scene = Scene(1).start()
    scene.batches = 10**6
    scene.train(30)
    scene.gpus[0].rest()
    assert scene.wait(150).said("stall") == [("stall", "run", "critical")]


def test_a_late_log_is_no_stall_while_the_gpu_works() -> None:
    scene = Scene(1).start()
    scene.batches = 10**6
    assert scene.train(30).wait(60).said("stall") == []


def test_caching_images_for_minutes_is_no_stall() -> None:
    """Caching 368k images took 16 min 27 s before the first step (ultralytics#22307)."""
    scene = Scene(1)
    assert scene.start(16 * 60 + 27).train(10).said(*GONE) == []


def test_a_process_that_goes_without_an_end_died() -> None:
    scene = Scene(1).start()
    scene.batches = 10**6
    scene.gpus[0].used = 139 * GIB
    scene.train(30)
    scene.dead.add(Scene.pid(0))
    scene.gpus[0].rest()
    found = [f for f in scene.wait(15).findings() if f.code in GONE]
    assert [(f.code, f.severity) for f in found] == [("trainer-died", "critical")]
    assert found[0].raised_ts - (scene.now - 15) < 8
    assert "GPU memory ran out" in str(found[0].cause)
    assert "batch=16" in str(found[0].remedy)


def test_memory_given_back_tells_where_no_process_is_visible() -> None:
    scene = Scene(1, processes=False).start()
    scene.batches = 10**6
    scene.train(30)
    scene.dead.add(Scene.pid(0))
    scene.gpus[0].rest()
    found = [f for f in scene.wait(25).findings() if f.code == "trainer-died"]
    assert [f.confidence for f in found] == ["medium"]


def test_a_proper_end_is_told_as_such() -> None:
    scene = Scene(1).start()
    scene.train(30).end()
    scene.dead.add(Scene.pid(0))
    scene.gpus[0].rest()
    assert scene.wait(20).said(*GONE, "trainer-ended") == [("trainer-ended", "run", "info")]


def validating(ranks: int) -> Scene:
    """Two epochs with short validations, then in a third one the validation has begun."""
    scene = Scene(ranks).start()
    for _ in range(2):
        scene.train(12).turn(validate=3)
    scene.train(12)
    scene._event("epoch_end")
    scene._event("val_start", ranks=[0])
    for gpu in scene.gpus[1:]:
        gpu.spin()
    scene.gpus[0].rest()
    return scene


@pytest.mark.parametrize(
    ("ranks", "said"),
    [(1, ("stall", "run")), (2, ("collective-hang", "gpu0")), (4, ("collective-hang", "gpu0"))],
)
def test_a_validation_in_which_nothing_works_is_told_within_half_a_minute(
    ranks: int, said: tuple[str, str]
) -> None:
    scene = validating(ranks)
    scene.cpu[Scene.pid(0)] = 0.0
    began = scene.now
    found = [f for f in scene.wait(40).findings() if f.code in GONE]
    assert [(f.code, f.target) for f in found] == [said]
    assert found[0].raised_ts - began < 30


@pytest.mark.parametrize("where", ["cpu", "gpu", "child"])
def test_a_long_validation_works_somewhere(where: str) -> None:
    """On the GPU, in the process itself (suppression, mAP, plots), or in one that it started."""
    scene = validating(2)
    scene.cpu[Scene.pid(0)] = 1.0 if where == "cpu" else 0.0
    if where == "gpu":
        scene.gpus[0].work()
    if where == "child":
        scene.more.append(ProcessSample(pid=55, parent_pid=Scene.pid(0), name="python3"))
        scene.cpu[55] = 0.8
    assert scene.wait(100).said(*GONE) == []


def test_a_validation_longer_than_all_before_is_no_hang_while_its_gpu_works() -> None:
    scene = validating(2)
    scene.gpus[0].work()
    assert scene.wait(400).said("collective-hang") == []


def test_all_ranks_that_spin_in_a_validation_hang() -> None:
    """Collectives that do not match, in the validation path (ultralytics#24536)."""
    scene = validating(2)
    scene.gpus[0].spin()
    assert [code for code, _, _ in scene.wait(40).said(*GONE)] == ["collective-hang"]
