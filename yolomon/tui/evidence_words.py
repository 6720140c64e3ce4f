"""A finding's evidence for people: what each number is called, and its value with a unit.

The rules name their evidence in code (`peers_waiting_percent_of_time`). Every name they use is in `EVIDENCE`;
a test reads the rules and fails when one is missing.
"""

from __future__ import annotations

from collections.abc import Callable

from yolomon.messages import Message, Translate, msg
from yolomon.tui.signal_words import WORDS, value_words, word_of
from yolomon.tui.words import MISSING, clock_time, duration, number, percent, plain, rate, seconds, size


def _count(_tr: Translate, value: float) -> str:
    return f"{value:.0f}"


def _number(_tr: Translate, value: float) -> str:
    return number(value, 4)


def _percent(_tr: Translate, value: float) -> str:
    return f"{value:.1f} %" if abs(value) < 10 and value != round(value) else percent(value)


def _span(tr: Translate, value: float) -> str:
    return seconds(value) if 0 <= value < 10 and value != round(value) else duration(tr, value)


def _step(_tr: Translate, value: float) -> str:
    return seconds(value)


def _bytes(_tr: Translate, value: float) -> str:
    return size(value)


def _rate(_tr: Translate, value: float) -> str:
    return rate(value)


def _per_minute(tr: Translate, value: float) -> str:
    return tr("{size} a minute", size=rate(value).removesuffix("/s"))


def _per_step(tr: Translate, value: float) -> str:
    return tr("{size} a step", size=rate(value).removesuffix("/s"))


def _mebibytes(_tr: Translate, value: float) -> str:
    return rate(value * 2**20)


def _watts(_tr: Translate, value: float) -> str:
    return f"{value:.0f} W"


def _celsius(_tr: Translate, value: float) -> str:
    return f"{value:.0f} °C"


def _megahertz(_tr: Translate, value: float) -> str:
    return f"{value:.0f} MHz"


def _times(tr: Translate, value: float) -> str:
    return tr("{ratio} times", ratio=number(value, 3))


def _at(_tr: Translate, value: float) -> str:
    return clock_time(value)


def _sigma(_tr: Translate, value: float) -> str:
    return f"{value:.1f} σ"


def _lanes(_tr: Translate, value: float) -> str:
    return f"x{value:.0f}"


_Show = Callable[[Translate, float], str]

