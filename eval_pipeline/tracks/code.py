"""Which definitions of a track decide what a stage makes, as roots of its fingerprint."""

from eval_pipeline.tracks.base import Track


def methods(track: Track, *names: str) -> tuple[str, ...]:
    """Places of the track's own methods and attributes of these names, as far as it has them."""
    kind = type(track)
    return tuple(f"{kind.__module__}:{kind.__qualname__}.{name}" for name in names if hasattr(kind, name))


def damage_code(track: Track) -> tuple[str, ...]:
    """What stand-ins make of a turn's gold."""
    return methods(track, "oracle", "damage", "gold_json", "failure_modes")
