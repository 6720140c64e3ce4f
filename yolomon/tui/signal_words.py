"""Signals by their names in the model: what they are called on screen, and their values with units."""

from __future__ import annotations

from yolomon.messages import Message, Translate, msg
from yolomon.tui.words import number, percent, rate, seconds, size

WORDS: dict[str, Message] = {
    "utilization_percent": msg("utilization"),
    "memory_utilization_percent": msg("memory activity"),
    "memory_used_bytes": msg("memory used"),
    "temperature_celsius": msg("temperature"),
    "power_watts": msg("power"),
    "sm_clock_mhz": msg("SM clock"),
    "clock_event_reasons": msg("clock events"),
    "sm_active_percent": msg("SM activity"),
    "sm_occupancy_percent": msg("SM occupancy"),
    "tensor_active_percent": msg("tensor cores"),
    "dram_active_percent": msg("DRAM activity"),
    "graphics_active_percent": msg("graphics activity"),
    "pcie_tx_kib_per_second": msg("PCIe sent"),
    "pcie_rx_kib_per_second": msg("PCIe received"),
    "nvlink_tx_kib_per_second": msg("NVLink sent"),
    "nvlink_rx_kib_per_second": msg("NVLink received"),
    "memory_temperature_celsius": msg("memory temperature"),
    "cpu_percent": msg("CPU"),
    "cpu_busiest_core_percent": msg("busiest core"),
    "iowait_percent": msg("waiting for I/O"),
    "memory_available_bytes": msg("memory available"),
    "swap_used_bytes": msg("swap used"),
    "shm_used_bytes": msg("/dev/shm used"),
    "disk_free_bytes": msg("disk free"),
    "disk_read_bytes_per_second": msg("disk read"),
    "disk_write_bytes_per_second": msg("disk written"),
    "net_received_bytes_per_second": msg("net received"),
    "net_sent_bytes_per_second": msg("net sent"),
    "step_seconds": msg("step time"),
    "data_seconds": msg("data time"),
    "images_per_second": msg("images/s"),
    "loss": msg("loss"),
    "gradient_norm": msg("gradient norm"),
    "memory_allocated_bytes": msg("torch allocated"),
    "memory_reserved_bytes": msg("torch reserved"),
    "memory_peak_bytes": msg("torch peak"),
    "learning_rate": msg("learning rate"),
}


def word_of(tr: Translate, name: str) -> str:
    """What a signal is called."""
    known = WORDS.get(name)
    return tr(known) if known is not None else name.replace("_", " ")


def value_words(name: str, value: float | None) -> str:
    """A value with the unit that the signal's name carries."""
    if name.endswith("_percent"):
        return percent(value)
    if name.endswith("_bytes_per_second"):
        return rate(value)
    if name.endswith("_kib_per_second"):
        return rate(None if value is None else value * 1024)
    if name.endswith("_bytes"):
        return size(value)
    if name.endswith("_celsius"):
        return f"{number(value)} °C"
    if name.endswith("_watts"):
        return f"{number(value)} W"
    if name.endswith("_mhz"):
        return f"{number(value, 4)} MHz"
    if name.endswith("_seconds"):
        return seconds(value)
    if value is not None and value == value and abs(value) < 1e6 and value == int(value):
        return f"{value:.0f}"
    return number(value, 4)
