// The blocks, the rules that fixed them, and both drawn to scale: over the matrices and in the caches.
"use strict";
panels.push({
  id: "blocking", title: "Blocking", wanted: (record) => Boolean(record.cut),
  draw(section, record) {
    const { bounds, values, kind } = record.cut;
    drawMatrices(section, record);
    if (!bounds) {
      element(section, "h3", "Sizes");
      const rows = Object.entries(values).map(([name, value]) => [name, blockText(value)]);
      table(section, ["size", "value"], rows, [], false);
      return;
    }
    drawCaches(section, record.target.caches, bounds.occupants);
    element(section, "h3", "The rule that fixed each size");
    const rows = [];
    for (const block of bounds.blocks) {
      block.rules.forEach((rule, at) => rows.push([
        (cell) => { if (at === 0) { element(cell, "strong", block.block); } },
        at === 0 ? (block.block.includes("×") ? block.meaning : `${number(block.size)}: ${block.meaning}` + (block.unit > 1 ? `, a multiple of ${block.unit}` : "")) : "",
        rule.text,
        (cell) => { cell.classList.add("formula"); cell.textContent = rule.numbers; },
        (cell) => { if (rule.binds) element(cell, "span", "decides", { class: "badge" }); },
      ]));
    }
    table(section, ["block", "value", "rule", "with the numbers of this machine", ""], rows);
    bounds.notes.forEach((note) => element(section, "p", note));
    element(section, "p", `Rules: ${bounds.source}. Sizes that are known in advance may use smaller, equal blocks.`, { class: "quiet" });
  },
});

function blockText(value) {
  if (!Array.isArray(value)) return String(value);
  return value.map((one) => (Array.isArray(one) ? `${one[1]} × ${one[0]}` : String(one))).join(" + ");
}

// Matrices of a product, blocks over them; the sizes are those of the call that is drawn.
function drawMatrices(section, record) {
  const { values, kind } = record.cut, shape = record.example.shape;
  let plan = null;
  if ("mc" in values) {
    const { m = shape.n, n = shape.m ?? shape.n, k = shape.m ?? shape.n } = shape;
    plan = { m, n: shape.n ?? n, k: shape.k ?? k, names: ["A", "B", "C"], axes: ["m", "n", "k"],
      a: [values.mc, values.kc, "mc × kc"], b: [values.kc, values.nc, "kc × nc"], tile: [values.mr, values.nr, "mr × nr"] };
    if (shape.m === undefined && shape.k !== undefined) plan.m = shape.n;
  } else if ("b1" in values && shape.queries) {
    plan = { m: shape.queries, n: shape.keys, k: shape["head size"], names: ["Q", "Kᵀ", "scores"], axes: ["queries", "keys", "d"],
      a: [values.b1, shape["head size"], "b1 × d"], b: [shape["head size"], values.b2, "d × b2"], tile: [values.mr, values.nr, "mr × nr"] };
  } else if (values.heights) {
    drawCover(section, values);
    return;
  }
  if (!plan || !plan.m || !plan.n || !plan.k) return;
  element(section, "h3", "Blocks over the matrices, to scale");
  const figure = element(section, "figure");
  const room = widthOf(figure, 760), pad = { left: 58, top: 34, gap: 26, right: 14, bottom: 26 };
  const factor = Math.min((room - pad.left - pad.gap - pad.right) / (plan.k + plan.n), 420 / (plan.k + plan.m));
  const [m, n, k] = [plan.m, plan.n, plan.k].map((size) => Math.max(size * factor, 8));
  const x0 = pad.left, x1 = pad.left + k + pad.gap, y0 = pad.top, y1 = pad.top + k + pad.gap;
  const width = Math.max(x1 + n + pad.right, 260), height = y1 + m + pad.bottom;
  const label = `${plan.names[0]} of ${plan.m} by ${plan.k}, ${plan.names[1]} of ${plan.k} by ${plan.n} and ${plan.names[2]} of ${plan.m} by ${plan.n}, with their blocks`;
  const svg = picture(figure, width, height, label);
  const blocks = [
    { x: x0, y: y1, w: k, h: m, name: plan.names[0], rows: plan.m, columns: plan.k, part: plan.a, colour: "var(--a)", kind: 1 },
    { x: x1, y: y0, w: n, h: k, name: plan.names[1], rows: plan.k, columns: plan.n, part: plan.b, colour: "var(--b)", kind: 2 },
    { x: x1, y: y1, w: n, h: m, name: plan.names[2], rows: plan.m, columns: plan.n, part: plan.tile, colour: "var(--c)", kind: 5 },
  ];
  for (const one of blocks) {
    svg.append("rect").attr("x", one.x).attr("y", one.y).attr("width", one.w).attr("height", one.h)
      .style("fill", "var(--code)").style("stroke", "var(--quiet)");
    const h = Math.min(one.part[0], one.rows) * factor, w = Math.min(one.part[1], one.columns) * factor;
    const made = svg.append("rect").attr("x", one.x).attr("y", one.y).attr("width", Math.max(w, 2)).attr("height", Math.max(h, 2))
      .attr("fill", hatch(svg, one.colour, one.kind)).style("stroke", one.colour);
    tipOn(made, () => `${one.part[2]} = ${number(one.part[0])} × ${number(one.part[1])}`);
    svg.append("text").attr("x", one.x + one.w - 6).attr("y", one.y + one.h - 7).attr("text-anchor", "end").style("font-weight", 600).text(one.name);
  }
  svg.append("text").attr("x", x0 + k / 2).attr("y", y1 - 7).attr("text-anchor", "middle").attr("class", "quiet").text(`${plan.axes[2]} = ${number(plan.k)}`);
  svg.append("text").attr("x", x1 + n / 2).attr("y", y0 - 9).attr("text-anchor", "middle").attr("class", "quiet").text(`${plan.axes[1]} = ${number(plan.n)}`);
  svg.append("text").attr("transform", `translate(${x0 - 10},${y1 + m / 2}) rotate(-90)`).attr("text-anchor", "middle").attr("class", "quiet").text(`${plan.axes[0]} = ${number(plan.m)}`);
  key(figure, blocks.map((one) => [one.colour, one.kind, `${one.part[2]} = ${number(one.part[0])} × ${number(one.part[1])} of ${one.name}`]));
  if (blocks.some((one) => one.part[0] > one.rows || one.part[1] > one.columns)) {
    element(figure, "figcaption", "A block that is larger than its matrix takes all of it.");
  }
}

