"""Static archives whose members are bitcode: each is optimised by itself, all others stay as they are."""

from __future__ import annotations

from dataclasses import replace

from tilewright.aot.archive import Member, archive
from tilewright.errors import ArchiveInvalid
from tilewright.loops.opt.elf import NotElf, is_foreign_object, public_symbols
from tilewright.loops.opt.optimise import optimise
from tilewright.loops.opt.records import Optimised, OutputFormat, ProductOptions, Remark
from tilewright_cc.archives import InvalidArchive, read_archive


def optimise_archive(
    source: bytes, options: ProductOptions | None = None, *, name: str = "the archive", forks: bool = False
) -> Optimised:
    """Replace loop nests in the modules of an archive, which become objects that every linker reads.

    Members keep their names and order, and names may repeat; native objects and other files keep their bytes.
    The index of symbols is made anew, times and owners are 0. An archive without bitcode is returned as it
    is.

    Parameters
    ----------
    source : the archive.
    options, name, forks : as for `optimise`.

    Raises
    ------
    ArchiveInvalid : it is thin or damaged, or has objects of other formats than ELF beside bitcode.
    NotAModule, OptimiserFailed : as `optimise`, for a member.
    """
    try:
        found = read_archive(source)
    except InvalidArchive as error:
        raise ArchiveInvalid(name=name, reason=str(error)) from error
    if not found.has_bitcode:
        return Optimised(source, ())
    members: list[Member] = []
    remarks: list[Remark] = []
    for member in found.members:
        label, content = f"{name}({member.name})", member.content
        if member.is_bitcode:
            done = optimise(content, OutputFormat.OBJECT, options, name=label, forks=forks)
            content = done.content
            remarks += (_in_member(remark, label) for remark in done.remarks)
        members.append(Member(member.name, content, _symbols(name, member.name, content)))
    return Optimised(archive(members), tuple(remarks))


def _symbols(name: str, member: str, content: bytes) -> tuple[str, ...]:
    """What a member defines for others; nothing if it is no object, such as a text or Rust's metadata."""
    if is_foreign_object(content):
        raise ArchiveInvalid(name=name, reason=f"{member} is not ELF")
    try:
        return public_symbols(content)
    except NotElf as error:
        raise ArchiveInvalid(name=name, reason=f"{member} is damaged: {error}") from error


def _in_member(remark: Remark, label: str) -> Remark:
    """The remark with the archive and member as its file, unless debug information has the source."""
    if remark.where.file:
        return remark
    return replace(remark, where=replace(remark.where, file=label))