# name in the rules -> (what it is called, how its number is shown)
EVIDENCE: dict[str, tuple[Message, _Show]] = {
    # which rank, process, place in the run
    "rank": (msg("rank"), _count),
    "ranks": (msg("ranks"), _count),
    "pid": (msg("process (PID)"), _count),
    "other_pid": (msg("the other process (PID)"), _count),
    "user": (msg("its user"), _count),
    "process": (msg("its name"), _count),
    "process_cpu_percent": (msg("its CPU (of one core)"), _percent),
    "process_status": (msg("its state"), _count),
    "processes": (msg("processes on the GPU"), _count),
    "gpus": (msg("GPUs at work"), _count),
    "gpu_models": (msg("models of the GPUs"), _count),
    "job_gpus": (msg("GPUs that the run uses"), _count),
    "waiting_gpus": (msg("GPUs that wait"), _count),
    "epoch": (msg("epoch"), _count),
    "epochs": (msg("number of epochs"), _count),
    "steps": (msg("steps looked at"), _count),
    "step": (msg("step"), _count),
    "last_step": (msg("last step"), _count),
    "phase": (msg("phase"), _count),
    # steps and data
    "step_seconds": (msg("step time"), _step),
    "step_seconds_before": (msg("step time before"), _step),
    "usual_step_seconds": (msg("usual step time"), _step),
    "seconds_without_step": (msg("no step for"), _span),
    "limit_seconds": (msg("longest pause that is normal"), _span),
    "data_seconds": (msg("data time of a step"), _step),
    "data_seconds_before": (msg("data time before"), _step),
    "data_seconds_per_step": (msg("data time of a step"), _step),
    "data_share_percent": (msg("part of a step that waits for data"), _percent),
    "ratio": (msg("ratio"), _times),
    "gaps": (msg("pauses"), _count),
    "idle_percent_of_training": (msg("part of the training time without work"), _percent),
    "training_seconds": (msg("training time looked at"), _span),
    "window_seconds": (msg("time looked at"), _span),
    "batch_size": (msg("batch size"), _count),
    # who works, who waits
    "busy_percent": (msg("time at work"), _percent),
    "peers_busy_percent": (msg("the other GPUs' time at work"), _percent),
    "gpu_busy_percent": (msg("the GPU's time at work"), _percent),
    "peers_waiting_percent_of_time": (msg("time that the others wait for it"), _percent),
    "waited_percent_of_time": (msg("part of the time spent waiting"), _percent),
    "waited_seconds_per_epoch": (msg("waited in an epoch"), _span),
    "epoch_seconds": (msg("an epoch takes"), _span),
    "sm_active_percent": (msg("SM activity"), _percent),
    "peers_sm_active_percent": (msg("SM activity of the others"), _percent),
    "utilization_percent": (msg("utilization"), _percent),
    "waiting_utilization_percent": (msg("utilization of those that wait"), _percent),
    "waiting_power_watts": (msg("power of those that wait"), _watts),
    "waiting_nvlink_mib_per_second": (msg("NVLink traffic of those that wait"), _mebibytes),
    "idle_seconds": (msg("idle for"), _span),
    # the loader and the host
    "bottleneck": (msg("what holds the input up"), _count),
    "workers": (msg("loader workers"), _count),
    "workers_seen": (msg("loader workers at work"), _count),
    "worker_cpu_percent": (msg("CPU of a worker (of one core)"), _percent),
    "trainer_cpu_percent": (msg("CPU of the trainer (of one core)"), _percent),
    "host_cpu_percent": (msg("CPU of the host"), _percent),
    "cpu_percent": (msg("CPU of the host"), _percent),
    "cpu_before_percent": (msg("CPU of the host before"), _percent),
    "iowait_percent": (msg("CPU waiting for I/O"), _percent),
    "io_pressure_percent": (msg("time that tasks wait for I/O (PSI)"), _percent),
    "memory_pressure_full_percent": (msg("time that all wait for memory (PSI)"), _percent),
    "available_bytes": (msg("host memory available"), _bytes),
    "memory_available_bytes": (msg("host memory available"), _bytes),
    "capacity_bytes": (msg("host memory in all"), _bytes),
    "available_share_percent": (msg("available, of all"), _percent),
    "swap_bytes_per_second": (msg("swap grows by"), _rate),
    "swap_used_bytes": (msg("swap used"), _bytes),
    "limit_of": (msg("whose limit"), _count),
    "cache_bytes_per_rank": (msg("image cache of one rank"), _bytes),
    "used_bytes": (msg("used"), _bytes),
    "free_bytes": (msg("free"), _bytes),
    "total_bytes": (msg("in all"), _bytes),
    "used_share_percent": (msg("used, of all"), _percent),
    "oom_kills": (msg("processes killed for lack of memory"), _count),
    # growth and forecasts
    "where": (msg("whose memory grows"), _count),
    "grown_bytes": (msg("grown by"), _bytes),
    "rise_bytes": (msg("grown by"), _bytes),
    "span_seconds": (msg("within"), _span),
    "bytes_per_minute": (msg("growth"), _per_minute),
    "bytes_per_minute_low": (msg("growth, at least"), _per_minute),
    "bytes_per_minute_high": (msg("growth, at most"), _per_minute),
    "bytes_per_step": (msg("growth"), _per_step),
    "bytes_per_second": (msg("growth in time"), _rate),
    "seconds_to_full": (msg("full in"), _span),
    "seconds_to_full_low": (msg("full in, at the earliest"), _span),
    "seconds_to_full_high": (msg("full in, at the latest"), _span),
    "seconds_to_limit": (msg("used up in"), _span),
    "seconds_to_limit_low": (msg("used up in, at the earliest"), _span),
    "seconds_to_limit_high": (msg("used up in, at the latest"), _span),
    "seconds_to_end_of_run": (msg("the run ends in"), _span),
    "epoch_when_full": (msg("epoch in which it is full"), _count),
    "epoch_at_limit": (msg("epoch in which it is used up"), _count),
    "mann_kendall_z": (msg("how sure it grows (Mann-Kendall)"), _sigma),
    # the GPU's memory
    "kind": (msg("of which kind"), _count),
    "memory_used_bytes": (msg("GPU memory used"), _bytes),
    "memory_total_bytes": (msg("GPU memory in all"), _bytes),
    "memory_bytes": (msg("GPU memory used"), _bytes),
    "peers_memory_bytes": (msg("GPU memory of the others"), _bytes),
    "peers_memory_used_bytes": (msg("GPU memory of the others"), _bytes),
    "memory_reserved_bytes": (msg("reserved by torch"), _bytes),
    "memory_peak_bytes": (msg("most that torch ever used"), _bytes),
    "reserved_percent": (msg("reserved, of all"), _percent),
    "gpu_memory_before_percent": (msg("GPU memory used before"), _percent),
    "unowned_bytes": (msg("GPU memory of no process"), _bytes),
    "listed_processes_bytes": (msg("GPU memory of all processes"), _bytes),
    "held_seconds": (msg("held for"), _span),
    "extra_contexts": (msg("other ranks' CUDA contexts"), _count),
    "extra_bytes": (msg("GPU memory that these take"), _bytes),
    # power, clocks, heat, links
    "power_watts": (msg("power"), _watts),
    "power_before_watts": (msg("power before"), _watts),
    "power_limit_watts": (msg("power limit"), _watts),
    "power_limit_default_watts": (msg("power limit as delivered"), _watts),
    "peers_limit_watts": (msg("power limit of the others"), _watts),
    "capped_share_percent": (msg("part of the time at the power limit"), _percent),
    "readings_with_brake": (msg("readings with the power brake"), _count),
    "sm_clock_mhz": (msg("SM clock"), _megahertz),
    "sm_clock_before_mhz": (msg("SM clock before"), _megahertz),
    "sm_clock_max_mhz": (msg("highest SM clock"), _megahertz),
    "peers_sm_clock_mhz": (msg("SM clock of the others"), _megahertz),
    "reference_clock_mhz": (msg("SM clock it is compared with"), _megahertz),
    "reference": (msg("compared with"), _count),
    "thermal_bits_share_percent": (msg("part of the time slowed by heat"), _percent),
    "limited_by_heat_percent": (msg("part of the time limited by heat"), _percent),
    "temperature_celsius": (msg("temperature"), _celsius),
    "last_temperature_celsius": (msg("last temperature"), _celsius),
    "slowdown_at_celsius": (msg("slows down at"), _celsius),
    "generation": (msg("PCIe generation"), _count),
    "generation_max": (msg("PCIe generation that is possible"), _count),
    "width_lanes": (msg("PCIe lanes"), _lanes),
    "width_max_lanes": (msg("PCIe lanes that are possible"), _lanes),
    "bandwidth_share_percent": (msg("bandwidth, of what is possible"), _percent),
    "readings_under_load": (msg("readings under load"), _count),
    "peers_differ": (msg("other GPUs have a better link"), _count),
    "replays_per_minute": (msg("repeated packets a minute"), _count),
    "limit_per_minute": (msg("that are normal"), _count),
    # errors of the hardware and the driver
    "silent_seconds": (msg("silent for"), _span),
    "usual_gap_seconds": (msg("usual time between records"), _span),
    "lost_seconds": (msg("lost for"), _span),
    "errors_since_start": (msg("memory errors since the start"), _count),
    "xid": (msg("Xid"), _count),
    "events": (msg("driver errors"), _count),
    "all": (msg("the last Xids"), _count),
    "text": (msg("the driver's words"), _count),
    "reason": (msg("what NVML says"), _count),
    "failed_calls": (msg("failed calls"), _count),
    # the loss and the results
    "loss": (msg("loss"), _number),
    "best_loss": (msg("best loss"), _number),
    "level_loss": (msg("usual loss"), _number),
    "validation_loss": (msg("validation loss"), _number),
    "least_validation_loss": (msg("least validation loss"), _number),
    "losses": (msg("losses that are NaN"), _count),
    "steps_above": (msg("steps above it"), _count),
    "for_seconds": (msg("for"), _span),
    "spikes": (msg("number of spikes"), _count),
    "largest_ratio": (msg("greatest spike, of the usual loss"), _times),
    "largest_at_ts": (msg("greatest spike at"), _at),
    "lasting": (msg("the loss stayed high"), _count),
    "first_step": (msg("first NaN in step"), _count),
    "first_epoch": (msg("first NaN in epoch"), _count),
    "records_with_it": (msg("records with NaN"), _count),
    "epoch_repeats": (msg("epochs repeated"), _count),
    "checkpoint_epoch": (msg("last good checkpoint, epoch"), _count),
    "checkpoint_age_seconds": (msg("age of that checkpoint"), _span),
    "best_score": (msg("best result"), _number),
    "best_epoch": (msg("best epoch"), _count),
    "best_map50": (msg("best mAP50"), _number),
    "best_map50_95": (msg("best mAP50-95"), _number),
    "map50_95": (msg("mAP50-95"), _number),
    "epochs_since": (msg("epochs since the best"), _count),
    "patience_epochs": (msg("patience, in epochs"), _count),
    "stops_at_epoch": (msg("stops at epoch"), _count),
    "seconds_to_stop": (msg("stops in"), _span),
    "log": (msg("the log's words"), _count),
    "last_words": (msg("the log's last words"), _count),
    # features and gradients
    "layer": (msg("layer"), _count),
    "layers": (msg("layers with it"), _count),
    "std": (msg("spread of its values"), _number),
    "std_at_start": (msg("spread at the start"), _number),
    "absmax": (msg("greatest value"), _number),
    "sparsity_percent": (msg("values that are zero"), _percent),
    "sparsity_at_start_percent": (msg("values that were zero at the start"), _percent),
    "dead_channels_share_percent": (msg("dead channels"), _percent),
    "nonfinite_share_percent": (msg("values that are NaN or infinite"), _percent),
    "mean_trend_z": (msg("how sure it shrinks (Mann-Kendall)"), _sigma),
    "gradient_norm": (msg("gradient norm"), _number),
    "level": (msg("usual gradient norm"), _number),
    "usual_gradient_norm": (msg("usual gradient norm"), _number),
    "loss_scale": (msg("loss scale of mixed precision"), _number),
    "highest_loss_scale": (msg("highest loss scale"), _number),
}

