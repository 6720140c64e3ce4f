"""Host memory, /dev/shm and disk: what grows, what only seems to, and what runs out."""

from __future__ import annotations

from typing import Any

from tests.synthetic.labelled import Labelled
from tests.synthetic.plan import GIB, Plan
from tests.synthetic.recorded import changed, replaced
from tests.synthetic.scenarios import simulate
from yolomon.diagnosis.run_recording import diagnose
from yolomon.model import Finding, Header, HostSample, Item, Telemetry, TrainRecord


def findings(run: Labelled, *codes: str) -> list[Finding]:
    return [f for f in diagnose(run.items) if f.code in codes]


def with_host(run: Labelled, **fields: Any) -> Labelled:
    """The run on a host that shows these values (functions get the time since the start)."""
    start = run.items[0].ts

    def change(item: Item) -> Item:
        if isinstance(item, Telemetry) and item.host is not None:
            told = {k: v(item.ts - start) if callable(v) else v for k, v in fields.items()}
            return replaced(item, host=replaced(item.host, **told))
        return item

    return changed(run, "host", change)


def test_copy_on_write_in_workers_is_named_with_forecast_and_remedy() -> None:
    """MultimediaTechLab/YOLO#59, pytorch#13246: memory grows in the loader's workers."""
    run = simulate(Plan(name="cow", seed=1, fault="worker-leak", amount=100e6, workers=8, seconds=200.0))
    (finding,) = findings(run, "host-memory-growth")
    assert finding.evidence["where"] == "workers"
    assert finding.target == "host"
    assert "8 loader workers" in str(finding.summary)
    assert "workers=4" in str(finding.remedy)
    rate = finding.evidence["bytes_per_minute"]
    assert isinstance(rate, float | int) and abs(rate - 6e9) < 1.5e9
    low, middle, high = (finding.evidence[f"seconds_to_limit{x}"] for x in ("_low", "", "_high"))
    assert isinstance(low, int) and isinstance(middle, int) and isinstance(high, int)
    assert low <= middle <= high
    assert abs(finding.onset_ts - run.truths[0].onset_ts) < 15


def without_pss_of_half(run: Labelled) -> Labelled:
    """The run as it is seen while the walk over the processes' pages has reached every other one only."""

    def change(item: Item) -> Item:
        if isinstance(item, Telemetry) and item.processes is not None:
            processes = tuple(
                replaced(p, pss_bytes=None) if p.name == "pt_data_worker" and p.pid % 2 else p
                for p in item.processes
            )
            return replaced(item, processes=processes)
        return item

    return changed(run, "half-pss", change)


def test_workers_are_named_before_the_pss_of_each_is_read() -> None:
    """An H200 machine filled at 0.6 GiB a second while PSS was known for 4 of 8 workers."""
    run = simulate(Plan(name="fast", seed=7, fault="worker-leak", amount=600e6, workers=8, seconds=130.0))
    (finding,) = findings(without_pss_of_half(run), "host-memory-growth")
    assert finding.evidence["where"] == "workers"
    assert finding.raised_ts - run.truths[0].onset_ts < 30
    assert finding.confidence == "medium"
    assert "only resident memory" in str(finding.unseen[0])


def test_a_healthy_run_whose_pss_is_read_for_some_workers_is_quiet() -> None:
    run = simulate(Plan(name="calm", seed=8, seconds=300.0))
    assert not findings(without_pss_of_half(run), "host-memory-growth")


def test_halving_the_workers_halves_the_growth() -> None:
    """THU-MIG/yoloe#24: 8 workers grew from 150 to 500 GB, 4 were fine; the slope scales with the workers."""
    rates = []
    for workers, amount in ((8, 160e6), (4, 80e6)):
        run = simulate(
            Plan(name="w", seed=3, fault="worker-leak", amount=amount, workers=workers, seconds=160.0)
        )
        (finding,) = findings(run, "host-memory-growth")
        rates.append(float(finding.evidence["bytes_per_minute"] or 0))
    assert 1.6 < rates[0] / rates[1] < 2.4


def test_page_cache_is_no_growth() -> None:
    """mmdet#6931: buff/cache grows, available memory stays."""
    run = simulate(Plan(name="cache", seed=2, seconds=300.0))
    run = with_host(run, memory_used_bytes=lambda t: int(10e9 + t * 200e6))
    assert not findings(run, "host-memory-growth", "host-memory-low")


