"""How well the GPUs work: starvation, bursts, imbalance, waiting, idle GPUs, slow-down."""

from yolomon.diagnosis.catalog.entry import Entry
from yolomon.messages import msg

ENTRIES = (
    Entry(
        code="data-starvation",
        severities=(
            "info",
            "warning",
            "critical",
        ),
        target="gpu, run",
        signals=(
            "data_seconds",
            "step_seconds",
            "utilization_percent",
            "sm_active_percent",
            "power_watts",
            "cpu_percent",
            "io_pressure_some_percent",
        ),
        explained_by=(
            "collective-hang",
            "stall",
            "trainer-died",
            "gpu-lost",
        ),
        title=msg("The GPU waits for data"),
        meaning=msg(
            "The loader delivers batches more slowly than the GPU can use them; the GPU idles in between."
        ),
        rule=msg(
            "Where the log tells data time: its share of the step time over the last minute. Else: "
            "utilization and power that are low or jump each second while loader processes, one core of "
            "the trainer or the disk are busy. The bottleneck named is the one that is at its limit."
        ),
        fooled_by=(
            msg("The first epoch reads from a cold page cache: it gets faster by itself."),
            msg("Small models on a fast GPU use little of it without waiting: that is a finding of its own."),
            msg("Data time is only true where the trainer waits for the GPU before it reads the clock."),
        ),
        remedies=(
            msg("Raise the number of loader workers up to the cores there are for each GPU."),
            msg(
                "Cache the images in memory or on a local disk, or copy the data set off the network file "
                "system."
            ),
            msg("Store images at about the training size; decode and resize cost most."),
            msg("Fewer or cheaper augmentations."),
        ),
    ),
    Entry(
        code="bursty-load",
        severities=("warning",),
        target="gpu",
        signals=(
            "utilization_percent",
            "utilization_min_percent",
            "power_watts",
        ),
        explained_by=(
            "data-starvation",
            "stall",
            "sync-wait",
        ),
        title=msg("The GPU works in bursts"),
        meaning=msg("Work comes with regular idle gaps within an epoch."),
        rule=msg(
            "Idle gaps that come again and again within an epoch and are not validation, a checkpoint or "
            "an epoch turn."
        ),
        fooled_by=(
            msg("Very short epochs: the gaps are epoch turns."),
            msg("A sampling interval near the step time makes steady work look like bursts."),
        ),
        remedies=(
            msg("Raise the loader's prefetch_factor, keep persistent workers."),
            msg("Look for work on the CPU in every few steps: logging, plotting, label assignment."),
        ),
    ),
    Entry(
        code="gpu-underused",
        severities=("info",),
        target="gpu",
        signals=(
            "utilization_percent",
            "sm_active_percent",
            "power_watts",
            "memory_used_bytes",
        ),
        explained_by=(
            "data-starvation",
            "load-imbalance",
            "bursty-load",
            "thermal-throttle",
            "gpu-contention",
        ),
        title=msg("The GPU has much to spare"),
        meaning=msg("The run goes as fast as it can, yet uses a small part of this GPU."),
        rule=msg(
            "Low real work (SM activity, or power over its limit where that is not known) for minutes, "
            "with no wait for data and no other cause."
        ),
        fooled_by=(
            msg("Activity during validation and start-up is low by nature."),
            msg("Without performance counters (before Hopper) power is only an estimate of work."),
        ),
        remedies=(
            msg("Raise the batch size while memory allows it."),
            msg("Larger images or a larger model may cost no more time."),
            msg("Train two models side by side on this GPU."),
        ),
    ),
    Entry(
        code="load-imbalance",
        severities=("warning",),
        target="gpu",
        signals=(
            "utilization_percent",
            "power_watts",
            "sm_active_percent",
            "memory_utilization_percent",
            "memory_used_bytes",
            "step_seconds",
        ),
        explained_by=(
            "collective-hang",
            "gpu-lost",
            "trainer-died",
        ),
        title=msg("One GPU makes the others wait"),
        meaning=msg(
            "The GPUs of one job do unequal work. The one that waits shows 100 % and little power; the "
            "slow one is the one that does not wait."
        ),
        rule=msg(
            "Only the GPUs of one job are compared, outside validation and checkpoints: who waits, own "
            "compute time of each rank, SM and memory activity against the peers. Unequal memory counts "
            "by its own rule."
        ),
        fooled_by=(
            msg("Rank 0 validates alone: that is a finding of its own."),
            msg("Unrelated jobs on one machine are never compared."),
            msg("GPUs of different models differ by nature."),
        ),
        remedies=(
            msg("Look at the slow rank's loader, its CPU cores and its GPU's clock."),
            msg(
                "With memory on GPU 0: call torch.cuda.set_device(local_rank) before anything touches CUDA, "
                'and load weights with map_location="cpu".'
            ),
            msg(
                "One process on several GPUs (DataParallel): start with torchrun --nproc_per_node=N instead."
            ),
        ),
    ),
    Entry(
        code="sync-wait",
        severities=("info",),
        target="gpu",
        signals=(
            "utilization_percent",
            "power_watts",
        ),
        explained_by=("collective-hang",),
        title=msg("Ranks wait while another validates or saves"),
        meaning=msg(
            "One rank validates or saves alone; the others wait at 100 % utilization and little power."
        ),
        rule=msg("The share of the time that a rank spent waiting in the others' validation or checkpoint."),
        fooled_by=(msg("Epochs of a few seconds make the share look large."),),
        remedies=(
            msg("Validate less often, or on a part of the set."),
            msg("Validate on all ranks where the trainer can."),
        ),
    ),
    Entry(
        code="gpu-idle",
        severities=(
            "info",
            "warning",
        ),
        target="gpu",
        signals=(
            "utilization_percent",
            "memory_used_bytes",
            "processes",
        ),
        explained_by=(
            "gpu-lost",
            "trainer-died",
        ),
        title=msg("A GPU is not used"),
        meaning=msg("The trainer could see this GPU, but no process uses it."),
        rule=msg(
            "No process and no work on it for its time while the job trains on another one. A warning "
            "only where the run asked for this GPU."
        ),
        fooled_by=(
            msg("Someone else may have reserved it."),
            msg("Just after another job ended it is free for a moment."),
        ),
        remedies=(
            msg("Use it: device=0,1 or torchrun --nproc_per_node=2."),
            msg("If the run asked for it: look at CUDA_VISIBLE_DEVICES and at whether all ranks started."),
        ),
    ),
    Entry(
        code="slowdown",
        severities=("warning",),
        target="run",
        signals=(
            "step_seconds",
            "images_per_second",
        ),
        explained_by=(
            "collective-hang",
            "stall",
            "data-starvation",
            "load-imbalance",
            "thermal-throttle",
            "power-throttle",
            "pcie-degraded",
            "gpu-contention",
            "host-memory-low",
        ),
        title=msg("Training became slower"),
        meaning=msg("A step takes longer than it did earlier in the same phase."),
        rule=msg(
            "A CUSUM of the step time's logarithm against its own baseline after warm-up, verified by the"
            " median of the newest steps. Step time is scaled to the image size."
        ),
        fooled_by=(
            msg("Multi-scale training and more objects in an image change the step time."),
            msg("Close-mosaic, a resume and another batch size begin a new baseline."),
        ),
        remedies=(
            msg("See the other findings of the same time: heat, loader, another process."),
            msg("Compare the GPU's clock and temperature before and after."),
            msg("py-spy dump --pid PID shows where the step spends its time."),
        ),
    ),
)
