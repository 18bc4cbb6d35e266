"""Writes the table of prices, src/model/prices.yaml, from the data of the package genai-prices.
`python3 tests/llm/prices.py FILE [DAY]`; prices are those of the day, today unless said."""

import re
import sys
from datetime import UTC, date, datetime, time
from importlib.metadata import distribution, version
from pathlib import Path

from genai_prices.data import providers
from genai_prices.types import (
    ClauseAnd,
    ClauseContains,
    ClauseEndsWith,
    ClauseEquals,
    ClauseOr,
    ClauseRegex,
    ClauseStartsWith,
    TimeOfDateConstraint,
    TieredPrices,
)

# The providers, and the hosts of their APIs; a subdomain of a host is the provider's, too.
HOSTS = {
    "anthropic": ["api.anthropic.com"],
    "openai": ["api.openai.com"],
    "google": ["googleapis.com"],
    "groq": ["api.groq.com"],
    "mistral": ["api.mistral.ai"],
    "deepseek": ["api.deepseek.com"],
    "x-ai": ["api.x.ai"],
}
HEAD = """\
# What models cost in US dollars for a million tokens, and how long their windows are.
#
# `just prices` writes this file; don't change it by hand.
#
# A name is one of a model's where a pattern of `match` fits it: `*` is any text, `#` a digit, and
# a pattern behind `!` excludes names. Without `match`, the key is the name. The first model counts.
# Where a provider has several prices for a model, this is the one for short prompts; where a price
# depends on the time of day, it is the dearest.
#
# The data is that of the package genai-prices, under this licence:
#
{licence}
as_of: {day}
from: genai-prices {version}
providers:
"""
NO_SPEECH = r"^(?!.*-[tT][tT][sS](?:$|-))"
WIDTH = 100


def patterns(clause):
    """A condition on a model's name as patterns."""
    match clause:
        case ClauseEquals():
            return [clause.equals]
        case ClauseStartsWith():
            return [clause.starts_with + "*"]
        case ClauseEndsWith():
            return ["*" + clause.ends_with]
        case ClauseContains():
            return ["*" + clause.contains + "*"]
        case ClauseRegex():
            return from_regex(clause.regex)
        case ClauseOr():
            return [one for it in clause.or_ for one in patterns(it)]
        case ClauseAnd(and_=[first, ClauseRegex(regex=regex)]) if regex == NO_SPEECH:
            return ["!*-tts", "!*-tts-*", *patterns(first)]
    raise SystemExit(f"no pattern is known for {clause}; add it to tests/llm/prices.py")


def from_regex(regex):
    """A regular expression of a fixed text with digits."""
    if "[-@]" in regex:
        return [it for one in "-@" for it in from_regex(regex.replace("[-@]", one))]
    text = regex.removeprefix("^").removesuffix("$")
    text = re.sub(r"\\d(?:\{(\d)\})?", lambda it: "#" * int(it[1] or 1), text).replace(r"\.", ".")
    if not regex.startswith("^") or re.search(r"[\\()\[\]{}+?|^$*]", text):
        raise SystemExit(f"no pattern is known for {regex}; add it to tests/llm/prices.py")
    return [text if regex.endswith("$") else text + "*"]


def fits(all_patterns, name):
    """Whether a name is one of a model's; the program does the same in src/model/prices.rs."""

    def one(pattern):
        parts = {"*": ".*", "#": "[0-9]"}
        regex = "".join(parts.get(it) or re.escape(it) for it in pattern)
        return re.fullmatch(regex, name) is not None

    no = any(one(it[1:]) for it in all_patterns if it[0] == "!")
    return not no and any(one(it) for it in all_patterns if it[0] != "!")


def prices(model, day):
    """The prices that hold on a day: of the times of that day, the dearest."""
    times = [time(12)]
    if isinstance(model.prices, list):
        of_day = [it.constraint for it in model.prices]
        times += [it.start_time for it in of_day if isinstance(it, TimeOfDateConstraint)]
    at = [datetime.combine(day, it.replace(tzinfo=UTC)) for it in times]
    return max((model.get_prices(it) for it in at), key=lambda it: base(it.input_mtok) or 0)


def base(price):
    return price.base if isinstance(price, TieredPrices) else price


def number(price):
    return format(price.normalize(), "f")


def row(model, day):
    """A model's line; none where its tokens have no prices, as those of a voice."""
    it = prices(model, day)
    named = {
        "input": base(it.input_mtok),
        "output": base(it.output_mtok),
        "cached": base(it.cache_read_mtok),
        "cache_write": base(it.cache_write_mtok),
    }
    if named["input"] is None or named["output"] is None:
        return None
    fields = [f"{key}: {number(price)}" for key, price in named.items() if price is not None]
    if model.context_window:
        fields.insert(0, f"window: {model.context_window}")
    names = list(dict.fromkeys(patterns(model.match)))
    matching = None if names == [model.id] else ", ".join(f'"{it}"' for it in names)
    return quoted(model.id), fields, matching


def quoted(key):
    return key if re.fullmatch(r"[a-z][a-z0-9._/-]*", key) else f'"{key}"'


def written(key, fields, matching):
    """A model in a line, or in as many as its names take."""
    start = f"      {key}: {{{', '.join(fields)}"
    if matching is None:
        return start + "}\n"
    if len(whole := f"{start}, match: [{matching}]}}") <= WIDTH:
        return whole + "\n"
    lines = [f"      {key}:", f"        {{{', '.join(fields)},", "        match: ["]
    for name in matching.split(", "):
        if len(lines[-1]) + len(name) + 3 > WIDTH:
            lines[-1] = lines[-1].rstrip()
            lines.append("        ")
        lines[-1] += f"{name}, "
    return "\n".join(lines).removesuffix(", ") + "]}\n"


def samples(model):
    """Names that fit a model, and some that nearly do."""
    for pattern in patterns(model.match):
        name = pattern.lstrip("!").replace("#", "7")
        yield from (name.replace("*", it) for it in ("", "-x", "-tts", "20260102"))
        yield name.replace("*", "") + "0"


def compare(provider, kept):
    """Ends the program where the package itself finds another model for a name."""
    for model in provider.models:
        for name in {model.id, *samples(model)}:
            theirs = provider._match_model(name)
            mine = next((it for it in kept if fits(patterns(it.match), name)), None)
            if mine is not theirs and theirs in kept:
                raise SystemExit(f"{provider.id}: {name} is {theirs.id}, and not {mine}")


def licence():
    """The package's licence, as comments."""
    files = distribution("genai-prices").files or []
    text = next(it for it in files if it.name == "LICENSE").read_text()
    return "\n".join(f"# {it}".rstrip() for it in text.strip().splitlines())


def main(file, day):
    said = HEAD.format(licence=licence(), day=day.isoformat(), version=version("genai-prices"))
    for name, hosts in HOSTS.items():
        provider = next(it for it in providers if it.id == name)
        # Another's models in a provider's cloud are behind another wire.
        mine = [it for it in provider.models if name != "google" or "claude" not in it.id]
        rows = [(it, row(it, day)) for it in mine]
        kept = [it for it, found in rows if found]
        compare(provider, kept)
        said += f"  {name}:\n    hosts: [{', '.join(hosts)}]\n    models:\n"
        said += "".join(written(*found) for _, found in rows if found)
    file.write_text(said)


day = date.fromisoformat(sys.argv[2]) if sys.argv[2:] else datetime.now(UTC).date()
main(Path(sys.argv[1]), day)