def test_resident_memory_that_counts_shared_pages_is_no_growth_when_the_host_stays() -> None:
    """Sums of RSS count a shared page once for each worker; the host's available memory does not move."""
    run = simulate(Plan(name="shared", seed=4, seconds=300.0, pss=False))
    start = run.items[0].ts

    def change(item: Item) -> Item:
        if isinstance(item, Telemetry) and item.processes is not None:
            more = int(max(item.ts - start - 60, 0) * 20e6)
            processes = tuple(
                replaced(p, rss_bytes=p.rss_bytes + more) if p.name == "pt_data_worker" else p
                for p in item.processes
            )
            return replaced(item, processes=processes)
        return item

    assert not findings(changed(run, "rss", change), "host-memory-growth")


def test_a_cgroup_limit_counts_although_the_host_has_plenty() -> None:
    """pytorch#8976: killed at 10 % of the host's memory, since Slurm allowed 8 GB."""
    run = simulate(Plan(name="cgroup", seed=5, host_memory_bytes=256 * GIB))

    def change(item: Item) -> Item:
        if isinstance(item, Header) and item.host is not None:
            return replaced(item, host=replaced(item.host, memory_limit_bytes=8 * 10**9))
        return item

    run = with_host(
        changed(run, "limit", change), memory_available_bytes=int(0.25e9), memory_total_bytes=8 * 10**9
    )
    finding = findings(run, "host-memory-low")[0]
    assert finding.evidence["limit_of"] == "container"
    assert finding.severity == "critical"
    assert "container" in str(finding.cause)


def test_an_image_cache_that_will_not_fit_is_told_before_it_happens() -> None:
    """ultralytics#22307: 8 ranks with 205.4 GB of images each, 1.4 TB left."""
    run = simulate(
        Plan(name="cache=ram", seed=6, ranks=8, start_seconds=60.0, host_memory_bytes=1400 * 10**9)
    )
    start = run.items[0].ts
    words = [
        TrainRecord(ts=start + 5 + i, kind="message", rank=0, source="console",
                    text=f"train: Caching images ({205.4 * share / 100:.1f}GB RAM): {share}%|#   | "
                    f"36.8k/368k")
        for i, share in enumerate((5, 8, 10))
    ]  # fmt: skip
    world = TrainRecord(
        ts=start + 1, kind="message", rank=0, run=replaced(_run(run), world_size=8), text="start"
    )
    run.items = sorted([*run.items, world, *words], key=lambda item: item.ts)
    finding = findings(run, "host-memory-low")[0]
    assert finding.severity == "critical"
    assert finding.raised_ts < start + 20
    assert "cache=disk" in str(finding.remedy)


def _run(run: Labelled) -> Any:
    return next(item.run for item in run.items if isinstance(item, TrainRecord) and item.run is not None)


def test_a_container_with_64_mb_of_shared_memory_and_workers() -> None:
    """pytorch#5040, yolov3#1151, mmdetection#1997: bus error in docker."""
    run = simulate(Plan(name="shm", seed=7, fault="small-shm", workers=8))
    (finding,) = findings(run, "shm-low")
    assert "--ipc=host" in str(finding.remedy)
    alone = simulate(Plan(name="shm", seed=7, fault="small-shm", workers=0))
    assert not findings(alone, "shm-low")


def test_a_disk_that_fills_is_told_with_a_forecast() -> None:
    run = simulate(Plan(name="disk", seed=8, seconds=420.0, epochs=1000))
    run = with_host(run, disk_free_bytes=lambda t: int(60e9 - t * 40e6), disk_total_bytes=10**12)
    finding = findings(run, "disk-low")[0]
    seconds = finding.evidence["seconds_to_full"]
    assert isinstance(seconds, int) and 1000 < seconds < 1700


def test_swapping_with_little_memory_is_critical() -> None:
    """YOLOX#114 in its last stage: memory is full and the machine swaps."""
    run = simulate(Plan(name="swap", seed=9, host_memory_bytes=64 * GIB))
    run = with_host(run, memory_available_bytes=5 * GIB, swap_used_bytes=lambda t: int(t * 50e6))
    assert findings(run, "host-memory-low")[0].severity == "critical"


def test_available_memory_unknown_says_nothing() -> None:
    run = simulate(Plan(name="blind", seed=10))
    run = changed(
        run, "blind", lambda i: replaced(i, host=HostSample()) if isinstance(i, Telemetry) and i.host else i
    )
    assert not findings(run, "host-memory-low", "shm-low", "disk-low")
