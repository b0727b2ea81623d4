"""A seccomp filter for the process of a snippet: what pandas does not need and an attack does is refused.

Runs inside the jail: standard library only. A denylist in classic BPF (linux/filter.h, linux/seccomp.h), built here
because libseccomp is not on every machine.
"""

import ctypes
import os
import platform
import struct

_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_ALLOW, _KILL, _ERRNO = 0x7FFF0000, 0x80000000, 0x00050000
_NUMBER, _ARCHITECTURE, _ARGUMENT = 0, 4, 16  # offsets in struct seccomp_data; arguments are of 8 bytes, low half first
_EPERM, _ENOSYS = 1, 38
_CLONE_THREAD = 0x00010000
_X32 = 0x40000000
_PR_SET_NO_NEW_PRIVS, _PR_SET_SECCOMP, _SECCOMP_MODE_FILTER = 38, 22, 2

# Numbers that are the same on every architecture (asm-generic, since Linux 5.1).
_COMMON = {
    "pidfd_send_signal": 424,
    "io_uring_setup": 425,
    "io_uring_enter": 426,
    "io_uring_register": 427,
    "open_tree": 428,
    "move_mount": 429,
    "fsopen": 430,
    "fsconfig": 431,
    "fsmount": 432,
    "fspick": 433,
    "pidfd_open": 434,
    "pidfd_getfd": 438,
    "process_madvise": 440,
    "mount_setattr": 442,
    "quotactl_fd": 443,
    "memfd_secret": 447,
    "process_mrelease": 448,
}
_X86_64 = {
    "shmget": 29,
    "shmat": 30,
    "socket": 41,
    "connect": 42,
    "accept": 43,
    "bind": 49,
    "listen": 50,
    "socketpair": 53,
    "fork": 57,
    "vfork": 58,
    "execve": 59,
    "kill": 62,
    "semget": 64,
    "msgget": 68,
    "ptrace": 101,
    "rt_sigqueueinfo": 129,
    "mknod": 133,
    "personality": 135,
    "modify_ldt": 154,
    "pivot_root": 155,
    "acct": 163,
    "mount": 165,
    "umount2": 166,
    "swapon": 167,
    "reboot": 169,
    "iopl": 172,
    "ioperm": 173,
    "init_module": 175,
    "delete_module": 176,
    "quotactl": 179,
    "tkill": 200,
    "lookup_dcookie": 212,
    "mq_open": 240,
    "kexec_load": 246,
    "add_key": 248,
    "request_key": 249,
    "keyctl": 250,
    "migrate_pages": 256,
    "mknodat": 259,
    "unshare": 272,
    "move_pages": 279,
    "accept4": 288,
    "rt_tgsigqueueinfo": 297,
    "perf_event_open": 298,
    "fanotify_init": 300,
    "name_to_handle_at": 303,
    "open_by_handle_at": 304,
    "setns": 308,
    "process_vm_readv": 310,
    "process_vm_writev": 311,
    "kcmp": 312,
    "finit_module": 313,
    "memfd_create": 319,
    "kexec_file_load": 320,
    "bpf": 321,
    "execveat": 322,
    "userfaultfd": 323,
    "chroot": 161,
}
_AARCH64 = {
    "lookup_dcookie": 18,
    "mknodat": 33,
    "umount2": 39,
    "mount": 40,
    "pivot_root": 41,
    "chroot": 51,
    "quotactl": 60,
    "acct": 89,
    "personality": 92,
    "unshare": 97,
    "kexec_load": 104,
    "init_module": 105,
    "delete_module": 106,
    "ptrace": 117,
    "kill": 129,
    "tkill": 130,
    "rt_sigqueueinfo": 138,
    "reboot": 142,
    "mq_open": 180,
    "msgget": 186,
    "semget": 190,
    "shmget": 194,
    "shmat": 196,
    "socket": 198,
    "socketpair": 199,
    "bind": 200,
    "listen": 201,
    "accept": 202,
    "connect": 203,
    "add_key": 217,
    "request_key": 218,
    "keyctl": 219,
    "execve": 221,
    "swapon": 224,
    "migrate_pages": 238,
    "move_pages": 239,
    "rt_tgsigqueueinfo": 240,
    "perf_event_open": 241,
    "accept4": 242,
    "fanotify_init": 262,
    "name_to_handle_at": 264,
    "open_by_handle_at": 265,
    "setns": 268,
    "process_vm_readv": 270,
    "process_vm_writev": 271,
    "kcmp": 272,
    "finit_module": 273,
    "memfd_create": 279,
    "bpf": 280,
    "execveat": 281,
    "userfaultfd": 282,
    "kexec_file_load": 294,
}
_CLONE3 = 435
_MACHINES = {  # machine → (AUDIT_ARCH, refused, clone, tgkill, prlimit64)
    "x86_64": (0xC000003E, _X86_64, 56, 234, 302),
    "aarch64": (0xC00000B7, _AARCH64, 220, 131, 261),
}


def supported() -> bool:
    """Whether the filter knows this machine's system calls."""
    return platform.machine() in _MACHINES and os.uname().sysname == "Linux"


def program(pid: int) -> bytes:
    """The filter as BPF for a process with that id.

    Refused with EPERM: the system calls of the tables, `clone` of anything but a thread, signals to and limits of other
    processes. `clone3` hides its flags from a filter, so it does not exist (ENOSYS: the C library falls back).

    Raises:
        KeyError: on a machine that is not supported.
    """
    audit, refused, clone, tgkill, prlimit = _MACHINES[platform.machine()]
    no = _ERRNO | _EPERM
    code = [(_LOAD, 0, 0, _ARCHITECTURE), (_EQUAL, 1, 0, audit), (_RETURN, 0, 0, _KILL), (_LOAD, 0, 0, _NUMBER)]
    code += [(_AT_LEAST, 0, 1, _X32), (_RETURN, 0, 0, no)]
    code += _when(clone, [(_LOAD, 0, 0, _ARGUMENT), (_ANY_BIT, 0, 1, _CLONE_THREAD), (_RETURN, 0, 0, _ALLOW)], no)
    for call in (tgkill, prlimit):
        own = [(_LOAD, 0, 0, _ARGUMENT), (_EQUAL, 0, 1, pid), (_RETURN, 0, 0, _ALLOW)]
        own += [(_EQUAL, 0, 1, 0), (_RETURN, 0, 0, _ALLOW)]
        code += _when(call, own, no)
    code += [(_EQUAL, 0, 1, _CLONE3), (_RETURN, 0, 0, _ERRNO | _ENOSYS)]
    for call in sorted({*refused.values(), *_COMMON.values()}):
        code += [(_EQUAL, 0, 1, call), (_RETURN, 0, 0, no)]
    code.append((_RETURN, 0, 0, _ALLOW))
    return b"".join(struct.pack("<HBBI", *step) for step in code)


def _when(call: int, then: list[tuple[int, int, int, int]], otherwise: int) -> list[tuple[int, int, int, int]]:
    """Steps for one system call that always end in a verdict; others skip them."""
    steps = [*then, (_RETURN, 0, 0, otherwise)]
    return [(_EQUAL, 0, len(steps), call), *steps]


def install() -> None:
    """Puts the filter on this process, for good. Raises OSError where the kernel refuses it."""
    code = program(os.getpid())
    libc = ctypes.CDLL(None, use_errno=True)
    text = ctypes.create_string_buffer(code, len(code))
    header = struct.pack("HxxxxxxP", len(code) // 8, ctypes.addressof(text))
    if libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) or libc.prctl(_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, header, 0, 0):
        raise OSError(ctypes.get_errno(), "the seccomp filter was refused")
