"""Draws conversations of a log of traffic with known probabilities, and masks values of personal kind in them.

The strata are made of outcome, route, length and day. A stratum from which fewer than `_LEAST` would be drawn is put
together with its kin: first of all days, then of all lengths, routes and outcomes.
"""

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

from eval_pipeline.analysis.reviews.drawing import allocation
from eval_pipeline.core import shown
from eval_pipeline.core.errors import InputError, Problem, UsageError
from eval_pipeline.core.ids import json_text, text_hash
from eval_pipeline.core.model import Json
from eval_pipeline.core.reading.arms_length import at_arms_length
from eval_pipeline.core.reading.masking import Masking
from eval_pipeline.operations.recorded.entries import ROUTE_TAG, Entry
from eval_pipeline.operations.recorded.logs import entries_of, reader_of

Key = tuple[str, ...]
Drawn = tuple[int, int]
"""Where the lines of a conversation begin in the file of all, and how many there are."""
_LEAST = 5
_LENGTHS = {1: "1 turn", 3: "2-3 turns", 7: "4-7 turns"}
_LONGER = "8+ turns"
_ALIKE = 0.8
"""Share of common sequences of three words from which two conversations are near duplicates."""
_WORDS = 3


@dataclass(frozen=True, slots=True)
class TrafficChoices:
    """What is made of traffic.

    Attributes:
        size: how many conversations to draw; None for all.
        rules: what is masked, by name of the kind; empty for nothing.
        seed: of the draw.
    """

    size: int | None = None
    rules: Mapping[str, str] | None = None
    seed: int = 0


def read_traffic(source: Path, choices: TrafficChoices) -> tuple[str, list[Entry], list[str]]:
    """Returns the form of a log, the turns of the conversations that were drawn, and what was done in sentences.

    It is read in a child process, where conversations wait on disk, masked, so that memory does not grow with them.

    Raises:
        UsageError, InputError, MissingExtraError: see `read_any_log`.
    """
    if not source.exists():
        raise UsageError(f"no file {source}")
    with TemporaryDirectory() as folder:
        made = Path(folder) / "entries.jsonl"
        asked = [str(source), str(made), choices.size, dict(choices.rules or {}), choices.seed]
        told: Any = at_arms_length(_read_there, asked, [source])
        return str(told["form"]), entries_of(made), [str(note) for note in told["notes"]]


def _read_there(source: str, made: str, size: int | None, rules: Mapping[str, str], seed: int) -> Json:
    form, read = reader_of(None, Path(source))
    masking, every = Masking(rules), Path(made).with_suffix(".all")
    strata: dict[Key, list[Drawn]] = {}
    silent = 0
    with every.open("wb") as file:
        for own in conversations(read):
            if not all(entry.task and entry.task.question for entry in own):
                silent += 1
                continue
            at = file.tell()
            for entry in own:
                file.write(json_text(asdict(masked(entry, masking) if rules else entry)).encode() + b"\n")
            strata.setdefault(stratum(own), []).append((at, len(own)))
    if not strata:
        raise InputError([Problem(source, None, "", "no conversation in it has questions")])
    notes = []
    if silent:
        what = shown.counted(silent, "conversation", "conversations")
        notes.append(f"{what} without message content left out; figures on the traffic are about the others")
    if rules:
        counts = ", ".join(f"{count:,} {name}" for name, count in sorted(masking.counts.items()))
        notes.append(f"masked: {counts or 'nothing was found'}")
    picked = (
        drawn(strata, size, Random(seed))
        if size is not None
        else [(one, None) for own in strata.values() for one in own]
    )
    if size is not None:
        total = sum(map(len, strata.values()))
        notes.append(
            f"{len(picked):,} of {total:,} conversations drawn from {_parts(picked)} by outcome, route, length and day"
        )
    picked.sort(key=lambda one: one[0])
    with every.open("rb") as file, Path(made).open("w", encoding="utf-8") as chosen:
        texts = [" ".join(map(_question, _lines(file, *place))) for place, _ in picked]
        clusters, told = near_duplicates(texts)
        notes += told
        for (place, sampled), cluster in zip(picked, clusters, strict=True):
            for line in _lines(file, *place):
                line["task"] |= {"sampled": sampled, "cluster": cluster}
                chosen.write(json_text(line) + "\n")
    every.unlink()
    return {"form": form, "notes": notes}


def _lines(file: Any, at: int, count: int) -> Iterator[dict[str, Any]]:
    file.seek(at)
    for _ in range(count):
        yield json.loads(file.readline())


def _question(line: Mapping[str, Any]) -> str:
    return str(line["task"]["question"])


def _parts(picked: Sequence[tuple[Drawn, Any]]) -> str:
    return shown.counted(len({sampled["stratum"] for _, sampled in picked}), "stratum", "strata")


def conversations(entries: Iterator[Entry]) -> Iterator[list[Entry]]:
    """Yields the turns of each conversation; an entry without a conversation is one."""
    own: list[Entry] = []
    for entry in entries:
        if own and (
            entry.task is None or not entry.task.turn or own[0].task is None or entry.task.id != own[0].task.id
        ):
            yield own
            own = []
        own.append(entry)
    if own:
        yield own