function key(parent, entries) {
  const holder = element(parent, "div", null, { class: "key" });
  for (const [colour, kind, text] of entries) {
    const one = element(holder, "span");
    const svg = d3.select(one).append("svg").attr("width", 18).attr("height", 14).attr("aria-hidden", "true");
    svg.append("rect").attr("width", 18).attr("height", 14).attr("fill", hatch(svg, colour, kind));
    element(one, "span", text);
  }
}

// Register tiles that cover a product of known sizes.
function drawCover(section, values) {
  const expand = (parts) => parts.flatMap(([size, count]) => Array(count).fill(size));
  const rows = expand(values.heights), columns = expand(values.widths);
  const m = d3.sum(rows), n = d3.sum(columns);
  element(section, "h3", "Register tiles over C, to scale");
  const figure = element(section, "figure");
  const room = Math.min(widthOf(figure, 640) - 70, 560), factor = Math.min(room / n, 380 / m);
  const svg = picture(figure, Math.max(n * factor + 70, 260), m * factor + 46, `${rows.length} by ${columns.length} register tiles`);
  const fill = hatch(svg, "var(--c)", 0);
  let y = 30;
  for (const height of rows) {
    let x = 56;
    for (const width of columns) {
      const made = svg.append("rect").attr("x", x).attr("y", y).attr("width", width * factor).attr("height", height * factor)
        .attr("fill", fill).attr("class", "cell");
      tipOn(made, () => `tile of ${height} × ${width}`);
      x += width * factor;
    }
    y += height * factor;
  }
  svg.append("text").attr("x", 56 + (n * factor) / 2).attr("y", 20).attr("text-anchor", "middle").attr("class", "quiet").text(`${number(n)} along the vectors`);
  svg.append("text").attr("transform", `translate(46,${30 + (m * factor) / 2}) rotate(-90)`).attr("text-anchor", "middle").attr("class", "quiet").text(`${number(m)} across`);
  element(figure, "figcaption", `Heights ${blockText(values.heights)}, widths ${blockText(values.widths)}: the cover with the fewest estimated cycles among those that fit the registers.`);
}

// Each cache as a bar of its own scale, with what is meant to stay in it.
function drawCaches(section, caches, occupants) {
  element(section, "h3", "Blocks in the caches, to scale");
  const figure = element(section, "figure");
  const width = widthOf(figure), left = 84, room = width - left - 8;
  // Where the page is narrow, words begin below the cache's size.
  const narrow = width < 480, row = narrow ? 92 : 74, words = narrow ? { x: 0, y: 48 } : { x: left, y: 41 };
  const shown = caches.map((cache) => ({ cache, parts: occupants.filter((one) => one.cache === cache.name) })).filter((one) => one.parts.length);
  const svg = picture(figure, width, shown.length * row + 4, "Share of each cache that the blocks take");
  const colours = ["var(--a)", "var(--b)", "var(--c)"];
  shown.forEach(({ cache, parts }, at) => {
    const y = at * row + 6, scale = d3.scaleLinear([0, Math.max(cache.bytes, d3.sum(parts, (one) => one.nbytes))], [0, room]);
    svg.append("text").attr("x", 0).attr("y", y + 15).style("font-weight", 600).text(cache.name);
    svg.append("text").attr("x", 0).attr("y", y + 31).attr("class", "quiet").text(bytesText(cache.bytes));
    svg.append("rect").attr("x", left).attr("y", y).attr("width", scale(cache.bytes)).attr("height", 26).style("fill", "var(--code)").style("stroke", "var(--quiet)");
    let x = left;
    parts.forEach((part, place) => {
      const colour = part.what.startsWith("B") || part.what.startsWith("key") || part.what.startsWith("value") ? colours[1] : colours[0];
      const made = svg.append("rect").attr("x", x).attr("y", y).attr("width", Math.max(2, scale(part.nbytes))).attr("height", 26)
        .attr("fill", hatch(svg, colour, colour === colours[1] ? 2 : 1)).style("stroke", colour);
      const meaning = `${part.what}: ${bytesText(part.nbytes)}, ${d3.format(".0%")(part.nbytes / cache.bytes)}`;
      tipOn(made, () => meaning);
      svg.append("text").attr("x", words.x).attr("y", y + words.y + 15 * place).text(`${"①②③"[place]} ${meaning}`);
      if (scale(part.nbytes) > 18) svg.append("text").attr("x", x + 4).attr("y", y + 18).style("font-weight", 700).text("①②③"[place]);
      x += scale(part.nbytes);
    });
  });
}
