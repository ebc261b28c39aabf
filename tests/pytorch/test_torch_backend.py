"""`torch.compile(model, backend="tilewright")`: results, shapes, weights, and what stays with PyTorch."""

from __future__ import annotations

import doctest
import logging
import subprocess
import sys
import traceback
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from tiers import exhaustive

torch = pytest.importorskip("torch")
nn = torch.nn

import tilewright as tw  # noqa: E402
import tilewright.torch as twt  # noqa: E402
from tilewright.errors import InvalidChoice, NotConvertible, TorchMissing  # noqa: E402
from tilewright.torch.region import MOST_REPACKED, Region  # noqa: E402
from tilewright.torch.sizes import size_of_torch  # noqa: E402


@pytest.fixture(autouse=True)
def fresh_dynamo() -> Iterator[None]:
    torch._dynamo.reset()
    torch.manual_seed(0)
    with torch.no_grad():
        yield


@pytest.fixture
def built(monkeypatch: pytest.MonkeyPatch) -> list[Region]:
    """Regions, each as often as it is built."""
    found: list[Region] = []
    build = Region._build

    def count(region: Region, arguments: Any) -> Any:
        found.append(region)
        return build(region, arguments)

    monkeypatch.setattr(Region, "_build", count)
    return found


def perceptron(width: int = 8) -> Any:
    return nn.Sequential(nn.Linear(width, 16), nn.GELU(), nn.LayerNorm(16), nn.Linear(16, width)).eval()


def compiled(model: Any, **options: Any) -> Any:
    return torch.compile(model, backend="tilewright", **options)


def close(found: Any, expected: Any, tolerance: float = 1e-5) -> bool:
    assert found.dtype == expected.dtype
    assert found.shape == expected.shape
    return bool(torch.allclose(found, expected, rtol=tolerance, atol=tolerance))


def test_a_module_is_one_compiled_graph(built: list[Region]) -> None:
    model, x = perceptron(), torch.randn(3, 8)
    run = compiled(model, fullgraph=True)
    assert close(run(x), model(x))
    assert close(run(x), model(x))
    assert len(built) == 1


def test_nothing_lies_between_dynamo_and_the_graph(monkeypatch: pytest.MonkeyPatch) -> None:
    """AOTAutograd's wrapper would take longer than a small graph."""
    callers = []
    call = Region.__call__

    def watched(region: Region, *arguments: Any) -> Any:
        callers.append([one.filename for one in traceback.extract_stack()])
        return call(region, *arguments)

    monkeypatch.setattr(Region, "__call__", watched)
    model, x = perceptron(), torch.randn(3, 8)
    assert close(compiled(model)(x), model(x))
    assert close(compiled(lambda x: torch.cumsum(model(x), -1))(x), torch.cumsum(model(x), -1))
    assert len(callers) == 2
    assert not any("_functorch" in file for files in callers for file in files)


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
def test_modes_without_gradients(mode: Callable[[], Any], built: list[Region]) -> None:
    model, x = perceptron(), torch.randn(3, 8)
    with mode():
        assert close(compiled(model)(x), model(x))
    assert built


def test_weights_are_packed_again_when_they_change(built: list[Region]) -> None:
    model, x = perceptron(), torch.randn(3, 8)
    run = compiled(model)
    for change in (
        lambda: model[0].weight.mul_(2),
        lambda: model[0].weight.copy_(torch.randn(16, 8)),
        lambda: setattr(model[0], "weight", nn.Parameter(torch.randn(16, 8))),
        lambda: setattr(model[0].weight, "data", torch.randn(16, 8)),
        lambda: model.load_state_dict(perceptron().state_dict()),
        lambda: model.load_state_dict(perceptron().state_dict(), assign=True),
    ):
        assert close(run(x), model(x))
        before = len(built)
        assert close(run(x), model(x))
        assert len(built) == before
        change()
        assert close(run(x), model(x))
        assert len(built) == before + 1