# (name, the word that the rule gives) -> what it means
STATES: dict[tuple[str, str], Message] = {
    ("bottleneck", "disk"): msg("the disk"),
    ("bottleneck", "workers-0"): msg("no loader workers"),
    ("bottleneck", "cores"): msg("all CPU cores"),
    ("bottleneck", "workers"): msg("the loader workers"),
    ("bottleneck", "main-process"): msg("the trainer's main process"),
    ("bottleneck", "unknown"): msg("not known"),
    ("where", "workers"): msg("the loader workers"),
    ("where", "trainer"): msg("the trainer"),
    ("where", "elsewhere"): msg("other programs"),
    ("limit_of", "container"): msg("the container"),
    ("limit_of", "machine"): msg("the machine"),
    ("lasting", "yes"): msg("yes"),
    ("lasting", "no"): msg("no"),
    ("peers_differ", "yes"): msg("yes"),
    ("peers_differ", "no"): msg("no"),
    ("kind", "allocated"): msg("tensors (allocated by torch)"),
    ("kind", "reserved"): msg("torch's cache (reserved)"),
    ("kind", "device"): msg("the whole GPU"),
    ("kind", "corrected"): msg("corrected"),
    ("kind", "uncorrected"): msg("not corrected"),
    ("reference", "own"): msg("its own clock before"),
    ("reference", "peers"): msg("the other GPUs"),
    ("reference", "maximum"): msg("85 % of its highest clock"),
    ("losses", "all"): msg("all"),
    ("process_status", "running"): msg("runs"),
    ("process_status", "sleeping"): msg("sleeps"),
    ("process_status", "disk-sleep"): msg("waits for the disk"),
    ("process_status", "stopped"): msg("stopped"),
    ("process_status", "zombie"): msg("ended, not yet cleared away (zombie)"),
    ("process_status", "dead"): msg("ended"),
    ("phase", "starting"): msg("starting"),
    ("phase", "caching"): msg("caching images"),
    ("phase", "warmup"): msg("the first steps"),
    ("phase", "train"): msg("training"),
    ("phase", "validation"): msg("validation"),
    ("phase", "checkpoint"): msg("saving"),
    ("phase", "epoch-turn"): msg("between two epochs"),
    ("phase", "close-mosaic"): msg("closing mosaic"),
    ("phase", "final-validation"): msg("the last validation"),
    ("phase", "ended"): msg("ended"),
}


def evidence_words(tr: Translate, name: str, value: float | str | None) -> tuple[str, str]:
    """What a piece of evidence is called, and its value with its unit; a dash where it was not measured.

    A name that no rule of this version uses (an older or newer recording) is told as it is.
    """
    known = EVIDENCE.get(name)
    if known is None:
        label = word_of(tr, name) if name in WORDS else plain(name).replace("_", " ")
        return label, plain(value) if isinstance(value, str) else value_words(name, value)
    label = tr(known[0])
    if isinstance(value, str):
        state = STATES.get((name, value))
        return label, plain(value) if state is None else tr(state)
    if value is None or value != value:
        return label, MISSING if value is None else "NaN"
    return label, known[1](tr, value)
