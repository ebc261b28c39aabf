"""Files of packed matrices: what is read back, and that no altered byte goes unnoticed."""

from __future__ import annotations

import contextlib
import itertools
import json
import mmap
import os
import zlib
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from foreign_tiles import foreign_packed
from support import within

import tilewright as tw
from tilewright import errors
from tilewright.ops.packing import file as packed_file
from tilewright.ops.packing.matrix import PANEL_ALIGNMENT, PackedMatrix
from tilewright.spec.dtype import GEMM_DTYPES

DAMAGED = (errors.PackedFileDamaged, errors.PackedFileTruncated, errors.PackedVersion)


def matrix(
    name: str = "f32", shape: tuple[int, int] = (45, 67)
) -> np.ndarray[tuple[int, ...], np.dtype[np.generic]]:
    dtype = next(d for d in GEMM_DTYPES if d.name == name)
    return np.random.default_rng(0).integers(0, 8, shape).astype(dtype.numpy)


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    path = tmp_path / "weight.tw"
    tw.pack(matrix()).save(path)
    return path


@pytest.mark.parametrize("name", [d.name for d in GEMM_DTYPES])
@pytest.mark.parametrize("mapped", [True, False])
def test_every_type_comes_back(tmp_path: Path, name: str, *, mapped: bool) -> None:
    for role in ("a", "b"):
        packed = tw.pack(matrix(name), role=role)
        packed.save(tmp_path / "w")
        again = PackedMatrix.load(tmp_path / "w", mmap=mapped)
        assert again == packed
        assert tw.unpack(again).tobytes() == matrix(name).tobytes()
        assert again.data4d.ctypes.data % PANEL_ALIGNMENT == 0
        assert not again.data4d.flags.writeable


def test_other_tiles_and_empty_matrices_come_back(tmp_path: Path) -> None:
    for packed in (tw.pack(matrix(), tiles=(5, 3)), tw.pack(matrix()[:0]), tw.pack(matrix()[:, :0])):
        packed.save(tmp_path / "w")
        assert PackedMatrix.load(tmp_path / "w") == packed


def test_a_mapped_matrix_multiplies_and_leaves_the_file(saved: Path) -> None:
    packed = PackedMatrix.load(saved)
    base = packed.data4d
    while isinstance(base, np.ndarray) and base.base is not None:
        base = base.base
    assert isinstance(base, mmap.mmap)
    x = np.ones((3, 45), np.float32)
    assert np.array_equal(tw.matmul(x, packed), x @ matrix())
    copied = packed.copy()
    saved.unlink()  # what is mapped stays
    assert copied == packed


def test_saving_replaces_at_once_and_leaves_nothing_else(saved: Path) -> None:
    mapped = PackedMatrix.load(saved)
    tw.pack(matrix(shape=(9, 9))).save(saved)
    assert PackedMatrix.load(saved).shape == (9, 9)
    assert np.array_equal(tw.unpack(mapped), matrix())  # the file that was there is another one
    assert [path.name for path in saved.parent.iterdir()] == [saved.name]


def test_no_altered_byte_of_the_header_goes_unnoticed(saved: Path) -> None:
    content = bytearray(saved.read_bytes())
    used = packed_file._START + int.from_bytes(content[12:16], "little")
    assert used < PANEL_ALIGNMENT
    for at in range(used):
        for bit in (0x01, 0x80):
            content[at] ^= bit
            saved.write_bytes(content)
            with pytest.raises(DAMAGED):
                PackedMatrix.load(saved, mmap=at % 2 == 0)
            content[at] ^= bit
    saved.write_bytes(content)
    assert PackedMatrix.load(saved).shape == (45, 67)


