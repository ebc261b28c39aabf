// The inner loops: instructions of one turn beside the bound, and the timeline of the first turns.
"use strict";
const KINDS = ["multiply", "multiply and load", "load or store", "other"];

panels.push({
  id: "inner", title: "Inner loop", wanted: (record) => Boolean(record.inner && record.inner.loops.length),
  draw(section, record) {
    const { loops, tool, timeline } = record.inner;
    element(section, "p", "Instructions in one turn of each loop that multiplies, the one with most multiplications first. " +
      "The bound is the time of its multiply instructions alone, as the multiply units take them.");
    const figure = element(section, "figure");
    const shown = loops.slice(0, 5), width = widthOf(figure), row = 46;
    const colours = ["var(--p4)", "var(--p0)", "var(--p2)", "var(--p5)"];
    const most = d3.max(shown, (loop) => d3.sum(loop.counts, (one) => one[1]));
    const scale = d3.scaleLinear([0, most], [0, width - 12]);
    const svg = picture(figure, width, shown.length * row + 4, "Instructions of the inner loops by kind");
    const fills = KINDS.map((_, at) => hatch(svg, colours[at], at));
    shown.forEach((loop, at) => {
      let x = 0;
      const y = at * row;
      svg.append("text").attr("x", 0).attr("y", y + 13).attr("class", "quiet").text(fit(`${loop.function} ${loop.label}`, width / 7));
      for (const [kind, count] of loop.counts) {
        if (!count) continue;
        const place = KINDS.indexOf(kind);
        const made = svg.append("rect").attr("class", "cell").attr("x", x).attr("y", y + 18).attr("width", scale(count)).attr("height", 20).attr("fill", fills[place]);
        tipOn(made, () => `${count} × ${kind}`);
        if (scale(count) > 22) boxed(svg, x + scale(count) / 2, y + 33, count);
        x += scale(count);
      }
    });
    key(figure, KINDS.map((kind, at) => [colours[at], at, kind]));
    const rows = loops.map((loop) => {
      const found = loop.estimate;
      return [`${loop.function} ${loop.label}`, loop.depths, d3.sum(loop.counts, (one) => one[1]),
        d3.format(".3~r")(loop.bound), found ? d3.format(".4~r")(found.cycles) : "–",
        found && found.cycles ? d3.format(".0%")(Math.min(loop.bound / found.cycles, 9.99)) : "–", found ? found.spills : "–"];
    });
    table(figure, ["loop", "depths a turn", "instructions", "bound, cycles", "modelled cycles", "share of the bound", "on the stack"], rows, [1, 2, 3, 4, 5, 6]);
    element(figure, "figcaption", `Modelled cycles: ${tool}.`);
    if (timeline.length) drawTimeline(section, timeline);
  },
});

const fit = (text, letters) => (text.length > letters ? `${text.slice(0, Math.max(4, letters / 2 - 1))}…${text.slice(-Math.max(4, letters / 2 - 1))}` : text);

function boxed(svg, x, y, text) {
  const width = String(text).length * 7.5 + 6;
  svg.append("rect").attr("x", x - width / 2).attr("y", y - 12).attr("width", width).attr("height", 15).attr("rx", 3).style("fill", "var(--card)").style("pointer-events", "none");
  svg.append("text").attr("x", x).attr("y", y).attr("text-anchor", "middle").style("pointer-events", "none").text(text);
}

function drawTimeline(section, timeline) {
  element(section, "h3", "Timeline of the first turns");
  element(section, "p", "Each row is an instruction: it waits for operands or a unit (thin), executes (thick), and retires (tick).", { class: "quiet" });
  const figure = element(section, "figure");
  const holder = element(figure, "div", null, { class: "scroll", tabindex: 0 });
  const left = Math.min(330, Math.max(150, widthOf(figure) * 0.34)), row = 15;
  const end = d3.max(timeline, (one) => one.retired) + 1;
  const width = Math.max(widthOf(figure) - 4, left + end * 5);
  const svg = picture(holder, width, timeline.length * row + 26, "Cycles in which each instruction waits, executes and retires").style("max-width", "none");
  const scale = d3.scaleLinear([0, end], [left, width - 8]);
  svg.append("g").attr("class", "grid").attr("transform", "translate(0,20)").call(d3.axisTop(scale).ticks(Math.min(12, width / 90)).tickSize(-timeline.length * row).tickFormat(""));
  svg.append("g").attr("class", "axis").attr("transform", "translate(0,20)").call(d3.axisTop(scale).ticks(Math.min(12, width / 90)));
  svg.append("text").attr("x", 0).attr("y", 12).attr("class", "quiet").text("cycle →");
  const fills = [hatch(svg, "var(--p0)", 0), hatch(svg, "var(--p2)", 1)];
  const rows = svg.selectAll("g.one").data(timeline).join("g").attr("class", "one").attr("transform", (_, at) => `translate(0,${22 + at * row})`);
  rows.append("text").attr("x", 0).attr("y", 11).style("font-size", "10px").style("font-family", "monospace").text((one) => fit(one.text, left / 6.4));
  rows.append("line").attr("x1", (one) => scale(one.dispatched)).attr("x2", (one) => scale(one.retired)).attr("y1", 8).attr("y2", 8).style("stroke", "var(--quiet)");
  rows.append("rect").attr("x", (one) => scale(one.issued)).attr("width", (one) => Math.max(3, scale(one.executed) - scale(one.issued))).attr("y", 2).attr("height", 11).attr("fill", (one) => fills[one.turn % 2]);
  rows.append("line").attr("x1", (one) => scale(one.retired)).attr("x2", (one) => scale(one.retired)).attr("y1", 2).attr("y2", 13).style("stroke", "var(--text)");
  tipOn(rows, (one) => `${one.text}: turn ${one.turn + 1}, dispatched ${one.dispatched}, ready ${one.ready}, issued ${one.issued}, executed ${one.executed}, retired ${one.retired}`);
}
