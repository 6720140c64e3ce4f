"""What a reader of the devices sees of a simulated run."""

from __future__ import annotations

import random
from bisect import bisect_right
from collections.abc import Iterator
from math import exp

from tests.synthetic.plan import GIB, Plan
from tests.synthetic.simulate import EPOCH_0, Course, pid_of
from yolomon.model import (
    GpmSample,
    GpuEvent,
    GpuInfo,
    GpuProcess,
    GpuSample,
    GpuSlow,
    Header,
    HostInfo,
    HostSample,
    Item,
    ProcessSample,
    Telemetry,
)

OTHER_PID = 9000
ZOMBIE_PID = 9100


def header(plan: Plan) -> Header:
    """The machine of a plan."""
    gpu = plan.gpu
    return Header(
        ts=EPOCH_0,
        host=HostInfo(
            cores=16,
            memory_total_bytes=plan.host_memory_bytes,
            container="docker" if plan.fault == "small-shm" else None,
        ),
        gpus=tuple(
            GpuInfo(
                index=index, uuid=f"GPU-{index}", name=gpu.name, memory_total_bytes=gpu.memory_bytes,
                power_limit_watts=gpu.power_limit_watts, power_limit_default_watts=gpu.power_limit_watts,
                temperature_slowdown_celsius=90.0, sm_clock_max_mhz=gpu.clock_mhz,
                pcie_generation_max=gpu.pcie_generation, pcie_width_max=16,
            )
            for index in range(plan.ranks + plan.spare_gpus)
        ),
    )  # fmt: skip


def readings(course: Course) -> Iterator[Item]:
    """Header, then readings every `sample_seconds`."""
    yield header(course.plan)
    yield from _Reader(course).all()


