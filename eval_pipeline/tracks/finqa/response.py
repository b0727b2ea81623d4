"""Finding JSON in what a model wrote: alone, in a markdown fence, or with prose around it."""

import json
import re
from collections.abc import Callable
from itertools import islice

from eval_pipeline.core.model import ErrorClass, Json
from eval_pipeline.tracks.base import ArtefactError

FORMS = '{"plan": [...]} or {"calculation": "..."}'
MAX_CHARS = 200_000
_MAX_SCANNED = 2 * MAX_CHARS
"""Characters looked at over all starting points, so that a text full of brackets costs no more than a long one."""
_MAX_STARTS = 2_000
_MAX_BARE = 100
_START = re.compile(r"[\[{]")
_decoder = json.JSONDecoder()


def find_json(text: str, wanted: Callable[[Json], bool]) -> Json:
    """The first balanced JSON value in a text that is wanted.

    Raises:
        ArtefactError: `other_error` for an empty text, `syntax_error` where there is no JSON or it does not parse,
            `value_error` where what was found is not wanted.
    """
    text = text.strip()
    if not text:
        raise ArtefactError(ErrorClass.OTHER, "the response is empty")
    if len(text) > MAX_CHARS:
        message = f"the response has {len(text)} characters, at most {MAX_CHARS} are read"
        raise ArtefactError(ErrorClass.VALUE, message)
    if text[0] in "{[":
        try:
            value = json.loads(text)
        except (ValueError, RecursionError):
            pass  # the search finds a plan after all, or says what is wrong
        else:
            if wanted(value):
                return value
    return _search(text, wanted)


def _search(text: str, wanted: Callable[[Json], bool]) -> Json:
    problem: str | None = None
    some_json = False
    scanned = 0
    for start in islice(_START.finditer(text), _MAX_STARTS):
        position = start.start()
        try:
            value, end = _decoder.raw_decode(text, position)
        except json.JSONDecodeError as error:
            problem = problem or f"the JSON does not parse: {error.msg} at character {error.pos}"
            end = error.pos
        except RecursionError:
            raise ArtefactError(ErrorClass.SYNTAX, "the JSON is nested too deeply") from None
        except ValueError:  # an integer of thousands of digits
            raise ArtefactError(ErrorClass.VALUE, "the JSON holds a number with too many digits") from None
        else:
            if wanted(value):
                return value
            some_json = True
        scanned += end - position
        if scanned > _MAX_SCANNED:
            break
    # a broken value at the very start was meant to be the plan, whatever parses inside it
    meant_broken = problem is not None and text[0] in "{["
    if (some_json and not meant_broken) or (problem is None and _is_bare_json(text)):
        raise ArtefactError(ErrorClass.VALUE, f"the JSON is not a plan; expected {FORMS}")
    raise ArtefactError(ErrorClass.SYNTAX, problem or f"the response holds no JSON; expected {FORMS}")


def _is_bare_json(text: str) -> bool:
    """Whether the whole text is a JSON number, string or word: JSON, but no plan."""
    if len(text) > _MAX_BARE:
        return False
    try:
        json.loads(text)
    except ValueError:
        return False
    return True
