"""gpu-idle, gpu-contention, orphan-memory: who is on the GPUs besides the job, and who is not."""

from __future__ import annotations

import msgspec
import pytest

from tests.diagnosis.scene import GIB, Scene
from yolomon.diagnosis.run_recording import diagnose
from yolomon.model import GpuProcess, ProcessSample, RunInfo, Telemetry

OTHERS = ("gpu-idle", "gpu-contention", "orphan-memory")


def joined(gpu: int = 0, cores: float | None = None, gpus: int = 1) -> Scene:
    """A job on GPU 0, and pid 77 with 19 GiB on a GPU; `cores` None: not in the process table."""
    scene = Scene(1, gpus=gpus).start()
    scene.batches = 10**6
    scene.gpus[gpu].others = [GpuProcess(pid=77, memory_used_bytes=19 * GIB)]
    if cores is not None:
        scene.more.append(ProcessSample(pid=77, parent_pid=1, name="python3"))
        scene.cpu[77] = cores
    return scene


def test_a_free_gpu_is_worth_a_line() -> None:
    assert Scene(1, gpus=2).start().train(40).said(*OTHERS) == [("gpu-idle", "gpu1", "info")]


def test_a_gpu_that_was_asked_for_and_is_idle_is_a_warning() -> None:
    """2x T4: 95 % and 0 % although device=0,1 (ultralytics#20500)."""
    run = RunInfo(epochs=100, batch_size=32, workers=8, device="0,1")
    assert Scene(1, gpus=2, run=run).start().train(40).said(*OTHERS) == [("gpu-idle", "gpu1", "warning")]


def test_no_line_about_a_gpu_that_the_trainer_could_not_see() -> None:
    scene = Scene(1, gpus=2).start().train(40)

    items = [
        msgspec.structs.replace(
            i,
            processes=tuple(
                msgspec.structs.replace(p, cuda_visible_devices="0") if p.pid == 1000 else p
                for p in i.processes or ()
            ),
        )
        if isinstance(i, Telemetry) else i
        for i in scene.items
    ]  # fmt: skip
    assert [f.code for f in diagnose(items) if f.code in OTHERS] == []


def test_a_second_job_on_the_gpu() -> None:
    found = [f for f in joined(cores=1.0).train(40).findings() if f.code in OTHERS]
    assert [(f.code, f.target, f.severity) for f in found] == [("gpu-contention", "gpu0", "warning")]
    assert found[0].evidence["pid"] == 77


def test_a_process_that_is_gone_but_keeps_19_gib() -> None:
    scene = joined()
    found = [f for f in scene.train(40).findings() if f.code in OTHERS]
    assert [(f.code, f.target) for f in found] == [("orphan-memory", "gpu0")]
    assert found[0].evidence["memory_used_bytes"] == 19 * GIB
    assert "kill 77" in str(found[0].remedy)


def test_a_process_that_sleeps_on_the_jobs_gpu() -> None:
    assert joined(cores=0.0).train(60).said(*OTHERS) == [("orphan-memory", "gpu0", "warning")]


def test_a_sleeping_process_elsewhere_is_only_told() -> None:
    """It may be somebody's notebook."""
    assert joined(gpu=1, cores=0.0, gpus=2).train(60).said(*OTHERS) == [("orphan-memory", "gpu1", "info")]


def test_memory_of_no_process_at_all() -> None:
    scene = Scene(1).start()
    scene.batches = 10**6
    scene.gpus[0].unowned = 19 * GIB
    found = [f for f in scene.train(40).findings() if f.code in OTHERS]
    assert [(f.code, f.target) for f in found] == [("orphan-memory", "gpu0")]
    assert "fuser" in str(found[0].remedy)


def test_a_previous_process_that_still_frees_its_memory() -> None:
    scene = joined()
    scene.train(6)
    scene.gpus[0].others = []
    assert scene.train(40).said(*OTHERS) == []


def test_nothing_is_said_where_no_process_is_visible() -> None:
    assert Scene(1, gpus=1, processes=False).start().train(60).said(*OTHERS) == []


@pytest.mark.parametrize("used", [100, 400])
def test_small_graphics_contexts_are_nobodys_business(used: int) -> None:
    scene = Scene(1).start()
    scene.gpus[0].others = [GpuProcess(pid=5, memory_used_bytes=used * 2**20, kind="graphics")]
    assert scene.train(60).said(*OTHERS) == []


def child(cores: float) -> Scene:
    """A job that trains for half a minute, then a child of its own holds 4 GiB on its GPU."""
    scene = Scene(1).start()
    scene.batches = 10**6
    scene.train(30)
    scene.gpus[0].others = [GpuProcess(pid=78, memory_used_bytes=4 * GIB)]
    scene.more.append(ProcessSample(pid=78, parent_pid=1000, name="python3"))
    scene.cpu[78] = cores
    return scene


@pytest.mark.parametrize("cores", [0.02, 1.0])
def test_a_child_of_the_trainer_that_costs_it_time(cores: float) -> None:
    scene = child(cores)
    scene.step_seconds *= 1.7
    found = [f for f in scene.train(60).findings() if f.code in OTHERS]
    assert [(f.code, f.target) for f in found] == [("gpu-contention", "gpu0")]
    assert "child of the trainer" in str(found[0].summary)


