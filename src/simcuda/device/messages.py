"""What PyTorch says when memory runs out, when the host waits unwanted, and when CUDA lacks an operation."""

from __future__ import annotations

import re
import warnings

from simcuda.device.allocator import OutOfMemory

WAITS_ARE_ERRORS = 2
HOST_LACKS_MEMORY = re.compile(r"DefaultCPUAllocator: .*you tried to allocate (\d+) bytes")


def warn_or_raise(sync_debug_mode: int) -> None:
    """What ``torch.cuda.set_sync_debug_mode`` asks for at a wait: 1 warns, 2 raises."""
    message = "called a synchronizing CUDA operation"
    if sync_debug_mode == WAITS_ARE_ERRORS:
        raise RuntimeError(message)
    warnings.warn(message, stacklevel=2)


def out_of_memory_message(device: int, error: OutOfMemory) -> str:
    """The text of ``torch.OutOfMemoryError`` for an allocation that failed."""
    allowed = f"{_size(error.limit)} allowed; " if error.limit < error.capacity else ""
    return (
        f"CUDA out of memory. Tried to allocate {_size(error.requested)}. GPU {device} has a total "
        f"capacity of {_size(error.capacity)} of which {_size(error.free)} is free. Including "
        f"non-PyTorch memory, this process has {_size(error.reserved)} memory in use. {allowed}Of the "
        f"allocated memory {_size(error.allocated)} is allocated by PyTorch, and "
        f"{_size(error.unallocated)} is reserved by PyTorch but unallocated."
    )


def bytes_the_host_lacks(message: str) -> int:
    """How much memory the host's allocator says that it could not find; 0 where a message is another one."""
    found = HOST_LACKS_MEMORY.search(message)
    return int(found[1]) if found else 0


def no_kernel_message(op: str) -> str:
    """The text of ``NotImplementedError`` for an operation that CUDA has no kernel for."""
    name = op.removesuffix(".default").replace(".", "::", 1)
    return (
        f"Could not run '{name}' with arguments from the 'CUDA' backend. "
        "PyTorch has this operation for other backends only."
    )


def no_cpu_kernel_message(op: str) -> str:
    """The text of ``NotImplementedError`` for a custom operation that has a kernel for CUDA alone."""
    name = op.removesuffix(".default").replace(".", "::", 1)
    return (
        f"{name} has a kernel for CUDA alone, which does not run on a simulated CUDA device; "
        "give it one for the CPU, by torch.library.impl or in Python"
    )


def _size(nbytes: int) -> str:
    for unit, name in ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")):
        if nbytes >= unit:
            return f"{nbytes / unit:.2f} {name}"
    return f"{nbytes} bytes"
