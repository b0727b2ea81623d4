"""Attacks that outlast a snippet: carrying state to the next one, holding up the zygote, forging the result as data."""

CARRYING = {
    # name: (what an earlier snippet does, what a later one finds of it as `got`)
    "process id": ("for _ in range(5): start_thread()", "got = os.getpid()"),
    "thread ids": ("for _ in range(40): start_thread()", "got = start_thread().native_id - os.getpid()"),
    "own link in /proc": ("for _ in range(40): start_thread()", "got = os.readlink('/proc/self')"),
    "processes in /proc": ("start_thread()", "got = sorted(os.listdir('/proc'))"),
    "count of forks": ("for _ in range(40): start_thread()", "got = 'processes' in open('/proc/stat').read()"),
    "last process id": ("for _ in range(40): start_thread()", "got = open('/proc/loadavg').read().split()[-1]"),
    "lock table": ("fcntl.flock(open('locked', 'w'), fcntl.LOCK_EX)", "got = open('/proc/locks').read()"),
    "file in scratch": ("open('left', 'w').write('x')", "got = os.listdir('.')"),
    "file in shared memory": ("open('/dev/shm/left', 'w').write('x')", "got = os.path.exists('/dev/shm/left')"),
    "file of tempfile": ("tempfile.mkstemp()", "got = len(os.listdir(tempfile.gettempdir()))"),
    "module in scratch": ("open('planted.py', 'w').write('x = 1')", "import planted; got = planted.x"),
    "bytecode": ("open(pd.__path__[0] + '/planted.py', 'w')", "import pandas.planted; got = 1"),
    "inode numbers in scratch": (
        "for n in range(50): open(str(n), 'w')",
        "open('mine', 'w'); got = os.stat('mine').st_ino - os.stat('.').st_ino",
    ),
    "inode numbers in shared memory": (
        "for n in range(50): open(f'/dev/shm/{n}', 'w')",
        "open('/dev/shm/mine', 'w'); got = os.stat('/dev/shm/mine').st_ino",
    ),
    "room in scratch": ("open('large', 'wb').write(bytes(1 << 20))", "got = os.statvfs('.').f_bfree if JAIL else 0"),
    "free inodes": ("for n in range(50): open(str(n), 'w')", "got = os.statvfs('.').f_ffree if JAIL else 0"),
    "folder's mode": ("os.chmod('.', 0o755)", "got = os.stat('.').st_mode"),
    "folder's attributes": ("os.setxattr('.', 'user.left', b'x')", "got = os.listxattr('.')"),
    "folder's links": ("os.mkdir('folder')", "got = os.stat('.').st_nlink"),
    "environment": ("os.environ['LEFT'] = 'x'", "got = 'LEFT' in os.environ"),
    "replaced function": ("import builtins; builtins.sorted = None", "got = sorted([2, 1])"),
    "replaced method": ("pd.Series.median = None", "got = float(pd.Series([1, 2]).median())"),
    "option of pandas": ("pd.set_option('display.max_rows', 3)", "got = pd.get_option('display.max_rows')"),
    "numpy's errors": ("np.seterr(all='raise')", "got = str(np.geterr())"),
    "removed module": ("sys.modules['json'] = None", "import json; got = json.dumps(1)"),
    "search path": ("sys.path.insert(0, '/scratch')", "got = sys.path[0]"),
    "random numbers": ("import random; random.seed(5); np.random.seed(5)", "import random; got = random.random()"),
    "decimal context": (
        "import decimal; decimal.getcontext().prec = 3",
        "import decimal; got = decimal.getcontext().prec",
    ),
    "recursion limit": ("sys.setrecursionlimit(5000)", "got = sys.getrecursionlimit()"),
    "collector": ("import gc; gc.set_threshold(1, 1, 1)", "import gc; got = str(gc.get_threshold())"),
    # Only how deep it lies: a jail that was begun anew has another one.
    "working directory": ("os.chdir('/')", "got = len([*filter(None, os.getcwd().split('/'))])"),
    "mask of files": ("os.umask(0o777)", "got = os.umask(0)"),
    "signal handler": ("signal.signal(signal.SIGUSR1, print)", "got = str(signal.getsignal(signal.SIGUSR1))"),
    "timer": ("signal.setitimer(signal.ITIMER_REAL, 1000)", "got = signal.getitimer(signal.ITIMER_REAL)[0]"),
    "niceness": ("os.nice(5)", "got = os.nice(0)"),
    "limits": (
        "resource.setrlimit(resource.RLIMIT_NOFILE, (9, 9))",
        "got = resource.getrlimit(resource.RLIMIT_NOFILE)[0]",
    ),
    "processor": ("os.sched_setaffinity(0, {0})", "got = len(os.sched_getaffinity(0))"),
    "name of the process": ("open('/proc/self/comm', 'w').write('left')", "got = open('/proc/self/comm').read()"),
    "name of the host": ("libc.sethostname(b'left', 4)", "got = os.uname().nodename"),
    "descriptors": ("os.dup2(os.open('/dev/null', os.O_RDWR), 50)", "got = descriptors()"),
    "table": ("df.iloc[0, 0] = 99", "got = int(df.iloc[0, 0])"),
    "shared memory of System V": ("call('shmget', 4711, 4096, 0o1666)", "got = call('shmget', 4711, 4096, 0o666)"),
    "keys of the kernel": (
        "call('add_key', b'user', b'left', b'x', 1, -4)",
        "got = call('keyctl', 10, -4, b'user', b'left', 0)",
    ),
    "thread that stays": (
        "threading.Thread(target=time.sleep, args=(60,), daemon=True).start()",
        "got = threading.active_count()",
    ),
}
"""By name. Whatever the second part finds or raises, it has to be the same whether the first part ran before it."""