def masked(entry: Entry, masking: Masking) -> Entry:
    """Returns an entry without values of personal kind; an id that is one becomes a name made of its hash."""
    given = {name: value if name in _NO_TEXTS else masking.value(value) for name, value in entry.given.items()}
    said = tuple(map(masking.text, entry.conversation))
    quiet = Masking(masking.rules)  # what only `--map` looks at is masked, but not counted
    task = entry.task
    if task is not None:
        name = task.id if quiet.text(task.id) == task.id else f"case-{text_hash(task.id)[:12]}"
        expected, tags = tuple(map(masking.value, task.expected)), tuple(map(masking.text, task.tags))
        task = replace(task, id=name, question=masking.text(task.question), expected=expected, tags=tags)
    found: Any = quiet.value(entry.found)
    fault, place = quiet.text(entry.fault), quiet.text(entry.place)
    return replace(entry, fault=fault, place=place, given=given, found=found, conversation=said, task=task)


_NO_TEXTS = {"trace_id", "span_id", "asked_on", "model"}


def stratum(turns: Sequence[Entry]) -> Key:
    """Returns outcome, route, length and day of a conversation."""
    verdicts = {entry.given.get("source_correct") for entry in turns}
    outcome = "failed" if any(entry.given.get("error") for entry in turns) else "answered"
    if outcome == "answered" and verdicts & {True, False}:
        outcome = "judged wrong" if False in verdicts else "judged right"
    tags = turns[0].task.tags if turns[0].task else ()
    route = next((tag.removeprefix(ROUTE_TAG) for tag in tags if tag.startswith(ROUTE_TAG)), "any route")
    length = next((name for most, name in _LENGTHS.items() if len(turns) <= most), _LONGER)
    return outcome, route, length, str(turns[0].given.get("asked_on") or "any day")[:10]


def drawn(strata: Mapping[Key, Sequence[Drawn]], size: int, random: Random) -> list[tuple[Drawn, dict[str, Json]]]:
    """Returns the conversations that are drawn, each with stratum, its size, and the probability."""
    whole = together({key: len(own) for key, own in strata.items()}, size)
    members: dict[str, list[Drawn]] = {}
    for key, own in sorted(strata.items()):
        members.setdefault(whole[key], []).extend(own)
    counts = allocation({name: len(own) for name, own in members.items()}, size, dict.fromkeys(members, 0.5))
    found = []
    for name, own in members.items():
        told: dict[str, Json] = {"stratum": name, "of": len(own), "probability": counts[name] / len(own)}
        found += [(place, told) for place in random.sample(sorted(own), counts[name])]
    return found


def together(sizes: Mapping[Key, int], size: int) -> dict[Key, str]:
    """Returns the stratum of each part, so that the draw has at least `_LEAST` of each where that can be."""
    whole = {key: key for key in sizes}
    least = _LEAST * sum(sizes.values()) / size
    for kept in reversed(range(len(next(iter(sizes))))):
        counts: Counter[Key] = Counter()
        for key, count in sizes.items():
            counts[whole[key]] += count
        whole = {key: own[:kept] if counts[own] < least and len(own) > kept else own for key, own in whole.items()}
    counts = Counter()
    for key, count in sizes.items():
        counts[whole[key]] += count
    if 0 < counts[()] < least and len(counts) > 1:  # what is left of all goes to the smallest of the others
        smallest = min((own for own in counts if own), key=lambda own: (counts[own], own))
        whole = {key: own or smallest for key, own in whole.items()}
    return {key: ", ".join(own) or "all" for key, own in whole.items()}


def near_duplicates(texts: Sequence[str]) -> tuple[list[str], list[str]]:
    """Returns for each text the name of the group of texts that say almost the same, and a sentence on them.

    The name is empty for texts that are like no other.
    """
    try:
        from datasketch import MinHash, MinHashLSH
    except ImportError:
        return [""] * len(texts), ["near duplicates were not looked for: pip install 'eval-pipeline[traces]'"]
    groups = list(range(len(texts)))
    index: Any = MinHashLSH(threshold=_ALIKE, num_perm=128)
    hashes: list[Any] = []
    for number, text in enumerate(texts):
        words = text.lower().split()
        pieces = {" ".join(words[at : at + _WORDS]).encode() for at in range(max(1, len(words) - _WORDS + 1))}
        own = MinHash(num_perm=128)
        own.update_batch(sorted(pieces))
        like = [other for other in index.query(own) if own.jaccard(hashes[other]) >= _ALIKE]
        groups[number] = min((groups[other] for other in like), default=number)
        hashes.append(own)
        index.insert(number, own)
    several = {group for group, count in Counter(groups).items() if count > 1}
    alike = sum(group in several for group in groups)
    names = [f"alike-{text_hash(texts[group])[:8]}" if group in several else "" for group in groups]
    if not alike:
        return names, []
    what = f"{alike:,} of {shown.counted(len(texts), 'conversation', 'conversations')} ask almost what another one asks"
    return names, [f"{what}, and share a cluster with it"]
