// Tile IR, LLVM IR and assembly side by side; a line that is hovered over marks the lines that belong to it.
"use strict";
const LINE = 18; // pixels, as in the style sheet

panels.push({
  id: "code", title: "Code", wanted: (record) => Boolean(record.listing),
  draw(section, record) {
    const { listing } = record;
    element(section, "p", "Hover over a line to mark what it became and what it was made of; click, or press Enter, to pin it and " +
      "scroll the other two to it; Escape unpins. Lines of a function that several statements call are shaded for each of them.");
    const links = linksOf(listing);
    const controls = element(section, "div", null, { class: "controls" });
    const follow = element(element(controls, "label", " "), "input", null, { type: "checkbox", id: "follow" });
    follow.parentNode.append("Follow the walk");
    const said = element(section, "p", null, { class: "quiet", "aria-live": "polite", id: "linked" });
    const holder = element(section, "div", null, { class: "panes" });
    const panes = [["tile", "Tile IR", listing.tile], ["llvm", "LLVM IR", listing.llvm], ["assembly", "Assembly", listing.assembly]]
      .map(([name, title, text]) => listPane(holder, name, title, text.split("\n")));
    let pinned = null;
    const mark = (pane, line, scroll) => {
      const found = links.of(pane.name, line);
      for (const one of panes) one.mark(found[one.name], one === pane && scroll ? line : null);
      if (scroll) for (const one of panes) if (one !== pane) one.reveal(found[one.name]);
      const counts = panes.map((one) => `${number(found[one.name].linked.size + found[one.name].called.size)} of ${one.title}`).join(", ");
      said.textContent = `${pane.title}, line ${number(line + 1)}: lines that belong together: ${counts}.`;
    };
    const unmark = () => {
      if (pinned) mark(...pinned, false);
      else { panes.forEach((one) => one.mark(null, null)); said.textContent = "No line is marked."; }
    };
    for (const pane of panes) {
      pane.onHover = (line) => { if (!pinned) mark(pane, line, false); };
      pane.onLeave = () => { if (!pinned) unmark(); };
      pane.onPin = (line) => { pinned = [pane, line]; mark(pane, line, true); page.walkTo && pane.name === "tile" && follow.checked && page.walkTo(listing.tileStatements[line]); };
      pane.onUnpin = () => { pinned = null; unmark(); };
    }
    unmark();
    page.follow = (statement) => {
      if (!follow.checked) return;
      const line = listing.tileStatements.indexOf(statement);
      if (line >= 0) { pinned = [panes[0], line]; mark(panes[0], line, false); panes[0].reveal({ linked: new Set([line]), called: new Set() }); }
    };
    page.stop.push(() => { page.follow = null; page.walkTo = null; });
  },
});

// Lines by statement and by line of LLVM IR, and for each line of a text those that belong to it.
function linksOf(listing) {
  const group = (values) => {
    const found = new Map();
    values.forEach((value, line) => { for (const one of [value].flat()) if (one !== null) (found.get(one) ?? found.set(one, []).get(one)).push(line); });
    return found;
  };
  const tile = group(listing.tileStatements), llvm = group(listing.llvmStatements), assembly = group(listing.assemblyLlvm);
  const direct = (line) => listing.llvmStatements[line].length === 1 && !listing.llvmShared[line];
  const set = (linked = [], called = []) => ({ linked: new Set(linked), called: new Set(called) });
  const assemblyOf = (lines) => lines.flatMap((line) => assembly.get(line) ?? []);
  return {
    of(name, line) {
      if (name === "tile") {
        const lines = llvm.get(listing.tileStatements[line]) ?? [];
        const [own, shared] = [lines.filter(direct), lines.filter((one) => !direct(one))];
        return { tile: set(tile.get(listing.tileStatements[line]) ?? [line]), llvm: set(own, shared), assembly: set(assemblyOf(own), assemblyOf(shared)) };
      }
      const origin = name === "llvm" ? line : listing.assemblyLlvm[line];
      if (origin === null || origin === undefined) return { tile: set(), llvm: set(), assembly: set([line]) };
      const statements = listing.llvmStatements[origin].flatMap((one) => tile.get(one) ?? []);
      const [own, shared] = direct(origin) ? [statements, []] : [[], statements];
      return { tile: set(own, shared), llvm: set([origin]), assembly: set(assembly.get(origin) ?? []) };
    },
  };
}