def test_weights_that_change_in_every_call_are_operands(built: list[Region]) -> None:
    model, x = perceptron(), torch.randn(3, 8)
    run = compiled(model)
    for _ in range(MOST_REPACKED + 5):
        assert close(run(x), model(x))
        model[0].bias.add_(1)
    assert len(built) <= MOST_REPACKED + 1
    assert close(run(x), model(x))


def test_sizes_that_are_marked_dynamic(built: list[Region]) -> None:
    model = perceptron()
    run = compiled(model)
    x = torch.randn(5, 8)
    torch._dynamo.mark_dynamic(x, 0)
    with torch._dynamo.config.patch(error_on_recompile=True):
        for rows in (5, 3, 40):
            y = x if rows == 5 else torch.randn(rows, 8)
            assert close(run(y), model(y))
    assert len(built) == 1


def test_sizes_become_dynamic_by_themselves(built: list[Region]) -> None:
    model = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True).eval()
    run = compiled(model)
    for batch, tokens in ((2, 5), (3, 7), (4, 9), (2, 12), (6, 11)):
        x = torch.randn(batch, tokens, 16)
        assert close(run(x), model(x))
    assert len(built) <= 3


def test_what_has_no_row_stays_with_pytorch() -> None:
    model = perceptron()

    def function(x: Any) -> Any:
        return torch.cumsum(model(x), -1) @ model[0].weight.T

    x = torch.randn(3, 8)
    found = twt.explain(function, x)
    assert len(found) == 1
    assert found[0].regions == 2
    assert [one.operation for one in found[0].nodes if one.region is None] == ["aten.cumsum.default"]
    assert "1 x aten.cumsum.default by PyTorch: it has no row in the table of operations" in str(found)
    assert close(compiled(function)(x), function(x))


def test_light_operations_are_not_worth_a_call() -> None:
    found = twt.explain(lambda x: x + 1, torch.randn(3))
    assert found[0].converted == 0
    assert "worth a call" in str(found)


def test_graphs_of_training_stay_with_pytorch(caplog: pytest.LogCaptureFixture) -> None:
    model, x = perceptron(), torch.randn(3, 8)
    with torch.enable_grad(), caplog.at_level(logging.INFO, "tilewright"):
        run = compiled(model)
        run(x).sum().backward()
        found = [one.grad.clone() for one in model.parameters()]
        model.zero_grad()
        model(x).sum().backward()
        assert all(close(a, b.grad) for a, b in zip(found, model.parameters(), strict=True))
        assert "torch.no_grad()" in str(twt.explain(model, x))
    assert "stays with PyTorch: its inputs require grad" in caplog.text


def test_a_model_without_gradients_needs_no_mode(built: list[Region]) -> None:
    model, x = perceptron().requires_grad_(requires_grad=False), torch.randn(3, 8)
    with torch.enable_grad():
        assert close(compiled(model)(x), model(x))
    assert built


def test_results_that_are_detached(built: list[Region]) -> None:
    model, x = perceptron(), torch.randn(3, 8)
    with torch.enable_grad():
        assert close(compiled(lambda x: model(x).detach())(x), model(x).detach())
    assert not built


def test_tensors_of_bfloat16() -> None:
    model, x = perceptron().bfloat16(), torch.randn(3, 8).bfloat16()
    assert close(compiled(model)(x), model(x), 0.05)


def test_tensors_are_read_in_place() -> None:
    """A result of another call, strided, is the operand of the next one."""
    model, x = perceptron(), torch.randn(8, 6).T[::2]
    assert close(compiled(model)(x), model(x))


def test_inputs_that_are_written() -> None:
    model = perceptron()

    def function(x: Any, total: Any) -> Any:
        y = model(x)
        total += y
        return y * 2

    x, a, b = torch.randn(3, 8), torch.zeros(3, 8), torch.zeros(3, 8)
    run = compiled(function)
    for _ in range(2):
        assert close(run(x, a), function(x, b))
    assert close(a, b)


def test_results_that_are_inputs_and_views() -> None:
    model = perceptron()

    def function(x: Any) -> Any:
        y = model(x)
        return x, x[1:], y, y.T, y[:2]

    x = torch.randn(3, 8)
    found = compiled(function)(x)
    for one, expected in zip(found, function(x), strict=True):
        assert close(one, expected)
    assert found[0] is x
    assert found[1].data_ptr() == x[1:].data_ptr()


