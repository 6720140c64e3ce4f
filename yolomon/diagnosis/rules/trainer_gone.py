"""trainer-ended, trainer-died: the trainer's process is gone."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

from yolomon.diagnosis.forecast import is_complete
from yolomon.diagnosis.log_clock import LARGEST_SHIFT_SECONDS
from yolomon.diagnosis.phases import TRAINING
from yolomon.diagnosis.rules.base import Claim, View
from yolomon.diagnosis.rules.progress import EFFECTS
from yolomon.diagnosis.thresholds import declare
from yolomon.messages import Message, msg
from yolomon.model import Item, TrainRecord
from yolomon.units import gibibytes

GONE = declare("trainer-died.gone-seconds", 2.0, "s", "that a trainer's process is missing from the list")
END_LATE = declare(
    "trainer-died.end-late-seconds",
    LARGEST_SHIFT_SECONDS + 3.0,
    "s",
    "after the log's last record that its end may still come, between epochs or where the log goes on after "
    "its process: the largest difference of clocks that is looked for, and three seconds",
)
STILL_WRITES_SECONDS = 3.0
AHEAD_SECONDS = 1.0  # a record later than its own process: the log's clock is ahead


class TrainerGone:
    """The trainer's process is gone: after a proper end (info), or without one (critical).

    Needs the process to have been seen before. A log whose last epoch is complete needs no word of an end
    (results.csv has none). Fooled by: a container whose process ids are not ours (then memory that falls to
    nothing on all GPUs of the job counts, with less confidence), a resumed run, a log whose clock is ahead:
    its end comes after the process left.
    """

    codes: ClassVar[tuple[str, ...]] = ("trainer-ended", "trainer-died")

    def __init__(self) -> None:
        self._seen: dict[int, tuple[int, float]] = {}  # rank -> pid, last seen in the process table
        self._on_gpu: dict[int, tuple[int, float]] = {}  # rank -> GPU, last seen there
        self._memory: dict[int, tuple[float, float]] = {}  # GPU -> most used recently, its time
        self._words: list[str] = []
        self._oom_kills: int | None = None
        self._gone_ts: float | None = None

    def observe(self, item: Item, view: View) -> None:
        """Keep the last words of the log, and what stood before the end."""
        if isinstance(item, TrainRecord):
            if item.kind == "start" and not item.backlog:
                self._seen.clear()
                self._on_gpu.clear()
                self._memory.clear()
                self._words.clear()
                self._gone_ts = None
                self._oom_kills = None
            elif item.kind == "message" and item.text:
                self._words = [*self._words[-2:], item.text[:200]]

    def check(self, view: View) -> Iterable[Claim]:
        """At most one claim, on the run."""
        history = view.history
        host = history.host.sample
        leader = view.phases.leader
        if leader is None or leader.last_record_ts is None:
            return []
        ended = leader.current is not None and leader.current.phase == "ended"
        if self._oom_kills is None and host is not None:
            self._oom_kills = host.oom_kills
        gone, rank, sure = self._gone(view)
        if gone is None:
            self._gone_ts = None
            if history.train.ended is not None and ended and not history.train.ended.backlog:
                return [self._ended(view, history.train.ended.ts, None)]
            return []
        if self._gone_ts is None:
            self._gone_ts = gone
        between = leader.current is None or leader.current.phase not in TRAINING
        if ended or (between and is_complete(history.train)):
            return [self._ended(view, self._gone_ts, rank)]
        last = leader.last_record_ts
        late = between or last > self._gone_ts + AHEAD_SECONDS
        if view.now_ts - last < (view.thresholds[END_LATE] if late else STILL_WRITES_SECONDS):
            return []  # it still writes: another process was meant; or the log's clock is ahead
        return [self._died(view, self._gone_ts, rank, sure)]

    def _gone(self, view: View) -> tuple[float | None, int | None, bool]:
        """When a rank's process went, which rank, and whether that is sure."""
        history = view.history
        processes = history.processes
        least = view.thresholds[GONE]
        for rank, told in history.train.ranks.items():
            if told.pid is None:
                continue
            known = processes.by_pid.get(told.pid)
            if known is not None:
                self._seen[rank] = (told.pid, known.sample_ts)
                zombie = known.sample.status in ("zombie", "dead")
                if zombie or (processes.ts is not None and processes.ts - known.sample_ts >= least):
                    return known.sample_ts, rank, True
                continue
            if rank in self._seen and self._seen[rank][0] == told.pid and processes.ts is not None:
                if processes.ts - self._seen[rank][1] >= least:  # long gone from the table
                    return self._seen[rank][1], rank, True
                continue
            gone = self._gone_from_gpu(view, rank, told.pid)
            if gone is not None:
                return gone, rank, True
        if self._seen or self._on_gpu:
            return None, None, True
        return self._memory_gone(view), None, False

    def _gone_from_gpu(self, view: View, rank: int, pid: int) -> float | None:
        """When a process that is in no process table left the list of the GPU it was on."""
        for gpu in view.history.by_index():
            slow = gpu.slow
            if slow is None or gpu.slow_ts is None or slow.processes is None:
                continue
            if any(process.pid == pid for process in slow.processes):
                self._on_gpu[rank] = (gpu.info.index, gpu.slow_ts)
        where = self._on_gpu.get(rank)
        if where is None:
            return None
        index, seen_ts = where
        gpu_now = view.history.gpu(index)
        if gpu_now is None or gpu_now.slow_ts is None or gpu_now.slow_ts - seen_ts < view.thresholds[GONE]:
            return None
        return seen_ts

    def _memory_gone(self, view: View) -> float | None:
        """Where no process is visible: the job's GPUs gave back (nearly) all their memory."""
        indices = [m.gpu_index for m in view.job.members if m.gpu_index is not None] or list(self._memory)
        for index in indices:
            gpu = view.history.gpu(index)
            used = None if gpu is None or gpu.sample is None else gpu.sample.memory_used_bytes
            if used is not None and used >= self._memory.get(index, (0.0, 0.0))[0]:
                self._memory[index] = (float(used), view.now_ts)
        gone_since = []
        for index, (most, ts) in self._memory.items():
            gpu = view.history.gpu(index)
            used = None if gpu is None or gpu.sample is None else gpu.sample.memory_used_bytes
            if used is None or most < 2**30 or used > 0.1 * most:
                return None
            gone_since.append(ts)
        last = view.phases.last_batch_ts()
        if last is None and view.phases.leader is not None:
            last = view.phases.leader.last_record_ts  # a log of epochs alone
        if not gone_since or last is None or view.now_ts - last < 10:
            return None
        return max(last, min(gone_since))

    @staticmethod
    def _ended(view: View, ts: float, rank: int | None) -> Claim:
        train = view.history.train
        best = train.best_map50_95
        summary = (
            msg(
                "the run ended at epoch {epoch}; best mAP50-95 {best:.3f} at epoch {at}",
                epoch=train.epoch,
                best=best,
                at=train.best_epoch,
            )
            if best is not None and train.epoch is not None
            else msg("the run ended")
        )
        return Claim(
            code="trainer-ended",
            target="run",
            severity="info",
            onset_ts=ts,
            summary=summary,
            cause=msg("the log tells of a proper end")
            if train.ended is not None
            else msg("the log's last epoch is complete"),
            remedy=msg("nothing to do"),
            evidence={"epoch": train.epoch, "epochs": train.total_epochs, "best_map50_95": best},
            explains=(
                *EFFECTS,
                "stall",
                "collective-hang@*",
                "gpu-idle@*",
                "log-silent",
                "trainer-died",
            ),
            clear_after_seconds=0.0,
        )

    def _died(self, view: View, ts: float, rank: int | None, sure: bool) -> Claim:
        train = view.history.train
        host = view.history.host.sample
        killed = None
        if host is not None and host.oom_kills is not None and self._oom_kills is not None:
            killed = host.oom_kills - self._oom_kills
        share = _memory_before(view, ts)
        words = " | ".join(self._words)
        out_of_memory = "out of memory" in words.lower() or "outofmemory" in words.lower()
        cause: Message
        remedy: Message
        if killed:
            cause = msg("the kernel's OOM killer ended it: host memory was full")
            remedy = msg(
                "use fewer workers, cache=disk instead of RAM, or a machine with more memory; "
                "then resume from last.pt"
            )
        elif out_of_memory or (share is not None and share >= 0.95):
            cause = msg(
                "GPU memory ran out: it was {share:.0f} % full just before", share=100 * (share or 1.0)
            )
            remedy = _smaller_batch(view)
        else:
            cause = msg("its process is gone and the log has no end")
            remedy = msg(
                "read the last lines of its console; dmesg tells whether the kernel killed it; "
                "then resume from last.pt"
            )
        return Claim(
            code="trainer-died",
            target="run",
            severity="critical",
            onset_ts=ts,
            summary=msg(
                "the trainer died in epoch {epoch}, after step {step}", epoch=train.epoch, step=train.step
            )
            if train.epoch is not None and train.step is not None
            else msg("the trainer died"),
            cause=cause,
            remedy=remedy,
            evidence={
                "rank": rank,
                "pid": None if rank is None or rank not in self._seen else self._seen[rank][0],
                "epoch": train.epoch,
                "epochs": train.total_epochs,
                "last_step": train.step,
                "gpu_memory_before_percent": None if share is None else round(100 * share, 1),
                "memory_available_bytes": None if host is None else host.memory_available_bytes,
                "oom_kills": killed,
                "last_words": words or None,
            },
            signals=("memory_used_bytes",),
            explains=(
                *EFFECTS,
                "stall",
                "collective-hang@*",
                "gpu-idle@*",
                "log-silent",
                "oom-risk@*",
                "vram-growth@*",
                "host-memory-low@*",
                "vram-fragmentation@*",
            ),
            confidence="high" if sure else "medium",
            unseen=()
            if sure
            else (msg("the process itself was never visible: its GPU memory was given back"),),
            clear_after_seconds=0.0,
        )


