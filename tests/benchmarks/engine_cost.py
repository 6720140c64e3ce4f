"""What one pass of the diagnosis costs: `Engine.check`, and all that is observed between two of them.

A simulated run with as many ranks as GPUs, with the records of each rank. Target: a pass takes
at most 5 ms for 8 GPUs and 8 ranks, so that the screen's loop never waits for it.

    python -m tests.benchmarks.engine_cost [--gpus 8] [--seconds 600] [--profile]
"""

from __future__ import annotations

import argparse
import cProfile
import pstats
import statistics
import time

from tests.synthetic.plan import Fault, Plan
from tests.synthetic.scenarios import simulate
from yolomon.diagnosis.engine import Engine

LIMIT_MILLISECONDS = 5.0
FAULTS: tuple[Fault, ...] = ("", "straggler", "vram-leak", "starve")


class Timed(Engine):
    """An engine that notes how long each pass took: CPU seconds of this thread, whatever else runs."""

    def __init__(self) -> None:
        super().__init__()
        self.passes: list[float] = []

    def check(self, now_ts: float) -> None:
        """As the engine's."""
        began = time.thread_time()
        super().check(now_ts)
        self.passes.append(time.thread_time() - began)


def main() -> None:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gpus", type=int, nargs="+", default=[8])
    parser.add_argument("--seconds", type=float, default=600.0)
    parser.add_argument("--profile", action="store_true")
    arguments = parser.parse_args()
    print(
        f"{'GPUs':>4} {'fault':12} {'median ms':>9} {'p99 ms':>7} {'max ms':>7} {'observe ms/s':>12}  limit"
    )
    for gpus in arguments.gpus:
        for fault in FAULTS:
            run = simulate(
                Plan(
                    name="cost", seed=1, seconds=arguments.seconds, ranks=gpus, fault=fault,
                    amount=0.2 if fault in ("straggler", "starve") else 2**21 if fault else 0.0,
                )
            )  # fmt: skip
            engine = Timed()
            profile = cProfile.Profile() if arguments.profile else None
            if profile is not None:
                profile.enable()
            began = time.thread_time()
            for item in run.items:
                engine.observe(item)
            took = time.thread_time() - began
            if profile is not None:
                profile.disable()
                pstats.Stats(profile).sort_stats("tottime").print_stats(25)
            passes = sorted(1000 * second for second in engine.passes)
            p99 = passes[int(len(passes) * 0.99)]
            observe = (1000 * took - sum(passes)) / run.seconds
            met = "met" if p99 <= LIMIT_MILLISECONDS * gpus / 8 else "NOT MET"
            print(
                f"{gpus:4} {fault or 'healthy':12} {statistics.median(passes):9.2f} {p99:7.2f} "
                f"{passes[-1]:7.2f} {observe:12.2f}  {met}",
                flush=True,
            )


if __name__ == "__main__":
    main()
