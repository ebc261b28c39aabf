// Predicted cycles of each strategy by part, and the roofline of the machine.
"use strict";
panels.push({
  id: "costs", title: "Strategies", wanted: (record) => Boolean(record.paths && record.paths.length),
  draw(section, record) {
    const possible = record.paths.filter((path) => path.possible), every = Object.keys(record.parts);
    const names = every.filter((name) => possible.some((path) => path.parts[name] >= 0.5));
    const taken = possible.find((path) => path.taken), others = record.paths.length > 1;
    const called = (name) => (["l1", "l2", "l3", "tlb"].includes(name) ? name.toUpperCase() : name);
    element(section, "p", `Cycles of the call that is drawn, on one core, as the cost model predicts them. ` +
      (others ? `The strategy that is taken: ${taken?.meaning ?? "none"}.` : "This kernel has one strategy."));
    const figure = element(section, "figure"), width = widthOf(figure), bar = 22, line = 17;
    const titles = possible.map((path) => wrapped(`${path.taken && others ? "✓ taken: " : ""}${path.meaning}, ${number(Math.round(path.cycles))} cycles`, Math.floor(width / 7)));
    const tops = [0], end = () => tops[tops.length - 1];
    for (const text of titles) tops.push(end() + text.length * line + bar + 16);
    const svg = picture(figure, width, end() + 30, "Predicted cycles by part");
    const scale = d3.scaleLinear([0, d3.max(possible, (path) => path.cycles)], [12, width - 20]);
    const place = new Map(names.map((name) => [name, every.indexOf(name)]));
    const colours = new Map(names.map((name) => [name, `var(--p${place.get(name)})`]));
    const fills = new Map(names.map((name) => [name, hatch(svg, colours.get(name), place.get(name))]));
    possible.forEach((path, at) => {
      const text = svg.append("text").style("font-weight", path.taken ? 700 : 400);
      titles[at].forEach((words, row) => text.append("tspan").attr("x", 0).attr("y", tops[at] + 13 + row * line).text(words));
      const top = tops[at] + titles[at].length * line + 3;
      let x = scale(0);
      for (const name of names) {
        const cycles = path.parts[name];
        if (!cycles) continue;
        const long = scale(cycles) - scale(0);
        const made = svg.append("rect").attr("class", "cell").attr("x", x).attr("y", top).attr("width", Math.max(1, long)).attr("height", bar).attr("fill", fills.get(name));
        tipOn(made, () => `${called(name)}: ${number(Math.round(cycles))} cycles, ${d3.format(".1%")(cycles / path.cycles)}`);
        if (long > name.length * 7 + 12) boxed(svg, x + long / 2, top + 16, called(name));
        x += long;
      }
    });
    svg.append("g").attr("class", "axis").attr("transform", `translate(0,${end() + 4})`).call(d3.axisBottom(scale).ticks(width > 600 ? 8 : 4, "~s"));
    key(figure, names.map((name) => [colours.get(name), place.get(name), `${called(name)}: ${record.parts[name]}`]));
    const rows = record.paths.map((path) => [path.meaning, ...names.map((name) => (path.possible ? number(Math.round(path.parts[name])) : "–")),
      path.possible ? number(Math.round(path.cycles)) : "–", path.taken ? "taken" : path.possible ? "not taken" : "impossible", path.reason]);
    table(figure, ["strategy", ...names.map(called), "cycles", "choice", "because"], rows, d3.range(1, names.length + 2));
    const best = d3.min(possible, (path) => path.cycles);
    if (taken && best < taken.cycles) {
      element(figure, "figcaption", `The choice follows measured limits of sizes and strides, not this prediction; it is predicted within ` +
        `${d3.format(".1%")(taken.cycles / best - 1)} of the fastest one.`);
    }
  },
});

// Words in lines of at most so many letters.
function wrapped(text, letters) {
  const lines = [""];
  for (const word of text.split(" ")) {
    const last = lines[lines.length - 1];
    if (last && last.length + word.length + 1 > letters) lines.push(word);
    else lines[lines.length - 1] = last ? `${last} ${word}` : word;
  }
  return lines;
}

