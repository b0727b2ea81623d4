"""Separate namespaces and folders for the process of each snippet. Linux only, standard library only.

If the zygote may mount (tier `bwrap`), every snippet is process 1 of a new PID namespace, sees only itself in `/proc`,
and writes to file systems that are made for it. Its changes end with it. Neither process ids nor inode numbers reveal
to the next snippet that there was another one.
"""

import ctypes
import fcntl
import os
import socket
import struct
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

_CLONE_NEWNS, _CLONE_NEWPID = 0x00020000, 0x20000000
_CLONE_NEWIPC, _CLONE_NEWNET = 0x08000000, 0x40000000
_MS_RDONLY, _MS_NOSUID, _MS_NODEV, _MS_NOEXEC = 1, 2, 4, 8
_MS_REMOUNT, _MNT_DETACH = 32, 2
_EINVAL = 22
_SIOCSIFFLAGS, _IFF_UP = 0x8914, 1  # linux/sockios.h, linux/if.h
PORT, _WAITING = 4117, 128
"""Where somebody's own program finds its model, in a network of its own."""

_libc = ctypes.CDLL(None, use_errno=True)
_libc.mount.argtypes = [ctypes.c_char_p, ctypes.c_char_p, ctypes.c_char_p, ctypes.c_ulong, ctypes.c_char_p]


class Separation:
    """What a zygote creates anew for each of its snippets; nothing if it may not mount."""

    def __init__(self, folders: dict[str, str], hidden: Sequence[str] = (), *, apart: bool = False) -> None:
        """Keeps a reference to the zygote's own PID namespace.

        Args:
            folders: for each path the options of the tmpfs that a snippet gets there, its working directory first;
                empty if snippets share the namespaces and folders of their zygote.
            hidden: mounted folders that a process does not see.
            apart: whether a process has sockets and shared memory of its own: what a killed one leaves goes with it.
        """
        self._apart = (_CLONE_NEWIPC | _CLONE_NEWNET) * apart
        self._folders, self._hidden = folders, hidden
        self._own = os.open("/proc/self/ns/pid", os.O_RDONLY | os.O_CLOEXEC) if folders else -1

    @property
    def on(self) -> bool:
        """Whether snippets have namespaces and folders of their own."""
        return bool(self._folders)

    @contextmanager
    def scratch(self) -> Iterator[None]:
        """Mounts empty folders (the first one as working directory), and unmounts them afterwards."""
        mounted: list[str] = []
        try:
            for folder, options in self._folders.items():
                _mount("tmpfs", folder, _MS_NOSUID | _MS_NODEV, options)
                mounted.append(folder)
            if mounted:
                os.chdir(mounted[0])
            yield
        finally:
            if mounted:
                os.chdir("/")
            for folder in mounted:
                _checked(_libc.umount2(folder.encode(), _MNT_DETACH))

    def fork(self) -> int:
        """Same as `os.fork`, but the new process is the first one of a new PID namespace."""
        if not self.on:
            return os.fork()
        self._leave()
        pid = -1
        try:
            pid = os.fork()
        finally:
            if pid:  # until then this process could neither start a thread nor create another namespace
                _checked(_libc.setns(self._own, _CLONE_NEWPID))
        return pid

    def _leave(self) -> None:
        """Has the next process forked in another PID namespace."""
        _checked(_libc.unshare(_CLONE_NEWPID))

    def enter(self) -> None:
        """Mounts, in the forked process, a `/proc` that only shows this process."""
        if not self.on:
            return
        _checked(_libc.unshare(_CLONE_NEWNS | self._apart))
        for folder in self._hidden:
            _checked(_libc.umount2(folder.encode(), _MNT_DETACH))
        flags = _MS_RDONLY | _MS_NOSUID | _MS_NODEV | _MS_NOEXEC
        try:
            _mount("proc", "/proc", flags, "subset=pid")
        except OSError as error:
            # Kernels before 5.8 do not know the option; the counters of /proc/stat stay visible.
            if error.errno != _EINVAL:
                raise
            _mount("proc", "/proc", flags, "")


class Linked(Separation):
    """Namespaces with a network that has nothing but itself and one socket, which is handed to who answers there."""

    def __init__(self, folders: dict[str, str], hidden: Sequence[str], door: socket.socket) -> None:
        """Hands the listening socket over by `door`, a Unix socket."""
        super().__init__(folders, hidden, apart=True)
        self._door = door

    def enter(self) -> None:
        """Listens in the new network, before anything else can."""
        super().enter()
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
            fcntl.ioctl(any_socket, _SIOCSIFFLAGS, struct.pack("16sh22x", b"lo", _IFF_UP))
        with socket.socket() as listening:
            listening.bind(("127.0.0.1", PORT))
            listening.listen(_WAITING)
            socket.send_fds(self._door, [b"door"], [listening.fileno()])


class Joined(Separation):
    """The namespaces of another process, which has made them for itself.

    Attributes:
        pids, mounts: descriptors of the namespaces that the next process is forked into.
    """

    pids = mounts = -1

    def _leave(self) -> None:
        _checked(_libc.setns(self.pids, _CLONE_NEWPID))

    def enter(self) -> None:
        """Sees, in the forked process, what that process sees."""
        _checked(_libc.setns(self.mounts, _CLONE_NEWNS))


def mount_overlay(lower: str, upper: str, merged: str, most_bytes: int, most_files: int) -> None:
    """Mounts a folder so that changes go to a file system in memory, which holds that much."""
    _mount("tmpfs", upper, _MS_NOSUID | _MS_NODEV, f"size={most_bytes},nr_inodes={most_files},mode=0700")
    os.mkdir(f"{upper}/u", 0o755)
    os.mkdir(f"{upper}/w", 0o700)
    options = f"lowerdir={lower},upperdir={upper}/u,workdir={upper}/w,userxattr"
    _mount("overlay", merged, _MS_NOSUID | _MS_NODEV, options)


def give_room(upper: str, most_bytes: int, most_files: int) -> None:
    """Has the file system of changes hold that much from now on."""
    _mount("tmpfs", upper, _MS_REMOUNT | _MS_NOSUID | _MS_NODEV, f"size={most_bytes},nr_inodes={most_files}")


def _mount(kind: str, folder: str, flags: int, options: str) -> None:
    _checked(_libc.mount(kind.encode(), folder.encode(), kind.encode(), flags, options.encode()))


def _checked(returned: int) -> None:
    if returned:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