def test_altered_tiles_are_found_where_they_are_verified(saved: Path) -> None:
    content = bytearray(saved.read_bytes())
    for at in (PANEL_ALIGNMENT, len(content) // 2 + 1500, len(content) - 1):
        content[at] ^= 1
        saved.write_bytes(content)
        with pytest.raises(errors.PackedFileDamaged, match="panels"):
            PackedMatrix.load(saved)
        assert PackedMatrix.load(saved, verify=False).shape == (45, 67)
        content[at] ^= 1


def test_no_truncated_file_is_taken(saved: Path) -> None:
    content = saved.read_bytes()
    used = packed_file._START + int.from_bytes(content[12:16], "little")
    lengths = {*range(used + 2), *range(used, len(content), 997), len(content) - 1}
    for length in sorted(lengths):
        saved.write_bytes(content[:length])
        with pytest.raises(errors.PackedFileTruncated, match="copy it again"):
            PackedMatrix.load(saved)
    saved.write_bytes(content + b"\0")
    with pytest.raises(errors.PackedFileDamaged):
        PackedMatrix.load(saved)


def test_files_of_something_else_are_refused(saved: Path) -> None:
    for content in (b"PK\x03\x04" + bytes(5000), b"\x80\x04pickle", b"TWPACKEX" + bytes(100)):
        saved.write_bytes(content)
        with pytest.raises(errors.PackedFileDamaged):
            PackedMatrix.load(saved)
    with pytest.raises(errors.PackedFileNotFound):
        PackedMatrix.load(saved.parent / "missing")
    with pytest.raises(errors.PackedFileNotFound):
        PackedMatrix.load(saved.parent)
    with pytest.raises(errors.PackedNotWritable):
        tw.pack(matrix()).save(saved.parent / "no folder" / "w")
    assert [path.name for path in saved.parent.iterdir()] == [saved.name]


def rewritten(path: Path, change: tuple[bytes, bytes], version: int = packed_file.VERSION) -> None:
    """The file with a word of its description changed, and checksums that agree with it."""
    content = path.read_bytes()
    size = int.from_bytes(content[12:16], "little")
    text = content[packed_file._START : packed_file._START + size]
    assert change[0] in text
    text = text.replace(*change)
    head = packed_file._HEAD.pack(packed_file.MAGIC, version, len(text), len(content))
    crc = packed_file._CRC.pack(zlib.crc32(text, zlib.crc32(head)))
    path.write_bytes((head + crc + text).ljust(PANEL_ALIGNMENT, b"\0") + content[PANEL_ALIGNMENT:])


@pytest.mark.parametrize(
    "change",
    [
        (b'"lanes":', b'"lames":'),
        (b'"storage":"f32"', b'"storage":"f99"'),
        (b'"storage":"f32"', b'"storage":"f64"'),
        (b'"storage":"f32"', b'"storage":"i4x2"'),
        (b'"role":"b"', b'"role":"c"'),
        (b'"shape":[45,67]', b'"shape":[45,670]'),
        (b'"shape":[45,67]', b'"shape":[-1,67]'),
        (b'"unit":1', b'"unit":0'),
        (b'"offset":4096', b'"offset":4097'),
        (b'"offset":4096', b'"offset":-4096'),
        (b'"arrays":[', b'"arrays":[5,'),
        (b'{"role"', b'["role"'),
    ],
    ids=lambda change: change[1].decode(),
)
def test_consistent_nonsense_is_refused(saved: Path, change: tuple[bytes, bytes]) -> None:
    rewritten(saved, change)
    with pytest.raises(errors.PackedFileDamaged):
        PackedMatrix.load(saved)


def test_nibbles_in_pairs_come_back(tmp_path: Path) -> None:
    packed, path = tw.pack(matrix("i4"), target="emulate:pwr10"), tmp_path / "w"
    packed.save(path)
    with pytest.raises(errors.ForeignPacked, match="16x8 of i4x2"):
        PackedMatrix.load(path)
    assert tw.unpack(PackedMatrix.load(path, repack=True)).tobytes() == matrix("i4").tobytes()
    # A tile of one depth is half a byte, and arrays of such tiles are empty.
    rewritten(path, (b'"kr":8,"unit":8', b'"kr":1,"unit":8'))
    rewritten(
        path, (b'"shape":[5,6,16,4],"offset":4096,"size":1920', b'"shape":[5,48,16,0],"offset":4096,"size":0')
    )
    with pytest.raises(errors.PackedFileDamaged):
        PackedMatrix.load(path)


def test_another_format_is_refused(saved: Path) -> None:
    rewritten(saved, (b'"role"', b'"role"'), version=packed_file.VERSION + 1)
    with pytest.raises(errors.PackedVersion, match="format 2"):
        PackedMatrix.load(saved)


def test_tiles_of_another_row_are_refused_or_packed_again(tmp_path: Path) -> None:
    foreign, path = foreign_packed(matrix()), tmp_path / "w"
    foreign.save(path)
    with pytest.raises(errors.ForeignPacked, match="repack=True"):
        PackedMatrix.load(path)
    again = PackedMatrix.load(path, repack=True)
    assert again == tw.pack(matrix())


def test_vectors_beside_the_tiles_are_saved(tmp_path: Path) -> None:
    scaled = tw.quantize_weights(matrix().astype(np.float32))
    scaled.save(tmp_path / "w")
    again = PackedMatrix.load(tmp_path / "w")
    assert again == scaled
    others = {"scales": 2 * scaled.vectors["scales"]}
    assert again != PackedMatrix(scaled.form, scaled.shape, scaled.data4d, others)
    content = bytearray((tmp_path / "w").read_bytes())
    content[-1] ^= 1
    (tmp_path / "w").write_bytes(content)
    with pytest.raises(errors.PackedFileDamaged, match="scales"):
        PackedMatrix.load(tmp_path / "w")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="pipes have names on POSIX")
def test_what_is_no_regular_file(saved: Path, tmp_path: Path) -> None:
    pipe, packed = tmp_path / "pipe", PackedMatrix.load(saved)
    os.mkfifo(pipe)
    for path, reason in ((pipe, "a pipe"), (Path("/dev/zero"), "a device"), (tmp_path, "a directory")):
        with (
            within(10),
            pytest.raises(errors.PackedFileNotFound, match=f"it is {reason}, not a regular file"),
        ):
            PackedMatrix.load(path)
        with within(10), pytest.raises(errors.PackedNotWritable, match="not a regular file"):
            packed.save(path)
    for call in (packed.save, PackedMatrix.load):
        with pytest.raises(errors.InvalidFileName, match="without NUL"):
            call("a\0b")
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "target")
    packed.save(link)
    assert link.is_symlink()
    assert PackedMatrix.load(link) == packed


