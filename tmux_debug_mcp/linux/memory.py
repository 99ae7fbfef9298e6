"""The memory of this process. Standard library only."""

import ctypes


def give_back() -> None:
    """Give the memory that is free back to the kernel, where the C library doesn't do it itself.

    glibc keeps most of it: what was freed lies between what is in use. Source: malloc_trim(3).
    """
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:  # musl has none
        trim(0)
