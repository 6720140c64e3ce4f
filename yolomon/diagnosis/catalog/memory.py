"""Memory of GPUs and host, and who else holds it."""

from yolomon.diagnosis.catalog.entry import Entry
from yolomon.messages import msg

ENTRIES = (
    Entry(
        code="vram-growth",
        severities=(
            "info",
            "warning",
        ),
        target="gpu",
        signals=(
            "memory_used_bytes",
            "memory_allocated_bytes",
            "memory_reserved_bytes",
        ),
        explained_by=("gpu-contention",),
        title=msg("Video memory keeps growing"),
        meaning=msg("The job's device memory grows beyond warm-up, validation and the allocator's plateaus."),
        rule=msg(
            "Lower envelope or epoch maxima that pass the leak test: a significant trend, a slope above "
            "zero with 95 % confidence, no single step, not levelling off, and of consequence. Allocated "
            "grows: tensors are kept. Reserved grows alone: fragmentation."
        ),
        fooled_by=(
            msg("The first validation adds a step that stays."),
            msg("Multi-scale training reaches its peak late."),
            msg("More objects in a batch raise it slowly, and it fits."),
        ),
        remedies=(
            msg(
                "Look for tensors kept across steps: losses summed without .item() or .detach(), lists of "
                "outputs."
            ),
            msg("Reserved alone grows: export PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True."),
            msg("A smaller batch gives more time."),
        ),
    ),
    Entry(
        code="vram-fragmentation",
        severities=("warning",),
        target="gpu",
        signals=(
            "memory_reserved_bytes",
            "memory_peak_bytes",
            "memory_used_bytes",
        ),
        explained_by=("vram-growth",),
        title=msg("Video memory is fragmented"),
        meaning=msg(
            "The allocator holds far more than tensors ever used, near the limit: out of memory is "
            'possible with "free" memory.'
        ),
        rule=msg("Reserved far above the peak of allocated, and little of the device left."),
        fooled_by=(
            msg("Reserved stays high after a validation with larger batches: harmless while it fits."),
        ),
        remedies=(
            msg("export PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True"),
            msg("Fewer changes of image size (multi_scale=0)."),
            msg("A smaller batch."),
        ),
    ),
    Entry(
        code="oom-risk",
        severities=(
            "warning",
            "critical",
        ),
        target="gpu",
        signals=(
            "memory_used_bytes",
            "memory_peak_bytes",
        ),
        explained_by=(),
        title=msg("Out of video memory soon"),
        meaning=msg("The limit will be reached within minutes, or the last peak came very near it."),
        rule=msg(
            "A growing trend whose forecast is minutes away, or the headroom is smaller than the steps "
            "memory makes."
        ),
        fooled_by=(msg("A plateau at 99 % can last to the end: a full memory alone is no fault."),),
        remedies=(
            msg("Save a checkpoint and stop, then resume with a smaller batch."),
            msg("Validation may use twice the batch: lower the validation batch."),
            msg("amp=True, smaller images, gradient checkpointing."),
        ),
    ),
    Entry(
        code="orphan-memory",
        severities=("warning",),
        target="gpu",
        signals=(
            "memory_used_bytes",
            "processes",
        ),
        explained_by=("gpu-lost",),
        title=msg("Memory is held by a process that does no work"),
        meaning=msg("A left-over process, or one that cannot be seen, holds memory on this GPU."),
        rule=msg(
            "A process outside the job that holds memory without work, or memory that no listed process "
            "accounts for, for its time."
        ),
        fooled_by=(
            msg("A process that just ended frees its memory for some seconds."),
            msg("A notebook of a colleague may hold it on purpose."),
            msg("In a container the host's processes cannot be seen."),
        ),
        remedies=(
            msg("nvidia-smi, or fuser -v /dev/nvidia*, shows who holds it."),
            msg("kill the left-over process if it is yours."),
        ),
    ),
    Entry(
        code="gpu-contention",
        severities=("warning",),
        target="gpu",
        signals=(
            "processes",
            "utilization_percent",
        ),
        explained_by=(),
        title=msg("Another job works on this GPU"),
        meaning=msg("A process of another job computes on a GPU of this one; both become slower."),
        rule=msg("A process outside the job that works on one of its GPUs for its time."),
        fooled_by=(msg("A process of the same user may be part of the same run."),),
        remedies=(
            msg("Move one of them: CUDA_VISIBLE_DEVICES."),
            msg("Ask the user named, or wait."),
        ),
    ),
    Entry(
        code="host-memory-growth",
        severities=(
            "info",
            "warning",
            "critical",
        ),
        target="host",
        signals=(
            "memory_available_bytes",
            "memory_bytes",
        ),
        explained_by=(),
        title=msg("Host memory keeps growing"),
        meaning=msg("The trainer, its loader workers or the host's unreclaimable memory grow without end."),
        rule=msg(
            "Memory of the trainer and of its workers (shared pages counted once) and the host's "
            "available memory, pooled, pass the leak test; with a forecast against the container's limit "
            "or the machine's memory."
        ),
        fooled_by=(
            msg("Filling the image cache (cache=ram) grows and then stops."),
            msg("Page cache is no growth: available memory is used, never free memory."),
            msg("New workers after close-mosaic add a step."),
        ),
        remedies=(
            msg(
                "Workers grow: fewer workers, or keep annotations in one numpy array or tensor instead of "
                "Python lists (copy-on-write of reference counts)."
            ),
            msg("The trainer grows: look for lists of results kept each step."),
            msg("Save often; a kill by the kernel leaves no time."),
        ),
    ),
    Entry(
        code="host-memory-low",
        severities=(
            "warning",
            "critical",
        ),
        target="host",
        signals=(
            "memory_available_bytes",
            "swap_used_bytes",
            "memory_pressure_full_percent",
        ),
        explained_by=("host-memory-growth",),
        title=msg("Host memory runs out"),
        meaning=msg(
            "Little memory is available; the kernel will kill the largest process, which is the trainer."
        ),
        rule=msg(
            "Available memory below its share of the container's limit or of the machine's memory, with "
            "memory pressure or swapping as worse signs. The image cache that will not fit is told before"
            " it happens."
        ),
        fooled_by=(msg("Shared memory and tmpfs count as used."),),
        remedies=(
            msg("cache=disk instead of cache=ram; each rank keeps its own cache."),
            msg("Fewer workers, a smaller prefetch_factor."),
            msg("Raise the container's limit."),
        ),
    ),
    Entry(
        code="shm-low",
        severities=(
            "warning",
            "critical",
        ),
        target="host",
        signals=("shm_used_bytes",),
        explained_by=(),
        title=msg("Shared memory is too small"),
        meaning=msg(
            "Loader workers hand batches over in /dev/shm; when it is full they die with a bus error."
        ),
        rule=msg(
            "/dev/shm fuller than its share, or the 64 MB that a container gets by default while the run "
            "uses workers."
        ),
        fooled_by=(msg("Other programs use /dev/shm too."),),
        remedies=(
            msg("docker run --ipc=host, or --shm-size=8g."),
            msg("Fewer workers; workers=0 needs none."),
        ),
    ),
    Entry(
        code="disk-low",
        severities=(
            "warning",
            "critical",
        ),
        target="host",
        signals=("disk_free_bytes",),
        explained_by=(),
        title=msg("The disk runs full"),
        meaning=msg(
            "The file system that holds the run is nearly full; a checkpoint that cannot be written ends "
            "the run."
        ),
        rule=msg(
            "Free space below its share and its bytes, or a steady loss of space that ends before the run"
            " does."
        ),
        fooled_by=(msg("A cache on disk fills once and then stops."),),
        remedies=(
            msg("Delete old runs and checkpoints; save_period=-1 keeps last and best only."),
            msg("Put the run on another disk."),
        ),
    ),
)
