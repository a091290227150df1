"""How hard a request wants the model to think, in one of few words whatever its client wrote."""

from __future__ import annotations

__all__ = ["EFFORTS", "reasoning_of"]

EFFORTS = frozenset(("none", "minimal", "low", "medium", "high", "xhigh", "max"))
"""Words of `reasoning_effort`; others mean that it is wanted, and no more."""


def reasoning_of(effort: object, template: object) -> str:
    """One of EFFORTS, "on" without a level, or "" when nothing is said.

    `effort`: the member `reasoning_effort`. `template`: the member `chat_template_kwargs`, whose `enable_thinking`
    (Qwen, GLM) or `thinking` (DeepSeek, Granite) switch a template's thinking, and whose `reasoning_effort` sets it
    (gpt-oss).
    """
    if isinstance(template, dict):
        switch = template.get("enable_thinking", template.get("thinking"))
        if switch is False:
            return "none"
        if effort is None:
            effort = template.get("reasoning_effort")
        if effort is None and switch is True:
            return "on"
    if not isinstance(effort, str):
        return ""
    return effort if effort in EFFORTS else "on"
