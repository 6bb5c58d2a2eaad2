"use strict";
// Filtering, sorting and searching the table; opening the document that an address names. Without this the
// page can be read all the same, but for the packed sections of a large register.
(() => {
  const table = document.getElementById("table");
  if (!table) return;
  const body = table.tBodies[0];
  const rest = document.getElementById("rest");
  const form = document.getElementById("filters");
  const find = document.getElementById("find");
  const found = document.getElementById("found");
  const reset = form.querySelector("[type=reset]");
  const more = document.getElementById("more");
  const opened = document.getElementById("opened");
  const hint = document.getElementById("hint");
  const step = body.rows.length;
  const rows = [...body.rows, ...(rest ? rest.content.querySelectorAll("tr") : [])];
  const places = new Map(rows.map((row, place) => [row.cells[0].firstElementChild.hash, place]));
  const collator = new Intl.Collator("en", { numeric: true });
  const texts = new Map();
  let order = rows;
  let shown = step;

  const textOf = (row) => {
    if (!texts.has(row)) texts.set(row, row.textContent.toLowerCase());
    return texts.get(row);
  };

  const cellOf = (row, column) => {
    const cell = row.cells[column];
    // A verdict may be followed by those of other meters.
    return (cell.querySelector(".verdict") ?? cell).textContent;
  };

  const chosen = () => {
    const words = find.value.toLowerCase().split(/\s+/).filter(Boolean);
    const wanted = [...form.querySelectorAll("fieldset")]
      .map((set) => [Number(set.dataset.column), new Set([...set.querySelectorAll(":checked")].map((box) => box.value))])
      .filter(([, values]) => values.size);
    return order.filter(
      (row) =>
        wanted.every(([column, values]) => values.has(cellOf(row, column))) &&
        words.every((word) => textOf(row).includes(word)),
    );
  };

  const draw = () => {
    const matching = chosen();
    body.replaceChildren(...matching.slice(0, shown));
    const all = `${rows.length} document${rows.length === 1 ? "" : "s"}`;
    found.textContent = matching.length === rows.length ? all : `${matching.length} of ${all}`;
    reset.hidden = matching.length === rows.length && !find.value;
    more.hidden = matching.length <= shown;
  };

  const redraw = () => {
    shown = step;
    draw();
  };

  const sortBy = (column, heading) => {
    const descending = heading.ariaSort === "ascending";
    for (const other of table.tHead.rows[0].cells) other.ariaSort = "none";
    heading.ariaSort = descending ? "descending" : "ascending";
    const sign = descending ? -1 : 1;
    const keyed = rows.map((row) => [cellOf(row, column), row]);
    keyed.sort(([one], [other]) => sign * collator.compare(one, other));
    order = keyed.map(([, row]) => row);
    redraw();
  };

  [...table.tHead.rows[0].cells].forEach((heading, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...heading.childNodes);
    button.addEventListener("click", () => sortBy(column, heading));
    heading.append(button);
    heading.ariaSort = "none";
  });

  let waiting = 0;
  find.addEventListener("input", () => {
    clearTimeout(waiting);
    waiting = setTimeout(redraw, 80);
  });
  form.addEventListener("change", redraw);
  form.addEventListener("reset", () => setTimeout(redraw));
  form.addEventListener("submit", (event) => event.preventDefault());
  more.addEventListener("click", () => {
    shown += step;
    draw();
  });
  form.hidden = false;
  reset.hidden = true;
  if (hint) hint.textContent = "Follow an ID above to open its document here.";
  more.hidden = rows.length <= step;

  const loaded = new Promise((done) => addEventListener("load", done));

  const unpack = async (place) => {
    await loaded;
    const pack = document.getElementsByClassName("pack")[Math.floor(place / opened.dataset.pack)];
    const bytes = Uint8Array.from(atob(pack.textContent), (letter) => letter.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
    const sections = document.createElement("template");
    sections.innerHTML = await new Response(stream).text();
    return sections.content.children[place % opened.dataset.pack];
  };

  const sectionOf = async (hash) => {
    const place = places.get(hash);
    if (place === undefined) return null;
    const there = document.getElementById(decodeURIComponent(hash.slice(1)));
    if (there) return there;
    const section = await unpack(place);
    hint.hidden = true;
    opened.prepend(section);
    return section;
  };

  // What scrolls sideways can be reached by keyboard, and nothing else takes a stop.
  const reach = (section) => {
    for (const box of section.querySelectorAll(".wide, pre")) {
      if (box.scrollWidth > box.clientWidth) box.tabIndex = 0;
      else box.removeAttribute("tabindex");
    }
  };

  const open = async () => {
    const section = await sectionOf(location.hash);
    if (!section) return;
    section.open = true;
    section.scrollIntoView();
    section.querySelector("summary").focus({ preventScroll: true });
  };

  document.addEventListener("toggle", (event) => event.target.open && reach(event.target), true);
  addEventListener("resize", () => document.querySelectorAll("details[open]").forEach(reach));
  addEventListener("hashchange", open);
  document.addEventListener("click", (event) => {
    // Following the same link again changes no address.
    const link = event.target.closest("a[href^='#']");
    if (link && link.hash === location.hash) open();
  });
  // A browser that arrives at an address moves the focus away, once all is loaded.
  addEventListener("load", () => setTimeout(open));
})();
