"""Whether the run moves: hangs, stalls, ends, silence, plateaus."""

from yolomon.diagnosis.catalog.entry import Entry
from yolomon.messages import msg

ENTRIES = (
    Entry(
        code="collective-hang",
        severities=(
            "warning",
            "critical",
        ),
        target="gpu",
        signals=(
            "utilization_percent",
            "power_watts",
            "nvlink_tx_kib_per_second",
            "pcie_tx_kib_per_second",
            "step",
        ),
        explained_by=(
            "gpu-lost",
            "trainer-died",
            "xid",
        ),
        title=msg("Ranks hang in a collective"),
        meaning=msg(
            "Some ranks spin at 100 % with idle power and wait for one that does not come. The "
            "collective's own timeout is 30 minutes or more."
        ),
        rule=msg(
            "No step on any rank for many times the median step time, at least two ranks, and at least "
            "one GPU busy with near-idle power and no traffic, outside validation and checkpoints. The "
            "GPU that does not spin is named."
        ),
        fooled_by=(
            msg("Rank 0 validates or saves alone: the others wait rightly."),
            msg("A first step, a compile or a dataset scan takes long."),
            msg("Label assignment that falls back to the CPU (GPU at 0 %, not 100 %)."),
        ),
        remedies=(
            msg("py-spy dump --pid of the rank that stopped shows where it stands."),
            msg("Stop the run and resume from the last checkpoint; it will not come back by itself."),
            msg("On boxes without NVLink try NCCL_P2P_DISABLE=1."),
            msg("TORCH_NCCL_TRACE_BUFFER_SIZE=2000 keeps evidence for the next time."),
        ),
    ),
    Entry(
        code="stall",
        severities=(
            "warning",
            "critical",
        ),
        target="run",
        signals=(
            "step",
            "utilization_percent",
            "cpu_percent",
        ),
        explained_by=(
            "collective-hang",
            "trainer-died",
            "gpu-lost",
            "log-silent",
        ),
        title=msg("Training stands still"),
        meaning=msg("No step and no work for many times the usual step time."),
        rule=msg(
            "Nothing new from the trainer and no work on its GPUs for many times the median step time, "
            "not explained by validation, checkpoint, epoch turn or a log written in blocks."
        ),
        fooled_by=(
            msg("Caching hundreds of thousands of images takes a quarter of an hour before step 1."),
            msg("A step may take minutes when label assignment falls back to the CPU."),
        ),
        remedies=(
            msg("py-spy dump --pid PID: a loader that waits for a dead worker is the usual cause."),
            msg("Test with workers=0."),
            msg("A process in state D waits for a disk or a network file system."),
        ),
    ),
    Entry(
        code="trainer-ended",
        severities=("info",),
        target="run",
        signals=("processes",),
        explained_by=(),
        title=msg("Training ended"),
        meaning=msg("The trainer ended properly."),
        rule=msg("A proper end in the log, or the last epoch done and the process gone."),
        fooled_by=(msg("Early stopping ends before the last epoch."),),
        remedies=(msg("Nothing to do."),),
    ),
    Entry(
        code="trainer-died",
        severities=("critical",),
        target="run",
        signals=(
            "processes",
            "memory_available_bytes",
            "oom_kills",
        ),
        explained_by=(
            "gpu-lost",
            "xid",
        ),
        title=msg("The trainer died"),
        meaning=msg("The process is gone without a proper end."),
        rule=msg(
            "The trainer's process is gone before the last epoch and its log has no end. The kernel's "
            "counter of out-of-memory kills and the state of memory just before tell why."
        ),
        fooled_by=(
            msg("A run stopped by hand looks the same."),
            msg("Inside a container the process may not be seen at all."),
        ),
        remedies=(
            msg("Read the last lines of its log."),
            msg("Killed by the kernel: fewer workers, cache=disk, or more memory."),
            msg(
                "Out of video memory: a smaller batch; export "
                "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True."
            ),
            msg("Resume from the last checkpoint."),
        ),
    ),
    Entry(
        code="log-silent",
        severities=("info",),
        target="log",
        signals=(
            "last_growth_ts",
            "utilization_percent",
        ),
        explained_by=(
            "trainer-died",
            "stall",
            "collective-hang",
        ),
        title=msg("The log is silent while training goes on"),
        meaning=msg("The log has not grown although the GPU works as before."),
        rule=msg(
            "No growth for much longer than the usual gap, and for its least time, while the GPUs of the "
            "job work."
        ),
        fooled_by=(
            msg("A trainer that writes once an epoch is silent for a whole epoch."),
            msg("Validation writes nothing in most trainers."),
        ),
        remedies=(
            msg("Run with PYTHONUNBUFFERED=1, or python -u: output to a file is held back in blocks."),
            msg("On a network file system growth is seen late."),
            msg("Make sure that this is the log of the run at hand."),
        ),
    ),
    Entry(
        code="no-progress",
        severities=("info",),
        target="run",
        signals=(
            "map50_95",
            "fitness",
        ),
        explained_by=(
            "nan-loss",
            "loss-divergence",
        ),
        title=msg("No better result for long"),
        meaning=msg(
            "The best mAP or fitness has stood for most of the trainer's patience, or never left zero."
        ),
        rule=msg(
            "Epochs since the best result against the trainer's patience; early stopping comes when they "
            "are equal. Also mAP that stays at zero after some epochs with finite loss, and metrics that "
            "repeat exactly."
        ),
        fooled_by=(
            msg("Close-mosaic at the end often lifts mAP once more."),
            msg("Noise of a small validation set."),
        ),
        remedies=(
            msg("Let it stop, or stop it now: the best weights are kept."),
            msg("mAP 0: look at the labels (class ids, normalised boxes) and at the paths in the data file."),
            msg("Train longer with a larger patience only if the loss still falls."),
        ),
    ),
)