# --- descriptions that are valid JSON and wrong, behind a checksum that fits ------------------------

#: What stands in the place of a value, as JSON.
WRONG = (
    "true", "false", "null", "0", "-1", "1", "2", "1.5", "45.0", "1e400", "NaN", '""', '"x"', "[]", "{}",
    "[1,2]", "[true,true]", "[45.0,67]", '["45","67"]', "[9223372036854775808,0]",
    f"[{'9' * 4000},1]", "9" * 5000,
    '"i8"', '"i4g0"', '"i4g32z"', '"bf16"', '"a"', '"\\ud800"', "4611686018427387904", "18446744073709551616",
    "[" * 20_000 + "]" * 20_000, '{"a":' * 20_000 + "1" + "}" * 20_000,
)  # fmt: skip


def described(content: bytes) -> Any:
    size = packed_file._HEAD.unpack_from(content)[2]
    return json.loads(content[packed_file._START :][:size])


def with_description(content: bytes, text: bytes) -> bytes:
    """A file whose head has another description and fits it."""
    _, _, _, length = packed_file._HEAD.unpack_from(content)
    room = -(-(packed_file._START + len(text)) // PANEL_ALIGNMENT) * PANEL_ALIGNMENT
    length = max(length, room + len(content) - PANEL_ALIGNMENT)
    head = packed_file._HEAD.pack(packed_file.MAGIC, packed_file.VERSION, len(text), length)
    crc = packed_file._CRC.pack(zlib.crc32(text, zlib.crc32(head)))
    return (head + crc + text).ljust(room, b"\0") + content[PANEL_ALIGNMENT:].ljust(length - room, b"\0")


def places(value: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The way to every part of a description."""
    yield at
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        yield from places(inner, (*at, key))


def spelled(value: Any, at: tuple[Any, ...] | None, wrong: str) -> str:
    """The description with other text at one place."""
    if at == ():
        return wrong
    inside = [at[1:] if at is not None and key == at[0] else None for key in _keys(value)]
    if isinstance(value, dict):
        parts = zip(value.items(), inside, strict=True)
        return "{" + ",".join(f"{json.dumps(k)}:{spelled(v, way, wrong)}" for (k, v), way in parts) + "}"
    if isinstance(value, list):
        return "[" + ",".join(spelled(v, way, wrong) for v, way in zip(value, inside, strict=True)) + "]"
    return json.dumps(value)


def _keys(value: Any) -> list[Any]:
    return (
        list(value) if isinstance(value, dict) else list(range(len(value))) if isinstance(value, list) else []
    )


def used(path: Path, *, mapped: bool) -> bool:
    """Whether a file is read; what was read is used, so that anything wrong in it shows."""
    try:
        packed = PackedMatrix.load(path, mmap=mapped, verify=False)
    except errors.TilewrightError:
        return False
    with contextlib.suppress(errors.TilewrightError):
        tw.unpack(packed)
        tw.matmul(np.ones((2, packed.shape[0]), np.float32), packed)
    return True


def test_descriptions_that_are_valid_json_and_wrong(tmp_path: Path) -> None:
    path, random = tmp_path / "w", Random(0)
    weights = (tw.pack(matrix()), tw.quantize_weights(matrix(), bits=4, group=32, symmetric=False))
    tried = read = 0
    for packed in weights:
        packed.save(path)
        content = path.read_bytes()
        said = described(content)
        pairs = list(itertools.product(places(said), WRONG))
        always = [((), wrong) for wrong in WRONG[-2:]] + [
            (("shape", 0), "1e400"),
            (("arrays", 0, "shape", 3), "true"),
        ]
        for number, (at, wrong) in enumerate([*always, *random.sample(pairs, 250)]):
            path.write_bytes(with_description(content, spelled(said, at, wrong).encode()))
            read += used(path, mapped=number % 2 == 0)
            tried += 1
        for text in (b"", b"\xff", b"x", b'{"a":1}{', b"[1]" * 99):
            path.write_bytes(with_description(content, text))
            assert not used(path, mapped=False)
    assert read < tried / 10


@pytest.mark.parametrize("kr", [1, 2, 8])
def test_tiles_that_kernels_do_not_expect(tmp_path: Path, kr: int) -> None:
    """Arrays that fit a form that nothing makes: a kernel would read beyond their end."""
    path = tmp_path / "w"
    tw.quantize_weights(matrix(), bits=8).save(path)
    content = path.read_bytes()
    said = described(content)
    panels = said["arrays"][0]
    said["panels"]["kr"] = said["panels"]["unit"] = kr
    panels["shape"] = [panels["shape"][0], panels["shape"][1], panels["shape"][2], kr]
    panels["size"] = int(np.prod(panels["shape"]))
    path.write_bytes(with_description(content, json.dumps(said).encode()))
    with pytest.raises(errors.PackedFileDamaged, match="do not fit"):
        PackedMatrix.load(path, verify=False)
