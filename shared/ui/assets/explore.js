// Exploring a list: / goes to the search line, j and k through the entries, Enter opens one. Names and values of fields
// are offered while one types. Beside a list of errors, x chooses one; e resolves, i ignores and a assigns what is chosen, or
// what has the focus. ? shows the keys of the page. Dragging over the histogram chooses its time. Times are shown in UTC or as on the reader's
// clock. All of it adds to what forms and links do without this script.

const line = document.getElementById("field-q");
const rows = () => [...document.querySelectorAll(".entries summary, .stack tbody tr td:first-child a")];

const help = document.getElementById("keys");
const toggle = () => (help.open ? help.close() : help.showModal());
if (help) {
  const shown = document.querySelector("p.keys");
  shown.hidden = false;
  for (const button of [shown.querySelector("button"), help.querySelector("button")]) button.addEventListener("click", toggle);
}

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.target.matches("input:not([type=checkbox]), select, textarea")) return;
  if (event.key === "?" && help) {
    toggle();
  } else if (help?.open) {
    return;
  } else if (event.key === "/" && line) {
    event.preventDefault();
    line.focus();
    line.select();
  } else if (event.key === "j" || event.key === "k") {
    const entries = rows(), at = entries.indexOf(document.activeElement) + (event.key === "j" ? 1 : -1);
    entries[Math.max(0, Math.min(at, entries.length - 1))]?.focus();
  } else if (/^[a-z]$/.test(event.key)) {
    const box = document.activeElement.closest("tr")?.querySelector("input[type=checkbox]");
    const button = document.querySelector(`button[data-key="${event.key}"]`);
    if (event.key === "x" && box) box.checked = !box.checked;
    if (button && box && !button.form.querySelector("input[type=checkbox]:checked")) box.checked = true;
    button?.click();
  }
});

// Completion of what one types: term is what the text before the cursor ends in, and options are what may become of it.
const complete = (input, term, options) => {
  const list = document.createElement("ul");
  list.id = "completions-" + input.id;
  list.className = "completions";
  list.setAttribute("role", "listbox");
  list.setAttribute("aria-label", "Completions");
  list.hidden = true;
  input.after(list);
  input.setAttribute("aria-autocomplete", "list");
  const one = input.matches("input"); // a combobox has one line
  if (one) {
    input.setAttribute("role", "combobox");
    input.setAttribute("aria-controls", list.id);
  }
  let chosen = -1;

  const begun = () => term.exec(input.value.slice(0, input.selectionStart))?.[1] ?? "";
  const show = (shown) => {
    list.hidden = !shown;
    if (one) input.setAttribute("aria-expanded", String(shown));
    input.removeAttribute("aria-activedescendant");
  };
  const offer = () => {
    const typed = begun(), start = typed.toLowerCase();
    const fitting = typed ? options(typed).filter((option) => option.toLowerCase().startsWith(start) && option !== typed).slice(0, 8) : [];
    chosen = -1;
    list.replaceChildren(...fitting.map((text, i) => {
      const option = document.createElement("li");
      option.id = list.id + "-" + i;
      option.setAttribute("role", "option");
      option.textContent = text;
      option.addEventListener("mousedown", (event) => {
        event.preventDefault();
        take(text);
      });
      return option;
    }));
    show(fitting.length > 0);
  };
  const take = (text) => {
    const at = input.selectionStart, more = text.endsWith(":");
    input.setRangeText(more ? text : text + " ", at - begun().length, at, "end");
    more ? offer() : show(false);
  };
  show(false);
  input.addEventListener("input", offer);
  input.addEventListener("blur", () => show(false));
  input.addEventListener("keydown", (event) => {
    if (list.hidden) return;
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step) {
      event.preventDefault();
      list.children[chosen]?.removeAttribute("aria-selected");
      chosen = (chosen + step + list.children.length) % list.children.length;
      list.children[chosen].setAttribute("aria-selected", "true");
      input.setAttribute("aria-activedescendant", list.children[chosen].id);
    } else if ((event.key === "Enter" || event.key === "Tab") && chosen >= 0) {
      event.preventDefault();
      take(list.children[chosen].textContent);
    } else if (event.key === "Escape") {
      event.preventDefault();
      show(false);
    }
  });
};
const offersOf = (input) => input.dataset.offers.split("\n").filter(Boolean);

