"""Attacks on the sandbox, as snippets: what each tries to reach is planted by `campaign.py`.

`PLANTED` in a snippet is a dictionary with what is planted: `secret` and `outside` (a file, a folder), `pid` of the
pipeline, `port` of a server on loopback.
"""

from eval_pipeline.core.model import ErrorClass

HARNESS = """
import ctypes, fcntl, mmap, os, platform, resource, signal, socket, stat, subprocess, sys, threading
from inside.syscalls import MACHINES
MACHINE = MACHINES[platform.machine()]
ZYGOTE = os.getppid() or 99  # 0: it cannot be seen, nor can any other process
INIT = 1 if os.getpid() != 1 else 99
libc = ctypes.CDLL(None, use_errno=True)

def call(number, *arguments):
    number = MACHINE.refused[number] if isinstance(number, str) else number
    returned = libc.syscall(number, *arguments)
    if returned == -1:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return returned

def openable(pid):
    for number in range(16):
        try:
            return os.open(f'/proc/{pid}/fd/{number}', os.O_WRONLY)
        except OSError as error:
            last = error
    raise last

result = {}
for name, code in ATTACKS.items():
    names = dict(globals())
    try:
        exec(code, names)
        result[name] = 'reached: ' + repr(names.get('got'))[:200]
    except BaseException as error:
        result[name] = repr(error)[:200]
"""
"""Runs all of `ATTACKS` in one process, as an attacker who catches what goes wrong would."""

REACHING = {
    # files
    "shadow": "got = open('/etc/shadow').read()",
    "planted file": "got = open(PLANTED['secret']).read()",
    "planted file by a symbolic link": "os.symlink(PLANTED['secret'], 'link'); got = open('link').read()",
    "planted file by a hard link": "os.link(PLANTED['secret'], 'hard'); got = open('hard').read()",
    "writing outside": "got = open(PLANTED['outside'] + '/written', 'w').write('x')",
    "folder outside": "os.mkdir(PLANTED['outside'] + '/made')",
    "overwriting": "got = open(PLANTED['secret'], 'w').write('overwritten')",
    "truncating": "os.truncate(PLANTED['secret'], 0)",
    "removing": "os.unlink(PLANTED['secret'])",
    "moving": "os.rename(PLANTED['secret'], 'moved')",
    "permissions": "os.chmod(PLANTED['secret'], 0o777)",
    "times": "os.utime(PLANTED['secret'], (1, 1))",
    "owner": "os.chown(PLANTED['secret'], os.getuid(), os.getgid())",
    "attributes": "os.setxattr(PLANTED['secret'], 'user.planted', b'x')",
    "device": "os.mknod('disk', stat.S_IFBLK | 0o600, os.makedev(8, 0))",
    "package": "got = open(pd.__file__, 'r+')",
    "core pattern": "got = os.open('/proc/sys/kernel/core_pattern', os.O_WRONLY)",
    "system request": "got = os.open('/proc/sysrq-trigger', os.O_WRONLY)",
    # secrets of other processes
    "environment": "got = os.environ['PLANTED_KEY']",
    "environment of the pipeline": "got = open(f\"/proc/{PLANTED['pid']}/environ\").read()",
    "environment of the zygote": "got = open(f'/proc/{ZYGOTE}/environ').read()",
    "memory of the zygote": "got = os.open(f'/proc/{ZYGOTE}/mem', os.O_RDWR)",
    "memory of process 1": "got = os.open(f'/proc/{INIT}/mem', os.O_RDWR)",
    "pipes of the zygote": "got = openable(ZYGOTE)",
    "pipes of process 1": "got = openable(INIT)",
    "ptrace": "got = call('ptrace', 0x4206, ZYGOTE, 0, 0)",
    "reading memory": "got = call('process_vm_readv', ZYGOTE, 0, 0, 0, 0, 0)",
    "file of another process": "got = call(438, call(434, ZYGOTE, 0), 0, 0)",
    # the network
    "socket": "got = socket.socket()",
    "unix socket": "got = socket.socket(socket.AF_UNIX)",
    "socket pair": "got = socket.socketpair()",
    "loopback": "got = socket.create_connection(('127.0.0.1', PLANTED['port']), 1)",
    # processes
    "fork": "os.fork() or os._exit(0)",
    "clone3": "got = call(435, 0, 0)",
    "program": "got = subprocess.run([sys.executable, '--version'])",
    "spawn": "got = os.posix_spawn(sys.executable, [sys.executable, '--version'], {})",
    "signal to the pipeline": "os.kill(PLANTED['pid'], 0)",
    "signal to the zygote": "os.kill(ZYGOTE, 0)",
    "signal to a thread": "call('tkill', ZYGOTE, 0)",
    "signal by a file": "fcntl.fcntl(os.pipe()[0], fcntl.F_SETOWN, ZYGOTE)",
    "signal by a descriptor": "call(424, call(434, ZYGOTE, 0), 0, 0, 0)",
    "priority": "os.setpriority(os.PRIO_PROCESS, ZYGOTE, 19)",
    "scheduling": "os.sched_setaffinity(ZYGOTE, {0})",
    "limits of the zygote": "got = resource.prlimit(ZYGOTE, resource.RLIMIT_NOFILE)",
    "limits of its own": "resource.setrlimit(resource.RLIMIT_AS, (-1, -1))",
    "outliving the zygote": "libc.prctl(1, 0, 0, 0, 0) and call('setsid')",
    "session": "os.setsid()",
    # memory that outlives a process or counts for nobody
    "shared memory": "got = call('shmget', 4711, 4096, 0o1666)",
    "semaphores": "got = call('semget', 4711, 1, 0o1666)",
    "messages": "got = call('msgget', 4711, 0o1666)",
    "message queue": "got = call('mq_open', b'planted', os.O_CREAT | os.O_RDWR, 0o600, 0)",
    "anonymous file": "got = os.memfd_create('planted')",
    "secret memory": "got = call(447, 0)",
    "io_uring": "got = call(425, 8, bytes(120))",
    "page faults": "got = call('userfaultfd', 1)",
    # the system
    "mount": "libc.mount(b'none', b'.', b'tmpfs', 0, 0) and call('mount', b'none', b'.', b'tmpfs', 0, 0)",
    "new mount": "got = call(430, b'tmpfs', 0)",
    "namespace": "got = call('unshare', 0x10000000)",
    "root": "os.chroot('.')",
    "bpf": "got = call('bpf', 0, bytes(128), 128)",
    "keys": "got = call('add_key', b'user', b'planted', b'x', 1, -4)",
    "performance counters": "got = call('perf_event_open', bytes(128), 0, -1, -1, 0)",
    "other numbers": "got = call(0x40000000 + 41, 2, 1, 0)",
}
"""By name: each raises where it is refused, or sets `got` to what it reached."""