class _Reader:
    def __init__(self, course: Course) -> None:
        self.course, self.plan = course, course.plan
        self.rng = random.Random(course.plan.seed + 1)
        self.temperature = [38.0] * (self.plan.ranks + self.plan.spare_gpus)
        self.cpu_seconds: dict[int, float] = {}

    def on(self, fault: str, now: float) -> bool:
        return self.plan.fault == fault and now >= self.plan.onset

    def all(self) -> Iterator[Item]:
        plan = self.plan
        count = int(plan.seconds / plan.sample_seconds)
        next_slow = 0.0
        told_xid = False
        for tick in range(1, count + 1):
            now = tick * plan.sample_seconds
            if plan.gap is not None and plan.gap[0] <= now < plan.gap[1]:
                continue
            slow = now >= next_slow
            if slow:
                next_slow = now + plan.slow_seconds
            if self.on("xid", now) and not told_xid:
                told_xid = True
                yield GpuEvent(ts=EPOCH_0 + now, index=plan.rank, xid=int(plan.amount), text="")
            gpus = tuple(self.gpu(index, now, slow) for index in range(plan.ranks + plan.spare_gpus))
            yield Telemetry(
                ts=EPOCH_0 + now,
                gpus=gpus,
                host=self.host(now) if slow else None,
                processes=self.processes(now) if slow and plan.processes else None,
            )

    def gpu(self, index: int, now: float, slow: bool) -> GpuSample:
        plan, gpu, rng = self.plan, self.plan.gpu, self.rng
        if self.on("gpu-lost", now) and index == plan.rank:
            return GpuSample(
                index=index, state="lost", state_since_ts=EPOCH_0 + plan.onset, error="GPU is lost"
            )
        span = min(plan.sample_seconds, 1.0)
        if index < plan.ranks:
            shares = self.course.timelines[index].shares(now - span, now)
        elif plan.busy_spare:
            shares = {"compute": 0.6 + 0.3 * rng.random()}
        else:
            shares = {}
        compute, spin = shares.get("compute", 0.0), shares.get("spin", 0.0)
        other = self.on("contention", now) and index == plan.rank
        if other:
            compute = min(1.0, compute + 0.9)
        heat = self.on("heat", now) and index == plan.rank
        clock_share = 0.5 if heat else 0.93 - 0.03 * compute * rng.random()
        work = compute * (0.55 if heat else 1.0)
        busy_watts = plan.power_share * gpu.power_limit_watts
        power = gpu.idle_watts + (busy_watts - gpu.idle_watts) * work + 2 * spin + rng.gauss(0, 2)
        reasons = 0 if compute > 0.05 else 1
        if compute > 0.5 and power > 0.7 * gpu.power_limit_watts:
            reasons |= 4
        if heat:
            reasons |= 0x20
        if self.on("brake", now) and index == plan.rank:
            reasons |= 0x80
        target = 92.0 if heat else 38 + 35 * work
        self.temperature[index] += (target - self.temperature[index]) * min(plan.sample_seconds / 20, 1.0)
        buffered = ()
        if plan.buffered and index < plan.ranks:
            line = self.course.timelines[index]
            parts = 5
            buffered = tuple(
                round(100 * min(s.get("compute", 0.0) * 0.97 + s.get("spin", 0.0), 1.0))
                for i in range(parts)
                for s in (line.shares(now - span + i * span / parts, now - span + (i + 1) * span / parts),)
            )
        return GpuSample(
            index=index,
            utilization_percent=round(100 * min(0.97 * compute + spin, 1.0)),
            memory_utilization_percent=round(45 * compute),
            memory_used_bytes=round(self.memory(index, now)),
            temperature_celsius=round(self.temperature[index]),
            power_watts=round(max(power, 5.0), 2),
            sm_clock_mhz=round(gpu.clock_mhz * clock_share),
            clock_event_reasons=reasons,
            utilization_samples_percent=buffered,
            slow=self.slow(index, now, compute, spin) if slow else None,
            gpm=self.gpm(compute, spin) if gpu.gpm else None,
        )

    def gpm(self, compute: float, spin: float) -> GpmSample:
        link = 8000.0 * compute if self.plan.ranks > 1 else 0.0
        return GpmSample(
            graphics_active_percent=100 * min(0.97 * compute + spin, 1.0),
            sm_active_percent=70 * compute + 2 * spin,
            tensor_active_percent=25 * compute,
            dram_active_percent=35 * compute,
            nvlink_tx_mib_per_second=link,
            nvlink_rx_mib_per_second=link,
        )

    def memory(self, index: int, now: float) -> float:
        plan, total = self.plan, float(self.plan.gpu.memory_bytes)
        if index >= plan.ranks:
            return 0.4 * total if plan.busy_spare else 1e6
        zombie = 19 * GIB if plan.fault == "zombie" and index == plan.rank else 0
        other = 5 * GIB if self.on("contention", now) and index == plan.rank else 0
        if now < plan.start_seconds or now >= self.course.ended:
            return zombie + other + 600e6 * (5 < now < plan.start_seconds)
        held = plan.memory_share * total
        if plan.multi_scale:
            steps = bisect_right(self.course.step_ends, now)
            held *= 1 + 0.2 * (1 - exp(-steps / 60))
        if now > self.course.first_validation:
            held *= 1.055
        if plan.fault == "vram-leak":
            before = bisect_right(self.course.step_ends, plan.onset)
            held += max(bisect_right(self.course.step_ends, now) - before, 0) * plan.amount
        if self.plan.fault == "oom" and now > plan.onset - 20:
            held += (total - held) * (now - plan.onset + 20) / 21
        return float(min(held + zombie + other, total))

    def slow(self, index: int, now: float, compute: float, spin: float) -> GpuSlow:
        plan, gpu = self.plan, self.plan.gpu
        used = self.memory(index, now)
        found = []
        if index < plan.ranks and plan.start_seconds <= now < self.course.ended:
            found.append(GpuProcess(pid=pid_of(index), memory_used_bytes=round(max(used - 400e6, 0.0))))
        if index >= plan.ranks and plan.busy_spare:
            found.append(GpuProcess(pid=OTHER_PID, memory_used_bytes=round(used)))
        if self.on("contention", now) and index == plan.rank:
            found.append(GpuProcess(pid=OTHER_PID, memory_used_bytes=5 * GIB))
        if plan.fault == "zombie" and index == plan.rank:
            found.append(GpuProcess(pid=ZOMBIE_PID, memory_used_bytes=19 * GIB))
        awake = compute + spin > 0.05
        narrow = self.on("narrow-link", now) and index == plan.rank
        return GpuSlow(
            processes=tuple(found) if plan.processes else None,
            pcie_generation=1 if narrow or not awake else gpu.pcie_generation,
            pcie_width=1 if narrow else 16,
            pcie_replays=0,
            ecc_uncorrected=1 if self.on("ecc", now) and index == plan.rank else 0,
            ecc_corrected=3,
            power_limit_watts=gpu.power_limit_watts,
            nvlink_tx_kib_per_second=8e6 * compute if plan.ranks > 1 and gpu.gpm else None,
        )

    def host(self, now: float) -> HostSample:
        plan, total = self.plan, self.plan.host_memory_bytes
        running = plan.start_seconds <= now < self.course.ended
        used = 4e9 + (plan.ranks * 3e9 + self.workers_bytes(now) if running else 0.0)
        used += self.rng.gauss(0, 60e6)
        available = max(total - used, 0.0)
        if self.on("low-host-memory", now):
            available = 0.05 * total
        starved = self.on("starve", now)
        cores = [5.0 + 10 * self.rng.random() for _ in range(16)]
        if running:
            cores[0] = 60.0
            if starved:
                cores[1] = 98.0
        small = plan.fault == "small-shm"
        return HostSample(
            cpu_percent=tuple(cores),
            iowait_percent=1.0,
            memory_available_bytes=round(available),
            memory_used_bytes=round(total - available),
            memory_total_bytes=total,
            swap_used_bytes=0,
            shm_used_bytes=round(20e6 + 20e6 * self.rng.random()),
            shm_total_bytes=64 * 2**20 if small else total // 2,
            disk_read_bytes=round(now * 2e6),
            disk_free_bytes=round(400e9 - now * 2e4),
            disk_total_bytes=1_000_000_000_000,
            oom_kills=0,
        )

    def workers_bytes(self, now: float) -> float:
        plan = self.plan
        held = plan.ranks * plan.workers * 0.3e9 * (1.1 if now > self.course.worker_restart else 1.0)
        if self.on("worker-leak", now):
            held += (now - plan.onset) * plan.amount
        return held

    def processes(self, now: float) -> tuple[ProcessSample, ...]:
        plan, out = self.plan, []
        if plan.start_seconds <= now < self.course.ended:
            starved = self.on("starve", now)
            stopped = self.on("freeze", now)
            for rank in range(plan.ranks):
                load = 0.01 if stopped else 1.0 if starved and not plan.workers else 0.7
                out.append(self.process(pid_of(rank), 3000, "python3", 3e9, load, now, rank))
                count = plan.workers
                for worker in range(count):
                    pid = 5000 + 100 * rank + worker + (50 if now > self.course.worker_restart else 0)
                    load = 0.0 if stopped else 1.0 if starved else 0.3
                    share = self.workers_bytes(now) / max(plan.ranks * plan.workers, 1)
                    out.append(self.process(pid, pid_of(rank), "pt_data_worker", share, load, now, None))
        if self.on("contention", now) or plan.busy_spare:
            out.append(self.process(OTHER_PID, 1, "python3", 4e9, 1.0, now, None))
        return tuple(out)

    def process(
        self, pid: int, parent: int, name: str, memory: float, load: float, now: float, rank: int | None
    ) -> ProcessSample:
        plan = self.plan
        self.cpu_seconds[pid] = self.cpu_seconds.get(pid, 0.0) + load * plan.slow_seconds
        several = plan.ranks > 1 and rank is not None
        return ProcessSample(
            pid=pid,
            parent_pid=parent,
            name=name,
            rss_bytes=round(memory + 3e9 if name.startswith("pt_") else memory),
            pss_bytes=round(memory) if plan.pss else None,
            cpu_seconds=round(self.cpu_seconds[pid], 2),
            threads=4,
            status="sleeping",
            user="me" if pid != OTHER_PID else "somebody",
            started_ts=EPOCH_0 + (plan.start_seconds if pid < OTHER_PID else 0.0),
            rank=rank if several else None,
            local_rank=rank if several else None,
            world_size=plan.ranks if several else None,
            master_port="29500" if several else None,
        )
