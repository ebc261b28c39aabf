"""Tuned constants: records check themselves, and files that are damaged, foreign or unsafe are not used."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from shares import looped

from tilewright.errors import InvalidSize, OutputNotWritable
from tilewright.machine.catalog import CATALOG, find_machine
from tilewright.machine.findings import (
    MOST_TYPES,
    TUNING_VERSION,
    Finding,
    Findings,
    decode_findings,
    encode_findings,
    merged,
    tunings_of,
)
from tilewright.machine.host import detect_host, host_machine
from tilewright.machine.isa import Lowering
from tilewright.machine.isa_rows import find_isa
from tilewright.machine.machine import Machine
from tilewright.machine.tuning import MOST_CONSTANT, TunedConstant, Tuning, kept_tunings, tuning_path
from tilewright.machine.tuning_file import MOST_FILES, SUFFIX, TuningFile
from tilewright.settings import Settings

STRIP = Finding("large", {"strip": 12}, {"strip": 24}, 1.05, 1.03, 1.06, 1.01, 15, 9.5, ("768x768x768",))
TILE = Finding(
    "tile", {"mr": 6, "nr": 16}, {"mr": 4, "nr": 24}, 1.02, 1.015, 1.03, 1.0, 9, 20.0, ("8x8x8 ab",)
)
STAYS = Finding("wide", {"nc": 2048}, {"nc": 2048}, 1.0, 1.0, 1.0, 1.02, 9, 3.0, ("96x4096x512",))
FOUND = {"f32": (STRIP, STAYS), "u8i8i32": (TILE,)}

posix = pytest.mark.skipif(os.name != "posix", reason="modes and owners are those of POSIX")


# --- records -----------------------------------------------------------------------------------------------


def test_findings_survive_their_text() -> None:
    assert decode_findings(encode_findings("a cpu", FOUND).encode(), "a cpu") == FOUND


def test_machines_read_replaced_constants_and_no_times() -> None:
    strip = (TunedConstant("strip", 12, 24),)
    tile = (TunedConstant("mr", 6, 4), TunedConstant("nr", 16, 24))
    assert tunings_of(FOUND) == (Tuning("f32", strip), Tuning("u8i8i32", tile))
    assert tunings_of({"f32": (STAYS,)}) == ()
    slower = replace(STRIP, gain=1.04, seconds=20.0, rounds=25)
    assert tunings_of(merged(FOUND, "f32", slower)) == tunings_of(FOUND)


def test_a_finding_takes_the_place_of_that_of_its_class() -> None:
    other = replace(STRIP, chosen={"strip": 6})
    found = merged(FOUND, "f32", other)
    assert found["f32"] == (STAYS, other)
    assert found["u8i8i32"] == FOUND["u8i8i32"]
    assert merged({}, "f64", TILE) == {"f64": (TILE,)}


@pytest.mark.parametrize(
    ("name", "model", "value"),
    [
        ("", 1, 1),
        ("Strip", 1, 1),
        ("a" * 65, 1, 1),
        ("strip", 0, 1),
        ("strip", 1, 0),
        ("strip", 1, -6),
        ("strip", 1, MOST_CONSTANT + 1),
        ("strip", True, 1),
        ("strip", 1, 1.5),
    ],
)
def test_invalid_constants_are_refused(name: str, model: Any, value: Any) -> None:
    with pytest.raises(InvalidSize):
        TunedConstant(name, model, value)


def test_names_of_a_tuning_are_different_and_in_order() -> None:
    one, other = TunedConstant("mr", 6, 4), TunedConstant("nr", 16, 24)
    assert Tuning("f32", (one, other)).value("nr", 16) == 24
    for constants in ((one, one), (other, one)):
        with pytest.raises(InvalidSize):
            Tuning("f32", constants)


WRONG_FIELDS: list[dict[str, Any]] = [
    {"shape_class": ""},
    {"model": {}},
    {"chosen": {"mc": 24}},
    {"chosen": {"strip": 0}},
    {"chosen": {"strip": "24"}},
    {"gain": float("nan")},
    {"low": float("inf")},
    {"seconds": "9"},
    {"rounds": -1},
    {"rounds": 1.5},
    {"shapes": ()},
    {"shapes": ("<b>",)},
]


@pytest.mark.parametrize("fields", WRONG_FIELDS, ids=str)
def test_invalid_findings_are_refused(fields: dict[str, Any]) -> None:
    with pytest.raises(InvalidSize):
        replace(STRIP, **fields)


def damaged() -> Iterator[tuple[bytes, str]]:
    """Contents of a file that is not used, and a word of the reason."""
    for content in (b"", b"\xff", b"{", b"[]", b"null", b"1", b"[" * 100_000, b'{"version": 1}'):
        yield content, "not a file of tuned constants"
    good: dict[str, Any] = json.loads(encode_findings("a cpu", FOUND))

    def changed(**fields: Any) -> bytes:
        return json.dumps({**good, **fields}).encode()

    yield changed(version=TUNING_VERSION + 1), "version"
    yield changed(version=None), "version"
    yield changed(kind="another cpu"), "another kind"
    entry = good["findings"]["f32"][0]
    without = {name: value for name, value in entry.items() if name != "gain"}
    wrong: list[Any] = [
        None,
        [],
        {"f32": None},
        {"f32": [None]},
        {"f32": [without]},
        {"f32": [{**entry, "more": 1}]},
        {"f32": [entry, entry]},
        {"F32<": [entry]},
        {f"f{number}": [entry] for number in range(MOST_TYPES + 1)},
        *({"f32": [{**entry, **fields}]} for fields in WRONG_FIELDS),
        {"f32": [{**entry, "model": None}]},
        {"f32": [{**entry, "shapes": [1]}]},
    ]
    for findings in wrong:
        yield changed(findings=findings), "damaged"


@looped(("content", "reason"), list(damaged()))
def test_damaged_and_foreign_texts_are_refused(content: bytes, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        decode_findings(content, "a cpu")


# --- files -------------------------------------------------------------------------------------------------


@pytest.fixture
def file(tmp_path: Path) -> TuningFile:
    return TuningFile(tmp_path / "data" / "tuning" / f"one{SUFFIX}", "a cpu", private=True)


def keep(file: TuningFile) -> None:
    file.update(lambda _kept: FOUND)


def test_a_file_is_made_private_and_replaced_as_a_whole(file: TuningFile) -> None:
    assert file.load() == {}
    keep(file)
    assert file.load() == FOUND
    if os.name == "posix":
        assert file.path.parent.stat().st_mode & 0o777 == 0o700
        assert file.path.stat().st_mode & 0o777 == 0o600
    names = {path.name for path in file.path.parent.iterdir()}
    assert names == {file.path.name, ".tilewright-tuning.lock"}
    assert file.remove()
    assert not file.remove()
    assert file.load() == {}


def widen(file: TuningFile) -> None:
    file.path.parent.chmod(0o755)


def let_others_write(file: TuningFile) -> None:
    file.path.chmod(0o622)


def link(file: TuningFile) -> None:
    file.path.rename(file.path.with_name("elsewhere"))
    file.path.symlink_to(file.path.with_name("elsewhere"))


def lengthen(file: TuningFile) -> None:
    file.path.write_bytes(file.path.read_bytes() + b" " * (1 << 20))


def cut(file: TuningFile) -> None:
    file.path.write_bytes(file.path.read_bytes()[:-10])


def replace_directory(file: TuningFile) -> None:
    file.path.unlink()
    file.path.mkdir()


@posix
@pytest.mark.parametrize("spoil", [widen, let_others_write, link, lengthen, cut, replace_directory])
def test_an_unsafe_file_is_not_used_and_one_warning_says_so(
    file: TuningFile, spoil: Callable[[TuningFile], None], caplog: pytest.LogCaptureFixture
) -> None:
    keep(file)
    spoil(file)
    with caplog.at_level(logging.WARNING, "tilewright"):
        assert file.load() == {}
        assert file.load() == {}
    (record,) = caplog.records
    assert "not used" in record.getMessage()


@posix
def test_nothing_is_written_where_others_may_enter(file: TuningFile) -> None:
    file.path.parent.mkdir(parents=True, mode=0o755)
    file.path.parent.chmod(0o755)
    with pytest.raises(OutputNotWritable, match="not private"):
        keep(file)
    assert list(file.path.parent.iterdir()) == []


def test_a_named_file_may_be_anywhere(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    named = TuningFile(tmp_path / "mine.json", "a cpu", private=False)
    keep(named)
    assert named.load() == FOUND
    with pytest.raises(OutputNotWritable):
        keep(TuningFile(tmp_path / "no" / "such" / "folder.json", "a cpu", private=False))


def test_the_files_of_a_directory_are_bounded(file: TuningFile) -> None:
    for number in range(MOST_FILES + 3):
        other = TuningFile(file.path.with_name(f"{number}{SUFFIX}"), f"cpu {number}", private=True)
        keep(other)
        os.utime(other.path, (number, number))
    left = {path.name for path in file.path.parent.glob("*" + SUFFIX)}
    # The last one was written at the time of the clock, before its own was set.
    assert left == {f"{number}{SUFFIX}" for number in range(3, MOST_FILES + 3)}


WRITER = """
import sys
from dataclasses import replace
from pathlib import Path
from tilewright.machine.findings import Finding, merged
from tilewright.machine.tuning_file import TuningFile
file = TuningFile(Path(sys.argv[1]), "a cpu", private=True)
for number in range(20):
    one = Finding(f"class {number}", {"mc": 6}, {"mc": 12}, 1.0, 1.0, 1.0, 1.0, 9, 1.0, ("8x8x8",))
    file.update(lambda kept: merged(kept, sys.argv[2], one))
