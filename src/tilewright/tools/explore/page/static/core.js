// The frame of the page: unpacks the record, switches targets and themes, and draws every panel.
"use strict";
const panels = []; // each: {id, title, wanted(record), draw(element, record, page)}
const page = { record: null, target: 0, node: null, stop: [] };

const number = d3.format(",");
const short = (value) => d3.format(value < 1000 ? ".3~r" : ",.0f")(value);

function bytesText(count) {
  for (const [unit, size] of [["MiB", 2 ** 20], ["KiB", 2 ** 10]]) {
    if (count >= size) return `${d3.format(".4~r")(count / size)} ${unit}`;
  }
  return `${number(count)} bytes`;
}

function element(parent, name, text, attributes = {}) {
  const made = d3.select(parent).append(name);
  if (text !== undefined && text !== null) made.text(text);
  for (const [key, value] of Object.entries(attributes)) made.attr(key, value);
  return made.node();
}

// Rows of a table: names of columns, those of numbers, cells as texts or as functions of the cell.
function table(parent, columns, rows, numbers = [], fold = true) {
  const holder = element(parent, "div", null, { class: "scroll" });
  const made = d3.select(holder).append("table").attr("class", fold ? "fold" : null);
  const css = (at) => (numbers.includes(at) ? "number" : at === 0 && !fold ? "name" : "wide");
  made.append("thead").append("tr").selectAll("th").data(columns).join("th")
    .attr("scope", "col").attr("class", (_, at) => css(at)).text((name) => name);
  const lines = made.append("tbody").selectAll("tr").data(rows).join("tr");
  lines.selectAll("td").data((row) => row).join("td").attr("class", (_, at) => css(at))
    .attr("data-name", (_, at) => columns[at])
    .each(function (value) { typeof value === "function" ? value(this) : d3.select(this).text(value); });
  return made.node();
}

// An SVG with a description, as wide as its place and at least `least`.
function picture(parent, width, height, label) {
  return d3.select(parent).append("svg").attr("viewBox", `0 0 ${width} ${height}`).attr("width", width)
    .attr("height", height).attr("role", "img").attr("aria-label", label);
}

function widthOf(parent, most = 1180) {
  return Math.max(260, Math.min(most, parent.getBoundingClientRect().width));
}

// Hatches, so that areas differ without their colours.
let patterns = 0;
function hatch(svg, colour, kind) {
  const name = `hatch${patterns++}`;
  const size = 8;
  const made = svg.append("defs").append("pattern").attr("id", name).attr("width", size).attr("height", size)
    .attr("patternUnits", "userSpaceOnUse");
  made.append("rect").attr("width", size).attr("height", size).style("fill", colour).attr("opacity", 0.78);
  const lines = [null, "M0 8L8 0", "M0 0L8 8", "M0 4H8", "M4 0V8", "M0 8L8 0M0 0L8 8", "M0 4H8M4 0V8", "M0 2H8M0 6H8", "M2 0V8M6 0V8"][kind % 9];
  if (lines) made.append("path").attr("d", lines).style("stroke", "var(--card)").attr("stroke-width", 1.6).attr("fill", "none");
  return `url(#${name})`;
}

let tipBox = null;
function tip(event, text) {
  if (!tipBox) tipBox = d3.select("body").append("div").attr("class", "tip").attr("role", "status");
  tipBox.style("display", text ? "block" : "none").text(text || "");
  if (!text) return;
  const box = tipBox.node().getBoundingClientRect();
  tipBox.style("left", `${Math.max(4, Math.min(event.clientX + 12, innerWidth - box.width - 8))}px`)
    .style("top", `${Math.min(event.clientY + 14, innerHeight - box.height - 8)}px`);
}
function tipOn(selection, text) {
  return selection.on("pointermove", (event, d) => tip(event, text(d))).on("pointerleave", (event) => tip(event, ""));
}

const themes = ["system", "light", "dark"];
const systemDark = matchMedia("(prefers-color-scheme: dark)");
let theme = "system";
function showTheme() {
  const dark = theme === "dark" || (theme === "system" && systemDark.matches);
  document.documentElement.dataset.theme = dark ? "dark" : "light";
  document.getElementById("theme").textContent = `Theme: ${theme}`;
  page.repaint?.();
}
document.getElementById("theme").addEventListener("click", () => {
  theme = themes[(themes.indexOf(theme) + 1) % themes.length];
  showTheme();
});
systemDark.addEventListener("change", showTheme);

function current() {
  const target = page.record.targets[page.target];
  return page.node === null || !target.nodes ? target : target.nodes[page.node];
}

function show() {
  page.stop.splice(0).forEach((stop) => stop());
  page.repaint = null;
  const main = document.getElementById("main");
  const before = document.documentElement.scrollTop;
  main.replaceChildren();
  const record = current();
  const listed = panels.filter((one) => one.wanted(record));
  for (const panel of listed) {
    const section = element(main, "section", null, { id: panel.id, "aria-labelledby": `${panel.id}-title` });
    element(section, "h2", panel.title, { id: `${panel.id}-title` });
    panel.draw(section, record);
  }
  const contents = document.getElementById("contents");
  contents.replaceChildren();
  for (const panel of listed) element(contents, "a", panel.title, { href: `#${panel.id}` });
  document.documentElement.scrollTop = before;
  document.documentElement.dataset.ready = String(page.target);
}

function drawTargets() {
  const holder = document.getElementById("targets");
  const targets = page.record.targets;
  const choose = (at) => {
    page.target = (at + targets.length) % targets.length;
    [...holder.children].forEach((one, place) => {
      one.setAttribute("aria-checked", String(place === page.target));
      one.tabIndex = place === page.target ? 0 : -1;
    });
    show();
  };
  targets.forEach((one, at) => {
    const made = element(holder, "button", one.target.name === one.target.isa ? one.target.name : `${one.target.name} · ${one.target.isa}`,
      { type: "button", role: "radio", "data-target": one.target.name });
    made.addEventListener("click", () => choose(at));
    made.addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
      if (!step) return;
      event.preventDefault();
      choose(page.target + step);
      holder.children[page.target].focus();
    });
  });
  choose(0);
}

async function unpack() {
  const coded = document.getElementById("record").textContent.trim();
  const packed = Uint8Array.from(atob(coded), (letter) => letter.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
  return JSON.parse(await new Response(stream).text());
}

addEventListener("DOMContentLoaded", async () => {
  showTheme();
  page.record = await unpack();
  document.getElementById("loading").remove();
  if (page.record.targets[0].nodes?.length) page.node = 0;
  drawTargets();
  let width = innerWidth;
  addEventListener("resize", () => {
    if (Math.abs(innerWidth - width) > 40) { width = innerWidth; show(); }
  });
});
