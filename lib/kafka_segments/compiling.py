"""Compile functions with numba, and keep what was compiled wherever a process may write.

1. numba keeps it in ``NUMBA_CACHE_DIR``, else beside the sources, else in the user's own cache: in
   the first of these that can be written to. Where none can, it would end the import. Here a folder
   of this user's own among the temporary files comes last, and then none: each process compiles.
2. What lies in ``NUMBA_CACHE_DIR`` or beside the sources is taken too where it may be read only. So
   an image holds what was compiled while it was built, whatever user it runs as.
3. What was compiled is taken as long as nothing has changed that may go into it: numba looks at the
   function's own file alone, and goes on running what was compiled of others before.
4. A folder that is full, or that another user owns, ends nothing: its functions are compiled anew.

Only what is kept is called from Python. Other functions are called by compiled ones alone and get
no entry for Python, and LLVM inlines them (``forceinline``): inlined by numba, their types are
inferred anew at each call. Both halve the time of the first run.
"""

import os
import stat
import tempfile
from collections.abc import Callable
from contextlib import suppress
from importlib.resources import files
from pathlib import Path
from typing import Any

import numba
import numpy as np
from numba.core.caching import (
    CompileResultCacheImpl,
    FunctionCache,
    InTreeCacheLocator,
    IPythonCacheLocator,
    NullCache,
    UserProvidedCacheLocator,
    UserWideCacheLocator,
    ZipCacheLocator,
)
from numba.core.registry import CPUDispatcher

from kafka_segments.compiled_sources import compiled_sources

_SOURCES = compiled_sources(files(__package__))

COMPILED_NOW: set[str] = set()
"""The functions that this process is compiling: a first run takes seconds for them."""


class _OfUser(UserWideCacheLocator):  # type: ignore[misc]
    """The user's own cache; none where nothing says where the user's files lie."""

    def ensure_cache_path(self) -> None:
        if not Path(self.get_cache_path()).is_absolute():
            raise FileNotFoundError(self.get_cache_path())
        super().ensure_cache_path()


class _Temporary(UserWideCacheLocator):  # type: ignore[misc]
    """A folder among the temporary files that this user alone may open: it holds code to run."""

    def __init__(self, function: Callable[..., Any], source: str) -> None:
        super().__init__(function, source)
        self._own = Path(tempfile.gettempdir(), f"kafka-segments-compiled-{os.getuid()}")
        self._cache_path = str(self._own / self.get_suitable_cache_subpath(source))

    def ensure_cache_path(self) -> None:
        self._own.mkdir(mode=0o700, exist_ok=True)
        found = self._own.lstat()
        is_own = stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid()
        if not is_own or found.st_mode & 0o077:
            raise PermissionError(f"{self._own} is not this user's alone")
        super().ensure_cache_path()


class _ReadOnly:
    """A folder that is there and that this process may not write to."""

    def ensure_cache_path(self) -> None:
        path = Path(self.get_cache_path())  # type: ignore[attr-defined]
        if not path.is_dir() or os.access(path, os.W_OK):
            raise FileNotFoundError(path)


class _GivenReadOnly(_ReadOnly, UserProvidedCacheLocator):  # type: ignore[misc]
    pass


class _BesideReadOnly(_ReadOnly, InTreeCacheLocator):  # type: ignore[misc]
    pass


def _kind(*locators: type) -> type[Any]:
    """Return a cache that lies in the first of some folders that can be had."""

    class _Impl(CompileResultCacheImpl):  # type: ignore[misc]
        _locator_classes = locators

    class _Cache(FunctionCache):  # type: ignore[misc]
        _impl_class = _Impl

        def _index_key(self, signature: Any, codegen: Any) -> Any:
            return (*super()._index_key(signature, codegen), _SOURCES)

    return _Cache


_KINDS = (
    _kind(
        *(UserProvidedCacheLocator, InTreeCacheLocator, _OfUser),
        *(IPythonCacheLocator, ZipCacheLocator, _Temporary),
    ),
    _kind(_GivenReadOnly),
    _kind(_BesideReadOnly),
)


class _Compiled(NullCache):  # type: ignore[misc]
    """What was compiled of a function: taken from where it lies, kept in the first folder."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._caches: list[Any] = []
        self._name = f"{function.__module__}.{function.__qualname__}"
        for kind in _KINDS:
            with suppress(RuntimeError, OSError):  # there is no such folder
                self._caches.append(kind(function))

    @property
    def cache_path(self) -> str | None:
        return self._caches[0].cache_path if self._caches else None

    def load_overload(self, signature: Any, context: Any) -> Any:
        for cache in self._caches:
            with suppress(OSError):
                found = cache.load_overload(signature, context)
                if found is not None:
                    return found
        COMPILED_NOW.add(self._name)
        return None

    def save_overload(self, signature: Any, result: Any) -> None:
        COMPILED_NOW.discard(self._name)
        for cache in self._caches[:1]:
            with suppress(OSError):
                cache.save_overload(signature, result)


class _Inner(CPUDispatcher):  # type: ignore[misc]
    """A function for compiled ones: a call from Python would end the process."""

    def __call__(self, *_: object) -> Any:
        raise TypeError(f"{self.py_func.__name__} is for compiled functions: give it a cache")


def _njit(
    function: Callable[..., Any] | None = None, *, cache: bool = False, **options: Any
) -> Any:
    if function is None:
        return lambda function: _njit(function, cache=cache, **options)
    dispatcher = numba.njit(no_cfunc_wrapper=True, no_cpython_wrapper=not cache, **options)(
        function
    )
    if cache:
        dispatcher._cache = _Compiled(function)
    elif not numba.config.DISABLE_JIT:
        dispatcher.__class__ = _Inner
    return dispatcher


if numba.config.DISABLE_JIT:
    np.seterr(over="ignore")  # integers wrap as compiled ones do

njit: Any = _njit
"""numba's ``njit``, but for where ``cache`` keeps what was compiled, and who may call the rest."""
