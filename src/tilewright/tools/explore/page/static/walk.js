// The loop nest as a walk over tiles: play, step, slider; what each step reads and writes.
"use strict";
panels.push({
  id: "walk", title: "Walk over tiles", wanted: (record) => Boolean(record.walk),
  draw(section, record) {
    const { walk, buffers } = record;
    if (!walk.steps.length) {
      element(section, "p", walk.reason ? `There is no drawing of this program: ${walk.reason}.` : "This program runs no tile for the sizes that are drawn.");
      return;
    }
    const last = walk.steps.length - 1;
    const total = walk.whole ? `${number(walk.count)} steps` : `more than ${number(walk.count)} steps`;
    element(section, "p", walk.count > walk.steps.length
      ? `The call has ${total} on one thread; the first ${number(walk.steps.length)} can be walked.`
      : `The call has ${total} on one thread.`);
    const controls = element(section, "div", null, { class: "controls", role: "group", "aria-label": "Walk" });
    const button = (text, label) => element(controls, "button", text, { type: "button", "aria-label": label });
    const back = button("◀ Step", "One step back"), play = button("▶ Play", "Play"), forward = button("Step ▶", "One step on");
    play.id = "play"; forward.id = "forward"; back.id = "back";
    const slider = element(controls, "input", null, { type: "range", id: "step", min: 0, max: last, value: 0, "aria-label": "Step" });
    const speedLabel = element(controls, "label", "Speed: ");
    const speed = element(speedLabel, "select", null, { "aria-label": "Speed" });
    for (const [value, text] of [[2, "2 steps a second"], [10, "10"], [30, "30"], [120, "120"]]) element(speed, "option", text, { value });
    speed.value = "10";
    const state = element(section, "p", null, { class: "state", "aria-live": "off", id: "state" });
    const holder = element(section, "div", null, { class: "buffers" });
    const drawn = new Map(buffers.map((buffer) => [buffer.name, drawBuffer(holder, buffer)]));
    key(section, [["var(--a)", 1, "A, or read"], ["var(--b)", 2, "B"], ["var(--c)", 5, "C, or written"], ["var(--done)", 0, "written by a step before"]]);

    let at = 0;
    const show = (next) => {
      const from = at;
      at = Math.max(0, Math.min(last, next));
      const [statement, places, touches] = walk.steps[at];
      const axes = walk.axes[statement].map((name, place) => `${name} = ${places[place]}`).join(", ");
      const windows = touches.map(([buffer, role]) => `${walk.buffers[buffer]} (${walk.roles[role]})`).join(", ");
      state.textContent = `Step ${number(at + 1)}: ${walk.words[statement]}${axes ? ` at ${axes}` : ""}. Touches ${windows || "no memory"}.`;
      slider.value = at;
      slider.setAttribute("aria-valuetext", state.textContent);
      back.disabled = at === 0; forward.disabled = at === last;
      if (at < from) for (const one of drawn.values()) one.clear();
      for (let step = at < from ? 0 : Math.max(from, 0); step < at; step++) {
        for (const [buffer, role, ...parts] of walk.steps[step][2]) if (writes(walk.roles[role])) drawn.get(walk.buffers[buffer])?.done(parts);
      }
      for (const one of drawn.values()) one.begin();
      for (const [buffer, role, ...parts] of touches) drawn.get(walk.buffers[buffer])?.mark(parts, walk.roles[role]);
      page.follow?.(statement);
    };
    let timer = null;
    const stop = () => { timer?.stop(); timer = null; play.textContent = "▶ Play"; play.setAttribute("aria-label", "Play"); };
    const start = () => {
      if (at === last) show(0);
      play.textContent = "⏸ Pause"; play.setAttribute("aria-label", "Pause");
      let done = 0;
      timer = d3.timer((elapsed) => {
        const wanted = Math.floor((elapsed * Number(speed.value)) / 1000);
        if (wanted <= done) return;
        show(at + wanted - done);
        done = wanted;
        if (at === last) stop();
      });
    };
    play.addEventListener("click", () => (timer ? stop() : start()));
    speed.addEventListener("change", () => { if (timer) { stop(); start(); } });
    back.addEventListener("click", () => { stop(); show(at - 1); });
    forward.addEventListener("click", () => { stop(); show(at + 1); });
    slider.addEventListener("input", () => { stop(); show(Number(slider.value)); });
    page.stop.push(stop);
    page.repaint = () => { const here = at; at = last + 1; show(here); };
    page.walkTo = (statement) => {
      const found = walk.steps.findIndex((step) => step[0] === statement);
      if (found >= 0) { stop(); show(found); }
    };
    at = -1;
    show(0);
  },
});

const writes = (role) => ["C", "written", "packed", "to", "out"].includes(role);

function drawBuffer(holder, buffer) {
  const place = element(holder, "div", null, { class: buffer.memory ? "buffer strip" : "buffer" });
  const room = widthOf(holder, 1180);
  const size = buffer.memory ? [room - 4, 30] : fitted(buffer.columns, buffer.rows, Math.min(room - 4, 360), 300);
  const label = buffer.memory
    ? `${buffer.name}: ${number(buffer.columns)} elements of ${buffer.dtype} (${buffer.space})`
    : `${buffer.name}: ${number(buffer.rows)} × ${number(buffer.columns)} of ${buffer.dtype}`;
  element(place, "div", label, { class: "name" });
  const stack = element(place, "div", null, { class: "stack", role: "img", "aria-label": label });
  stack.style.width = `${size[0]}px`; stack.style.height = `${size[1]}px`;
  const density = Math.min(2, devicePixelRatio || 1);
  const canvas = element(stack, "canvas", null, { width: Math.round(size[0] * density), height: Math.round(size[1] * density) });
  const svg = d3.select(stack).append("svg").attr("width", size[0]).attr("height", size[1]).style("position", "absolute").style("left", 0).style("top", 0);
  const fills = { a: hatch(svg, "var(--a)", 1), b: hatch(svg, "var(--b)", 2), c: hatch(svg, "var(--c)", 5) };
  const marks = svg.append("g");
  if (!buffer.memory) element(place, "div", `↓ ${buffer.axes[0]}   → ${buffer.axes[1]}`, { class: "quiet name" });
  const context = canvas.getContext("2d");
  const fx = size[0] / buffer.columns, fy = size[1] / buffer.rows;
  const boxes = (parts) => d3.range(0, parts.length, 4).map((at) => ({
    y: parts[at] * fy, x: parts[at + 1] * fx, h: Math.max(parts[at + 2] * fy, 1.5), w: Math.max(parts[at + 3] * fx, 1.5) }));
  const colour = () => getComputedStyle(document.documentElement).getPropertyValue("--done");
  return {
    clear() { context.clearRect(0, 0, canvas.width, canvas.height); },
    done(parts) {
      context.fillStyle = colour();
      for (const one of boxes(parts)) context.fillRect(one.x * density, one.y * density, one.w * density, one.h * density);
    },
    begin() { marks.selectAll("rect").remove(); },
    mark(parts, role) {
      const kind = role === "B" ? "b" : writes(role) ? "c" : "a";
      marks.selectAll(null).data(boxes(parts)).join("rect").attr("data-role", role).attr("x", (one) => one.x).attr("y", (one) => one.y)
        .attr("width", (one) => one.w).attr("height", (one) => one.h).attr("fill", fills[kind]).style("stroke", `var(--${kind})`).attr("stroke-width", 1.5);
    },
  };
}

function fitted(columns, rows, width, height) {
  const factor = Math.min(width / columns, height / rows);
  return [Math.max(columns * factor, 24), Math.max(rows * factor, 24)];
}
