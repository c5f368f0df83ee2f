"use strict";

(() => {
  const columns = ["source", "tape", "rules", "code"].map((name) => document.getElementById(name));
  const numbers = (text) => (text ? text.split(" ") : []);
  const add = (map, key, value) => {
    if (!map.has(key)) map.set(key, []);
    map.get(key).push(value);
  };

  // Which elements are about an op, which ops read it, and which belong to it.
  const about = new Map();
  const readers = new Map();
  const reads = new Map();
  const kin = new Map();
  const edges = new Map();
  const linked = [...document.querySelectorAll("[data-ops]")];
  for (const element of linked) for (const op of numbers(element.dataset.ops)) add(about, op, element);
  for (const row of document.querySelectorAll("[data-reads]")) {
    const own = row.dataset.ops;
    reads.set(own, numbers(row.dataset.reads));
    for (const op of reads.get(own)) add(readers, op, own);
  }
  for (const pair of document.querySelectorAll(".pair")) {
    const ops = [...pair.querySelectorAll(".op")].map((row) => row.dataset.ops);
    if (pair.querySelector(".adjoint")) for (const op of ops) kin.set(op, ops.filter((other) => other !== op));
  }
  for (const path of document.querySelectorAll("[data-ends]")) {
    for (const op of numbers(path.dataset.ends)) add(edges, op, path);
  }

  // Highlighting.
  const marks = ["lit", "kin", "from", "to"];
  const marked = new Set();
  let pinned = null;
  let shown = null;
  const mark = (element, name) => {
    element.classList.add(name);
    marked.add(element);
  };
  const clear = () => {
    for (const element of marked) element.classList.remove(...marks);
    marked.clear();
    shown = null;
  };
  const light = (element) => {
    if (element && element === shown) return;
    clear();
    if (!element) return;
    shown = element;
    const ops = numbers(element.dataset.ops);
    for (const op of ops) for (const other of about.get(op) || []) mark(other, "lit");
    mark(element, "lit");
    if (ops.length > 1 && !element.classList.contains("op")) return;
    for (const op of ops) {
      for (const other of kin.get(op) || []) for (const each of about.get(other) || []) mark(each, "kin");
      const ways = [[reads.get(op) || [], "from"], [readers.get(op) || [], "to"]];
      for (const [others, name] of ways) {
        for (const other of others) {
          for (const each of about.get(other) || []) if (each.classList.contains("op")) mark(each, name);
        }
      }
      for (const path of edges.get(op) || []) mark(path, "lit");
    }
  };
  // In the order in which they stand there.
  const lights = (place) => [...place.getElementsByClassName("lit")];
  const meet = (place, frame) => place.top < frame.bottom && place.bottom > frame.top;
  const inside = (element, frame) => {
    // To ask where a line of a piece out of sight is would lay that piece out.
    const piece = element.closest(".piece");
    if (piece && !meet(piece.getBoundingClientRect(), frame)) return false;
    const place = element.getBoundingClientRect();
    return place.top >= frame.top && place.bottom <= frame.bottom && place.left < frame.right && place.right > frame.left;
  };
  // Only up and down: a long line must not carry the beginnings of the others out of sight.
  const centre = (element) => {
    const scroll = element.closest(".scroll");
    const frame = scroll.getBoundingClientRect();
    if (!inside(element, frame)) scroll.scrollTop += element.getBoundingClientRect().top - frame.top - frame.height / 3;
  };
  const reveal = (element) => {
    for (const column of columns) {
      if (column.contains(element)) continue;
      const lit = lights(column);
      const frame = column.querySelector(".scroll").getBoundingClientRect();
      if (lit.length && !lit.some((each) => inside(each, frame))) centre(lit[0]);
    }
    const boxes = lights(drawing).filter((each) => each.matches(".box"));
    const frame = drawing.getBoundingClientRect();
    if (boxes.length && !panel.hidden && !boxes.some((each) => inside(each, frame))) {
      const box = boxes[0].transform.baseVal[0].matrix;
      view = [box.e - view[2] / 2 + 75, box.f - view[3] / 2, view[2], view[3]];
      show();
    }
  };
  const pin = (element) => {
    pinned = pinned === element ? null : element;
    light(pinned || element);
    reveal(element);
  };
  const target = (event) => (event.target.closest ? event.target.closest("[data-ops]") : null);

  // However fast the mouse moves, what it is over is lit once a frame. A mouse at rest, under which the keyboard
  // moves the lines, says nothing.
  let over = null;
  let due = false;
  let resting = [0, 0];
  let keyed = false;
  const follow = () => {
    due = false;
    if (!pinned) light(over || (document.activeElement.dataset.ops ? document.activeElement : null));
  };
  const point = (event) => {
    if (keyed && event.clientX === resting[0] && event.clientY === resting[1]) return;
    keyed = false;
    resting = [event.clientX, event.clientY];
    over = target(event);
    if (!due) requestAnimationFrame(follow);
    due = true;
  };
  document.addEventListener("mouseover", point);
  document.addEventListener("mousemove", point);
  document.addEventListener("focusin", (event) => {
    const element = target(event);
    if (element && !pinned) {
      light(element);
      reveal(element);
    }
  });
  document.addEventListener("click", (event) => {
    const element = target(event);
    if (element && !moved) {
      pin(element);
      if (element.matches(".row")) element.focus({ preventScroll: true });
    }
  });

  // Keyboard: one line of each column can be reached by Tab, the others by arrows.
  const lines = (column) => [...column.querySelectorAll(".row[data-ops]")];
  for (const column of columns) {
    const first = column.querySelector(".row[data-ops]");
    if (first) first.tabIndex = 0;
  }
  const go = (element) => {
    const column = columns.find((each) => each.contains(element));
    for (const each of column.querySelectorAll('.row[tabindex="0"]')) each.tabIndex = -1;
    element.tabIndex = 0;
    pinned = null;
    element.focus({ preventScroll: true });
    centre(element);
  };
  const step = (element, by) => {
    const all = lines(columns.find((each) => each.contains(element)));
    const next = all[all.indexOf(element) + by];
    if (next) go(next);
  };
  const cross = (element, by) => {
    let place = columns.findIndex((each) => each.contains(element)) + by;
    while (columns[place]) {
      const lit = lines(columns[place]).filter((each) => each.classList.contains("lit"));
      if (lit.length) return go(lit[0]);
      place += by;
    }
  };

  // Search.
  const search = document.getElementById("search");
  const found = document.getElementById("found");
  const rows = [...document.querySelectorAll("main .row")];
  const texts = rows.map((row) => row.textContent.toLowerCase());
  let hits = [];
  let current = -1;
  const look = () => {
    const wanted = search.value.trim().toLowerCase();
    const former = new Set(hits);
    hits = wanted === "" ? [] : rows.filter((_, place) => texts[place].includes(wanted));
    current = -1;
    for (const row of hits) if (!former.delete(row)) row.classList.add("hit");
    for (const row of former) row.classList.remove("hit");
    document.body.classList.toggle("searching", wanted !== "");
    found.textContent = wanted === "" ? "" : `${hits.length} found`;
  };
  const next = (by) => {
    if (!hits.length) return;
    current = (current + by + hits.length) % hits.length;
    const hit = hits[current];
    pinned = null;
    light(hit.dataset.ops ? hit : null);
    centre(hit);
    reveal(hit);
    found.textContent = `${current + 1} of ${hits.length}`;
  };
  search.addEventListener("input", look);
  search.addEventListener("keydown", (event) => {
    if (event.key === "Enter") next(event.shiftKey ? -1 : 1);
  });

  // Light and dark: the system's choice, until another one is made.
  const root = document.documentElement;
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  const obey = () => (root.dataset.theme = dark.matches ? "dark" : "light");
  obey();
  dark.addEventListener("change", obey);
  const turn = () => (root.dataset.theme = root.dataset.theme === "dark" ? "light" : "dark");
  document.getElementById("theme").addEventListener("click", turn);

  // The diagram: a view box that is moved and zoomed.
  const panel = document.getElementById("diagram");
  const drawing = document.getElementById("drawing");
  const toggle = document.getElementById("diagram-button");
  const whole = [0, 0, Number(drawing.dataset.width), Number(drawing.dataset.height)];
  let view = [...whole];
  let moved = false;
  const show = () => drawing.setAttribute("viewBox", view.map((each) => each.toFixed(2)).join(" "));
  const scale = () => {
    const box = drawing.getBoundingClientRect();
    return Math.max(view[2] / Math.max(box.width, 1), view[3] / Math.max(box.height, 1));
  };
  const zoom = (factor, x = view[0] + view[2] / 2, y = view[1] + view[3] / 2) => {
    const size = Math.min(Math.max(view[2] * factor, 80), whole[2] * 8);
    const by = size / view[2];
    view = [x - (x - view[0]) * by, y - (y - view[1]) * by, view[2] * by, view[3] * by];
    show();
  };
  const fit = () => {
    view = [...whole];
    show();
  };
  // A long tape begins at its top, at a size that can be read.
  const start = () => {
    const box = drawing.getBoundingClientRect();
    view = [...whole];
    if (box.width && scale() > 1.6) {
      const width = box.width * 1.1;
      const height = box.height * 1.1;
      view = [Math.max((whole[2] - width) / 2, 0), 0, width, height];
    }
    show();
  };
  const spot = (event) => {
    const place = drawing.createSVGPoint();
    place.x = event.clientX;
    place.y = event.clientY;
    return place.matrixTransform(drawing.getScreenCTM().inverse());
  };
  drawing.addEventListener("wheel", (event) => {
    event.preventDefault();
    const place = spot(event);
    zoom(Math.exp(Math.sign(event.deltaY) * 0.15), place.x, place.y);
  }, { passive: false });
  let drag = null;
  drawing.addEventListener("pointerdown", (event) => {
    drag = [event.clientX, event.clientY];
    moved = false;
  });
  window.addEventListener("pointermove", (event) => {
    if (!drag) return;
    const [x, y] = [event.clientX - drag[0], event.clientY - drag[1]];
    if (!moved && Math.hypot(x, y) < 4) return;
    moved = true;
    drawing.classList.add("dragging");
    const by = scale();
    view = [view[0] - x * by, view[1] - y * by, view[2], view[3]];
    drag = [event.clientX, event.clientY];
    show();
  });
  window.addEventListener("pointerup", () => {
    drag = null;
    drawing.classList.remove("dragging");
    setTimeout(() => (moved = false));
  });
  const open = () => {
    panel.hidden = !panel.hidden;
    toggle.setAttribute("aria-pressed", String(!panel.hidden));
  };
  toggle.addEventListener("click", open);
  document.getElementById("closer").addEventListener("click", () => zoom(0.8));
  document.getElementById("farther").addEventListener("click", () => zoom(1.25));
  document.getElementById("fit").addEventListener("click", fit);
  start();

  const move = (x, y) => {
    view = [view[0] + x * view[2] * 0.1, view[1] + y * view[3] * 0.1, view[2], view[3]];
    show();
  };
  const arrows = { ArrowUp: [0, -1], ArrowDown: [0, 1], ArrowLeft: [-1, 0], ArrowRight: [1, 0] };
  const plain = {
    "/": () => search.focus(),
    d: open,
    t: turn,
    "+": () => zoom(0.8),
    "=": () => zoom(0.8),
    "-": () => zoom(1.25),
    0: fit,
  };
  document.addEventListener("keydown", (event) => {
    keyed = true;
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "Escape") {
      search.value = "";
      look();
      pinned = null;
      clear();
      if (event.target === search) search.blur();
      return;
    }
    if (event.target === search) return;
    const row = event.target.closest ? event.target.closest(".row[data-ops]") : null;
    const way = arrows[event.key];
    if (way && event.target === drawing) {
      event.preventDefault();
      move(...way);
    } else if (way && row) {
      event.preventDefault();
      if (way[0]) cross(row, way[0]);
      else step(row, way[1]);
    } else if ((event.key === "Enter" || event.key === " ") && row) {
      event.preventDefault();
      pin(row);
    } else if (plain[event.key]) {
      event.preventDefault();
      plain[event.key]();
    }
  });
})();
