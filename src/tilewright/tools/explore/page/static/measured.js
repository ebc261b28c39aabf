// The call that is drawn, measured: cycles of the kernel and of peers beside what the machine allows.
"use strict";
panels.push({
  id: "measured", title: "Measured", wanted: (record) => Boolean(record.measured),
  draw(section, record) {
    const { points, notes, disturbed, rounds, peak } = record.measured, { flops, bytes } = record.example;
    const exact = (cycles) => (cycles < 1000 ? d3.format(".3~r")(cycles) : number(Math.round(cycles)));
    element(section, "p", `Cycles of the call that is drawn, on one core of this host: the median of ${rounds} rounds. The peak, measured before each ` +
      `time, was ${d3.format(".4~r")(peak.gflops)} GFLOPS of ${peak.types}: ${peak.rate} operations a cycle at ${d3.format(".3~r")(peak.gflops / peak.rate)} GHz.`);
    if (disturbed.length) {
      const warning = element(section, "p");
      element(warning, "strong", "Disturbed: ");
      element(warning, "span", `${disturbed.join("; ")}. Other programs ran meanwhile; measure again.`);
    }
    const figure = element(section, "figure"), width = widthOf(figure, 820), bar = 20, line = 18, gap = 14, top = 26;
    const taken = record.paths.find((path) => path.taken && path.cycles);
    const bars = [...(taken ? [{ title: "predicted", cycles: taken.cycles, shortest: taken.cycles, longest: taken.cycles, call: "the cost model" }] : []), ...points];
    const height = top + bars.length * (line + bar + gap), end = d3.max(bars, (one) => one.cycles) * 1.15;
    const svg = picture(figure, width, height + 26, "Cycles of one call, by system");
    const scale = d3.scaleLinear([0, end], [10, width - 24]).clamp(true);
    // What a call takes at least: its operations at the peak, its operands once from each level of memory.
    const limits = [...(flops ? [["peak", flops / peak.rate, `${number(flops)} operations at the peak`]] : []),
      ...record.roofline.levels.map(([name, rate]) => [name, bytes / rate, `the operands once from ${name}, ${rate} bytes a cycle`])]
      .filter(([, cycles]) => cycles >= end / 50 && cycles <= end);
    const kernels = (one) => one.title === "this kernel";
    const fills = { ours: hatch(svg, "var(--p0)", 0), model: hatch(svg, "var(--p5)", 1), peers: hatch(svg, "var(--p2)", 2) };
    // The peak has the first place for its name; names of levels are left out where they would touch another.
    const named = [];
    for (const [name, cycles, meaning] of limits) {
      const x = scale(cycles);
      const mark = svg.append("line").attr("x1", x).attr("x2", x).attr("y1", top - 6).attr("y2", height).style("stroke", "var(--text)").attr("stroke-dasharray", name === "peak" ? null : "3 3");
      tipOn(mark, () => `${meaning}: ${exact(cycles)} cycles`);
      if (named.some((other) => Math.abs(x - other) < 54)) continue;
      named.push(x);
      svg.append("text").attr("x", Math.min(Math.max(x, 24), width - 26)).attr("y", top - 11).attr("text-anchor", "middle").text(name);
    }
    bars.forEach((one, at) => {
      const y = top + at * (line + bar + gap), fill = one.title === "predicted" ? fills.model : kernels(one) || one.title === "Tilewright" ? fills.ours : fills.peers;
      svg.append("text").attr("x", scale(0)).attr("y", y + 13).attr("class", "halo").style("font-weight", kernels(one) ? 700 : 400).text(`${one.title}: ${exact(one.cycles)} cycles`);
      const made = svg.append("rect").attr("class", "cell").attr("x", scale(0)).attr("y", y + line).attr("width", Math.max(1, scale(one.cycles) - scale(0))).attr("height", bar).attr("fill", fill);
      tipOn(made, () => `${one.title}, ${one.call}: ${exact(one.shortest)} to ${exact(one.longest)} cycles`);
      if (one.longest > one.shortest) {
        const middle = y + line + bar / 2, [from, to] = [one.shortest, one.longest].map(scale);
        // A range that ends beyond the picture has an arrow there.
        const last = one.longest > end ? `M${to - 6} ${middle - 5}L${to} ${middle}L${to - 6} ${middle + 5}` : `M${to} ${middle - 5}V${middle + 5}`;
        svg.append("path").attr("d", `M${from} ${middle - 5}V${middle + 5}M${from} ${middle}H${to}${last}`).style("stroke", "var(--text)").attr("fill", "none");
      }
    });
    svg.append("g").attr("class", "axis").attr("transform", `translate(0,${height})`).call(d3.axisBottom(scale).ticks(width > 600 ? 8 : 4).tickFormat((cycles) => (cycles ? d3.format("~s")(cycles) : "0")));
    const own = points.find(kernels);
    const rows = points.map((one) => [one.title, one.call, exact(one.cycles), `${exact(one.shortest)} to ${exact(one.longest)}`,
      ...(flops ? [d3.format(".1%")(flops / one.cycles / peak.rate)] : []), d3.format(".3~r")(bytes / one.cycles),
      kernels(one) ? "" : `${d3.format(".2f")(one.cycles / own.cycles)}×`]);
    table(figure, ["system", "what is called", "cycles", "rounds", ...(flops ? ["share of the peak"] : []), "bytes a cycle", "of the kernel's time"], rows, d3.range(2, flops ? 7 : 6));
    element(figure, "figcaption", `Lines down the picture: the least time of ${flops ? "the call's operations at the peak, and of " : ""}reading and writing its ${bytesText(bytes)} once, by the level of memory they are in; those of less than a fiftieth of the width are left out. ` +
      `Thin lines on bars: the shortest and the longest round. ` +
      `The kernel is called by machine code; functions of ${points.length > 2 ? "Tilewright and its peers" : "Tilewright"} are called from Python, which counts.`);
    for (const note of notes) element(figure, "figcaption", note);
  },
});