// In the search line the terms that the page names; else the names of fields, and behind a colon the values beside the list.
if (line) {
  const known = new Map(["level", "environment", "message", "error.type", "error.message"].map((name) => [name, new Set()]));
  for (const level of ["debug", "info", "warn", "error", "fatal"]) known.get("level").add("level:" + level);
  for (const button of document.querySelectorAll(".tree button[value]:not([value^='-'])")) {
    const [name] = button.value.split(":", 1);
    if (!known.has(name)) known.set(name, new Set());
    if (known.get(name).size < 50) known.get(name).add(button.value);
  }
  const ofFields = (typed) => typed.includes(":") ? [...(known.get(typed.split(":", 1)[0]) ?? [])] : [...known.keys()].map((each) => each + ":");
  complete(line, /(?:^|[\s(])-?([^\s()"]*)$/, line.dataset.offers ? () => offersOf(line) : ofFields);
}

// In a note, behind an @, the members.
for (const note of document.querySelectorAll("textarea[data-offers]")) complete(note, /(?:^|[^\w.])(@[^@\n]{0,60})$/, () => offersOf(note));

// The histogram: a drag over several bars chooses their time.
for (const chart of document.querySelectorAll(".bars")) {
  const bars = Number(chart.dataset.bars), every = Number(chart.dataset.every), from = Number(chart.dataset.from);
  const barAt = (event) => {
    const box = chart.getBoundingClientRect();
    return Math.max(0, Math.min(bars - 1, Math.floor(((event.clientX - box.left) / box.width) * bars)));
  };
  let begun = -1, dragged = false;
  const brush = document.createElementNS("http://www.w3.org/2000/svg", "rect");
  brush.setAttribute("class", "brush");
  brush.setAttribute("height", "100%");
  chart.addEventListener("dragstart", (event) => event.preventDefault());
  chart.addEventListener("pointerdown", (event) => {
    begun = barAt(event);
    dragged = false;
  });
  chart.addEventListener("pointermove", (event) => {
    if (begun < 0) return;
    const at = barAt(event), first = Math.min(begun, at), many = Math.abs(at - begun) + 1;
    dragged ||= many > 1;
    if (!dragged) return;
    brush.setAttribute("x", (100 * first) / bars + "%");
    brush.setAttribute("width", (100 * many) / bars + "%");
    chart.append(brush);
  });
  chart.addEventListener("click", (event) => dragged && event.preventDefault());
  addEventListener("pointerup", (event) => {
    if (begun >= 0 && dragged) {
      const at = barAt(event), address = new URL(location.href);
      for (const name of ["last", "cursor"]) address.searchParams.delete(name);
      address.searchParams.set("from", time(from + Math.min(begun, at) * every));
      address.searchParams.set("to", time(from + (Math.max(begun, at) + 1) * every));
      location.assign(address);
    }
    begun = -1;
  });
}

function time(seconds) {
  return new Date(seconds * 1000).toISOString().replace(".000Z", "Z");
}

// UTC or the reader's own time: a button in the head of the list.
const head = document.querySelector(".entries .head span");
if (head) {
  const button = document.createElement("button");
  button.className = "quiet";
  button.type = "button";
  const show = (local) => {
    button.textContent = local ? "Local time" : "UTC";
    button.title = local ? "Show times in UTC" : "Show times of your own clock";
    for (const element of document.querySelectorAll(".entries summary time")) {
      element.dataset.utc ??= element.textContent;
      element.textContent = local ? localTime(new Date(element.dateTime)) : element.dataset.utc;
    }
    button.setAttribute("aria-pressed", String(local));
  };
  button.addEventListener("click", () => {
    const local = button.getAttribute("aria-pressed") !== "true";
    localStorage.setItem("local-time", local ? "1" : "");
    show(local);
  });
  head.parentElement.removeAttribute("aria-hidden");
  head.replaceChildren(button);
  show(localStorage.getItem("local-time") === "1");
  document.addEventListener("rows-added", () => show(button.getAttribute("aria-pressed") === "true"));
}

function localTime(at) {
  const two = (n, digits = 2) => String(n).padStart(digits, "0");
  return `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())} ${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())}.${two(at.getMilliseconds(), 3)}`;
}