def test_operations_that_read_strides() -> None:
    model = perceptron()

    def function(x: Any) -> Any:
        return torch.as_strided(torch.linalg.vector_norm(model(x).T, dim=0) + model(x).T, (2, 3), (1, 2))

    x = torch.randn(8, 8)
    assert close(compiled(function)(x), function(x))
    assert "reads strides" in str(twt.explain(function, x))


def test_random_numbers_stay_with_pytorch() -> None:
    model = nn.Sequential(nn.Linear(8, 8), nn.Dropout(0.5), nn.Linear(8, 8)).train()
    x = torch.randn(64, 8)
    run = compiled(model)
    assert not torch.equal(run(x), run(x))


@exhaustive
def test_autocast() -> None:
    model, x = perceptron(), torch.randn(3, 8)
    with torch.autocast("cpu", torch.bfloat16):
        assert close(compiled(model)(x), model(x), 0.05)


def test_positions_and_masks_are_computed_once() -> None:
    def function(q: Any) -> Any:
        place = torch.arange(q.shape[-2])
        hidden = torch.where(place[None] <= place[:, None], 0.0, -torch.inf)
        return torch.softmax(q @ q.mT + hidden, -1) @ q

    q = torch.randn(2, 5, 4)
    found = twt.explain(function, q)
    assert {one.region for one in found[0].nodes} == {0}
    assert not any("arange" in one.operation for one in found[0].nodes)
    assert close(compiled(function)(q), function(q))


def test_precision() -> None:
    model, x = perceptron(64), torch.randn(3, 64)
    run = compiled(model, options={"precision": "i8-weights"})
    error = float((run(x) - model(x)).abs().max())
    assert 1e-6 < error < 0.1


def test_wrong_options() -> None:
    for options in ({"precision": "i2"}, {"accuracy": "f32"}):
        with pytest.raises(Exception, match="must be") as raised:
            compiled(perceptron(), options=options)(torch.randn(3, 8))
        assert isinstance(raised.value, InvalidChoice) or "InvalidChoice" in str(raised.value)


def test_sizes_that_are_no_polynomials() -> None:
    class Halves(nn.Module):  # type: ignore[misc, name-defined]
        def forward(self, x: Any) -> Any:
            return torch.softmax(x[: x.shape[0] // 2], -1)

    x = torch.randn(6, 8)
    torch._dynamo.mark_dynamic(x, 0)
    assert "no polynomial" in str(twt.explain(Halves(), x))
    shapes = torch.fx.experimental.symbolic_shapes.ShapeEnv()
    half = shapes.create_unbacked_symint() // 2
    with pytest.raises(NotConvertible, match="no polynomial"):
        size_of_torch(half)


@pytest.mark.parametrize("name", twt.__all__)
def test_examples_of_the_documentation(name: str) -> None:
    function = getattr(twt, name)
    module = sys.modules[function.__module__]
    with torch.enable_grad():
        for one in doctest.DocTestFinder().find(function, name, globs=vars(module)):
            assert one.examples or name == "restore"
            assert not doctest.DocTestRunner().run(one).failed


def test_the_package_does_not_import_pytorch() -> None:
    program = "import sys, tilewright as tw; tw.matmul([[1.0]], [[1.0]]); assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", program], check=True)


def test_without_pytorch() -> None:
    program = (
        "import sys; sys.modules['torch'] = None\n"
        "from tilewright.errors import TorchMissing\n"
        "try: import tilewright.torch\n"
        "except TorchMissing as error: print(error)"
    )
    found = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    assert "pip install 'tilewright[torch]'" in found.stdout
    assert issubclass(TorchMissing, ImportError)


def test_a_compiled_graph_in_a_traced_function() -> None:
    graph = tw.Graph()
    x = graph.input("x", "f32", ("n", 4))
    graph.output(graph.relu(x))
    run = graph.compile()
    found = compiled(lambda x: run(x) + 1)(torch.full((2, 4), -1.0))
    assert torch.equal(found, torch.ones(2, 4))