panels.push({
  id: "roofline", title: "Roofline", wanted: (record) => Boolean(record.roofline && record.roofline.peak && record.roofline.flops),
  draw(section, record) {
    const { peak, levels, intensity, predicted, points } = record.roofline;
    const figure = element(section, "figure"), width = widthOf(figure, 820), height = Math.min(400, width * 0.75), pad = { left: 52, right: 16, top: 16, bottom: 44 };
    const svg = picture(figure, width, height, `Roofline: peak ${peak} operations a cycle, intensity ${d3.format(".3~r")(intensity)} operations a byte`);
    const low = Math.min(0.05, intensity / 4), high = Math.max(200, intensity * 4);
    const x = d3.scaleLog([low, high], [pad.left, width - pad.right]), y = d3.scaleLog([peak / 500, peak * 2], [height - pad.bottom, pad.top]);
    const ticks = (axis) => axis.ticks(width > 500 ? 6 : 4, "~g");
    svg.append("g").attr("class", "grid").attr("transform", `translate(0,${height - pad.bottom})`).call(ticks(d3.axisBottom(x)).tickSize(pad.top + pad.bottom - height).tickFormat(""));
    svg.append("g").attr("class", "axis").attr("transform", `translate(0,${height - pad.bottom})`).call(ticks(d3.axisBottom(x)));
    svg.append("g").attr("class", "axis").attr("transform", `translate(${pad.left},0)`).call(d3.axisLeft(y).ticks(5, "~g"));
    svg.append("text").attr("x", (pad.left + width) / 2).attr("y", height - 8).attr("text-anchor", "middle").text("operations for each byte moved");
    svg.append("text").attr("transform", `translate(13,${height / 2}) rotate(-90)`).attr("text-anchor", "middle").text("operations a cycle");
    const dashes = [null, "8 4", "3 3", "10 3 2 3"], colours = ["var(--p4)", "var(--p0)", "var(--p1)", "var(--p2)"];
    levels.forEach(([name, rate], at) => {
      const start = Math.max(low, y.domain()[0] / rate), end = Math.min(peak / rate, high);
      svg.append("line").attr("x1", x(start)).attr("y1", y(start * rate)).attr("x2", x(end)).attr("y2", y(end * rate)).style("stroke", colours[at]).attr("stroke-width", 2).attr("stroke-dasharray", dashes[at]);
    });
    const knee = Math.min(...levels.map(([, rate]) => peak / rate));
    svg.append("line").attr("x1", x(Math.max(knee, low))).attr("x2", x(high)).attr("y1", y(peak)).attr("y2", y(peak)).style("stroke", "var(--text)").attr("stroke-width", 2);
    svg.append("text").attr("x", width - pad.right - 4).attr("y", y(peak) - 6).attr("text-anchor", "end").style("font-weight", 600).text(`peak ${d3.format(".4~r")(peak)}`);
    svg.append("line").attr("x1", x(intensity)).attr("x2", x(intensity)).attr("y1", pad.top).attr("y2", height - pad.bottom).style("stroke", "var(--quiet)").attr("stroke-dasharray", "2 4");
    const shown = [...(predicted ? [["predicted", predicted]] : []), ...points];
    const symbols = [d3.symbolDiamond, d3.symbolCircle, d3.symbolSquare, d3.symbolTriangle, d3.symbolCross, d3.symbolStar, d3.symbolWye];
    const pointColours = ["var(--p5)", "var(--p0)", "var(--p4)", "var(--p2)", "var(--p1)", "var(--p6)", "var(--p3)", "var(--p7)"];
    shown.forEach(([name, value], at) => {
      const made = svg.append("path").attr("transform", `translate(${x(intensity)},${y(value)})`).attr("d", d3.symbol(symbols[at % symbols.length], 90)()).style("fill", pointColours[at % pointColours.length]).style("stroke", "var(--card)");
      tipOn(made, () => `${name}: ${d3.format(".3~r")(value)} operations a cycle, ${d3.format(".0%")(value / peak)} of the peak`);
    });
    const roofs = element(figure, "div", null, { class: "key" });
    levels.forEach(([name, rate], at) => {
      const one = element(roofs, "span");
      d3.select(one).append("svg").attr("width", 30).attr("height", 10).attr("aria-hidden", "true").append("line").attr("x2", 30).attr("y1", 5).attr("y2", 5).style("stroke", colours[at]).attr("stroke-width", 2).attr("stroke-dasharray", dashes[at]);
      element(one, "span", `${name}: ${rate} bytes a cycle`);
    });
    const named = (name, at) => (cell) => {
      const made = d3.select(cell).append("svg").attr("width", 16).attr("height", 14).attr("aria-hidden", "true").style("display", "inline-block").style("vertical-align", "-2px");
      made.append("path").attr("transform", "translate(7,7)").attr("d", d3.symbol(symbols[at % symbols.length], 80)()).style("fill", pointColours[at % pointColours.length]);
      element(cell, "span", ` ${name}`);
    };
    const rows = shown.map(([name, value], at) => [named(name, at), d3.format(".4~r")(value), d3.format(".1%")(value / peak)]);
    if (rows.length) table(figure, ["point", "operations a cycle", "share of the peak"], rows, [1, 2]);
    const attainable = Math.min(peak, intensity * levels[levels.length - 1][1]);
    element(figure, "figcaption", `The call moves at least one byte for every ${d3.format(".3~r")(intensity)} operations: ` +
      (attainable < peak ? `if it is read from memory, that allows ${d3.format(".3~r")(attainable)} operations a cycle.` : "reading from memory does not limit it.") +
      (points.length ? "" : " Nothing was measured: --measure runs the call on this host."));
  },
});
