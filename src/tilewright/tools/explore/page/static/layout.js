// Panels element by element: which place in memory each element of a block has; and the register tile.
"use strict";
panels.push({
  id: "layout", title: "Packed layout", wanted: (record) => Boolean(record.packs && (record.packs.length || record.tiles.length)),
  draw(section, record) {
    if (!record.packs.length) {
      element(section, "p", "Nothing is packed: the tiles read both operands in place.");
    } else {
      const choice = pick(section, "Panel", record.packs.map((one) => `${one.source} → ${one.buffer}, ${one.panel} lanes, kr ${one.kr}`));
      const place = element(section, "div");
      const draw = () => { place.replaceChildren(); drawPanel(place, record.packs[choice.value]); };
      choice.addEventListener("change", draw);
      draw();
    }
    if (record.tiles.length) drawTile(section, record.tiles[0], record.target);
  },
});

function pick(parent, label, texts) {
  const holder = element(parent, "div", null, { class: "controls" });
  const name = element(holder, "label", `${label}: `);
  const made = element(name, "select");
  texts.forEach((text, at) => element(made, "option", text, { value: at }));
  return made;
}

function drawPanel(parent, pack) {
  const lanes = Math.min(pack.panel, 16), step = Math.max(pack.kr, 1), depths = Math.max(4, Math.min(8, step * 2));
  const spread = { whole: [1, 1], split: [1, 2], rotated: [2, 2] }[pack.parts];
  const words = [`Element (lane, depth) of ${pack.source} goes to the place with its number. A panel has ${pack.panel} lanes`];
  if (pack.kr > 1) words.push(`; ${pack.kr} consecutive depths of a lane are adjacent, as one instruction takes them together`);
  if (pack.unit > 1) words.push(`; depths are filled up to a multiple of ${pack.unit}`);
  if (pack.stored) words.push(`; the source holds integers of ${pack.stored}, which are unpacked to ${pack.to}`);
  else if (pack.from !== pack.to) words.push(`; elements of ${pack.from} become ${pack.to}`);
  if (spread[1] > 1) words.push("; of complex numbers, real and imaginary parts are depths of their own");
  element(parent, "p", `${words.join("")}. Panels follow one another in memory.`);
  const at = (lane, depth) => Math.floor(depth / step) * step * pack.panel + lane * step + (depth % step);
  const cells = d3.cross(d3.range(lanes), d3.range(depths)).map(([lane, depth]) => ({ lane, depth, at: at(lane, depth) }));
  const columns = element(parent, "div", null, { class: "columns" });
  const left = element(columns, "figure"), right = element(columns, "figure");
  const colour = d3.scaleLinear([0, depths - 1], ["var(--p0)", "var(--p2)"]);
  const shade = (one) => `color-mix(in srgb, var(--p0) ${Math.round(100 - (100 * one.depth) / Math.max(depths - 1, 1))}%, var(--p2))`;
  const draw = (figure, placed, across, down, title, caption) => {
    element(figure, "figcaption", title);
    const width = Math.min(widthOf(figure), 560), size = Math.min(34, (width - 38) / across);
    const svg = picture(figure, across * size + 34, down * size + 24, title);
    const groups = svg.selectAll("g.one").data(cells).join("g").attr("class", "one").attr("tabindex", -1)
      .attr("transform", (one) => { const [x, y] = placed(one); return `translate(${30 + x * size},${20 + y * size})`; });
    groups.append("rect").attr("class", "cell").attr("width", size).attr("height", size).style("fill", shade).attr("opacity", 0.8);
    if (size >= 17) groups.append("text").attr("x", size / 2).attr("y", size / 2 + 4).attr("text-anchor", "middle").style("font-size", size < 24 ? "9px" : "11px").text((one) => caption(one));
    groups.on("pointerenter", (event, one) => mark(one)).on("pointermove", (event, one) => tip(event, `lane ${one.lane}, depth ${one.depth}: place ${one.at} of the panel`))
      .on("pointerleave", (event) => { mark(null); tip(event, ""); });
    return svg;
  };
  const mark = (one) => d3.select(parent).selectAll("rect.cell").classed("on", (other) => Boolean(one) && other.lane === one.lane && other.depth === one.depth);
  const source = draw(left, (one) => [one.depth, one.lane], depths, lanes, `${pack.source}: lanes down, depths across; numbers are places in the panel`, (one) => one.at);
  source.append("text").attr("x", 30).attr("y", 13).attr("class", "quiet").text("depth →");
  source.append("text").attr("transform", "translate(20,22) rotate(90)").attr("class", "quiet").text("lane →");
  const run = lanes * step, down = Math.ceil(depths / step);
  const perRow = Math.min(run, 16), rowsPerStep = Math.ceil(run / perRow);
  const memory = draw(right, (one) => {
    const local = one.lane * step + (one.depth % step), line = Math.floor(one.depth / step) * rowsPerStep + Math.floor(local / perRow);
    return [local % perRow, line];
  }, perRow, down * rowsPerStep, `${pack.buffer}: memory, left to right and down; numbers are lane.depth`, (one) => `${one.lane}.${one.depth}`);
  memory.append("text").attr("x", 30).attr("y", 13).attr("class", "quiet").text("address →");
  const cut = [];
  if (lanes < pack.panel) cut.push(`${lanes} of ${pack.panel} lanes`);
  element(parent, "p", `Shown: ${cut.length ? cut.join(", ") + ", " : ""}${depths} depths. Hover over an element to see both of its places.`, { class: "quiet" });
}

function drawTile(section, tile, target) {
  element(section, "h3", `Register tile: ${tile.mr} × ${tile.nr} sums of C`);
  const figure = element(section, "figure");
  const unit = tile.unit, down = Math.max(1, Math.round(tile.mr / unit.m)), across = Math.max(1, Math.round(tile.nr / Math.max(unit.n, 1)));
  if (tile.form !== "outer") { element(figure, "p", tile.form === "dot" ? "Dot products: vectors run along the depth." : "One row: vectors of B are read along the depth and transposed in registers."); return; }
  const width = Math.min(widthOf(figure), 640), size = Math.min(24, 320 / down), wide = Math.min(150, (width - 40) / across);
  const svg = picture(figure, across * wide + 40, down * size + 26, `${down} by ${across} accumulators`);
  const fill = hatch(svg, "var(--c)", 0);
  for (const [row, column] of d3.cross(d3.range(down), d3.range(across))) {
    const made = svg.append("rect").attr("class", "cell").attr("x", 36 + column * wide).attr("y", 22 + row * size).attr("width", wide).attr("height", size).attr("fill", fill);
    tipOn(made, () => `one accumulator: rows ${row * unit.m} to ${(row + 1) * unit.m - 1}, columns ${column * unit.n} to ${(column + 1) * unit.n - 1}`);
  }
  svg.append("text").attr("x", 36).attr("y", 14).attr("class", "quiet").text(`${tile.nr} columns in ${across} × ${unit.n}`);
  svg.append("text").attr("transform", `translate(20,24) rotate(90)`).attr("class", "quiet").text(`${tile.mr} rows`);
  const name = unit.name ? unit.name.replaceAll("_", " ") : "multiply-add";
  element(figure, "figcaption", `${down * across} accumulators. One ${name} instruction adds a product of ${unit.m} × ${unit.n}, ${unit.k} depth${unit.k > 1 ? "s" : ""} at once; each cell is the result of one.`);
}
