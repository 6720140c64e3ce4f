"""Which processes and GPUs are one job."""

from __future__ import annotations

from yolomon.diagnosis.job import cuda_to_nvml, find_job
from yolomon.history import History
from yolomon.model import (
    GpuInfo,
    GpuProcess,
    GpuSample,
    GpuSlow,
    Header,
    ProcessSample,
    RunInfo,
    Telemetry,
    TrainRecord,
)

GIB = 2**30


def machine(
    on_gpus: dict[int, list[int]],
    table: list[ProcessSample] | None,
    *,
    logged: dict[int, int | None] | None = None,
    world_size: int | None = None,
    used: dict[int, int] | None = None,
    names: list[str] | None = None,
) -> History:
    history = History()
    infos = tuple(
        GpuInfo(index=i, uuid=f"GPU-{i}abc", name=(names or ["H200"] * 8)[i], memory_total_bytes=140 * GIB)
        for i in on_gpus
    )
    history.add(Header(ts=1.0, gpus=infos))
    gpus = tuple(
        GpuSample(
            index=i,
            memory_used_bytes=(used or {}).get(i, 20 * GIB if pids else 4 * 2**20),
            slow=GpuSlow(processes=tuple(GpuProcess(pid=p, memory_used_bytes=20 * GIB) for p in pids)),
        )
        for i, pids in on_gpus.items()
    )
    history.add(Telemetry(ts=2.0, gpus=gpus, processes=None if table is None else tuple(table)))
    for rank, pid in (logged or {}).items():
        run = RunInfo(world_size=world_size)
        history.add(TrainRecord(ts=2.5, kind="start", rank=rank, pid=pid, run=run))
    return history


def process(pid: int, parent: int = 1, name: str = "python3", **more: object) -> ProcessSample:
    return ProcessSample(pid=pid, parent_pid=parent, name=name, **more)  # type: ignore[arg-type]


def test_pids_of_the_log_are_found_on_the_gpus() -> None:
    job = find_job(machine({0: [11], 1: [10]}, [process(10, 5), process(11, 5)], logged={0: 10, 1: 11}))
    assert {m.rank: m.gpu_index for m in job.members} == {0: 1, 1: 0}
    assert job.certain and not job.unseen


def test_a_job_on_one_gpu_of_two() -> None:
    job = find_job(machine({0: [], 1: [10]}, [process(10)], logged={0: 10}, world_size=1))
    assert job.gpu_indices == (1,)


def test_ranks_that_write_no_log_are_siblings_under_the_launcher() -> None:
    table = [process(5, 1, "torchrun"), *(process(10 + i, 5) for i in range(4)), process(99, 1)]
    on = {0: [10], 1: [11], 2: [12], 3: [13], 4: [99]}
    job = find_job(machine(on, table, logged={0: 10}, world_size=4))
    assert job.gpu_indices == (0, 1, 2, 3)
    assert [f.pid for f in job.foreign] == [99]


def test_loader_workers_and_launchers_belong_to_it() -> None:
    table = [process(5, 1, "pt_elastic"), process(10, 5), process(20, 10, "pt_data_worker"), process(30, 1)]
    job = find_job(machine({0: [10]}, table, logged={0: 10}))
    assert job.pids == {5, 10, 20}


def test_two_jobs_under_one_shell_are_two_jobs() -> None:
    table = [process(5, 1, "bash"), process(10, 5), process(11, 5)]
    job = find_job(machine({0: [10, 11]}, table, logged={0: 10}, world_size=1))
    assert [f.pid for f in job.foreign] == [11]


def test_two_torchrun_jobs_are_told_apart_by_their_port() -> None:
    table = [
        process(10, 5, rank=0, master_port="29500"), process(11, 6, rank=1, master_port="29500"),
        process(20, 7, rank=0, master_port="29600"), process(21, 8, rank=1, master_port="29600"),
    ]  # fmt: skip
    job = find_job(machine({0: [10], 1: [11], 2: [20], 3: [21]}, table, logged={0: 10}, world_size=2))
    assert job.gpu_indices == (0, 1)


def test_a_container_without_visible_processes_falls_back_on_memory_and_says_so() -> None:
    history = machine(
        {0: [], 1: [], 2: []}, None, logged={0: 7, 1: 8}, world_size=2, used={0: 30 * GIB, 1: 30 * GIB, 2: 1}
    )
    job = find_job(history)
    assert job.gpu_indices == (0, 1) and not job.certain
    assert "matched with GPUs by memory" in str(job.unseen[0])


def test_it_never_guesses_which_of_several_gpus_a_lone_rank_uses() -> None:
    history = machine({0: [], 1: []}, None, logged={0: 7}, world_size=1, used={0: 30 * GIB, 1: 30 * GIB})
    job = find_job(history)
    assert job.gpu_indices == ()


def test_one_process_on_two_gpus_is_one_rank() -> None:
    job = find_job(machine({0: [10], 1: [10]}, [process(10)], logged={0: 10}))
    assert [(m.rank, m.gpu_index) for m in job.members] == [(0, 0)]
    assert job.gpu_pids == {0: (10,), 1: (10,)}


def test_cuda_index_and_nvml_index_are_two_numbers() -> None:
    """CUDA_VISIBLE_DEVICES=3,1: the trainer's cuda:0 is NVML's GPU 3 (tensorflow#32881)."""
    history = machine({0: [], 1: [], 2: [], 3: []}, None)
    assert cuda_to_nvml(process(1, cuda_visible_devices="3,1"), 0, history) == 3
    assert cuda_to_nvml(process(1, cuda_visible_devices="3,1"), 1, history) == 1
    assert cuda_to_nvml(process(1, cuda_visible_devices="GPU-2abc"), 0, history) == 2
    assert cuda_to_nvml(process(1, cuda_visible_devices="0"), 1, history) is None


def test_with_mixed_models_the_order_must_be_known() -> None:
    """CUDA puts the fastest first unless CUDA_DEVICE_ORDER says otherwise."""
    history = machine({0: [], 1: []}, None, names=["GT 1030", "RTX 4090"])
    assert cuda_to_nvml(process(1, cuda_visible_devices="0"), 0, history) is None
    ordered = process(1, cuda_visible_devices="0", cuda_device_order="PCI_BUS_ID")
    assert cuda_to_nvml(ordered, 0, history) == 0


def test_nothing_at_all() -> None:
    assert find_job(History()).members == ()


def test_without_a_process_table_as_many_processes_as_ranks_are_missing_are_the_ranks() -> None:
    job = find_job(machine({0: [10], 1: [11], 2: [12]}, None, logged={0: 10}, world_size=3))
    assert {m.rank: (m.gpu_index, m.pid) for m in job.members} == {0: (0, 10), 1: (1, 11), 2: (2, 12)}


def test_one_process_too_many_may_be_somebody_elses() -> None:
    job = find_job(machine({0: [10], 1: [11], 2: [12], 3: [13]}, None, logged={0: 10}, world_size=3))
    assert [m.pid for m in job.members] == [10]


def test_a_child_of_a_rank_with_a_context_of_its_own() -> None:
    table = [process(10), process(20, 10), process(30, 20), process(40)]
    job = find_job(machine({0: [10, 30, 40]}, table, logged={0: 10}))
    assert [other.pid for other in job.children] == [30]
    assert [other.pid for other in job.foreign] == [40]