ENDING = {
    "exit": ("import os; os._exit(0)", ErrorClass.SANDBOX),
    "replaced encoder": (
        "import inside.encode; inside.encode.encode = lambda *_: b'forged'; result = 1",
        ErrorClass.SANDBOX,
    ),
    "flood": ("while True: print('A' * 100_000)", ErrorClass.SANDBOX),
    "closed pipes": ("import os, time\nfor number in (1, 2, 3): os.close(number)\ntime.sleep(60)", ErrorClass.TIMEOUT),
    "8 GiB": ("result = bytearray(8 << 30)", ErrorClass.MEMORY),
    "threads": (
        "import threading, time; threading.stack_size(1 << 15)\n"
        "while True: threading.Thread(target=time.sleep, args=(60,)).start()",
        ErrorClass.SANDBOX,
    ),
    "many files": ("n = 0\nwhile True: open(str(n), 'w'); n += 1", ErrorClass.SANDBOX),
    "hidden files": ("import os, time; os.mkdir('hidden', 0o300); time.sleep(60)", None),
    "full scratch": ("import time\nfor n in range(8): open(str(n), 'wb').write(bytes(15 << 20))\ntime.sleep(60)", None),
    "large file": ("open('large', 'wb').write(bytes(100 << 20))", ErrorClass.OTHER),
    "large result": ("result = ['x' * 100_000] * 20", ErrorClass.VALUE),
    "deep result": ("result = []\nfor _ in range(10_000): result = [result]", ErrorClass.OTHER),
    "result of objects": ("result = object()", ErrorClass.OTHER),
    "recursion": ("def f(): return f()\nresult = f()", ErrorClass.OTHER),
    "crash": ("import ctypes; result = ctypes.string_at(0)", ErrorClass.OTHER),
}
"""By name: code that must fail, and the class of its failure (None: the kernel or the zygote may be first)."""

LEAVING = """
import builtins, os, random, sys
open('left', 'w').write('x')
os.symlink(PLANTED['secret'], 'link')
os.makedirs('folder/inner', 0o700)
for _ in range(1500):
    os.mkdir('d'); os.chdir('d')
try:
    open('/dev/shm/left', 'w').write('x')
except OSError:
    pass
pd.DataFrame.sum = None
builtins.len = None
os.environ['LEFT'] = 'x'
sys.modules['json'] = None
random.seed()
result = '{marker}'[::-1]
"""
"""Leaves what can be left; ends well, so that the next snippet has the same zygote."""

FOUND = """
import os, json, random
left = os.listdir('.')
left += os.listdir('/dev/shm') if os.access('/dev/shm', os.R_OK) and os.getcwd() == '/scratch' else []
found = 0
halves = [(b'{first}', b'{second}'), (b'{second}'[::-1], b'{first}'[::-1])]
try:
    areas = [line.split() for line in open('/proc/self/maps')]
    with open('/proc/self/mem', 'rb', 0) as memory:
        for area in areas:
            start, end = (int(place, 16) for place in area[0].split('-'))
            if not area[1].startswith('rw') or end - start > 1 << 28:
                continue
            memory.seek(start)
            data = memory.read(end - start)
            for first, second in halves:
                place = data.find(first)
                while place >= 0:
                    found += data[place + len(first) : place + len(first) + len(second)] == second
                    place = data.find(first, place + 1)
except PermissionError:
    pass
result = [left, int(pd.DataFrame({{'a': [1, 2]}}).sum()['a']), len('ab'), 'LEFT' in os.environ, found, random.random()]
"""
"""What the next snippet finds of it: files, replaced functions, and, searching its memory, the code or the result.

The marker is put together nowhere, since it would then be found."""
