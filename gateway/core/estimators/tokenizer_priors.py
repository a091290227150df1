"""What tokenizer families make of text before anything is learned: tokens a feature of TextCounts.

The weights of a family were fitted to its real tokenizer over 20 MB of prose in 25 languages, source code, JSON, logs,
tables, base64, tool schemas and agents' prompts, to the least median of relative errors (iteratively reweighted least
squares, as `python -m tests.tokens.fitting` does it); the family that is unknown has their mean.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from operator import mul

from gateway.core.estimators.text_counts import FEATURES, TextCounts

__all__ = ["GROUPS", "Prior", "contributions", "least_tokens", "most_parts", "prior_of"]


@dataclass(frozen=True, slots=True)
class Structure:
    """Tokens that a chat template adds: a message, a tool result with its call, a tool, if there are any, a request.

    `schema`: what the tools' JSON becomes, as a factor on its own tokens. `system`: its own,
    where there is no other.
    """

    message: float = 3.0
    result: float = 15.0
    tool: float = 3.0
    schema: float = 1.1
    tools: float = 50.0
    request: float = 6.0
    system: float = 0.0


@dataclass(frozen=True, slots=True)
class Prior:
    """Tokens a feature (in the order of FEATURES) of one family's vocabulary, and of its usual chat template."""

    text: tuple[float, ...]
    structure: Structure


# fmt: off
# Rows: ASCII, other characters, pairs, each in the order of FEATURES.
_TEXT: dict[str, tuple[float, ...]] = {
    "qwen2": (
        0.040, 0.106, 0.307, 0.336, 0.404, 1.718, 1.537, 0.333, 0.701,
        0.622, 0.650, 0.381, 2.410, 0.500, 0.435, 0.699, 1.083, 3.323,
        0.725, -1.141, -0.082, 0.144, 0.438, 0.697,
    ),
    "o200k": (
        0.040, 0.096, 0.275, 0.460, 0.397, 1.786, 1.061, 0.491, 0.659,
        0.737, 0.722, 0.304, 1.232, 0.500, 0.324, 0.624, 0.728, 2.857,
        0.769, -2.596, -0.345, 0.276, 0.499, 0.606,
    ),
    "cl100k": (
        0.040, 0.098, 0.324, 0.436, 0.388, 1.680, 1.553, 0.454, 0.648,
        1.040, 1.014, 0.520, 2.818, 0.500, 0.820, 1.130, 0.743, 3.526,
        0.768, -2.358, -0.238, 0.138, 0.291, 0.610,
    ),
    "llama3": (
        0.040, 0.094, 0.327, 0.436, 0.389, 1.653, 1.529, 0.456, 0.693,
        0.771, 0.638, 0.346, 2.433, 0.500, 0.367, 0.630, 0.500, 3.668,
        0.784, -2.295, -0.247, 0.139, 0.307, 0.597,
    ),
    "qwen35": (
        0.040, 0.146, 0.249, 0.447, 0.361, 1.754, 1.050, 0.538, 1.033,
        0.543, 0.431, 0.274, 1.213, 0.500, 0.307, 0.488, 0.772, 3.354,
        1.073, -1.250, -0.394, 0.213, 0.552, 0.683,
    ),
    "deepseek": (
        0.040, 0.098, 0.333, 0.501, 0.473, 1.682, 1.335, 0.431, 0.666,
        0.575, 0.656, 0.351, 2.488, 0.500, 0.410, 0.697, 0.553, 3.570,
        0.544, -2.378, -0.287, 0.173, 0.518, 0.523,
    ),
    "smollm": (
        0.040, 0.074, 0.386, 0.555, 0.573, 1.658, 1.857, 0.324, 0.936,
        1.703, 1.743, 0.893, 5.300, 1.238, 1.147, 2.618, 0.893, 4.412,
        0.444, -1.064, -0.355, -0.010, 0.774, 0.529,
    ),
    "tekken": (
        0.040, 0.104, 0.276, 0.382, 0.514, 1.835, 1.248, 0.340, 0.713,
        0.994, 0.630, 0.341, 1.483, 0.500, 0.311, 0.565, 0.662, 4.779,
        0.688, -1.413, -0.104, 0.248, 0.637, 0.600,
    ),
}
# fmt: on
_STRUCTURE = {
    "qwen2": Structure(3.0, 15.0, 4.3, 1.15, 72.0, 3.0),
    "qwen35": Structure(3.0, 15.0, 4.3, 1.15, 72.0, 3.0),
    "deepseek": Structure(0.3, 5.0, -10.0, 1.12, 90.0, 1.0),
    "o200k": Structure(3.3, 30.0, -14.0, 0.86, 5.0, 64.0),
    "llama3": Structure(3.2, 30.0, 12.0, 1.35, 32.0, 25.0),
    "smollm": Structure(3.1, 25.0, 18.0, 1.22, 17.0, 3.0, 21.0),
}
_UNKNOWN = Prior(
    tuple(sum(column) / len(column) for column in zip(*(_TEXT[f] for f in _TEXT if f != "smollm"), strict=True)),
    Structure(),
)
_FAMILIES = (
    # What a model's name or its catalogue entry's tokenizer says, first match; GLM, MiniMax and Kimi have vocabularies
    # of about 150,000 made like Qwen's and OpenAI's, Gemma's of 262,000 is closest to o200k.
    ("qwen3.5", "qwen35"),
    ("qwen3.6", "qwen35"),
    ("qwen3-5", "qwen35"),
    ("deepseek-r1-distill-llama", "llama3"),
    ("distill-qwen", "qwen2"),
    ("qwen", "qwen2"),
    ("qwq", "qwen2"),
    ("deepseek", "deepseek"),
    ("gpt-oss", "o200k"),
    ("o200k", "o200k"),
    ("gpt-4o", "o200k"),
    ("gpt-5", "o200k"),
    ("phi-4-mini", "o200k"),
    ("gemma", "o200k"),
    ("cl100k", "cl100k"),
    ("phi-4", "cl100k"),
    ("gpt-4", "cl100k"),
    ("gpt-3.5", "cl100k"),
    ("llama-4", "o200k"),
    ("llama4", "o200k"),
    ("llama-3", "llama3"),
    ("llama3", "llama3"),
    ("hermes-3", "llama3"),
    ("nemotron", "llama3"),
    ("smollm", "smollm"),
    ("tekken", "tekken"),
    ("mistral", "tekken"),
    ("ministral", "tekken"),
    ("devstral", "tekken"),
    ("magistral", "tekken"),
)

