"""What those are told who are turned away hangs on what waits, and not on who asks."""

from __future__ import annotations

from gateway.core.experience import Experience
from gateway.core.line import Line
from gateway.core.plan import QueueLimits
from gateway.core.prefix.chain import fingerprint
from tests.core.fleet import offer, plan, request, snapshot, view

SEEN = snapshot(view(slots=2, offers=(offer(prefill=5000.0, step=0.02),)))


def full(prompt: int, output: int, count: int = 4) -> Line:
    line = Line(plan(queue=QueueLimits(length=count)), Experience())
    assert all(line.waiting.offer(request(f"w{n}", prompt=prompt, output=output)) for n in range(count))
    return line


def told(line: Line, prompt: int, output: int) -> int:
    chain = fingerprint([f"{prompt} {output}".encode()])
    return line.come_back(request("late", prompt=prompt, output=output), chain, SEEN, 0.0)


def test_e3_a_short_request_and_a_long_one_are_told_the_same_of_the_same_queue() -> None:
    times = {told(full(400, 200), prompt, output) for prompt, output in ((400, 5), (400, 200), (8000, 200), (9, 2000))}
    assert len(times) == 1


def test_a_queue_of_long_answers_takes_longer() -> None:
    assert told(full(400, 1000), 400, 5) > told(full(400, 100), 400, 5)


def test_what_is_typical_follows_what_waits() -> None:
    line = full(400, 200)
    assert line.waiting.typical("m") == (400, 200)
    line.waiting.replace(request("w0", prompt=800, output=600))
    assert line.waiting.typical("m") == (500, 300)
    for number in range(3):
        line.waiting.remove(f"w{number}")
    assert line.waiting.typical("m") == (400, 200)
    line.waiting.remove("w3")
    assert line.waiting.typical("m") is None


def test_who_is_ahead_is_who_goes_first_and_not_all_who_wait() -> None:
    line = Line(plan(queue=QueueLimits(length=400)), Experience())
    for number in range(50):
        line.waiting.offer(request(f"batch{number}", client="batch"))
    person = request("person", client="person")
    line.waiting.offer(person)
    ahead = line.ahead(person, SEEN)
    assert ahead.requests <= 1
    assert ahead.seconds < line.ahead(request("batch49", client="batch"), SEEN).seconds


def test_who_is_far_behind_is_taken_to_be_behind_all() -> None:
    line = full(400, 200, 300)
    near, far = (line.ahead(request(f"w{number}", prompt=400, output=200), SEEN) for number in (10, 290))
    assert (near.requests, far.requests) == (10, 299)
    assert far.seconds > near.seconds
