"""Files of packed matrices: what is read back, and that no altered byte goes unnoticed."""

from __future__ import annotations

import mmap
import os
import zlib
from pathlib import Path

import numpy as np
import pytest
from support import within

import tilewright as tw
from tilewright import errors
from tilewright.runtime import packed_file
from tilewright.runtime.packed import PANEL_ALIGNMENT, PackedMatrix
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


def test_another_format_is_refused(saved: Path) -> None:
    rewritten(saved, (b'"role"', b'"role"'), version=packed_file.VERSION + 1)
    with pytest.raises(errors.PackedVersion, match="format 2"):
        PackedMatrix.load(saved)


def test_tiles_of_another_row_are_refused_or_packed_again(tmp_path: Path) -> None:
    foreign, path = tw.pack(matrix(), target="emulate:pwr10"), tmp_path / "w"
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
