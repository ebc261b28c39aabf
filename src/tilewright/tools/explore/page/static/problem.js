// What is computed, for which machine, and the strategy that is taken.
"use strict";
panels.push({
  id: "problem", title: "Problem", wanted: (record) => Boolean(record.facts),
  draw(section, record) {
    element(section, "p", record.formula, { class: "code" });
    element(section, "p", `Strategy: ${record.explanation.strategy}.`);
    const columns = element(section, "div", null, { class: "columns" });
    const left = element(columns, "div"), right = element(columns, "div");
    element(left, "h3", "Kernel");
    table(left, ["fact", "value"], [["name", record.kernel], ...record.facts], [], false);
    element(right, "h3", "Machine");
    const target = record.target;
    const rows = [["core", `${target.core || target.cpu} (${target.cpu})`], ["instruction set", target.isa],
      ["vector registers", `${target.registers} of ${target.vector_bits} bits`]];
    for (const one of target.caches) {
      rows.push([one.name, `${bytesText(one.bytes)}, ${one.ways} ways, lines of ${one.line} bytes` +
        (one.cores > 1 ? `, shared by ${one.cores} cores` : "")]);
    }
    if (target.tlb[0]) rows.push(["TLB", `${target.tlb[0]} and ${target.tlb[1]} pages of ${bytesText(target.page_bytes)}`]);
    table(right, ["fact", "value"], rows, [], false);
    const shape = Object.entries(record.example.shape).map(([name, size]) => `${name} = ${number(size)}`).join(", ");
    if (shape) {
      element(right, "h3", "The call that is drawn");
      const flops = record.example.flops ? `${number(record.example.flops)} operations, ` : "";
      element(right, "p", `${shape}: ${flops}at least ${number(record.example.bytes)} bytes moved.`);
    }
    const notes = [...record.explanation.decisions, ...record.explanation.notes];
    if (notes.length) {
      const more = element(section, "details");
      element(more, "summary", "Decisions and notes");
      const list = element(more, "ul", null, { class: "plain code" });
      notes.forEach((note) => element(list, "li", note));
    }
  },
});
