// Exploring a list: / goes to the search line, j and k through the entries, Enter opens one. Names and values of fields
// are offered while one types. Beside a list of errors, x chooses one; e resolves, i ignores and a assigns what is chosen, or
// what has the focus. Dragging over the histogram chooses its time. Times are shown in UTC or as on the reader's
// clock. All of it adds to what forms and links do without this script.

const line = document.getElementById("field-q");
const rows = () => [...document.querySelectorAll(".entries summary, .stack tbody tr td:first-child a")];

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.target.matches("input:not([type=checkbox]), select, textarea")) return;
  if (event.key === "/" && line) {
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

// Completion: the names of fields, and behind a colon the values that stand beside the list.
if (line) {
  const known = new Map(["level", "environment", "message", "error.type", "error.message"].map((name) => [name, new Set()]));
  for (const level of ["debug", "info", "warn", "error", "fatal"]) known.get("level").add("level:" + level);
  for (const button of document.querySelectorAll(".tree button[value]:not([value^='-'])")) {
    const [name] = button.value.split(":", 1);
    if (!known.has(name)) known.set(name, new Set());
    if (known.get(name).size < 50) known.get(name).add(button.value);
  }
  const list = document.createElement("ul");
  list.id = "completions";
  list.className = "completions";
  list.setAttribute("role", "listbox");
  list.setAttribute("aria-label", "Completions");
  list.hidden = true;
  line.after(list);
  for (const [name, value] of [["role", "combobox"], ["aria-controls", list.id], ["aria-expanded", "false"], ["aria-autocomplete", "list"]]) {
    line.setAttribute(name, value);
  }
  let chosen = -1;

  const term = () => /(?:^|[\s(])-?([^\s()"]*)$/.exec(line.value.slice(0, line.selectionStart))?.[1] ?? "";
  const close = () => {
    list.hidden = true;
    line.setAttribute("aria-expanded", "false");
    line.removeAttribute("aria-activedescendant");
  };
  const offer = () => {
    const begun = term(), [name] = begun.split(":", 1);
    const options = begun.includes(":") ? [...(known.get(name) ?? [])] : [...known.keys()].map((each) => each + ":");
    const fitting = begun ? options.filter((option) => option.startsWith(begun) && option !== begun).slice(0, 8) : [];
    chosen = -1;
    list.replaceChildren(...fitting.map((text, i) => {
      const option = document.createElement("li");
      option.id = "completion-" + i;
      option.setAttribute("role", "option");
      option.textContent = text;
      option.addEventListener("mousedown", (event) => {
        event.preventDefault();
        take(text);
      });
      return option;
    }));
    list.hidden = fitting.length === 0;
    line.setAttribute("aria-expanded", String(!list.hidden));
    line.removeAttribute("aria-activedescendant");
  };
  const take = (text) => {
    const at = line.selectionStart, from = at - term().length, space = text.endsWith(":") ? "" : " ";
    line.setRangeText(text + space, from, at, "end");
    text.endsWith(":") ? offer() : close();
  };
  line.addEventListener("input", offer);
  line.addEventListener("blur", close);
  line.addEventListener("keydown", (event) => {
    if (list.hidden) return;
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step) {
      event.preventDefault();
      list.children[chosen]?.removeAttribute("aria-selected");
      chosen = (chosen + step + list.children.length) % list.children.length;
      list.children[chosen].setAttribute("aria-selected", "true");
      line.setAttribute("aria-activedescendant", list.children[chosen].id);
    } else if ((event.key === "Enter" || event.key === "Tab") && chosen >= 0) {
      event.preventDefault();
      take(list.children[chosen].textContent);
    } else if (event.key === "Escape") {
      event.preventDefault();
      close();
    }
  });
}

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
