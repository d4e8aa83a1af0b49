"""Numbers of a record in the way a person writes them."""

from __future__ import annotations

import re

_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
_TIMES = "\u00a0·\u00a0"  # keeps a number on one line
_POWER = re.compile(r"10([⁻⁰¹²³⁴⁵⁶⁷⁸⁹]+)$")


def amount(value: float) -> str:
    """Three digits; whole numbers as they are, powers of ten as a person writes them."""
    if value == int(value) or abs(value) >= 1000:
        text = f"{value:,.0f}"
    else:
        text, _, power = f"{value:#.3g}".partition("e")
        text = text.rstrip(".")
        if power:
            text += f"{_TIMES}10{str(int(power)).translate(_RAISED)}"
    return text.replace("-", "−")


def power_of(unit: str) -> int:
    """Of a unit such as 10⁻⁸ its exponent, and 0 of any other."""
    lowered = {raised: chr(plain) for plain, raised in _RAISED.items()}
    found = _POWER.match(unit)
    return int("".join(lowered[ord(one)] for one in found[1])) if found else 0


def measured(value: float, unit: str) -> str:
    """A measured value as a person writes it; records scale what is small."""
    scaled = re.match(r"× 1e-(\d+) ?(.*)", unit)
    if scaled:
        value, unit = value / 10 ** int(scaled[1]), scaled[2]
    if power := power_of(unit):
        return amount(value * 10.0**power)
    if unit == "× faster" and 0 < value < 1:
        value, unit = 1 / value, "× slower"
    if unit == "κ":
        return f"κ = {value:.3f}".replace("-", "−")
    return f"{amount(value)} {unit}".strip()


def typeset(line: str) -> str:
    """Numbers of a summary, which is for a terminal too, as they are printed."""
    line = re.sub(
        r"(?<=\d)e([+-]\d+)",
        lambda m: f"{_TIMES}10{str(int(m[1])).translate(_RAISED)}",
        line,
    )
    line = re.sub(r"(?<![\w–)])-(?=\d)", "−", line)
    return re.sub(r"(?<=\d) ?%", "\u00a0%", line)