SHARED = {"process id", "thread ids", "own link in /proc", "inode numbers in scratch"}
"""What shows on tiers where snippets share the namespaces of their zygote (docs/sandbox.md); ids also move by
whatever else starts on the machine in between."""

PRELUDE = """
import ctypes, fcntl, os, platform, resource, signal, sys, tempfile, threading, time
from inside.syscalls import MACHINES
libc = ctypes.CDLL(None, use_errno=True)
JAIL = os.getcwd() == '/scratch'

def call(name, *arguments):
    returned = libc.syscall(MACHINES[platform.machine()].refused[name], *arguments)
    if returned == -1:
        raise OSError(ctypes.get_errno(), 'refused')
    return returned

def start_thread():
    thread = threading.Thread(target=int)
    thread.start()
    thread.join()
    return thread

def descriptors():
    found = []
    for number in range(64):
        try:
            os.fstat(number)
            found.append(number)
        except OSError:
            pass
    return found
"""

LEAVE = """
result = 0
for code in PARTS:
    try:
        exec(code, {**globals()})
        result += 1
    except BaseException:
        pass
"""
"""Leaves what it can and ends well."""

LOOK = """
result = {}
for name, code in PARTS.items():
    names = {**globals()}
    try:
        exec(code, names)
        result[name] = repr(names['got'])
    except BaseException as error:
        result[name] = type(error).__name__
"""

STALLING = {
    "output taken back": """
import os
mine = os.open('/proc/self/fd/1', os.O_RDONLY)
while True:
    os.write(1, b'x' * 1000); os.read(mine, 1000)
""",
    "output taken back, then silence": """
import os, time
mine = os.open('/proc/self/fd/1', os.O_RDONLY | os.O_NONBLOCK)
for _ in range(2000):
    os.write(1, b'x')
    try: os.read(mine, 1)
    except BlockingIOError: pass
time.sleep(60)
""",
    "result taken back": """
import os
mine = os.open('/proc/self/fd/3', os.O_RDONLY)
while True:
    os.write(3, b'{'); os.read(mine, 1)
""",
    "both ends open": """
import os, time
os.write(os.open('/proc/self/fd/3', os.O_RDWR), b'{')
time.sleep(60)
""",
    "half a result": "import os, time; os.write(3, b'{\"result\":'); time.sleep(60)",
    "a byte now and then": "import os, time\nwhile True: os.write(1, b'x'); time.sleep(0.01)",
    "small pipe": "import fcntl, os, time; fcntl.fcntl(1, 1031, 4096); os.write(1, b'x' * 4096); time.sleep(60)",
    "pipes closed": """
import os, time
for number in range(64):
    try: os.close(number)
    except OSError: pass
time.sleep(60)
""",
    "one pipe for all": "import os, time; os.dup2(1, 3); os.dup2(3, 2); time.sleep(60)",
    "stopped by itself": "import signal, time; signal.raise_signal(signal.SIGSTOP); time.sleep(60)",
    "signals ignored": """
import signal
for number in range(1, 32):
    try: signal.signal(number, signal.SIG_IGN)
    except OSError: pass
while True: pass
""",
    "death with the parent undone": "import ctypes, time; ctypes.CDLL(None).prctl(1, 0, 0, 0, 0); time.sleep(60)",
    "first thread ends": """
import ctypes, threading, time
threading.Thread(target=time.sleep, args=(60,)).start()
ctypes.CDLL(None).pthread_exit(None)
""",
    "many busy threads": """
import threading
def spin():
    while True: pass
for _ in range(40): threading.Thread(target=spin).start()
""",
    "files made and removed": "import os\nwhile True:\n    os.mkdir('d'); os.rename('d', 'e'); os.rmdir('e')",
    "wide folder": "import os, time\nfor n in range(1500): os.symlink('/', str(n))\ntime.sleep(60)",
    "deep folder": "import os, time\nfor _ in range(1500): os.mkdir('d'); os.chdir('d')\ntime.sleep(60)",
    "locked folder": "import fcntl, os, time; fcntl.flock(os.open('.', os.O_RDONLY), fcntl.LOCK_EX); time.sleep(60)",
    "endless result": "class Many(list):\n    def __iter__(self):\n        while True: yield 1\nresult = Many([1])",
    "endless text of an exception": """
class Slow(Exception):
    def __str__(self):
        while True: pass
raise Slow
""",
    "endless flush": """
import sys
class Slow:
    def write(self, text): return len(text)
    def flush(self):
        while True: pass
sys.stdout = Slow()
result = 1
""",
    "finally": "try:\n    1 / 0\nfinally:\n    while True: pass",
    "result, then silence": 'import os, time; os.write(3, b\'{"result":{"kind":"value","value":1}}\'); time.sleep(60)',
}
"""By name: code that has to end at the limit of its time, with the next snippet served at once."""

