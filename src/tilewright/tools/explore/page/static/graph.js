// A graph: its nodes and what they read, their predicted time, and the memory of a run.
"use strict";
panels.push({
  id: "graph", title: "Graph", wanted: () => Boolean(page.record.graph),
  draw(section) {
    const { graph } = page.record, target = page.record.targets[page.target];
    element(section, "p", `${graph.nodes.length} nodes after all passes.` + (target.nodes.length ? " Choose a node with a thick frame to see its kernel below." : ""));
    const holder = element(section, "div", null, { class: "scroll", tabindex: 0 });
    const { boxes, width, height } = place(graph.nodes);
    const svg = picture(holder, width, height, `${graph.nodes.length} nodes, each below those that it reads`);
    if (width > widthOf(section)) svg.style("max-width", "none");
    svg.append("defs").append("marker").attr("id", "arrow").attr("viewBox", "0 0 8 8").attr("refX", 7).attr("refY", 4).attr("markerWidth", 7).attr("markerHeight", 7).attr("orient", "auto")
      .append("path").attr("d", "M0 0L8 4L0 8z").style("fill", "var(--quiet)");
    for (const box of boxes) {
      for (const from of box.node.reads) {
        const above = boxes.find((one) => one.node.at === from);
        if (above) svg.append("path").attr("d", d3.linkVertical()({ source: [above.x, above.y + above.h], target: [box.x, box.y - 2] })).attr("fill", "none").style("stroke", "var(--quiet)").attr("marker-end", "url(#arrow)");
      }
    }
    const chosen = page.node !== null ? target.nodes[page.node] : null;
    const groups = svg.selectAll("g.node").data(boxes).join("g").attr("class", "node").attr("transform", (box) => `translate(${box.x - box.w / 2},${box.y})`);
    groups.append("rect").attr("width", (box) => box.w).attr("height", (box) => box.h).attr("rx", 5).style("fill", "var(--code)")
      .style("stroke", (box) => (kernelOf(target, box) >= 0 ? "var(--accent)" : "var(--line)"))
      .attr("stroke-width", (box) => (chosen && target.nodes.indexOf(chosen) === kernelOf(target, box) ? 4 : kernelOf(target, box) >= 0 ? 2 : 1));
    groups.append("text").attr("x", (box) => box.w / 2).attr("y", 17).attr("text-anchor", "middle").style("font-weight", 600).text((box) => `${box.index}: ${box.node.title}`);
    groups.append("text").attr("x", (box) => box.w / 2).attr("y", 34).attr("text-anchor", "middle").attr("class", "quiet").text((box) => box.node.type);
    groups.filter((box) => kernelOf(target, box) >= 0).style("cursor", "pointer").attr("tabindex", 0).attr("role", "button")
      .attr("aria-label", (box) => `Kernel of ${box.node.title}`)
      .on("click", (_, box) => { page.node = kernelOf(target, box); show(); })
      .on("keydown", (event, box) => { if (event.key === "Enter" || event.key === " ") { event.preventDefault(); page.node = kernelOf(target, box); show(); } });
    tipOn(groups, (box) => box.node.text);
    drawTimes(section, graph, target);
    drawMemory(section, graph);
    if (target.nodes.length) {
      element(section, "h3", "Kernel shown below");
      const line = element(section, "div", null, { class: "controls", role: "group", "aria-label": "Kernel shown below" });
      target.nodes.forEach((one, at) => {
        const made = element(line, "button", one.title, { type: "button", "aria-pressed": String(page.node === at), "data-node": at });
        made.addEventListener("click", () => { page.node = at; show(); });
      });
    }
  },
});

const kernelOf = (target, box) => target.nodes.findIndex((one) => one.at.includes(box.node.at));

