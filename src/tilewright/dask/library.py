"""The libraries `dask` and `distributed`, which only this package imports."""

from __future__ import annotations

from tilewright.errors import PackageMissing

try:
    import dask.array as da
    import dask.bag as db
    import dask.base
    import distributed
    import distributed.comm
    import distributed.protocol.pickle
    from dask._task_spec import DataNode, Task, TaskRef
    from dask.highlevelgraph import HighLevelGraph
except ImportError as error:
    raise PackageMissing(
        purpose="arrays in chunks on many machines",
        package="dask or distributed",
        install="'tilewright[dask]'",
    ) from error

tokenize = dask.base.tokenize
get_address_host = distributed.comm.get_address_host
pickled = distributed.protocol.pickle.dumps
is_dask_collection = dask.base.is_dask_collection

__all__ = [
    "DataNode",
    "HighLevelGraph",
    "Task",
    "TaskRef",
    "da",
    "db",
    "distributed",
    "get_address_host",
    "is_dask_collection",
    "pickled",
    "tokenize",
]
