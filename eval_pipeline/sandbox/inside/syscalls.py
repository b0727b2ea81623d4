"""System calls that a snippet must not make, with their numbers on each kind of machine.

Source: the kernel's headers (x86_64: `asm/unistd_64.h`, aarch64: `asm-generic/unistd.h`). Standard library only.
"""

from dataclasses import dataclass

# name, number on x86_64, number on aarch64 (`-`: does not exist)
_REFUSED = """
# files of others: what Landlock leaves open, and rights of files in scratch
chmod 90 -
fchmod 91 52
fchmodat 268 53
chown 92 -
fchown 93 55
lchown 94 -
fchownat 260 54
utime 132 -
utimes 235 -
futimesat 261 -
utimensat 280 88
setxattr 188 5
lsetxattr 189 6
fsetxattr 190 7
removexattr 197 14
lremovexattr 198 15
fremovexattr 199 16
mknod 133 -
mknodat 259 33
name_to_handle_at 303 264
open_by_handle_at 304 265
# processes: new ones, others, and leaving the group by which a snippet is killed
fork 57 -
vfork 58 -
execve 59 221
execveat 322 281
kill 62 129
tkill 200 130
rt_sigqueueinfo 129 138
rt_tgsigqueueinfo 297 240
ptrace 101 117
process_vm_readv 310 270
process_vm_writev 311 271
kcmp 312 272
setsid 112 157
setpgid 109 154
setpriority 141 140
sched_setparam 142 118
sched_setscheduler 144 119
sched_setattr 314 274
sched_setaffinity 203 122
ioprio_set 251 30
migrate_pages 256 238
move_pages 279 239
# memory and messages that outlive a process or count for nobody
memfd_create 319 279
shmget 29 194
shmat 30 196
shmctl 31 195
semget 64 190
semop 65 193
semtimedop 220 192
semctl 66 191
msgget 68 186
msgsnd 69 189
msgrcv 70 188
msgctl 71 187
mq_open 240 180
mq_unlink 241 181
userfaultfd 323 282
# the network
socket 41 198
socketpair 53 199
bind 49 200
connect 42 203
listen 50 201
accept 43 202
accept4 288 242
# the system
mount 165 40
umount2 166 39
pivot_root 155 41
chroot 161 51
unshare 272 97
setns 308 268
bpf 321 280
perf_event_open 298 241
keyctl 250 219
add_key 248 217
request_key 249 218
fanotify_init 300 262
personality 135 92
modify_ldt 154 -
iopl 172 -
ioperm 173 -
acct 163 89
quotactl 179 60
lookup_dcookie 212 18
nfsservctl 180 42
swapon 167 224
swapoff 168 225
reboot 169 142
vhangup 153 58
syslog 103 116
init_module 175 105
finit_module 313 273
delete_module 176 106
kexec_load 246 104
kexec_file_load 320 294
settimeofday 164 170
clock_settime 227 112
adjtimex 159 171
clock_adjtime 305 266
sethostname 170 161
setdomainname 171 162
"""

ACTING = frozenset(
    "fork vfork execve kill tkill setsid setpgid socketpair setpriority sched_setaffinity "
    "chmod fchmod fchmodat utime utimes futimesat utimensat".split()
)
"""Refused calls that a process may make that acts in a world of its own: its commands start others there."""
HOSTING = frozenset("socket bind listen connect accept accept4 shmget shmat shmctl".split())
"""Refused calls that a server of databases makes, sockets and shared memory of one kind and size only."""
TALKING = frozenset("socket bind listen connect accept accept4".split())
"""Refused calls that somebody's own program makes, whose network has nothing but itself and the door to its model."""
FIRST_NEW = 424
"""From here on, numbers are the same everywhere.

Calls newer than this list must not be allowed by default, so only the named ones exist for a snippet; the C library can
do without the others.
"""
NEW_ALLOWED = {"close_range": 436, "openat2": 437, "faccessat2": 439, "epoll_pwait2": 441, "futex_waitv": 449}


@dataclass(frozen=True)
class Machine:
    """What the filter has to know about a kind of machine.

    Attributes:
        audit: its AUDIT_ARCH constant of linux/audit.h.
        refused: numbers of refused calls by name.
        clone, tgkill, prlimit64, prctl, fcntl, ioctl: numbers of calls that are allowed with some arguments.
    """

    audit: int
    refused: dict[str, int]
    clone: int
    tgkill: int
    prlimit64: int
    prctl: int
    fcntl: int
    ioctl: int


def _refused(column: int) -> dict[str, int]:
    rows = [line.split() for line in _REFUSED.splitlines() if line and not line.startswith("#")]
    return {row[0]: int(row[column]) for row in rows if row[column] != "-"}


MACHINES = {
    "x86_64": Machine(0xC000003E, _refused(1), clone=56, tgkill=234, prlimit64=302, prctl=157, fcntl=72, ioctl=16),
    "aarch64": Machine(0xC00000B7, _refused(2), clone=220, tgkill=131, prlimit64=261, prctl=167, fcntl=25, ioctl=29),
}