GROUPS: dict[str, tuple[str, ...]] = {
    # What is learned together: features whose tokens go up and down together from one vocabulary to another.
    "letters": ("common", "uncommon", "rare", "capital", "camel", "space_word", "punctuation_word"),
    "layout": ("space", "line", "punctuation_space"),
    "digits": ("digit", "digit_pair"),
    "punctuation": ("punctuation", "quote", "punctuation_pair"),
    "alphabets": ("cyrillic", "latin", "latin_extended", "middle_east", "symbol", "emoji"),
    "characters": ("han", "kana", "hangul"),
    "structure": (),
    "tools": (),
    "thought": (),
    "past_thought": (),
}
_INDICES = tuple(tuple(FEATURES.index(name) for name in names) for names in GROUPS.values() if names)
_LEAST = {name: min(weights[i] for weights in _TEXT.values()) for i, name in enumerate(FEATURES)} | dict.fromkeys(
    # Runs of these may be one token each.
    ("space", "line", "punctuation", "quote", "punctuation_space", "emoji", "symbol"),
    0.0,
)
_WITHIN_WORDS = (*GROUPS["letters"], "latin", "latin_extended")
_LETTERS_FLOOR = tuple(0.55 * _LEAST[name] for name in FEATURES)
_WORDS_FLOOR = tuple(
    # Every word is a token at least, however short.
    0.85 if name == "space_word" else 0.0 if name in _WITHIN_WORDS else 0.8 * _LEAST[name]
    for name in FEATURES
)

_MOST: dict[str, float] = {
    # Nearly a token for each byte of scripts that a vocabulary may not know, each sign and digit; less for letters.
    # Of 38 kinds of text, odd ones all but one, none has more with any of six vocabularies before anything is learned.
    "common": 0.3, "space": 0.1, "uncommon": 0.4, "punctuation": 1.0, "capital": 0.8, "digit": 1.0, "rare": 0.8,
    "quote": 1.0, "line": 1.0, "han": 3.0, "kana": 3.0, "cyrillic": 2.5, "latin": 2.0, "latin_extended": 3.0,
    "middle_east": 3.0, "hangul": 3.0, "symbol": 3.0, "emoji": 4.0, "space_word": 0.7, "punctuation_word": 0.3,
}  # fmt: skip
_MOST_OF = tuple(tuple((i, _MOST.get(FEATURES[i], 0.0)) for i in indices) for indices in _INDICES)


@lru_cache(1024)
def prior_of(model: str) -> Prior:
    """What is known of a model's tokenizer and template by its name, or by the tokenizer that a catalogue names."""
    name = model.lower()
    for word, family in _FAMILIES:
        if word in name:
            return Prior(_TEXT[family], _STRUCTURE.get(family, Structure()))
    return _UNKNOWN


def contributions(prior: Prior, counts: TextCounts) -> list[float]:
    """Tokens that each of GROUPS has in a prompt by the prior."""
    text = list(map(mul, prior.text, counts.features))
    found = [sum([text[i] for i in indices]) for indices in _INDICES]
    add = prior.structure
    frame = add.request + add.system if counts.bare else add.request
    found.append(add.message * counts.messages + add.result * counts.results + frame)
    schemas = add.schema * sum(map(mul, prior.text, counts.offered))
    found.append(schemas + add.tool * counts.tools + add.tools if counts.tools else 0.0)
    found.append(sum(map(mul, prior.text, counts.thought)))
    found.append(sum(map(mul, prior.text, counts.past_thought)))
    return found


def least_tokens(counts: TextCounts) -> int:
    """Tokens that text of these counts has at least with any vocabulary here: by its words, or by its letters.

    Of 5,700 pieces of text in 25 languages, code and data, none has fewer with any of eight vocabularies. Tools don't
    count, which a template may leave out.
    """
    return max(0, *(int(sum(map(mul, floor, counts.features))) for floor in (_WORDS_FLOOR, _LETTERS_FLOOR)))


def most_parts(counts: TextCounts) -> list[float]:
    """Tokens that each of GROUPS which is text has at most with a vocabulary that is poor in it."""
    features = counts.features
    return [sum([weight * features[i] for i, weight in indices]) for indices in _MOST_OF]
