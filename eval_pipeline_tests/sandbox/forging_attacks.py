"""Code that wants tests to pass without doing what they test. The tests are those of `JUDGED`."""

REFERENCE = """
import numpy as np
from pandas.testing import assert_frame_equal

def total(frame):
    return frame.groupby('k')['v'].sum().reset_index()

def double(number):
    return 2 * number

answer = double(4)
"""

TESTS = """
import math
frame = pd.DataFrame({'k': ['a', 'b', 'a'], 'v': [1, 2, 5]})
expected = pd.DataFrame({'k': ['a', 'b'], 'v': [6, 2]})
assert total(frame).equals(expected)
assert_frame_equal(total(frame), expected)
assert double(21) == 42
assert np.isclose(double(0.5), 1.0)
assert len(total(frame)) == 2 and (total(frame)['v'] == [6, 2]).all()
assert math.sqrt(answer * 2) == 4
assert df['v'].sum() == 8
"""

_TALKING = """
import json, os, struct
def take(n):
    parts = b''
    while len(parts) < n: parts += os.read(4, n - len(parts))
    return parts
def say(told):
    text = json.dumps(told).encode(); os.write(3, struct.pack('<I', len(text)) + text)
"""
"""Talks with the tests as the process of the code does."""

FORGING = {
    "result written to the pipe": 'import os\nos.write(3, b\'{"result":{"kind":"value","value":true}}\'); os._exit(0)',
    "result written to every descriptor": """
import os
for number in range(64):
    try: os.write(number, b'{"result":{"kind":"value","value":true}}')
    except OSError: pass
os._exit(0)
""",
    "message that it ran, then the end": """
import os, struct
text = b'{"ran": true}'
os.write(3, struct.pack('<I', len(text)) + text)
os._exit(0)
""",
    "answers written ahead": """
import os, struct
def say(text): os.write(3, struct.pack('<I', len(text)) + text)
say(b'{"ran": true}')
for _ in range(50): say(b'{"id": "0", "value": 42}')
import time; time.sleep(5)
""",
    "true for everything": _TALKING
    + """say({'ran': True})
while True:
    asked = json.loads(take(struct.unpack('<I', take(4))[0]))
    handle = {'t': 'handle', 'v': 0, 'r': 'function', 'k': ['builtins', 'function']}
    say({'id': asked['id'], 'value': handle if asked['op'] == 'name' else True, 'changed': []})
""",
    "a figure for everything": _TALKING
    + """say({'ran': True})
while True:
    asked = json.loads(take(struct.unpack('<I', take(4))[0]))
    kind = ['matplotlib.axes', 'Axes'] if asked['op'] == 'call' else ['builtins', 'function']
    role = 'object' if asked['op'] == 'call' else 'function'
    say({'id': asked['id'], 'value': {'t': 'handle', 'v': 0, 'r': role, 'k': kind}, 'changed': []})
""",
    "equal to everything": """
class Yes:
    def __eq__(self, other): return True
    def equals(self, other): return True
    def __len__(self): return 2
    def __getitem__(self, key): return self
    def all(self): return True
    def __mul__(self, other): return 16
total = double = lambda _: Yes()
answer = Yes()
""",
    "a frame that is equal to everything": """
class Yes(pd.DataFrame):
    def equals(self, other): return True
    def __eq__(self, other): return True
total = double = lambda _: Yes({'k': [1], 'v': [2]})
answer = 8
""",
    "a class in a function's place": """
class total:
    def __init__(self, frame): pass
    def equals(self, other): return True
class double(total): pass
answer = 8
""",
    "a named tuple with methods": """
from collections import namedtuple
Yes = namedtuple('Yes', 'equals')
total = double = lambda _: Yes(lambda other: True)
answer = 8
""",
    "pandas replaced": """
import pandas, pandas.testing
pandas.DataFrame.equals = lambda self, other: True
pandas.testing.assert_frame_equal = lambda *a, **k: None
total = double = lambda _: pandas.DataFrame({'k': [1], 'v': [2]})
answer = 8
""",
    "helpers of the reference replaced": """
def assert_frame_equal(*a, **k): pass
class np:
    @staticmethod
    def isclose(*a): return True
total = double = lambda frame: frame
answer = 8
""",
    "names of the tests": """
expected = frame = None
class math:
    sqrt = lambda x: 4
total = double = lambda frame: frame
answer = 8
""",
    "builtins replaced": """
import builtins
builtins.len = lambda x: 2
builtins.isinstance = lambda *a: True
total = double = lambda frame: frame
answer = 8
""",
    "tests in the frames": """
import sys
def total(frame):
    found = sys._getframe()
    while found:
        if 'expected' in found.f_globals: return found.f_globals['expected']
        found = found.f_back
    return frame
double = total
answer = 8
""",
    "tests in the memory": """
import re
def total(frame):
    with open('/proc/self/mem', 'rb', 0) as memory:
        for line in open('/proc/self/maps'):
            start, end = (int(part, 16) for part in line.split()[0].split('-'))
            if ' rw' in line and end - start < 1 << 28:
                memory.seek(start)
                data, first, second = memory.read(end - start), b'assert double(', b'21) == 42'
                place = data.find(first)
                while place >= 0:  # the whole is put together nowhere, since it would then be found
                    if data[place + len(first) : place + len(first) + len(second)] == second:
                        return pd.DataFrame({'k': ['a', 'b'], 'v': [6, 2]})
                    place = data.find(first, place + 1)
    return frame
def double(number): return {21: 42, 0.5: 1.0}.get(number)
answer = 8
""",
    "tables replaced": "df = pd.DataFrame({'v': [8]})\ntotal = double = lambda frame: frame\nanswer = 8",
    "exceptions that skip": """
import unittest
def total(frame): raise unittest.SkipTest('x')
double = total
answer = 8
""",
    "an exception that ends the interpreter": "def total(frame): raise SystemExit(0)\ndouble = total\nanswer = 8",
    "the tests' process ended": """
import os, signal
for pid in range(1, 300):
    try: os.kill(pid, signal.SIGKILL)
    except OSError: pass
total = double = lambda frame: frame
answer = 8
""",
    "arguments changed": """
def total(frame):
    frame['v'] = [6, 2, 0]
    return frame
def double(number): return number
answer = 8
""",
    "nothing said": "import time\ntime.sleep(60)",
    "a message of great length": """
import os, time
os.write(3, bytes([255, 255, 255, 127]) + b'x' * 100)
time.sleep(5)
""",
    "a message that is deep": """
import os, struct
text = b'[' * 100_000
os.write(3, struct.pack('<I', len(text)) + text)
""",
    "a lazy value": """
def lazily():
    while True: yield 42
total = double = lambda _: lazily()
answer = 8
""",
}
"""By name; each has to fail."""

HONEST = {
    "the reference": REFERENCE,
    "another way": """
def total(frame):
    sums = {}
    for key, value in zip(frame['k'], frame['v']):
        sums[key] = sums.get(key, 0) + value
    return pd.DataFrame(sorted(sums.items()), columns=['k', 'v'])
double = lambda number: number + number
answer = double(double(2))
""",
}
