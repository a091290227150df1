from __future__ import annotations

from gateway.core.prefix.chain import Chain, fingerprint
from gateway.core.slot_files import SlotFiles, Swap


def prompt(*parts: str) -> Chain:
    return fingerprint([part.encode() * 2000 for part in parts])


def plan(files: SlotFiles, chain: Chain, loses: Chain | None, *, held: int = 0, comes_back: float = 0.9) -> Swap | None:
    lost = (loses, loses.total // 4) if loses is not None else None
    return files.plan("b", 0, chain, held=held, loses=lost, comes_back=comes_back, seconds_a_token=0.001)


def saved(files: SlotFiles, chain: Chain, seconds: float = 0.1) -> Swap:
    swap = plan(files, prompt("new "), chain)
    assert swap is not None
    assert swap.save is not None
    files.done("b", swap, saved=True, restored=False, seconds=seconds)
    return swap


def test_what_loses_its_slot_is_saved_and_comes_back_when_it_goes_on() -> None:
    files, first = SlotFiles(), prompt("a ")
    kept = saved(files, first)
    back = plan(files, prompt("a ", "more "), None)
    assert back is not None
    assert back.restore is kept.save
    assert back.save is None
    files.done("b", back, saved=False, restored=True, seconds=0.1)
    assert (files.restores, files.restored_tokens) == (1, first.total // 4)


def test_what_nobody_comes_back_for_is_short_or_is_saved_already_is_not_saved() -> None:
    files, first = SlotFiles(), prompt("a ")
    assert plan(files, prompt("new "), first, comes_back=0.1) is None
    assert plan(files, prompt("new "), fingerprint([b"short " * 100])) is None
    saved(files, first)
    assert plan(files, prompt("new "), first) is None


def test_what_the_slot_holds_already_is_not_restored() -> None:
    files = SlotFiles()
    saved(files, prompt("a "))
    longer = prompt("a ", "more ")
    assert plan(files, longer, None, held=longer.total) is None


def test_a_file_that_can_not_be_read_is_not_asked_for_again() -> None:
    files = SlotFiles()
    saved(files, prompt("a "))
    back = plan(files, prompt("a ", "more "), None)
    assert back is not None
    files.done("b", back, saved=False, restored=False, seconds=0.1)
    assert plan(files, prompt("a ", "more "), None) is None


def test_a_disk_that_is_slower_than_the_device_is_left_alone() -> None:
    files = SlotFiles()
    saved(files, prompt("a "), seconds=100.0)
    assert plan(files, prompt("a ", "more "), None) is None


def test_names_are_used_again_and_never_one_that_is_being_read() -> None:
    files = SlotFiles()
    first = saved(files, prompt("0 "))
    busy = plan(files, prompt("0 ", "more "), None)
    assert busy is not None
    names = {saved(files, prompt(f"{number} ")).save.name for number in range(1, 40)}  # type: ignore[union-attr]
    assert first.save is not None
    assert first.save.name not in names
    assert len(names) == 15
