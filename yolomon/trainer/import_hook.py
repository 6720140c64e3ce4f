"""Run a function when a module has been imported, in processes that only import it later."""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import importlib.util
import sys
from collections.abc import Callable, Sequence
from types import ModuleType


class AfterImport(importlib.abc.MetaPathFinder):
    """A finder that finds nothing by itself: it lets the others find the named modules and adds a call.

    Args:
        names: dotted module names.
        call: gets the module once its code has run.
    """

    def __init__(self, names: Sequence[str], call: Callable[[ModuleType], None]) -> None:
        self._names = set(names)
        self._call = call

    def install(self) -> None:
        """Look out from now on. Modules already imported are called for at once."""
        for name in sorted(self._names & set(sys.modules)):
            self._call(sys.modules[name])
        sys.meta_path.insert(0, self)

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """The spec that the other finders give, with a loader that calls afterwards."""
        if fullname not in self._names:
            return None
        for finder in sys.meta_path:
            find = getattr(finder, "find_spec", None)
            if finder is self or find is None:
                continue
            spec: importlib.machinery.ModuleSpec | None = find(fullname, path, target)
            if spec is not None:
                if spec.loader is not None:
                    spec.loader = _CallingLoader(spec.loader, self._call)
                return spec
        return None


class _CallingLoader(importlib.abc.Loader):
    def __init__(self, loader: importlib.abc.Loader, call: Callable[[ModuleType], None]) -> None:
        self._loader = loader
        self._call = call

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType | None:
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        module.__loader__ = self._loader
        if module.__spec__ is not None:
            module.__spec__.loader = self._loader  # the module looks as if imported without us
        self._loader.exec_module(module)
        self._call(module)
