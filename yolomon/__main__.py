"""`python -m yolomon` and the `yolomon` command."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line; exit status 0, 1 (findings, or nothing to do) or 2 (bad input)."""
    from yolomon.cli import cli

    try:
        cli(prog_name="yolomon")
    except BrokenPipeError:  # `yolomon diagnose ... | head`
        sys.stderr.close()
        sys.exit(0)
    except OSError as error:  # stdout on a full disk; the commands answer for the files that they open
        where = "the output" if error.filename is None else repr(error.filename)
        sys.stderr.write(f"yolomon: {where}: {error.strerror or error}\n")
        sys.exit(2)


if __name__ == "__main__":
    main()
