"""The way to NVML: the right `pynvml` module, the driver's library, and words for what is wrong."""

from __future__ import annotations

import contextlib
import ctypes
import importlib
import os
import re
import sys
from pathlib import Path
from typing import Any

import msgspec

from yolomon.messages import Message, msg

WSL_LIBRARY = "usr/lib/wsl/lib/libnvidia-ml.so.1"
_NEEDED = ("nvmlMemory_v2", "nvmlDeviceGetFieldValues", "nvmlDeviceGetComputeRunningProcesses_v3")
_VERSION = re.compile(r"\b(\d{3}\.\d+(?:\.\d+)?)\b")

# NVML's return codes, by their number: older pynvml modules lack the newer names.
UNINITIALIZED, NOT_SUPPORTED, NO_PERMISSION, NOT_FOUND, DRIVER_NOT_LOADED, LIBRARY_NOT_FOUND = (
    1,
    3,
    4,
    6,
    9,
    12,
)
FUNCTION_NOT_FOUND, GPU_IS_LOST, RESET_REQUIRED, VERSION_MISMATCH, UNKNOWN = 13, 15, 16, 18, 999


class NvmlFailure(msgspec.Struct, frozen=True):
    """Why NVML cannot be used: a stable word, the cause and the remedy for the user."""

    reason: str
    cause: Message
    remedy: Message


class NvmlUnavailableError(Exception):
    """NVML cannot be used; `failure` says why."""

    def __init__(self, failure: NvmlFailure) -> None:
        super().__init__(str(failure.cause))
        self.failure = failure


class BindingReport(msgspec.Struct, frozen=True):
    """Which `pynvml` module Python finds, for `yolomon doctor`.

    `installed` maps the distributions that provide a module of this name to their versions.
    """

    path: str | None
    installed: dict[str, str]
    failure: NvmlFailure | None


def load_binding() -> Any:  # noqa: ANN401 - the module has no types
    """Import `pynvml` of nvidia-ml-py; only now, since it takes 3 MB.

    Raises:
        NvmlUnavailableError: it is missing, or another package's module of that name hides it (nvitop#4).
    """
    try:
        module = importlib.import_module("pynvml")
    except ImportError as error:
        raise NvmlUnavailableError(
            NvmlFailure(
                "no-binding",
                msg("The Python package nvidia-ml-py cannot be imported: {error}", error=str(error)),
                msg("Install it: pip install nvidia-ml-py"),
            )
        ) from error
    if all(hasattr(module, name) for name in _NEEDED):
        return module
    raise NvmlUnavailableError(
        NvmlFailure(
            "wrong-binding",
            msg(
                "The module pynvml at {path} is not NVIDIA's current one: an old package hides nvidia-ml-py",
                path=str(getattr(module, "__file__", None)),
            ),
            msg("Run: pip uninstall -y pynvml nvidia-ml-py3 && pip install --force-reinstall nvidia-ml-py"),
        )
    )


