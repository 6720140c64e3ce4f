"""Heat, power, link, memory errors, driver."""

from yolomon.diagnosis.catalog.entry import Entry
from yolomon.messages import msg

ENTRIES = (
    Entry(
        code="thermal-throttle",
        severities=(
            "warning",
            "critical",
        ),
        target="gpu",
        signals=(
            "temperature_celsius",
            "sm_clock_mhz",
            "clock_event_reasons",
            "thermal_violation_ns",
        ),
        explained_by=(),
        title=msg("Heat slows this GPU"),
        meaning=msg("The driver lowers the clock because of heat, and work is lost."),
        rule=msg(
            "Thermal bits in the driver's clock reasons for a share of the last minute AND a clock below "
            "the GPU's own warm clock, or below its peers at the same load."
        ),
        fooled_by=(
            msg("A high temperature alone is no fault."),
            msg("Clocks fall in idle phases; only busy samples count."),
        ),
        remedies=(
            msg("Check fans, air flow and dust; GPUs in the middle of a box are the hottest."),
            msg("Meanwhile lower the power limit: nvidia-smi -i INDEX -pl WATTS."),
        ),
    ),
    Entry(
        code="power-throttle",
        severities=(
            "info",
            "warning",
            "critical",
        ),
        target="gpu",
        signals=(
            "power_watts",
            "power_limit_watts",
            "sm_clock_mhz",
            "clock_event_reasons",
        ),
        explained_by=("thermal-throttle",),
        title=msg("Power limits this GPU"),
        meaning=msg(
            "The clock is held down by the power limit by more than full load explains, or by an external"
            " power brake."
        ),
        rule=msg(
            "The software power cap is normal at full load and is no finding. Told are: a limit set below"
            " the card's default, a clock far below the maximum for long, the power brake, and one GPU of"
            " a job capped lower than its equal peers."
        ),
        fooled_by=(
            msg("Bit 4 (SW power cap) is set in most samples of a healthy run."),
            msg("Someone may have set the limit on purpose."),
        ),
        remedies=(
            msg("nvidia-smi -q -d POWER shows limits; nvidia-smi -i INDEX -pl WATTS sets one."),
            msg("Power brake: look at the power supply, its cables and the rack's limit."),
        ),
    ),
    Entry(
        code="pcie-degraded",
        severities=(
            "info",
            "warning",
            "critical",
        ),
        target="gpu",
        signals=(
            "pcie_generation",
            "pcie_width",
            "pcie_replays",
            "utilization_percent",
        ),
        explained_by=(),
        title=msg("The PCIe link is slower than it could be"),
        meaning=msg(
            "Under load the link runs with fewer lanes or at a lower generation than card and slot allow."
        ),
        rule=msg(
            "Only under load, since links sleep when idle: width or generation below the maximum in most "
            "samples of a minute; or more link replays a minute than a healthy link has (limits by "
            "generation and lanes as in NVIDIA's DCGM)."
        ),
        fooled_by=(
            msg("Idle GPUs drop to generation 1."),
            msg("Boards that split lanes run x8 by design: only information."),
        ),
        remedies=(
            msg("Reseat the card, try another slot, replace the riser."),
            msg("Check the slot's generation in the BIOS."),
        ),
    ),
    Entry(
        code="ecc-error",
        severities=(
            "info",
            "critical",
        ),
        target="gpu",
        signals=(
            "ecc_corrected",
            "ecc_uncorrected",
        ),
        explained_by=(),
        title=msg("Memory errors (ECC)"),
        meaning=msg(
            "The GPU's memory had bit errors since we watch. Corrected ones cost nothing; uncorrected "
            "ones end the process."
        ),
        rule=msg("The counters of corrected and uncorrected errors rise; counts from before are history."),
        fooled_by=(
            msg("Lifetime counters are not zero on used cards."),
            msg("Consumer cards have no ECC."),
        ),
        remedies=(
            msg(
                "Uncorrected: restart the run from its last checkpoint, reset the GPU (nvidia-smi -r -i "
                "INDEX)."
            ),
            msg("Again on the same card: ask for a replacement."),
        ),
    ),
    Entry(
        code="xid",
        severities=(
            "info",
            "warning",
            "critical",
        ),
        target="gpu",
        signals=("events",),
        explained_by=("gpu-lost",),
        title=msg("The driver reported an error (Xid)"),
        meaning=msg(
            "An error event of the NVIDIA driver; its number tells what happened and whether the job "
            "survives."
        ),
        rule=msg("Every Xid event is told once with the meaning of its number."),
        fooled_by=(
            msg("Xid 43 and 45 follow other errors."),
            msg("Xid 13 and 31 are mostly bugs of the program, such as an index out of range."),
        ),
        remedies=(
            msg("Follow the action told with the number."),
            msg("dmesg | grep -i xid shows the driver's own words."),
        ),
    ),
    Entry(
        code="gpu-lost",
        severities=("critical",),
        target="gpu, host",
        signals=("state",),
        explained_by=(),
        title=msg("A GPU is gone"),
        meaning=msg("The GPU fell off the bus or gives no answer; a run that uses it is lost."),
        rule=msg(
            "The driver says that the GPU is lost, a GPU vanished while its peers stay, or one has given "
            "no answer for its time while others do."
        ),
        fooled_by=(msg("All GPUs silent at once: the driver or the container, a finding of its own."),),
        remedies=(
            msg("Power-cycle the machine; a reset is mostly not enough."),
            msg("Check power supply, cables, riser and temperature."),
            msg("Go on with the other GPUs: resume with a smaller device list."),
        ),
    ),
    Entry(
        code="row-remap",
        severities=(
            "info",
            "warning",
            "critical",
        ),
        target="gpu",
        signals=(
            "remapped_rows_pending",
            "remapped_rows_failed",
        ),
        explained_by=(),
        title=msg("Memory rows are remapped"),
        meaning=msg("The GPU replaced bad memory rows, or could not."),
        rule=msg("A remapping that waits for a reset, or one that failed."),
        fooled_by=(msg("A pending remapping harms nothing until the next reset."),),
        remedies=(
            msg("Pending: reset the GPU when the run is over."),
            msg("Failed: ask for a replacement."),
        ),
    ),
    Entry(
        code="nvml-unavailable",
        severities=(
            "info",
            "warning",
        ),
        target="host",
        signals=("status",),
        explained_by=(),
        title=msg("The GPUs cannot be read"),
        meaning=msg("NVIDIA's management library does not answer. Training may well go on."),
        rule=msg("The source that reads the GPUs reports that it cannot, with the cause it found."),
        fooled_by=(
            msg(
                "After systemctl daemon-reload a container may lose its devices while the training process "
                "keeps working."
            ),
        ),
        remedies=(
            msg("Version mismatch: reboot, or reload the driver when no job runs."),
            msg("In a container: restart it with the GPUs; the training log is still followed."),
        ),
    ),
)
