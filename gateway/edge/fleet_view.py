"""The fleet as clients see it: models on the public port."""

from __future__ import annotations

from gateway.core.admission import class_named
from gateway.core.backend import Offer
from gateway.core.boundary import Label, within
from gateway.core.context_cap import narrowest
from gateway.core.plan import Plan, Route
from gateway.core.snapshot import BackendView, Health, Snapshot
from gateway.wire.inbound import Client
from gateway.wire.models import ModelEntry

__all__ = ["model_entry"]


def model_entry(name: str, plan: Plan, snapshot: Snapshot, created: int, client: Client) -> ModelEntry:
    """A model name with the window that the gateway enforces for it, and for this client.

    What every backend of it holds, unless told otherwise; of those that may see what this client sends.
    """
    route = plan.route(name, snapshot) or Route(name=name, serves=name)
    serving = [(view, offer) for view in snapshot.views if (offer := view.offer(route.serves)) is not None]
    label = max(route.label, client.label if client.label is not None else Label.PUBLIC)
    windows = [_window(view, offer) for view, offer in serving if within(label, view.backend.clearance)]
    spoken = [offer.surfaces for _, offer in serving]
    cap, _ = narrowest(client.context, class_named(plan, client.klass or route.klass))
    caps = [each for each in (route.context, cap) if isinstance(each, int)]
    if windows:
        # A number is held to on its own, so the widest window is what it may fill.
        widest = route.context == "longest" or isinstance(route.context, int)
        caps.append(max(windows) if widest else min(windows))
    window = min(caps, default=None)
    most = route.output_ceiling
    return ModelEntry(
        id=name,
        created=created,
        window=window,
        # Nobody can generate more than the window that they are told.
        max_output=most if most is None or window is None else min(most, window),
        abilities=frozenset.intersection(*(_abilities(view, offer) for view, offer in serving)) if serving else _NONE,
        surfaces=None if None in spoken else frozenset().union(*(each for each in spoken if each is not None)),
        ready=any(view.health in (Health.UP, Health.RESTING) for view, _ in serving),
    )


_NONE: frozenset[str] = frozenset()


def _abilities(view: BackendView, offer: Offer) -> frozenset[str]:
    declared = view.backend.abilities
    return offer.abilities if declared is None else declared


def _window(view: BackendView, offer: Offer) -> int:
    cap = view.backend.context_cap
    return offer.window if cap is None else min(offer.window, cap)