"""


def test_two_writers_lose_nothing(file: TuningFile) -> None:
    writers = [
        subprocess.Popen([sys.executable, "-c", WRITER, str(file.path), types]) for types in ("f32", "f64")
    ]
    assert [writer.wait() for writer in writers] == [0, 0]
    found = file.load()
    assert {types: len(classes) for types, classes in found.items()} == {"f32": 20, "f64": 20}


def test_a_writer_waits_for_the_one_before(file: TuningFile) -> None:
    """The second writer begins while the first one has read the file and not yet replaced it."""
    other = TuningFile(file.path, "a cpu", private=True)
    second = threading.Thread(target=lambda: other.update(lambda kept: merged(kept, "f64", TILE)))

    def change(kept: Findings) -> Findings:
        second.start()
        second.join(0.3)  # which would be long enough for it
        return merged(kept, "f32", STRIP)

    file.update(change)
    second.join()
    assert file.load() == {"f32": (STRIP,), "f64": (TILE,)}


# --- which machines have them ------------------------------------------------------------------------------


def tuned_settings(path: Path) -> Settings:
    """Settings under which this host is tuned."""
    settings = Settings(tuning=str(path))
    keep(TuningFile(path, detect_host(Settings(tuning="")).kind.value, private=False))
    return settings


def test_this_host_reads_what_is_kept_once(tmp_path: Path) -> None:
    settings = tuned_settings(tmp_path / "mine.json")
    facts = detect_host(settings)
    assert facts.machine().tunings == tunings_of(FOUND)
    assert facts.tunings.origin == str(tmp_path / "mine.json")
    (tmp_path / "mine.json").unlink()
    assert detect_host(settings).machine() == facts.machine()  # the machine of a process never changes
    assert kept_tunings(replace(settings, tuning=""), facts.kind.value) == ()


def test_settings_say_where_or_not(tmp_path: Path) -> None:
    assert tuning_path(Settings(tuning=""), "a cpu") is None
    assert tuning_path(Settings(tuning="mine"), "a cpu") == Path("mine")
    default = tuning_path(Settings(), "a cpu")
    assert default is not None
    assert default != tuning_path(Settings(), "another cpu")
    assert detect_host(Settings(tuning="")).machine().tunings == ()
    settings = tuned_settings(tmp_path / "mine.json")
    for named in (replace(settings, cpu="generic"), replace(settings, features="-nosuchfeature")):
        assert detect_host(named).tunings.value == ()


def test_a_file_out_of_reach_is_none(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for path in (tmp_path / "missing", tmp_path / ("a" * 300), tmp_path / "file" / "inside"):
        assert kept_tunings(Settings(tuning=str(path)), "a cpu") == ()


def test_another_row_is_another_kind_of_cpu(tmp_path: Path) -> None:
    """The file of one row is not used for another one."""
    settings = tuned_settings(tmp_path / "mine.json")
    assert detect_host(replace(settings, isa="generic128")).tunings.value == ()


def test_other_machines_are_not_tuned() -> None:
    assert all(entry.machine.tunings == () for entry in CATALOG)
    host = replace(host_machine(), tunings=tunings_of(FOUND))
    assert find_machine("pwr10").emulated_on(host).tunings == ()
    assert host.with_isa(find_isa("generic128")).tunings == ()
    assert host.with_lowering(Lowering.GENERIC).tunings == ()
    assert host.with_lowering(Lowering.TARGET).tunings == host.with_isa(host.isa).tunings == host.tunings


def test_keys_of_kernels_differ() -> None:
    host = replace(host_machine(), tunings=())
    tuned: Machine = replace(host, tunings=tunings_of(FOUND))
    assert tuned.full_text != host.full_text
    assert tuned.tuning("f32") == Tuning("f32", (TunedConstant("strip", 12, 24),))
    assert host.tuning("f32") is tuned.tuning("f64") is None
