// Replaces the picture in every element with this id by two columns of tokens.
// `data` holds the tokens (`left`, `right`), the numbers (`values`, flat, each
// times `scale`) and, for attention, the numbers of the `layers` and `heads`.
function showViewer(id, data) {
  "use strict";
  const SVG = "http://www.w3.org/2000/svg";
  const SIDES = ["left", "right"];
  const values =
    typeof data.values === "string"
      ? Uint8Array.from(atob(data.values), (c) => c.charCodeAt(0))
      : data.values;

  function make(tag, className, text) {
    const element = document.createElement(tag);
    element.className = className;
    if (text !== undefined) element.textContent = text;
    return element;
  }

  function build(host) {
    let layer = 0;
    let head = 0; // `data.heads` stands for the mean of all heads
    let pinned = null; // the token that was touched, {side, index}
    let passing = null; // the token under the mouse or the keyboard focus

    const other = (side) => (side === "left" ? "right" : "left");
    const format = (value) => value.toFixed(data.digits);
    // How much color a value gets. The root keeps small weights visible.
    const strength = (value) =>
      (data.heads ? Math.sqrt(value) : Math.abs(value)).toFixed(3);

    function valueIn(head, left, right) {
      const heads = data.heads || 1;
      const row = (layer * heads + head) * data.left.length + left;
      return values[row * data.right.length + right] / data.scale;
    }

    function valueOf(left, right) {
      if (!data.heads || head < data.heads) return valueIn(head, left, right);
      let sum = 0;
      for (let h = 0; h < data.heads; h++) sum += valueIn(h, left, right);
      return sum / data.heads;
    }

    // The numbers of one token with every token of the other side.
    function rowOf({ side, index }) {
      return data[other(side)].map((_, i) =>
        side === "left" ? valueOf(index, i) : valueOf(i, index),
      );
    }

    // The parts.

    function selector(name, texts, onChange) {
      const label = make("label", "", name + " ");
      const select = make("select", name.toLowerCase());
      select.setAttribute("aria-label", name);
      texts.forEach((text, i) => select.append(new Option(text, i)));
      select.addEventListener("change", () => {
        onChange(Number(select.value));
        draw();
      });
      label.append(select);
      return label;
    }

    function controls() {
      const bar = make("div", "controls");
      if (data.heads) {
        const heads = Array.from({ length: data.heads }, (_, i) => String(i));
        if (data.heads > 1) heads.push("mean of all");
        bar.append(
          selector("Layer", data.layers, (i) => (layer = i)),
          selector("Head", heads, (i) => (head = i)),
        );
      }
      const reset = make("button", "reset", "Reset");
      reset.type = "button";
      reset.setAttribute("aria-label", "Reset: let go of the token");
      reset.addEventListener("click", letGo);
      bar.append(reset);
      if (!data.heads) bar.append(scale());
      return bar;
    }

    function scale() {
      const legend = make("span", "scale", "-1");
      legend.append(make("span", "ramp"), "1");
      return legend;
    }

    function tokenButton(side, index) {
      const token = data[side][index];
      const button = make("button", "token");
      button.type = "button";
      button.title = "token " + index + ": " + token;
      button.tabIndex = index ? -1 : 0;
      if (/^\[[A-Z]+\]$/.test(token)) button.classList.add("special");
      button.append(make("span", "name", token), make("span", "number"));
      const here = { side, index };
      button.addEventListener("click", () => {
        const again =
          pinned && pinned.side === side && pinned.index === index;
        pinned = again ? null : here;
        passing = null;
        draw();
      });
      button.addEventListener("pointerenter", (event) => {
        if (event.pointerType === "mouse") pass(here);
      });
      button.addEventListener("focus", () => {
        buttons[side].forEach((b) => (b.tabIndex = b === button ? 0 : -1));
        if (button.matches(":focus-visible")) pass(here);
      });
      button.addEventListener("blur", () => pass(null));
      button.addEventListener("keydown", (event) => move(event, here));
      return button;
    }

    function column(side) {
      const group = make("div", "side " + side);
      group.setAttribute("role", "group");
      group.setAttribute("aria-label", data.labels[side]);
      group.append(...buttons[side]);
      group.addEventListener("pointerleave", () => pass(null));
      return group;
    }

    // What a reader does.

    function pass(token) {
      passing = token;
      draw();
    }

    function letGo() {
      pinned = passing = null;
      draw();
    }

    function move(event, { side, index }) {
      const last = buttons[side].length - 1;
      const row = buttons[other(side)];
      const across = row[Math.min(index, row.length - 1)];
      const targets = {
        ArrowUp: buttons[side][Math.max(index - 1, 0)],
        ArrowDown: buttons[side][Math.min(index + 1, last)],
        Home: buttons[side][0],
        End: buttons[side][last],
        ArrowLeft: side === "right" && across,
        ArrowRight: side === "left" && across,
      };
      if (event.key === "Escape") letGo();
      else if (targets[event.key]) targets[event.key].focus();
      else return;
      event.preventDefault();
    }

    // What is drawn.

    function line(left, right, wide) {
      const path = document.createElementNS(SVG, "path");
      const [from, to] = [left + 0.5, right + 0.5];
      path.setAttribute("d", `M0,${from}C50,${from} 50,${to} 100,${to}`);
      path.setAttribute("stroke-opacity", strength(valueOf(left, right)));
      path.setAttribute("stroke-width", wide ? 3 : 1.5);
      return path;
    }

    function drawLines(shown) {
      lines.replaceChildren();
      data.left.forEach((_, left) =>
        data.right.forEach((_, right) => {
          const index = shown && (shown.side === "left" ? left : right);
          if (shown && index !== shown.index) return;
          if (valueOf(left, right) > 0) lines.append(line(left, right, shown));
        }),
      );
    }

    function drawToken(button, isShown, isPinned, value, isBest) {
      button.classList.toggle("shown", isShown);
      button.classList.toggle("best", isBest);
      button.classList.toggle("below", value < 0);
      button.setAttribute("aria-pressed", String(isPinned));
      button.style.setProperty("--strength", strength(value));
      button.lastChild.textContent = value === null ? "" : format(value);
    }

    const quoted = (side, index) => "\u201c" + data[side][index] + "\u201d";

    function sentence(shown, row) {
      if (!shown) return data.hint;
      const facing = other(shown.side);
      const best = row
        .map((value, i) => [value, i])
        .sort((a, b) => b[0] - a[0] || a[1] - b[1])
        .slice(0, 3)
        .map(([value, i]) => `${quoted(facing, i)} ${format(value)}`);
      const token = quoted(shown.side, shown.index);
      return `${token} ${data.verbs[shown.side]} ${best.join(", ")}.`;
    }

    function draw() {
      const shown = passing || pinned;
      const row = shown && rowOf(shown);
      for (const side of SIDES) {
        buttons[side].forEach((button, i) => {
          const is = (token) =>
            Boolean(token) && token.side === side && token.index === i;
          const faces = shown && shown.side !== side;
          const value = faces ? row[i] : null;
          const isBest = Boolean(faces) && value === Math.max(...row);
          drawToken(button, is(shown), is(pinned), value, isBest);
        });
      }
      if (lines) drawLines(shown);
      const text = sentence(shown, row);
      if (readout.textContent !== text) readout.textContent = text;
    }

    const buttons = {};
    for (const side of SIDES)
      buttons[side] = data[side].map((_, i) => tokenButton(side, i));
    const readout = make("p", "readout");
    readout.setAttribute("aria-live", "polite");
    let lines = null;
    if (data.heads) {
      lines = document.createElementNS(SVG, "svg");
      lines.setAttribute("viewBox", `0 0 100 ${data.left.length}`);
      lines.setAttribute("preserveAspectRatio", "none");
      lines.setAttribute("aria-hidden", "true");
    }
    const columns = make("div", lines ? "columns" : "columns near");
    for (const side of SIDES)
      columns.append(make("div", "heading " + side, data.labels[side]));
    columns.append(column("left"), lines || "", column("right"));
    const parts = [controls(), columns, readout, make("p", "note", data.note)];
    if (data.title) parts.unshift(make("div", "title", data.title));
    draw();
    host.replaceChildren(...parts);
    host.dataset.ready = "true";
    host.setAttribute("role", "group");
    host.setAttribute("aria-label", data.name);
    // Keys that a viewer handles must not reach a notebook's shortcuts.
    host.addEventListener("keydown", (event) => event.stopPropagation());
  }

  for (const host of document.querySelectorAll("#" + id + ":not([data-ready])"))
    build(host);
}
