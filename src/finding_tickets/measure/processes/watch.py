# Every call of a worker waits for this: pathlib would make it wait longer.
# ruff: noqa: PTH110, PTH115, PTH116, PTH120
"""See every file that a worker and its children use, and keep them away from all other processes.

A worker installs a filter of system calls (seccomp) that cannot be taken off and that its children inherit.
The kernel stops each call that names a file or another process and asks the server, which notes what is named
and lets the call go on or refuses it. Sources: seccomp(2) and seccomp_unotify(2) of the Linux manual, and
linux/seccomp.h, linux/filter.h and the tables of system calls of x86-64 and of arm64.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import json
import os
import platform
import socket
import stat
import struct
import sys
import sysconfig
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal, cast

from finding_tickets.measure.tasks import COPY

How = Literal["read", "looked", "linked", "listed", "written", "ran", "loaded"]
State = tuple[int, int] | None

MOST_ACCESSES, MOST_REASONS = 20_000, 100
LONGEST_PATH, PAGE, MOST_LINKS = 4096, 4096, 40
UNWATCHED = "what it reads cannot be watched here"
# What calls do, where their arguments say with what, and their names with their numbers on x86-64 and arm64
# (-1: there is none). For paths these are the places of a folder's descriptor (-1: the current folder) and of
# the path; else that of the process, the signal, the descriptor or the address, or the error of the answer.
# A "kind" is PRIO_PROCESS or IOPRIO_WHO_PROCESS, and those after it mean groups and users.
CALLS: tuple[tuple[str, tuple[int, ...], str], ...] = (
    ("open", (-1, 0), "open:2:-1"),
    ("open", (0, 1), "openat:257:56"),
    ("openat2", (0, 1), "openat2:437:437"),
    ("looked", (-1, 0), "stat:4:-1 lstat:6:-1 access:21:-1"),
    ("looked", (0, 1), "newfstatat:262:79 statx:332:291 faccessat:269:48 faccessat2:439:439"),
    ("linked", (-1, 0), "readlink:89:-1"),
    ("linked", (0, 1), "readlinkat:267:78"),
    ("listed", (-1, 0), "chdir:80:49"),
    ("ran", (-1, 0), "execve:59:221"),
    ("ran", (0, 1), "execveat:322:281"),
    ("written", (-1, 0), "creat:85:-1 truncate:76:45 unlink:87:-1 rmdir:84:-1 mkdir:83:-1"),
    ("written", (0, 1), "unlinkat:263:35 mkdirat:258:34"),
    ("written", (-1, 1), "symlink:88:-1"),
    ("written", (1, 2), "symlinkat:266:36"),
    ("written", (-1, 0, -1, 1), "rename:82:-1 link:86:-1"),
    ("written", (0, 1, 2, 3), "renameat:264:38 renameat2:316:276 linkat:265:37"),
    ("signal", (1,), "kill:62:129 tkill:200:130 rt_sigqueueinfo:129:138"),
    ("signal", (2,), "tgkill:234:131 rt_tgsigqueueinfo:297:240"),
    (
        "process",
        (0,),
        "pidfd_open:434:434 process_vm_readv:310:270 process_vm_writev:311:271 prlimit64:302:261",
    ),
    ("process", (0,), "sched_setparam:142:118 sched_setscheduler:144:119 sched_setaffinity:203:122"),
    ("process", (0,), "sched_setattr:314:274"),
    ("process", (1,), "ptrace:101:117"),
    ("kind", (0,), "setpriority:141:140"),
    ("kind", (1,), "ioprio_set:251:30"),
    ("descriptor", (0,), "pidfd_send_signal:424:424 pidfd_getfd:438:438 process_madvise:440:440"),
    ("owner", (2,), "fcntl:72:25"),
    ("address", (1,), "connect:42:203"),
    ("address", (4,), "sendto:44:206"),
    ("message", (1,), "sendmsg:46:211 sendmmsg:307:269"),
    # What would lead past the filter: files without paths, calls in rings or with flags in memory (the C
    # library then calls clone), other meanings of paths and processes, memory that answers when it likes.
    ("refused", (errno.ENOSYS,), "io_uring_setup:425:425 clone3:435:435"),
    # Memory, messages and keys that outlive a process and have no path: one variant would tell another.
    ("refused", (errno.EPERM,), "shmget:29:194 shmat:30:196 semget:64:190 semop:65:193 semctl:66:191"),
    ("refused", (errno.EPERM,), "msgget:68:186 msgsnd:69:189 msgrcv:70:188 semtimedop:220:192"),
    ("refused", (errno.EPERM,), "mq_open:240:180 add_key:248:217 request_key:249:218 keyctl:250:219"),
    (
        "refused",
        (errno.EPERM,),
        "open_by_handle_at:304:265 userfaultfd:323:282 fanotify_init:300:262 bpf:321:280",
    ),
    ("refused", (errno.EPERM,), "mount:165:40 umount2:166:39 pivot_root:155:41 chroot:161:51 setns:308:268"),
    ("refused", (errno.EPERM,), "open_tree:428:428 move_mount:429:429 fsopen:430:430 fsmount:432:432"),
    ("refused", (errno.EPERM,), "fspick:433:433 mount_setattr:442:442 open_tree_attr:467:467"),
)
# Of these frequent calls the filter itself sees which matter: their numbers, where the argument is in what
# the kernel says of a call (16 + 8 * its place), the values or bits that matter, and the answer to those.
EQUAL, BITS, ASK = 0x15, 0x45, -1
# No namespace holds back sockets of some families, such as AF_VSOCK, which lead to the host of a machine.
OTHER_FAMILIES = tuple(sorted({*range(1, 64)} - {socket.AF_UNIX, socket.AF_INET, socket.AF_INET6, 16, 17}))
NAMESPACES = 0x00020000 | 0x10000000 | 0x20000000  # CLONE_NEWNS, CLONE_NEWUSER, CLONE_NEWPID
BY_ARGUMENT = (
    ((56, 220), (16,), BITS, (NAMESPACES,), errno.EPERM),  # clone
    ((272, 97), (16,), BITS, (NAMESPACES,), errno.EPERM),  # unshare
    ((16, 29), (24,), EQUAL, (0x8901, 0x8902), errno.EPERM),  # ioctl: FIOSETOWN, SIOCSPGRP
    ((41, 198), (16,), EQUAL, OTHER_FAMILIES, errno.EAFNOSUPPORT),  # socket
    ((72, 25), (24,), EQUAL, (8, 15), ASK),  # fcntl: F_SETOWN, F_SETOWN_EX
    ((44, 206), (48, 52), BITS, (0xFFFFFFFF,), ASK),  # sendto: an address, which has 64 bits
)
# What libraries read of their own process and of the processors.
SYSTEM = ("/proc/self/", "/proc/thread-self/", "/sys/devices/system/cpu/")
INSTALLED = ("site-packages", "dist-packages")
# What anybody may know of a process.
PUBLIC = {"stat", "statm", "status", "cmdline", "comm", "cgroup", "limits"}
MACHINES: dict[str, tuple[int, int]] = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}
SECCOMP_CALL, PIDFD_GETFD = (317, 277), 438
PR_SET_NO_NEW_PRIVS = 38
SECCOMP_SET_MODE_FILTER = 1
SPEC_ALLOW, NEW_LISTENER, WAIT_KILLABLE = 1 << 2, 1 << 3, 1 << 5
RET_ALLOW, RET_ASK, RET_ERRNO = 0x7FFF0000, 0x7FC00000, 0x00050000
LOAD, AT_LEAST, RETURN = 0x20, 0x35, 0x06
RECEIVE, ANSWER, SET_FLAGS, SYNC_WAKE_UP = 0xC0502100, 0xC0182101, 0x40082104, 1
CONTINUE, READY = 1, b"."
NOTICE, REPLY = struct.Struct("=QIIiIQ6Q"), struct.Struct("=QqiI")
# A filter is its length and the address of its instructions: code, how many to skip if true or not, a number.
PROGRAM, INSTRUCTION = struct.Struct("H6xP"), struct.Struct("HBBI")


@dataclass(frozen=True)
class Access:
    """A path, absolute and without ``..``, what was done there first, and what was there at that moment.

    ``state`` is the size in bytes and the time of the last change in nanoseconds, of what a symbolic link
    leads to; None where nothing was there. A path through links stands beside the one that they lead to.
    """

    path: str
    how: How
    state: State


class _Span(ctypes.Structure):
    _fields_ = [("base", ctypes.c_void_p), ("length", ctypes.c_size_t)]


def install(channel: socket.socket) -> None:
    """Have the server asked from now on, and send it what the kernel asks it by; or send why this fails."""
    # The server says whether it could take it.
    if channel.recv(1) != READY:
        return
    column = MACHINES[platform.machine()][0] if platform.machine() in MACHINES else -1
    listener, why = -1, f"no filter for {platform.machine()}"
    if column >= 0:
        libc = ctypes.CDLL(None, use_errno=True)
        libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
        instructions = b"".join(INSTRUCTION.pack(*each) for each in _filter(column))
        content = ctypes.create_string_buffer(instructions, len(instructions))
        program = PROGRAM.pack(len(instructions) // INSTRUCTION.size, ctypes.addressof(content))
        # Older kernels do not know the last flag: without it a signal interrupts a call that waits.
        for more in (WAIT_KILLABLE, 0):
            listener = libc.syscall(
                SECCOMP_CALL[column], SECCOMP_SET_MODE_FILTER, SPEC_ALLOW | NEW_LISTENER | more, program
            )
            if listener >= 0:
                break
            why = os.strerror(ctypes.get_errno())
    # The filter has begun, so that no descriptor can be sent: the server takes it by its number.
    channel.send(str(listener).encode() if listener >= 0 else why.encode())
    channel.recv(1)
    if listener >= 0:
        os.close(listener)


def _filter(column: int) -> Iterator[tuple[int, int, int, int]]:
    """The filter for a machine, whose numbers of system calls stand in this column of the tables."""
    _, audited = list(MACHINES.values())[column]
    refuse = RETURN, 0, 0, RET_ERRNO | errno.ENOSYS
    # Calls of another machine, such as those of 32 bits, have other numbers.
    yield LOAD, 0, 0, 4
    yield EQUAL, 1, 0, audited
    yield refuse
    yield LOAD, 0, 0, 0
    yield AT_LEAST, 0, 1, 0x40000000
    yield refuse
    for numbers, offsets, test, values, answer in BY_ARGUMENT:
        found = RETURN, 0, 0, RET_ASK if answer == ASK else RET_ERRNO | answer
        yield EQUAL, 0, len(offsets) * (1 + 2 * len(values)) + 1, numbers[column]
        for offset in offsets:
            yield LOAD, 0, 0, offset
            for value in values:
                yield test, 0, 1, value
                yield found
        yield RETURN, 0, 0, RET_ALLOW
    for number, (what, places) in _calls(column).items():
        yield EQUAL, 0, 1, number
        yield RETURN, 0, 0, RET_ERRNO | places[0] if what == "refused" else RET_ASK
    yield RETURN, 0, 0, RET_ALLOW


def _calls(column: int) -> dict[int, tuple[str, tuple[int, ...]]]:
    """What is done with each call of a machine, by its number."""
    numbers = (
        (int(call.split(":")[1 + column]), what, places)
        for what, places, names in CALLS
        for call in names.split()
    )
    return {number: (what, places) for number, what, places in numbers if number >= 0}


class Watch:
    """What the server knows of one worker and of those that it started, and what it lets them do.

    ``file`` is to be polled, and ``answer`` to be called when it can be read. Paths below ``folder``, the
    server's own, are refused to them, but for those below ``own``, which nobody notes. With ``code``, a copy
    of this folder is in ``COPY`` below ``own``, and what is used of the copy is noted as used there.
    """

    def __init__(self, worker: int, channel: socket.socket, folder: str, own: str, code: str = "") -> None:
        self._worker, self._channel, self._listener = worker, channel, -1
        self.file = channel.fileno()
        self._folder, self._own, self._code = folder, own, code
        self._written: set[str] = set()
        self._accesses: dict[tuple[str, str], State] = {}
        self._unseen: dict[str, None] = {}
        column, _ = MACHINES.get(platform.machine(), (0, 0))
        self._calls = _calls(column)
        self._notice, self._reply = bytearray(NOTICE.size), bytearray(REPLY.size)
        ready = self._take(0)
        if ready >= 0:
            os.close(ready)
        with suppress(OSError):
            channel.send(READY if ready >= 0 else b"no")

    def close(self, results: str) -> None:
        """Stop watching, and write down what was seen, as ``read_accesses`` reads it."""
        if self._listener >= 0:
            os.close(self._listener)
        self._channel.close()
        accesses = [[path, how, state] for (path, how), state in self._accesses.items()]
        # Without room for this the worker had none either, or a reason is missing, which the caller sees.
        with suppress(OSError):
            Path(results).write_text(json.dumps([accesses, list(self._unseen)]), encoding="ascii")

    def answer(self) -> bool:
        """Take one message or answer one call; False when there is nothing more to watch."""
        if self._listener < 0:
            return self._begin()
        self._notice[:] = bytes(NOTICE.size)
        try:
            fcntl.ioctl(self._listener, RECEIVE, self._notice)
        except InterruptedError:
            return True
        except OSError as error:
            # The caller of the call was killed meanwhile.
            return error.errno == errno.ENOENT
        identity, process, _, number, _, _, *arguments = NOTICE.unpack(self._notice)
        kind, places = self._calls[number]
        seen: list[tuple[str, How, State]] = []
        try:
            if len(places) > 1:
                refusal = self._use_paths(process, kind, places, arguments, seen)
            else:
                refusal = self._use_other(process, kind, places[0], arguments)
        except OSError as error:
            refusal = error.errno or errno.EFAULT
        REPLY.pack_into(self._reply, 0, identity, 0, -refusal, 0 if refusal else CONTINUE)
        with suppress(OSError):
            fcntl.ioctl(self._listener, ANSWER, self._reply)
            for path, how, state in seen:
                self._note(path, how, state)
        return True

    def _begin(self) -> bool:
        """Receive the listener, or the reason why there is none."""
        said = b""
        with suppress(OSError):
            said = self._channel.recv(PAGE)
        if said.isdigit():
            self._listener = self._take(int(said))
            self.file = self._listener if self._listener >= 0 else self.file
        # The worker waits for this, and has then closed what it could answer itself by.
        with suppress(OSError):
            self._channel.send(READY)
        if self._listener >= 0:
            # The worker and the server then take turns on one processor; older kernels have no such flag.
            with suppress(OSError):
                fcntl.ioctl(self._listener, SET_FLAGS, SYNC_WAKE_UP)
        elif said:
            self._say(f"{UNWATCHED}: {said.decode()}")
        return self._listener >= 0

    def _take(self, descriptor: int) -> int:
        """A copy of an open file of the worker; -1 if the system refuses it, and then that is said."""
        found = -1
        with suppress(OSError):
            worker = os.pidfd_open(self._worker)
            found = _LIBC.syscall(PIDFD_GETFD, worker, descriptor, 0)
            if found < 0:
                self._say(f"{UNWATCHED}: {os.strerror(ctypes.get_errno())}")
            os.close(worker)
        return found

    def _note(self, path: str, how: How, state: State) -> None:
        copy = f"{self._own}/{COPY}"
        if self._code and f"{path}/".startswith(f"{copy}/") and path not in self._written:
            if how == "written":
                # What it made or changed there is its own from now on.
                self._written.add(path)
                return
            path = self._code + path.removeprefix(copy)
        if (path, how) in self._accesses or _is_left_out(path) or path.startswith(f"{self._folder}/"):
            return
        if path.startswith("/proc/") and (first := path.split("/")[2]).isdigit() and self._owns(int(first)):
            return
        if len(self._accesses) < MOST_ACCESSES:
            self._accesses[path, how] = state
        else:
            self._say(f"it used more than {MOST_ACCESSES} files")

    def _say(self, what: str) -> None:
        if len(self._unseen) < MOST_REASONS:
            self._unseen[what] = None

    def _use_paths(
        self,
        process: int,
        kind: str,
        places: Sequence[int],
        arguments: Sequence[int],
        seen: list[tuple[str, How, State]],
    ) -> int:
        """The error that a call ends with, or 0 and what is to be noted of its paths."""
        for folder, place in zip(places[::2], places[1::2], strict=True):
            # Without a name the call is about a descriptor, or the kernel refuses it.
            if not arguments[place] or not (name := os.fsdecode(_read_text(process, arguments[place]))):
                continue
            if not name.startswith("/"):
                number = -1 if folder < 0 else ctypes.c_int(arguments[folder]).value
                base = os.readlink(f"/proc/{process}/" + ("cwd" if number < 0 else f"fd/{number}"))
                name = f"{base}/{name}"
            real, there = _resolve(process, name)
            is_folder = there is not None and stat.S_ISDIR(there.st_mode)
            hows: tuple[str, ...] = (kind,)
            # From a folder that is open or current, others can be reached by names that say nothing of it.
            judged = kind
            if kind.startswith("open"):
                flags = arguments[place + 1]
                if kind == "openat2":
                    flags = int.from_bytes(_read_memory(process, flags, 8), "little")
                writes, reads = flags & os.O_ACCMODE != os.O_RDONLY, flags & os.O_ACCMODE != os.O_WRONLY
                writes |= bool(flags & (os.O_CREAT | os.O_TRUNC))
                hows = (*["listed" if is_folder else "read"][: reads and not flags & os.O_TRUNC],)
                hows += ("written",) if writes else ()
                if flags & os.O_PATH:
                    hows = ("looked",)
                judged = "written" if writes else "listed"
            elif kind == "listed":
                hows = ("looked",)
            elif kind == "linked":
                hows, judged = ("looked", "linked"), "looked"
            elif kind == "ran":
                seen += _interpreters(process, real)
            if there is None:
                hows = tuple(each if each in {"written", "linked"} else "looked" for each in hows)
            path = real if "/../" in f"{name}/" else os.path.normpath(name)
            if refusal := self._refusal(path, judged) or self._refusal(real, judged):
                return refusal
            state = (there.st_size, there.st_mtime_ns) if there else None
            seen += [(each, cast("How", how), state) for how in hows for each in dict.fromkeys([path, real])]
        return 0

    def _refusal(self, path: str, how: str) -> int:
        """The error for using a path, or 0: results of other workers, other processes, what stops them."""
        below = f"{path}/"
        if below.startswith(f"{self._folder}/"):
            if below.startswith(f"{self._own}/"):
                return 0
            return 0 if how == "looked" and self._own.startswith(below) else errno.EACCES
        if path.startswith("/proc/"):
            first, _, rest = path.removeprefix("/proc/").partition("/")
            if first.isdigit():
                rest = rest.split("/", 2)[-1] if rest.startswith("task/") else rest
                is_public = how != "written" and (rest in PUBLIC or not rest)
                is_own = rest != "mem" and self._owns(int(first))
                return 0 if is_public or is_own else errno.EACCES
            return errno.EACCES if how == "written" and first not in {"self", "thread-self"} else 0
        # Control groups can stop or end processes.
        is_refused = path == "/dev/userfaultfd" or (how == "written" and path.startswith("/sys/"))
        return errno.EACCES if is_refused else 0

    def _use_other(self, process: int, kind: str, place: int, arguments: Sequence[int]) -> int:
        """The error that a call ends with that is about a process or the network; 0 if it may go on."""
        first, value = (ctypes.c_int(arguments[each]).value for each in (0, place))
        if kind in {"address", "message"}:
            self._say_address(process, kind, arguments[place])
            return 0
        if kind == "signal":
            # Signal 0 only asks whether somebody is there.
            reached = value == 0 or self._reaches(first)
        elif kind == "kind":
            who = ctypes.c_int(arguments[1]).value
            reached = not who or self._reaches(who if first == place else -who)
            reached &= first - place in {0, 1}
        elif kind == "descriptor":
            reached = self._reaches(max(0, _process_of(process, value)))
        elif kind == "owner":
            reached = ctypes.c_int(arguments[1]).value == BY_ARGUMENT[3][3][0] and self._reaches(value)
        else:
            reached = self._reaches(value)
        return 0 if reached else errno.EPERM

    def _say_address(self, process: int, kind: str, address: int) -> None:
        """Say what a call connects or sends to."""
        if kind == "message":
            address = int.from_bytes(_read_memory(process, address, 8), "little")
        if not address:
            return
        family = int.from_bytes(_read_memory(process, address, 2), "little")
        if family == socket.AF_UNIX:
            name = os.fsdecode(_read_text(process, address + 2))
            # Many libraries ask for a service that hardly any system has.
            if name and not os.path.exists(name):
                self._note(name, "looked", None)
            elif not name.startswith(f"{self._folder}/"):
                self._say(f"connects to the socket {name or 'of a program'}")
        elif family in (socket.AF_INET, socket.AF_INET6):
            is_old = family == socket.AF_INET
            content = _read_memory(process, address, 8 if is_old else 24)
            host = socket.inet_ntop(family, content[4:8] if is_old else content[8:24])
            port = int.from_bytes(content[2:4], "big")
            # Ports for an hour are drawn, so that their numbers say nothing.
            is_here = host.removeprefix("::ffff:").startswith("127.") or host == "::1"
            self._say("connects to a port of this machine" if is_here else f"connects to {host}:{port}")

    def _reaches(self, process: int) -> bool:
        """Whether a process, or a group by its negative number, is the worker's own, or nobody's."""
        if process >= 0:
            return process == 0 or self._owns(process) or not Path(f"/proc/{process}").exists()
        if process == -1:
            return False
        for file in Path("/proc").glob("[0-9]*/stat"):
            with suppress(OSError):
                group = int(file.read_text(errors="replace").rpartition(")")[2].split()[2])
                if group == -process and not self._owns(int(file.parent.name)):
                    return False
        return True

    def _owns(self, process: int) -> bool:
        """Whether a process or a thread is the worker or comes from it."""
        while process > 1 and process != self._worker:
            try:
                lines = Path(f"/proc/{process}/status").read_text(errors="replace").splitlines()
            except OSError:
                return False
            numbers = dict(line.split(":\t", 1) for line in lines if line.startswith(("Tgid:", "PPid:")))
            if int(numbers["Tgid"]) == self._worker:
                return True
            process = int(numbers["PPid"])
        return process == self._worker


def read_accesses(results: str) -> tuple[tuple[Access, ...], tuple[str, ...]]:
    """What a worker used, and why that is not all; ``results`` is what the server wrote of it."""
    try:
        accesses, unseen = json.loads(Path(results).read_bytes())
    except (OSError, ValueError):
        return (), (f"{UNWATCHED}: there is no record of it",)
    return tuple(Access(path, how, state and (state[0], state[1])) for path, how, state in accesses), tuple(
        unseen
    )


def _read_text(process: int, address: int) -> bytes:
    """The text that ends with a zero; raises ``OSError`` as the kernel would have the call end."""
    text = b""
    while len(text) < LONGEST_PATH:
        # Memory may end where a page does.
        start = address + len(text)
        part, end, _ = _read_memory(process, start, PAGE - start % PAGE).partition(b"\0")
        text += part
        if end:
            return text
    raise OSError(errno.ENAMETOOLONG, "")


_LIBC = ctypes.CDLL(None, use_errno=True)
_BUFFER = ctypes.create_string_buffer(PAGE)
_OURS, _THEIRS = _Span(ctypes.addressof(_BUFFER), PAGE), _Span(0, 0)
_READ = (ctypes.byref(_OURS), ctypes.c_ulong(1), ctypes.byref(_THEIRS), ctypes.c_ulong(1), ctypes.c_ulong(0))


def _read_memory(process: int, address: int, size: int) -> bytes:
    """Bytes of a process, at most a page; raises ``OSError`` where it has none."""
    _THEIRS.base, _THEIRS.length = address, size
    count = _LIBC.process_vm_readv(process, *_READ)
    if count <= 0:
        raise OSError(ctypes.get_errno(), "")
    return _BUFFER.raw[:count]


def _resolve(process: int, name: str) -> tuple[str, os.stat_result | None]:
    """Where a path leads for a process, and what is there; None if nothing is that may be seen."""
    # The kernel follows links quickest, but what /proc/self means depends on who asks.
    if not name.startswith(("/proc/", "/dev/")):
        with suppress(OSError):
            file = os.open(name, os.O_PATH | os.O_CLOEXEC)
            try:
                real = os.readlink(f"/proc/self/fd/{file}")
                if real == name:
                    return real, os.fstat(file)
            finally:
                os.close(file)
    parts, real, links = name.split("/")[::-1], "", 0
    while parts:
        part = parts.pop()
        step = f"{real}/{part}"
        if step in {"/proc/self", "/proc/thread-self"}:
            real = f"/proc/{process}"
        elif part == "..":
            real = real.rpartition("/")[0]
        elif part not in {"", "."}:
            target = ""
            with suppress(OSError):
                target = os.readlink(step) if links < MOST_LINKS else ""
            links += bool(target)
            # Open files that have no path are links to names such as pipe:[7].
            if not target or (step.startswith("/proc/") and ":" in target.partition("/")[0]):
                real = step
            else:
                real = "" if target.startswith("/") else real
                parts += target.split("/")[::-1]
    real = real or "/"
    with suppress(OSError):
        return real, os.stat(real)
    return real, None


def _interpreters(process: int, program: str) -> list[tuple[str, How, State]]:
    """The programs that run a script, which the kernel opens itself."""
    found: list[tuple[str, How, State]] = []
    for _ in range(4):
        try:
            # A pipe must not stop the server.
            file = os.open(program, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
            try:
                first = os.read(file, 256) if stat.S_ISREG(os.fstat(file).st_mode) else b""
            finally:
                os.close(file)
        except OSError:
            return found
        words = first.partition(b"\n")[0].removeprefix(b"#!").split(None, 1)
        if not first.startswith(b"#!") or not words:
            return found
        program, there = _resolve(process, os.fsdecode(words[0]))
        found.append((program, "ran", (there.st_size, there.st_mtime_ns) if there else None))
    return found


def _process_of(process: int, descriptor: int) -> int:
    """The process that an open file of another one stands for; 0 if for none."""
    with suppress(OSError):
        for line in Path(f"/proc/{process}/fdinfo/{descriptor}").read_text().splitlines():
            if line.startswith("Pid:"):
                return int(line.removeprefix("Pid:"))
    with suppress(OSError, ValueError):
        return int(os.readlink(f"/proc/{process}/fd/{descriptor}").removeprefix("/proc/").split("/")[0])
    return 0


def loaded_before() -> list[list[Any]]:
    """What this process has loaded that workers inherit, as accesses: sources and libraries."""
    files = {getattr(module, "__file__", None) for module in list(sys.modules.values())}
    with suppress(OSError):
        maps = Path("/proc/self/maps").read_text(errors="surrogateescape").splitlines()
        files |= {line.partition("/")[1] + line.partition("/")[2] for line in maps if ".so" in line}
    found = []
    for file in sorted(filter(None, files)):
        with suppress(OSError):
            there = os.stat(file)
            if not _is_left_out(file):
                found.append([file, "loaded", (there.st_size, there.st_mtime_ns)])
    return found


@cache
def _left_out() -> tuple[str, ...]:
    """What begins the paths that nobody notes: known by a version, or about the processors."""
    spec = find_spec("torch") if "torch" not in sys.modules else sys.modules["torch"].__spec__
    torch = os.path.dirname(spec.origin) if spec and spec.origin else ""
    libraries = {sysconfig.get_path("stdlib"), f"{sys.base_prefix}/bin/python", torch} - {""}
    folders = {f"{each(folder)}/" for folder in libraries for each in (str, os.path.realpath)}
    return (*sorted(folders), *SYSTEM)


def _is_left_out(path: str) -> bool:
    return f"{path}/".startswith(_left_out()) and not any(f"/{name}/" in path for name in INSTALLED)
