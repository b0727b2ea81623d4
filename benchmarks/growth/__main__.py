"""Where nights of a million turns and more saturate: `python -m benchmarks.growth [--turns N,N] [--check]`.

For each track and size: how long a night takes at a site with 16 workers, and what is then in use for the largest
share of the time; and what the site needs so that the night ends in 8 hours. `--check` compares the simulation with
real runs on this machine, of one process, one worker and two; `--shards 10` says in ten rounds what small shards cost
and what a second worker gains; `--nights 30` really runs small nights, and says what they leave on the disk. Nothing
else should run meanwhile.
"""

import argparse
from dataclasses import fields

from benchmarks.growth.costs import TRACKS, Night, Site
from benchmarks.growth.needs import HOURS, needed
from benchmarks.growth.night import Simulation

SIZES = "1_000_000,10_000_000,100_000_000"
LIMITS = (
    "runs",
    "calls_per_s",
    "in_flight",
    "latency_s",
    "journal_per_s",
    "deaths_per_hour",
    "straggling",
    "kept_bytes",
    "shard_s",
)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", default=SIZES, help="sizes of a night")
    parser.add_argument("--evaluations", type=int, default=200, help="among which the turns are divided")
    parser.add_argument("--track", action="append", choices=TRACKS)
    parser.add_argument("--workers", type=int, default=16)
    parser.add_argument("--catalog", action="store_true", help="publish in the catalog form")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--shards", type=int, metavar="ROUNDS", help="at least 2")
    parser.add_argument("--nights", type=int, help="run so many small nights, and say what they leave on the disk")
    parser.add_argument("--keep", type=int, default=10, help="with --nights: dates that `prune` keeps in the end")
    for field in fields(Site):
        if field.name in LIMITS:
            name = "--" + field.name.replace("_", "-")
            parser.add_argument(name, type=type(field.default), default=field.default)
    return parser


def main() -> None:
    arguments = _parser().parse_args()
    if arguments.nights:
        from benchmarks.growth.year import leave

        leave(arguments.nights, arguments.keep)
        return
    if arguments.check:
        from benchmarks.growth.check import check

        check()
        return
    if arguments.shards:
        from benchmarks.growth.shards import compare

        compare(arguments.shards)
        return
    limits = {name: getattr(arguments, name) for name in LIMITS}
    site = Site(arguments.workers, catalog=arguments.catalog, **limits)
    print(f"| track | turns | hours with {site.workers} workers | busiest ", end="")
    print(f"| for {HOURS:.0f} h: workers | runs | calls/s | store |")
    print("|---|---|---|---|---|---|---|---|")
    for turns in (int(size) for size in arguments.turns.split(",")):
        for track in arguments.track or TRACKS:
            night = Night(turns, arguments.evaluations, TRACKS[track])
            first, need = Simulation(night, site).run(), needed(night, site)
            used = f"{first.saturated} {first.busy[first.saturated]:.0%}"
            grown = f"{need.site.workers:,} | {need.site.runs} | {need.site.calls_per_s:,.0f}"
            store = "catalog" if need.site.catalog else "copied"
            print(f"| {track} | {turns:,} | {first.seconds / 3600:.1f} | {used} | {grown} | {store} |", flush=True)


if __name__ == "__main__":
    main()
