"""The machine and its processes: clocks, days, signals, memory, permissions, supervision."""