def _memory_before(view: View, ts: float) -> float | None:
    """The fullest GPU of the job in the 20 s before, as a share of its memory; 0 to 1."""
    shares = []
    for gpu in view.history.by_index():
        total = gpu.info.memory_total_bytes
        _, values = gpu.fast.window("memory_used_bytes", ts - 20, ts + 1)
        if total and values:
            shares.append(max(values) / total)
        newest = [
            r.roles.memory_peak_bytes for t in view.history.train.ranks.values() for r in list(t.batches)[-3:]
        ]
        peaks = [p for p in newest if p is not None]
        if total and peaks and len(view.history.gpus) == 1:
            shares.append(max(peaks) / total)
    return max(shares, default=None)


def _smaller_batch(view: View) -> Message:
    run = view.history.train.run
    batch = run.batch_size
    held = max(
        ((g.sample.memory_used_bytes or 0) for g in view.history.by_index() if g.sample is not None),
        default=0,
    )
    if held > 2**30:
        return msg(
            "{held} are still held on a GPU: free them first; then start with a smaller batch or "
            "resume from last.pt",
            held=gibibytes(held),
        )
    if batch is not None and batch >= 2:
        return msg(
            "start again with batch={half} (it was {batch}), or batch=-1 to let the trainer choose",
            half=int(batch) // 2,
            batch=int(batch),
        )
    return msg("start again with a smaller batch or image size")
