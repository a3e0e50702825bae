// Live: [data-live="address"] gets events of that address, and adds the rows of each on top of [data-live-rows], or below
// its .head. Its link becomes a button that begins, pauses and resumes. Without this script the link loads the newest page.

const most = 300; // rows on the page

for (const bar of document.querySelectorAll("[data-live]")) {
  const rows = document.querySelector("[data-live-rows]");
  if (rows) {
    offer(bar, rows);
  }
}

function offer(bar, rows) {
  const button = document.createElement("button");
  const status = bar.querySelector("[role=status]");
  button.type = "button";
  button.className = "quiet";
  let events, skipped = 0;
  bar.querySelector("a").replaceWith(button);
  say("Live");

  button.addEventListener("click", () => (events ? stop("Resume") : start()));

  function say(name, text = "") {
    button.textContent = name;
    status.textContent = text || (skipped ? `${skipped.toLocaleString()} not shown` : "");
  }

  function start() {
    say("Pause");
    events = new EventSource(bar.dataset.live);
    events.addEventListener("entry", (event) => add(rows, JSON.parse(event.data)));
    events.addEventListener("skipped", (event) => {
      skipped += JSON.parse(event.data).entries;
      say("Pause");
    });
    events.addEventListener("end", (event) => {
      if (["credential_ended", "project_deleted"].includes(JSON.parse(event.data).reason)) {
        stop("Live", "Load the page again.");
      } // else the browser connects again
    });
    events.addEventListener("error", () => {
      if (events?.readyState === EventSource.CLOSED) {
        stop("Live", "Not connected. Try again in a moment.");
      }
    });
  }

  function stop(name, text) {
    events.close();
    events = undefined;
    say(name, text);
  }
}

function add(rows, nodes) {
  rows.insertBefore(fragment(nodes), rows.querySelector(":scope > :not(.head)"));
  while (rows.children.length > most) {
    rows.lastElementChild.remove();
  }
  document.dispatchEvent(new Event("rows-added"));
}

// fragment makes elements of [name, {attribute: value}, child…]; all else is text.
function fragment(nodes) {
  const made = document.createDocumentFragment();
  for (const node of nodes) {
    if (typeof node === "string") {
      made.append(node);
      continue;
    }
    const [name, attributes, ...children] = node;
    const element = document.createElement(name);
    for (const attribute in attributes) {
      element.setAttribute(attribute, attributes[attribute]);
    }
    element.append(fragment(children));
    made.append(element);
  }
  return made;
}
