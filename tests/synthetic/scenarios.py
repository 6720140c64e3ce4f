"""Simulated runs with their truth: each fault in many shapes, and healthy hours with all that fools rules."""

from __future__ import annotations

import random
from collections.abc import Iterator

from tests.synthetic.labelled import Labelled, Truth
from tests.synthetic.plan import A100, GPUS, RTX3090, RTX4090, T4, V100, Fault, Plan
from tests.synthetic.readings import readings
from tests.synthetic.simulate import EPOCH_0, records_in_order, run_course
from yolomon.sources.recording import merge_by_time

# By fault: the code a watcher should say, its target, the deadline, and what else is right.
_EXPECTED: dict[Fault, tuple[str, str, float, tuple[str, ...]]] = {
    "straggler": ("load-imbalance", "gpu", 40.0, ("sync-wait", "slowdown")),
    "hang": ("collective-hang", "gpu", 30.0, ("stall", "load-imbalance")),
    "freeze": ("stall", "run", 60.0, ()),
    "vram-leak": ("vram-growth", "gpu", 60.0, ("oom-risk",)),
    "worker-leak": ("host-memory-growth", "host", 60.0, ("host-memory-low",)),
    "starve": ("data-starvation", "gpu", 40.0, ("gpu-underused", "bursty-load", "slowdown")),
    "nan": ("nan-loss", "run", 5.0, ()),
    "heat": ("thermal-throttle", "gpu", 60.0, ("slowdown", "load-imbalance")),
    "oom": ("trainer-died", "run", 30.0, ("vram-growth", "oom-risk", "stall")),
    "contention": ("gpu-contention", "gpu", 60.0, ("slowdown", "load-imbalance")),
    "zombie": ("orphan-memory", "gpu", 150.0, ()),
    "narrow-link": ("pcie-degraded", "gpu", 90.0, ()),
    "xid": ("xid", "gpu", 5.0, ()),
    "gpu-lost": ("gpu-lost", "gpu", 5.0, ("trainer-died", "stall", "collective-hang")),
    "ecc": ("ecc-error", "gpu", 10.0, ()),
    "slow": ("slowdown", "run", 120.0, ()),
    "diverge": ("loss-divergence", "run", 90.0, ("loss-spike",)),
    "brake": ("power-throttle", "gpu", 20.0, ("slowdown",)),
    "low-host-memory": ("host-memory-low", "host", 20.0, ("host-memory-growth",)),
    "small-shm": ("shm-low", "host", 30.0, ()),
}


def simulate(plan: Plan) -> Labelled:
    """The run of a plan, with its truth."""
    course = run_course(plan)
    end = EPOCH_0 + plan.seconds
    records = [record for record in records_in_order(course) if record.ts <= end]
    items = list(merge_by_time(readings(course), records))
    if not plan.fault or plan.fault not in _EXPECTED:
        return Labelled(plan.name, items)
    code, target, deadline, allowed = _EXPECTED[plan.fault]
    onset = EPOCH_0 + plan.onset
    if plan.fault in ("zombie", "small-shm"):
        onset = EPOCH_0 + plan.start_seconds
    if plan.fault in ("straggler", "hang", "starve") and not plan.data_time:
        deadline *= 1.5
    if plan.fault in ("hang", "freeze", "slow"):
        deadline = max(deadline, 30 * plan.step_seconds)  # a step is waited for before one is missed
    names = [f"gpu{plan.rank}" if target == "gpu" else target]
    truths = [Truth(code, name, onset, deadline) for name in names]
    if plan.fault == "vram-leak" or (plan.fault == "starve" and plan.ranks > 1):
        # Every rank leaks or starves alike: of all its GPUs, or of the run.
        truths = [Truth(code, "run" if code == "data-starvation" else "gpu0", onset, deadline)]
    return Labelled(plan.name, items, truths, frozenset(allowed))


def faulty(*, thorough: bool) -> Iterator[Labelled]:
    """Every fault, on several GPU models, with several numbers of ranks and with signals missing."""
    for plan in faulty_plans(thorough=thorough):
        yield simulate(plan)