// Levels from the top; the order in a level is that of the mean of what is read.
function place(nodes) {
  const level = new Map();
  for (const node of nodes) level.set(node.at, Math.max(-1, ...node.reads.filter((from) => level.has(from)).map((from) => level.get(from))) + 1);
  const rows = d3.groups(nodes, (node) => level.get(node.at)).sort((one, other) => one[0] - other[0]);
  const boxes = [], centre = new Map();
  const widths = (node) => Math.max(90, 7.3 * Math.max(node.title.length + 4, node.type.length) + 16);
  for (const [at, row] of rows) {
    const sorted = d3.sort(row, (node) => d3.mean(node.reads, (from) => centre.get(from)) ?? 0);
    let x = -d3.sum(sorted, (node) => widths(node) + 22) / 2;
    for (const node of sorted) {
      const w = widths(node);
      boxes.push({ node, index: nodes.indexOf(node), x: x + w / 2, y: 8 + at * 84, w, h: 44 });
      centre.set(node.at, x + w / 2);
      x += w + 22;
    }
  }
  const least = d3.min(boxes, (box) => box.x - box.w / 2) - 8, most = d3.max(boxes, (box) => box.x + box.w / 2) + 8;
  for (const box of boxes) box.x -= least;
  return { boxes, width: Math.max(most - least, 240), height: d3.max(boxes, (box) => box.y + box.h) + 10 };
}

function drawTimes(section, graph, target) {
  element(section, "h3", "Least time of each node on this target");
  const rows = graph.nodes.map((node, index) => ({ node, index, ...target.times[index] })).filter((one) => one.cycles > 0);
  if (!rows.length) { element(section, "p", "No node computes."); return; }
  const figure = element(section, "figure"), width = widthOf(figure), row = 34;
  const svg = picture(figure, width, rows.length * row + 4, "Cycles of each node");
  const scale = d3.scaleLinear([0, d3.max(rows, (one) => one.cycles)], [0, width - 10]);
  const fills = { compute: hatch(svg, "var(--p4)", 0), memory: hatch(svg, "var(--p2)", 1) };
  rows.forEach((one, at) => {
    svg.append("text").attr("x", 0).attr("y", at * row + 13).text(fit(`${one.index}: ${one.node.title}, ${number(Math.round(one.cycles))} cycles, bound by ${one.bound}`, width / 6.6));
    svg.append("rect").attr("x", 0).attr("y", at * row + 18).attr("width", Math.max(2, scale(one.cycles))).attr("height", 10).attr("fill", fills[one.bound]);
  });
  key(figure, [["var(--p4)", 0, "bound by the multiply units"], ["var(--p2)", 1, "bound by memory"]]);
  element(figure, "figcaption", `The longer of operations over the peak and bytes over the bandwidth of memory, for ${graph.sizes}. Values that stay in a cache move faster.`);
}

function drawMemory(section, graph) {
  if (!graph.memory.length) return;
  element(section, "h3", "Memory of a run");
  element(section, "p", `Values between nodes share one block of ${bytesText(graph.arena)}; each is drawn from the node that writes it to the last one that reads it.`);
  const figure = element(section, "figure"), width = widthOf(figure), height = 240, pad = { left: 70, bottom: 34, top: 8 };
  const unit = graph.arena >= 2 ** 20 ? 2 ** 20 : graph.arena >= 2 ** 10 ? 2 ** 10 : 1;
  const svg = picture(figure, width, height, "Places of values in memory over the nodes of a run");
  const x = d3.scaleLinear([0, graph.nodes.length], [pad.left, width - 8]), y = d3.scaleLinear([0, graph.arena], [height - pad.bottom, pad.top]);
  graph.memory.forEach((one, at) => {
    const w = Math.max(4, x(one.last + 1) - x(one.first)), h = Math.max(3, y(one.offset) - y(one.offset + one.nbytes));
    const made = svg.append("rect").attr("class", "cell").attr("x", x(one.first)).attr("y", y(one.offset + one.nbytes)).attr("width", w).attr("height", h).attr("fill", hatch(svg, `var(--p${at % 6})`, at % 6));
    tipOn(made, () => `${one.title}: ${bytesText(one.nbytes)} at ${number(one.offset)}, from node ${one.first} to node ${one.last}`);
    if (w > one.title.length * 7 + 8 && h > 17) boxed(svg, x(one.first) + w / 2, y(one.offset + one.nbytes / 2) + 4, one.title);
  });
  svg.append("g").attr("class", "axis").attr("transform", `translate(0,${height - pad.bottom})`).call(d3.axisBottom(x).ticks(Math.min(graph.nodes.length, 10), "d"));
  svg.append("g").attr("class", "axis").attr("transform", `translate(${pad.left},0)`).call(d3.axisLeft(y).tickValues(d3.ticks(0, graph.arena / unit, 4).map((one) => one * unit)).tickFormat((count) => bytesText(count)));
  svg.append("text").attr("x", (pad.left + width) / 2).attr("y", height - 3).attr("text-anchor", "middle").attr("class", "quiet").text("node");
}
