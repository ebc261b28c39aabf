"""The nest that packs one operand into panels."""

from __future__ import annotations

from tilewright.ir.expressions import Constant, Name
from tilewright.ir.nodes import Buffer, Pack, Program, Slice, Space
from tilewright.macro.packing import PanelForm
from tilewright.ops.packing.problem import Packing

#: Run-time parameters of a packing program, in the order of its C signature; strides are in elements.
PACKING_SIZES = ("lanes", "depth", "lane_stride", "depth_stride")


def build_packing(problem: Packing, form: PanelForm, name: str) -> Program:
    """The nest of mmt4d's pack (Taei and Jacob 2021): a matrix of any strides into its panels.

    Before: element (lane, depth) at lane · lane_stride + depth · depth_stride. After: in panel lane // N0.

    Examples
    --------
    >>> from tilewright.spec.dtype import F32
    >>> build_packing(Packing("b"), PanelForm(F32, 32, 1, 1), "g").sizes
    ('lanes', 'depth', 'lane_stride', 'depth_stride')
    """
    source = Slice("source", Constant(0), (Name("lane_stride"), Name("depth_stride")))
    kr = form.kr
    panels = Slice("panels", Constant(0), (Constant(kr), Constant(kr * form.lanes)), interleave=kr)
    pack = Pack(panels, source, Name("lanes"), Name("depth"), form.lanes, kr, form.unit, form.parts)
    return Program(
        name=name,
        sizes=PACKING_SIZES,
        scalars=(),
        buffers=(
            Buffer("source", problem.dtype, Space.ARGUMENT),
            Buffer("panels", form.storage, Space.ARGUMENT),
        ),
        body=(pack,),
    )