def faulty_plans(*, thorough: bool) -> Iterator[Plan]:
    seed = 0

    def plan(fault: Fault, **more: object) -> Plan:
        nonlocal seed
        seed += 1
        words = " ".join(f"{k}={getattr(v, 'name', v)}" for k, v in more.items())
        return Plan(name=f"{fault} {words}", seed=seed, fault=fault, **more)  # type: ignore[arg-type]

    for delay in (0.1, 0.15, 0.35, 1.0):
        yield plan("straggler", ranks=2, rank=1, amount=delay, validation_seconds=0.0)
        yield plan("straggler", ranks=2, rank=0, amount=delay)
    yield plan("straggler", ranks=8, rank=3, amount=0.2)
    yield plan("straggler", ranks=4, rank=0, amount=0.2, gpu=A100)
    yield plan("straggler", ranks=2, rank=1, amount=0.3, gpu=RTX3090, rank_logs=False)
    yield plan("hang", ranks=2, rank=1)
    yield plan("hang", ranks=2, rank=0, gpu=RTX4090)
    yield plan("hang", ranks=8, rank=5, gpu=A100, rank_logs=False)
    yield plan("hang", ranks=4, rank=2, gpu=V100, step_seconds=0.8)
    yield plan("freeze")
    yield plan("freeze", ranks=2, gpu=A100)
    yield plan("freeze", step_seconds=1.2, gpu=T4)
    for leak in (8e6, 32e6, 192e6):
        yield plan("vram-leak", amount=leak, memory_share=0.4, gpu=RTX3090, batches=400)
        yield plan("vram-leak", amount=leak, memory_share=0.3)
    yield plan("vram-leak", amount=64e6, ranks=2, gpu=A100)
    yield plan("worker-leak", amount=100e6)
    yield plan("worker-leak", amount=60e6, host_memory_bytes=64 * 2**30)
    yield plan("worker-leak", amount=200e6, pss=False, ranks=2)
    yield plan("starve", amount=0.3, workers=0)
    yield plan("starve", amount=0.8, gpu=RTX4090, data_time=False)
    yield plan("starve", amount=0.5, ranks=2, gpu=A100)
    yield plan("nan")
    yield plan("nan", ranks=4, gpu=T4)
    yield plan("heat", amount=1.7)
    yield plan("heat", amount=1.7, ranks=4, rank=2, gpu=RTX4090)
    yield plan("oom")
    yield plan("contention", amount=1.8)
    yield plan("contention", amount=1.8, gpu=RTX3090)
    yield plan("zombie", memory_share=0.1)
    yield plan("zombie", memory_share=0.1, gpu=RTX4090)
    yield plan("narrow-link", gpu=RTX3090)
    yield plan("narrow-link", gpu=RTX3090, ranks=4, rank=3)
    yield plan("xid", amount=79)
    yield plan("xid", amount=31)
    yield plan("gpu-lost", ranks=4, rank=2)
    yield plan("ecc", ranks=8, rank=5)
    yield plan("slow", amount=1.3)
    yield plan("slow", amount=1.5, ranks=2)
    yield plan("diverge")
    yield plan("brake", ranks=2, rank=1)
    yield plan("low-host-memory")
    yield plan("small-shm", host_memory_bytes=64 * 2**30)
    if not thorough:
        return
    yield plan("straggler", ranks=16, rank=11, amount=0.2)
    yield plan("hang", ranks=16, rank=9)
    for gpu in GPUS:
        yield plan("hang", ranks=2, rank=1, gpu=gpu, buffered=False)
        yield plan("straggler", ranks=2, rank=0, amount=0.3, gpu=gpu, buffered=False)
        yield plan("freeze", gpu=gpu, sample_seconds=2.0)
        yield plan("vram-leak", amount=64e6, gpu=gpu, sample_seconds=2.0, memory_share=0.2)
        yield plan("starve", amount=0.4, gpu=gpu, data_time=False, buffered=False)
        yield plan("nan", gpu=gpu, sample_seconds=5.0)
        yield plan("heat", amount=1.7, gpu=gpu, sample_seconds=2.0)
    for step in (0.05, 0.5, 2.0):
        yield plan("hang", ranks=2, rank=1, step_seconds=step)
        yield plan("freeze", step_seconds=step)
        yield plan("straggler", ranks=2, rank=1, amount=max(0.1, step), step_seconds=step)
        yield plan("slow", amount=1.4, step_seconds=step, onset=300.0, seconds=600.0)


def healthy(hours: float, seed: int = 1) -> Iterator[Labelled]:
    """Healthy runs of up to an hour each, `hours` together, with all that fools simple rules."""
    rng = random.Random(seed)
    left = hours * 3600
    number = 0
    while left > 60:
        seconds = min(rng.choice((600.0, 1800.0, 3600.0)), left)
        left -= seconds
        number += 1
        gpu = rng.choice(GPUS)
        ranks = rng.choice((1, 1, 1, 2, 2, 4, 8))
        spare = rng.choice((0, 0, 1))
        step = rng.choice((0.05, 0.12, 0.25, 0.5, 1.0, 2.0)) * (2 if ranks >= 4 else 1)
        gap = (seconds * 0.4, seconds * 0.4 + 60.0) if rng.random() < 0.3 else None
        yield simulate(
            Plan(
                name=f"healthy {number}: {ranks} x {gpu.name}, step {step:g} s",
                seed=1000 + seed * 100 + number,
                seconds=seconds,
                gpu=gpu,
                ranks=ranks,
                spare_gpus=spare,
                busy_spare=spare > 0,
                step_seconds=step,
                step_noise=rng.choice((0.01, 0.03, 0.08)),
                data_seconds=rng.choice((0.001, 0.005, 0.02)) * min(1.0, step * 4),
                batches=rng.choice((24, 100, 400)),
                epochs=rng.choice((20, 100, 300)),
                validation_seconds=rng.choice((0.0, 3.0, 10.0, 30.0)),
                checkpoint_seconds=rng.choice((0.5, 2.0, 20.0)),
                close_mosaic=10,
                multi_scale=rng.random() < 0.25,
                workers=rng.choice((2, 8, 12)),
                power_share=rng.choice((0.5, 0.75, 0.95)),
                memory_share=rng.choice((0.15, 0.5, 0.9)),
                host_memory_bytes=rng.choice((64, 256)) * 2**30,
                sample_seconds=rng.choice((1.0, 1.0, 2.0)),
                slow_seconds=rng.choice((2.0, 5.0)),
                buffered=rng.random() < 0.7,
                data_time=rng.random() < 0.8,
                rank_logs=rng.random() < 0.7,
                processes=rng.random() < 0.8,
                pss=rng.random() < 0.5,
                gap=gap,
            )
        )
