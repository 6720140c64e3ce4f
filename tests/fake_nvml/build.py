"""Compile the fake NVML: `python -m tests.fake_nvml.build DIRECTORY` prints the path of the library."""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

LIBRARY = "libnvidia-ml.so.1"
SOURCES = Path(__file__).parent / "src"


class CompilerMissingError(RuntimeError):
    """No C compiler on this machine."""


def build(directory: Path, without: Sequence[str] = ()) -> Path:
    """Compile into `directory` and return the library's path.

    `without` names functions that the library shall not export, as an older driver's does not.

    Raises:
        CompilerMissingError: there is no cc, gcc or clang.
        subprocess.CalledProcessError: the compiler refuses the source.
    """
    compiler = next((found for name in ("cc", "gcc", "clang") if (found := shutil.which(name))), None)
    if compiler is None:
        raise CompilerMissingError("the fake NVML needs a C compiler (cc, gcc or clang)")
    directory.mkdir(parents=True, exist_ok=True)
    library = directory / LIBRARY
    hidden = directory / "hidden.map"
    hidden.write_text("{ local: " + " ".join(f"{name};" for name in without) + " };\n" if without else "")
    command = [compiler, "-std=gnu11", "-O2", "-fPIC", "-shared", "-fvisibility=hidden", "-Wall", "-Wextra"]
    command += [str(source) for source in sorted(SOURCES.glob("*.c"))]
    command += [f"-Wl,--version-script={hidden}"] if without else []
    command += [f"-Wl,-soname,{LIBRARY}", "-o", str(library), "-lm", "-lpthread"]
    subprocess.run(command, check=True, capture_output=True, text=True)
    hidden.unlink()
    return library


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("directory", type=Path)
    parser.add_argument("--without", action="append", default=[], metavar="FUNCTION")
    given = parser.parse_args()
    try:
        sys.stdout.write(f"{build(given.directory, given.without)}\n")
    except CompilerMissingError as error:
        sys.exit(str(error))
    except subprocess.CalledProcessError as error:
        sys.exit(error.stderr)


if __name__ == "__main__":
    main()
