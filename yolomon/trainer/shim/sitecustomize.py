"""Python runs this at start-up in the processes of `yolomon run`; see yolomon/trainer/autoattach.py.

Another sitecustomize further down the path is run as it would have been. Whatever fails here is one line
on the error stream: the command goes on.
"""

import importlib.machinery
import importlib.util
import os
import sys

_SHIM = os.path.dirname(os.path.abspath(__file__))  # noqa: PTH100, PTH120 - pathlib would slow every start
_PACKAGE = os.path.dirname(os.path.dirname(_SHIM))  # noqa: PTH120


def _run_shadowed() -> None:
    """Run the sitecustomize that this one hides."""
    paths = [p for p in sys.path if os.path.abspath(p or os.curdir) != _SHIM]  # noqa: PTH100
    spec = importlib.machinery.PathFinder.find_spec("sitecustomize", paths)
    if spec is None or spec.loader is None:
        return
    module = importlib.util.module_from_spec(spec)
    sys.modules["sitecustomize"] = module
    spec.loader.exec_module(module)


class _LentPackage:
    """Finds yolomon where `yolomon run` has it, in a Python that has none, and nothing else there."""

    @staticmethod
    def find_spec(fullname, path=None, target=None):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN205
        if fullname != "yolomon":
            return None
        start = os.path.join(_PACKAGE, "__init__.py")  # noqa: PTH118
        return importlib.util.spec_from_file_location(fullname, start, submodule_search_locations=[_PACKAGE])


_shadowed_error = None
try:
    _run_shadowed()
except Exception as _error:  # noqa: BLE001 - raised again below: Python reports it as it would without us
    _shadowed_error = _error
try:
    sys.meta_path.append(_LentPackage)  # last: an installed yolomon comes first
    from yolomon.trainer.autoattach import install

    install()
except Exception as _error:  # noqa: BLE001 - the user's command must run, whatever is wrong here
    sys.stderr.write(f"yolomon run: nothing is recorded, cannot attach: {type(_error).__name__}: {_error}\n")
if _shadowed_error is not None:
    raise _shadowed_error
