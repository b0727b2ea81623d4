r"""Turns the LaTeX and Unicode in which numbers and words are set into plain characters: `\frac{1}{2}` into `1/2`."""

import re
import unicodedata

_INNER = r"\{([^{}\n]{0,200})\}"
_WRAPPED = re.compile(
    r"\\(?:text|textbf|textit|textrm|texttt|mathrm|mathbf|mathit|mathsf|operatorname|mbox|bm|boldsymbol|displaystyle)"
    r"\s?" + _INNER
)
_FRACTION = re.compile(r"\\[dtc]?frac\s*(?:" + _INNER + r"|(\d))\s*(?:" + _INNER + r"|(\d))")
_DOLLAR_MATH = re.compile(r"(?<![\\\w$])\$\$?(?=[^$\n]{1,200}\$)([^$\n]{1,200})\$\$?(?!\d)")
_REPLACED = (
    (re.compile(r"\{,\}"), ","),
    (re.compile(r"\\\$"), "$"),
    (re.compile(r"\\%"), "%"),
    (re.compile(r"\\(?:times|cdot|ast)(?![a-zA-Z])"), "×"),
    (re.compile(r"\\(?:approx|simeq)(?![a-zA-Z])"), "≈"),
    (re.compile(r"\\sqrt(?![a-zA-Z])"), "√"),
    (re.compile(r"\\pi(?![a-zA-Z])"), "π"),
    (re.compile(r"\^\s?\{?\s?\\circ\s?\}?"), "°"),
    (re.compile(r"\\(?:left|right|displaystyle|quad|qquad|big)(?![a-zA-Z])|\\[!;:]|\\[()\[\]]"), " "),
    (re.compile(r"(?<=\d)\\,(?=\d)"), " "),
    (re.compile(r"\\,|\\ "), " "),
    (re.compile(r"\^\s?\{([^{}\n]{1,20})\}"), r"^\1"),
)
_NESTED = 3
_HIGH = {ord(high): low for high, low in zip("⁰¹²³⁴⁵⁶⁷⁸⁹⁻", "0123456789-", strict=True)}
_POWER = re.compile(r"(?<=\d)(⁻?[⁰¹²³⁴⁵⁶⁷⁸⁹]{1,3})")
_VULGAR = re.compile(r"(\d?)\s?([¼½¾⅐-⅞])")
_SIGNS = str.maketrans({"−": "-", "﹣": "-", "－": "-", "٫": ".", "٬": ",", "％": "%", "\u00ad": None, "\u200b": None})


def plain(text: str) -> str:
    """Returns the text without Markdown marks around words and without insignificant white space."""
    return " ".join(re.sub(r"[*`]+|(?<!\w)_+|_+(?!\w)", "", text).split())


def without_latex(text: str) -> str:
    r"""Returns the text with LaTeX commands that only set type removed, and fractions as `a/b`.

    Dollar signs around a formula go, those of an amount stay: `$42$` is 42, `\$9{,}500` is $9,500.
    """
    if "\\" not in text and "$" not in text and "{,}" not in text:
        return text
    for pattern, plain_form in _REPLACED:
        text = pattern.sub(plain_form, text)
    for _ in range(_NESTED):
        text, wrapped = _WRAPPED.subn(r" \1 ", text)
        text, fractions = _FRACTION.subn(_fraction, text)
        if not wrapped and not fractions:
            break
    return _DOLLAR_MATH.sub(r" \1 ", text)


def with_plain_digits(text: str) -> str:
    """Returns the text with digits of every script, signs, powers and fraction characters in ASCII: `10⁶` is `10^6`."""
    if text.isascii():
        return text
    text = _POWER.sub(lambda match: "^" + match[1].translate(_HIGH), text.translate(_SIGNS))
    text = _VULGAR.sub(_vulgar, text)
    return "".join([found if found.isascii() or not found.isdecimal() else str(int(found)) for found in text])


def _fraction(match: re.Match[str]) -> str:
    top, bottom = (match[1] or match[2] or "").strip(), (match[3] or match[4] or "").strip()
    # "2\frac{1}{2}" is two and a half; a digit before the fraction must not run into it
    space = " " if match.start() and match.string[match.start() - 1].isdigit() else ""
    is_plain = top.isdigit() and bottom.isdigit()
    return f"{space}{top}/{bottom}" if is_plain else f"{space}({top})/({bottom})"


def _vulgar(match: re.Match[str]) -> str:
    top, _, bottom = unicodedata.normalize("NFKC", match[2]).partition("⁄")
    return f"{match[1]} {top}/{bottom}" if match[1] else f"{top}/{bottom}"
