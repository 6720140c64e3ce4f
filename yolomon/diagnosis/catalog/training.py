"""What the numbers of the training itself say."""

from yolomon.diagnosis.catalog.entry import Entry
from yolomon.messages import msg

ENTRIES = (
    Entry(
        code="nan-loss",
        severities=("critical",),
        target="run",
        signals=("loss",),
        explained_by=(),
        title=msg("The loss is not a number"),
        meaning=msg("A loss is NaN or infinite; from here on the weights are worthless."),
        rule=msg(
            "The first NaN or infinity in a loss, told with its step and the age of the last good checkpoint."
        ),
        fooled_by=(
            msg(
                "AP of classes that are absent, scales skipped by AMP and means over nothing are NaN rightly."
            ),
            msg("A trainer that rolls back repeats the epoch."),
        ),
        remedies=(
            msg("Stop; resume from the checkpoint before it with a tenth of the learning rate."),
            msg("GTX 16xx cards: amp=False."),
            msg("Look for labels with zero width or height, and for broken images."),
        ),
    ),
    Entry(
        code="amp-underflow",
        severities=("warning",),
        target="run",
        signals=("loss",),
        explained_by=("nan-loss",),
        title=msg("Mixed precision loses the gradients"),
        meaning=msg("Steps go on, but the gradient scaler skips them or the gradients are zero."),
        rule=msg(
            "The loss scale falls on and on to below one, or the gradient norm is zero or not finite for "
            "many steps in a row, while it was not before."
        ),
        fooled_by=(
            msg("A few skipped steps at the start and now and then are normal."),
            msg("A fixed scale that is small by design never fell; accumulation may log zeros between."),
        ),
        remedies=(
            msg("bfloat16 instead of float16 where the GPU has it; else amp=False."),
            msg("A lower learning rate, gradient clipping, a longer warm-up."),
            msg("Look for an operation that overflows: a sum over many values, a division by nearly zero."),
        ),
    ),
    Entry(
        code="loss-spike",
        severities=(
            "info",
            "warning",
        ),
        target="run",
        signals=("loss",),
        explained_by=(
            "nan-loss",
            "loss-divergence",
        ),
        title=msg("The loss jumps"),
        meaning=msg("Single losses far above their recent level."),
        rule=msg(
            "The logarithm of the loss against the median and spread of the last steps. One alone is "
            "information; several within a short time, or a jump that lasts, is a warning."
        ),
        fooled_by=(
            msg("Warm-up, close-mosaic and a resume shift the level."),
            msg("Small batches are noisy."),
        ),
        remedies=(
            msg("Look at the images of that step."),
            msg("Clip gradients, lower the learning rate, a longer warm-up."),
        ),
    ),
    Entry(
        code="loss-divergence",
        severities=(
            "warning",
            "critical",
        ),
        target="run",
        signals=(
            "loss",
            "validation_losses",
        ),
        explained_by=("nan-loss",),
        title=msg("The loss runs away"),
        meaning=msg("The loss stays far above its best level, or blows up to huge values."),
        rule=msg(
            "A smoothed loss above its best for many steps, a loss many powers of ten above its level, or"
            " a validation loss that explodes while the training loss stays."
        ),
        fooled_by=(msg("Close-mosaic, other loss weights and a resume shift the level."),),
        remedies=(
            msg("Stop and resume from the best checkpoint with a lower learning rate."),
            msg(
                "Validation alone explodes: batch norm or EMA statistics are broken; look at the batch size "
                "of a GPU."
            ),
        ),
    ),
    Entry(
        code="dead-features",
        severities=(
            "info",
            "warning",
            "critical",
        ),
        target="run",
        signals=("features",),
        explained_by=("nan-loss",),
        title=msg("Feature maps are dead"),
        meaning=msg(
            "Most of a layer's channels carry nothing any more, or its mean decays epoch after epoch."
        ),
        rule=msg(
            "The share of dead channels or of near-zero values of a layer for several probes in a row, "
            "against the layer's own start. The first bad layer in depth is named; later ones are its "
            "effects."
        ),
        fooled_by=(
            msg("ReLU layers are half zero by nature."),
            msg("Frozen layers do not move; detection heads look dead in the first epochs."),
        ),
        remedies=(
            msg(
                "Lower the learning rate; a batch of 2 a GPU is too small for batch norm: use SyncBN or a "
                "larger batch."
            ),
            msg("Resume from a checkpoint before it began."),
        ),
    ),
    Entry(
        code="exploding-features",
        severities=(
            "warning",
            "critical",
        ),
        target="run",
        signals=(
            "features",
            "gradient_norm",
        ),
        explained_by=("nan-loss",),
        title=msg("Feature maps or gradients explode"),
        meaning=msg("Standard deviation of a layer, or the gradient norm, is many times its own level."),
        rule=msg(
            "Against the layer's own first probes and the gradient norm's own median, for several in a "
            "row. A value that is not finite is critical."
        ),
        fooled_by=(
            msg("Warm-up raises both."),
            msg("Single large gradients that are clipped do no harm."),
        ),
        remedies=(
            msg("Clip the gradient norm, lower the learning rate."),
            msg("Look for a layer without normalisation."),
        ),
    ),
)