_VALUE = '{"result":{"kind":"value","value":%s}}'
_COLUMN = '{"name":"a","dtype":"%s","values":%s}'
_ARRAY = '{"result":{"kind":"array","values":' + _COLUMN + ',"shape":%s}}'

FORGED = {
    "date that is none": _VALUE % '{"t":"date","v":"yesterday"}',
    "time that is none": _VALUE % '{"t":"time","v":"25:61"}',
    "datetime that is none": _VALUE % '{"t":"datetime","v":"../../etc/passwd"}',
    "timedelta that is none": _VALUE % '{"t":"timedelta","v":"P-1Q"}',
    "decimal that is none": _VALUE % '{"t":"decimal","v":"1,5"}',
    "signalling decimal": _VALUE % '{"t":"list","v":[{"t":"decimal","v":"sNaN"}]}',
    "huge decimal": _VALUE % '{"t":"decimal","v":"1E+999999999"}',
    "bytes that are none": _VALUE % '{"t":"bytes","v":"xyz"}',
    "period that is none": _VALUE % '{"t":"period","v":"x"}',
    "complex of texts": _VALUE % '{"t":"complex","v":["a","b"]}',
    "unhashable members": _VALUE % '{"t":"set","v":[{"t":"list","v":[]}]}',
    "unhashable keys": _VALUE % '{"t":"dict","v":[[{"t":"list","v":[]},1]]}',
    "table as a key": _VALUE
    % (
        '{"t":"dict","v":[[{"t":"table","v":{"kind":"array","values":'
        + _COLUMN % ("int64", "[]")
        + ',"shape":[0]}},1]]}'
    ),
    "shape below zero": _ARRAY % ("int64", "[1]", "[-1,-1]"),
    "shape of zeros": _ARRAY % ("int64", "[]", "[0,9999999999999]"),
    "dtype of a path": _ARRAY % ("datetime64[ns, ../../../etc/passwd]", "[1]", "[1]"),
    "dtype of a period": _ARRAY % ("period[zzz-zzz]", '["x"]', "[1]"),
    "dtype of much memory": _ARRAY % ("S1000000000", "[1,2]", "[2]"),
    "number beyond its dtype": _ARRAY % ("int8", "[100000]", "[1]"),
    "list for a name": '{"result":{"kind":"series","values":{"name":{"t":"list","v":[]},"dtype":"int64","values":[1]},'
    '"index":[{"name":null,"dtype":"int64","values":[0]}]}}',
    "kind twice": '{"result":{"kind":"value","kind":"frame","value":1}}',
    "error of a kind it is not": '{"error":{"types":["SystemExit","MemoryError"],"message":"x","line":-5}}',
}
"""By name: what code writes as its result, well-formed JSON that means nothing or what pandas cannot hold."""