def test_a_child_of_the_trainer_that_costs_nothing() -> None:
    """It is there by intent: loading on the GPU, a server of features."""
    assert child(1.0).train(60).said(*OTHERS) == []


def test_a_loaders_worker_on_the_gpu_is_the_jobs_own_work() -> None:
    scene = child(1.0)
    scene.more = [ProcessSample(pid=78, parent_pid=1000, name="pt_data_worker")]
    scene.step_seconds *= 1.7
    assert scene.train(60).said(*OTHERS) == []


def test_another_job_with_little_cpu_that_costs_time() -> None:
    """A captured graph needs hardly any CPU."""
    scene = Scene(1).start()
    scene.batches = 10**6
    scene.train(30)
    scene.gpus[0].others = [GpuProcess(pid=77, memory_used_bytes=19 * GIB)]
    scene.more.append(ProcessSample(pid=77, parent_pid=1, name="python3"))
    scene.cpu[77] = 0.06
    scene.step_seconds *= 1.7
    assert scene.train(60).said(*OTHERS) == [("gpu-contention", "gpu0", "warning")]


@pytest.mark.parametrize(
    ("at_rest", "cores", "said"),
    [
        (95.0, 0.06, [("gpu-contention", "gpu0", "warning")]),
        (0.0, 0.06, []),
        (95.0, 0.0, [("orphan-memory", "gpu0", "warning")]),  # asleep: a validation that the log leaves out
    ],
)
def test_the_gpu_computes_while_the_job_saves(
    at_rest: float, cores: float, said: list[tuple[str, str, str]]
) -> None:
    """Another job that was there from the start: no step was ever shorter."""
    scene = Scene(1)
    scene.gpus[0].others = [GpuProcess(pid=77, memory_used_bytes=19 * GIB)]
    scene.more.append(ProcessSample(pid=77, parent_pid=1, name="python3"))
    scene.cpu[77] = cores
    scene.start()
    for _ in range(4):
        scene.train(15)
        scene._event("epoch_end")
        scene._event("val_start")
        scene._event("val_end")
        scene.gpus[0].rest()
        scene.gpus[0].busy = at_rest
        scene.wait(3)
        scene._event("checkpoint")
        scene._event("epoch")
        scene.epoch, scene.batch = scene.epoch + 1, 0
        scene._event("epoch_start")
        scene.gpus[0].work()
    assert scene.train(5).said(*OTHERS) == said


@pytest.mark.parametrize("late", [4.0, 14.0])
def test_a_list_of_processes_that_comes_late_leaves_no_memory_without_owner(late: float) -> None:
    scene = Scene(1).start()
    scene.batches = 10**6
    scene.leak_per_step = [0.3 * GIB]
    scene.train(60)
    told: list[tuple[float, tuple[GpuProcess, ...]]] = []
    items = []
    for item in scene.items:
        if isinstance(item, Telemetry):
            slow = item.gpus[0].slow
            assert slow is not None
            told.append((item.ts, slow.processes or ()))
            old = next((p for ts, p in reversed(told) if ts <= item.ts - late), ())
            gpu = msgspec.structs.replace(item.gpus[0], slow=msgspec.structs.replace(slow, processes=old))
            item = msgspec.structs.replace(item, gpus=(gpu,))
        items.append(item)
    assert [f.code for f in diagnose(items) if f.code in OTHERS] == []


def test_the_ranks_of_one_job_are_no_contention() -> None:
    assert Scene(4, logging_ranks=[0]).start().train(60).said(*OTHERS) == []


def test_a_process_that_cannot_be_seen_but_slows_the_steps_works() -> None:
    """One that ended and keeps its memory costs no time: a job of another container does."""
    scene = Scene(1).start()
    scene.batches = 10**6
    scene.train(30)
    scene.gpus[0].others = [GpuProcess(pid=77, memory_used_bytes=19 * GIB)]
    scene.step_seconds *= 1.7
    assert scene.train(60).said(*OTHERS) == [("gpu-contention", "gpu0", "warning")]


def test_a_process_that_dies_while_the_steps_stay_as_they_were_does_no_work() -> None:
    scene = Scene(1).start()
    scene.batches = 10**6
    scene.train(30)
    scene.gpus[0].others = [GpuProcess(pid=77, memory_used_bytes=19 * GIB)]
    assert scene.train(60).said(*OTHERS) == [("orphan-memory", "gpu0", "warning")]


def test_a_rank_that_stays_on_its_gpu_long_after_the_end() -> None:
    """After the end 29347 MiB stayed on a GPU (YOLOX#958)."""
    scene = Scene(1).start().train(30).end()
    scene.gpus[0].rest()
    scene.cpu[1000] = 0.0
    assert Scene(1).start().train(30).end().wait(60).said(*OTHERS) == []
    assert scene.wait(200).said(*OTHERS) == [("orphan-memory", "gpu0", "warning")]