def binding_report() -> BindingReport:
    """Look at the `pynvml` module without starting NVML."""
    from importlib import metadata  # 2 MB that only this needs

    installed = {}
    for name in ("nvidia-ml-py", "pynvml", "nvidia-ml-py3"):
        try:
            installed[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    failure = None
    try:
        load_binding()
    except NvmlUnavailableError as error:
        failure = error.failure
    return BindingReport(getattr(sys.modules.get("pynvml"), "__file__", None), installed, failure)


def start_nvml(nvml: Any, root: Path) -> tuple[int, str | None]:  # noqa: ANN401 - pynvml has no types
    """Start NVML; the number of GPUs and the driver's version. May block as long as the driver likes.

    Raises:
        NvmlUnavailableError: NVML does not start, with its cause and the remedy.
    """
    wsl_library = root / WSL_LIBRARY
    if is_wsl(root) and wsl_library.exists():
        # Often off the loader's path; once loaded, pynvml finds it by its name.
        with contextlib.suppress(OSError):  # pynvml's own attempt fails likewise, and is explained
            ctypes.CDLL(str(wsl_library), mode=ctypes.RTLD_GLOBAL)
    try:
        nvml.nvmlInit()
        count = int(nvml.nvmlDeviceGetCount())
    except nvml.NVMLError as error:
        raise NvmlUnavailableError(explain(error.value, str(error), library_version(nvml), root)) from error
    try:
        driver = plain(nvml.nvmlSystemGetDriverVersion())
    except (nvml.NVMLError, UnicodeDecodeError):
        driver = None
    return count, driver


def library_version(nvml: Any) -> str | None:  # noqa: ANN401
    """The driver version that the library belongs to. NVML answers this also where it does not start."""
    try:
        text = plain(nvml.nvmlSystemGetNVMLVersion())
    except (nvml.NVMLError, UnicodeDecodeError, AttributeError):
        return None
    return text.split(".", 1)[1] if text.count(".") >= 2 else text


def kernel_module_version(root: Path) -> str | None:
    """The version of the driver that the kernel runs, from /proc/driver/nvidia/version."""
    try:
        text = (root / "proc/driver/nvidia/version").read_text(errors="replace")
    except OSError:
        return None
    found = _VERSION.search(text)
    return found.group(1) if found else None


def is_wsl(root: Path) -> bool:
    """Whether this is a Linux under Windows."""
    try:
        return "microsoft" in (root / "proc/version").read_text(errors="replace").lower()
    except OSError:
        return False


def in_container(root: Path) -> bool:
    """Whether this is a container, by the marks that docker, podman and Kubernetes leave."""
    if (root / ".dockerenv").exists() or (root / "run/.containerenv").exists():
        return True
    return "KUBERNETES_SERVICE_HOST" in os.environ


def explain(code: int | None, text: str, library: str | None, root: Path) -> NvmlFailure:
    """Say what an NVML error at start means and what helps.

    Args:
        code: NVML's return code; None where there is none.
        text: the error as NVML says it.
        library: the version of the user-space library, if known.
        root: where /proc and the container's marks are.
    """
    container = in_container(root)
    if code == VERSION_MISMATCH:  # shine-cluster#30: an unattended upgrade in the middle of a run
        return NvmlFailure(
            "version-mismatch",
            msg(
                "The NVIDIA driver was updated while in use: kernel module {kernel}, library {library}",
                kernel=kernel_module_version(root) or "?",
                library=library or "?",
            ),
            msg(
                "The running training goes on. Reboot when it is done, or unload and load the nvidia modules"
            ),
        )
    if code == UNKNOWN and container:  # nvidia-container-toolkit#48
        return NvmlFailure(
            "container-lost",
            msg("The container lost its GPU devices, as after `systemctl daemon-reload` on the host"),
            msg(
                "The running training goes on. Restart the container afterwards; to prevent it, "
                "start it with --device for each /dev/nvidia*, or set cgroupfs as Docker's cgroup driver"
            ),
        )
    if code in (DRIVER_NOT_LOADED, LIBRARY_NOT_FOUND) and is_wsl(root):
        return NvmlFailure(
            "no-driver",
            msg("No NVIDIA driver is reachable in this WSL"),
            msg(
                "Update the NVIDIA driver of Windows and run wsl --update; the library is in /usr/lib/wsl/lib"
            ),
        )
    if code in (DRIVER_NOT_LOADED, LIBRARY_NOT_FOUND) and container:
        return NvmlFailure(
            "no-driver",
            msg("This container has no access to an NVIDIA driver"),
            msg("Start it with --gpus all and the NVIDIA container toolkit"),
        )
    if code == LIBRARY_NOT_FOUND:
        return NvmlFailure(
            "no-driver",
            msg("No NVIDIA driver is installed (libnvidia-ml.so.1 was not found)"),
            msg("Install the NVIDIA driver if this machine has an NVIDIA GPU"),
        )
    if code == DRIVER_NOT_LOADED:
        return NvmlFailure(
            "no-driver",
            msg("The NVIDIA kernel driver is not loaded"),
            msg("Load it: sudo modprobe nvidia; nvidia-smi should then list the GPUs"),
        )
    if code == NO_PERMISSION:
        return NvmlFailure(
            "no-permission",
            msg("This user may not use the NVIDIA devices"),
            msg("Check the permissions of /dev/nvidia*, and the groups of this user"),
        )
    return NvmlFailure(
        "nvml-error",
        msg("NVML does not work: {error}", error=text),
        msg("See what nvidia-smi and `sudo dmesg | grep -i nvrm` say; a reboot may be needed"),
    )


def plain(text: bytes | str) -> str:
    """A name from the driver as printable text: bytes that are no UTF-8 replaced, control characters dropped.

    Drivers have handed out names that are no UTF-8 (nvitop#127).
    """
    if isinstance(text, bytes):
        text = text.decode("utf-8", errors="replace")
    return "".join(character for character in text if character.isprintable())


def gpus_of_kernel(root: Path) -> list[tuple[str, str, str]]:
    """(bus id, UUID, model) of each GPU as the kernel driver tells them, in PCI order, which is NVML's.

    For a GPU that is lost or does not answer when NVML starts. Empty where /proc has no such files.
    """
    found = []
    for file in sorted((root / "proc/driver/nvidia/gpus").glob("*/information")):
        try:
            lines = file.read_text(errors="replace").splitlines()
        except OSError:
            continue
        facts = {
            key.strip(): plain(value.strip()) for key, _, value in (line.partition(":") for line in lines)
        }
        if facts.get("GPU UUID", "").startswith("GPU-"):
            found.append((file.parent.name, facts["GPU UUID"], facts.get("Model", "")))
    return found