// A list of lines of which only those in view are elements of the page.
function listPane(holder, name, title, lines) {
  const place = element(holder, "div", null, { class: "pane", "data-pane": name });
  element(place, "h3", `${title}, ${number(lines.length)} lines`);
  const scroller = element(place, "div", null, { class: "lines code", tabindex: 0, role: "listbox", "aria-label": title });
  const all = element(scroller, "div", null, { class: "all" });
  all.style.height = `${lines.length * LINE}px`;
  all.style.width = `max(100%, ${Math.min(d3.max(lines, (line) => line.length) ?? 0, 400) + 8}ch)`;
  const pane = { name, title, marks: null, pin: null, chosen: null };
  const css = (line) => ["line", pane.marks?.linked.has(line) && "linked", pane.marks?.called.has(line) && "called",
    pane.pin === line && "pinned", pane.chosen === line && "chosen"].filter(Boolean).join(" ");
  const draw = () => {
    const first = Math.max(0, Math.floor(scroller.scrollTop / LINE) - 10), count = Math.ceil(scroller.clientHeight / LINE) + 20;
    const shown = d3.range(first, Math.min(lines.length, first + count));
    d3.select(all).selectAll("div.line").data(shown, (line) => line).join((enter) => {
      const made = enter.append("div").style("top", (line) => `${line * LINE}px`).attr("data-line", (line) => line).attr("role", "option");
      made.append("span").attr("class", "number").text((line) => line + 1);
      made.append("span").text((line) => lines[line]);
      return made;
    }).attr("class", css).attr("aria-selected", (line) => String(pane.pin === line));
  };
  const lineOf = (event) => { const found = event.target.closest?.("div.line"); return found ? Number(found.dataset.line) : null; };
  let hovered = null;
  scroller.addEventListener("scroll", draw, { passive: true });
  scroller.addEventListener("pointermove", (event) => {
    const line = lineOf(event);
    if (line !== null && line !== hovered) { hovered = line; pane.onHover(line); }
  });
  scroller.addEventListener("pointerleave", () => { hovered = null; pane.onLeave(); });
  scroller.addEventListener("click", (event) => { const line = lineOf(event); if (line !== null) { pane.chosen = line; pane.onPin(line); } });
  scroller.addEventListener("keydown", (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1, PageDown: 20, PageUp: -20 }[event.key];
    if (step) {
      event.preventDefault();
      pane.chosen = Math.max(0, Math.min(lines.length - 1, (pane.chosen ?? Math.floor(scroller.scrollTop / LINE) - 1) + step));
      const top = pane.chosen * LINE;
      if (top < scroller.scrollTop || top > scroller.scrollTop + scroller.clientHeight - LINE) scroller.scrollTop = top - scroller.clientHeight / 2;
      pane.onHover(pane.chosen);
      draw();
    } else if (event.key === "Enter" && pane.chosen !== null) { event.preventDefault(); pane.onPin(pane.chosen);
    } else if (event.key === "Escape") { pane.onUnpin(); }
  });
  pane.mark = (marks, pin) => { pane.marks = marks; pane.pin = pin; draw(); };
  pane.reveal = (marks) => {
    const line = d3.min(marks.linked) ?? d3.min(marks.called);
    if (line !== undefined) { scroller.scrollTop = Math.max(0, line * LINE - scroller.clientHeight / 3); draw(); }
  };
  requestAnimationFrame(draw);
  draw();
  return pane;
}
