"""`tilewright cache`: the object cache on disk."""

from __future__ import annotations

from typing import Annotated

import typer

from tilewright.settings import parse_bytes
from tilewright.store import ObjectCache, object_cache
from tilewright.tools.cli import terminal
from tilewright.tools.cli.options import AsJson, group

app = group("The object cache on disk: show, clear, prune.")


def _object_cache() -> ObjectCache | None:
    found = object_cache()
    if found is None:
        typer.echo("the object cache is off (TILEWRIGHT_CACHE=0)")
    return found


@app.command("show")
def cache_show(as_json: AsJson = False) -> None:
    """Show the directory of the cache and its size."""
    found = object_cache() if as_json else _object_cache()
    if as_json:
        terminal.print_json(None if found is None else _facts(found))
    elif found is not None:
        entries = found.entries()
        total = sum(entry.size for entry in entries)
        typer.echo(f"directory  {found.directory}")
        typer.echo(f"objects    {len(entries)}")
        typer.echo(f"size       {total / 2**20:.1f} MiB of at most {found.limit_bytes / 2**20:g} MiB")


def _facts(found: ObjectCache) -> dict[str, object]:
    """What `cache show` shows, as JSON values."""
    sizes = [entry.size for entry in found.entries()]
    return {
        "directory": str(found.directory),
        "objects": len(sizes),
        "bytes": sum(sizes),
        "limit_bytes": found.limit_bytes,
    }


@app.command("clear")
def cache_clear() -> None:
    """Remove every object."""
    found = _object_cache()
    if found is not None:
        typer.echo(f"removed {found.clear()} objects")


@app.command("prune")
def cache_prune(
    size: Annotated[
        str, typer.Option(help="Size to keep, such as 64M; the least recently used objects go first.")
    ] = "",
) -> None:
    """Remove the least recently used objects.

    What is left is at most --size, by default the limit of the cache.
    """
    found = _object_cache()
    if found is not None:
        limit = parse_bytes("--size", size) if size else found.limit_bytes
        typer.echo(f"removed {found.prune(limit)} objects")
