// Copying: <button type="button" data-copy="id" hidden>Copy key</button> copies the text of the element with that id.
// Without this script the button stays hidden, and the text can be selected.

for (const button of document.querySelectorAll("button[data-copy]")) {
  button.hidden = false;
  button.addEventListener("click", () => copy(button));
}

async function copy(button) {
  const source = document.getElementById(button.dataset.copy);
  const name = (button.dataset.name ||= button.textContent);
  try {
    await navigator.clipboard.writeText(source.textContent);
    say(button, "Copied");
    button.dataset.state = "done";
  } catch {
    // The browser does not let pages copy: leave it to the reader's own hand.
    getSelection().selectAllChildren(source);
    say(button, "Selected: press Ctrl+C or ⌘C");
  }
  setTimeout(() => {
    button.textContent = name;
    delete button.dataset.state;
  }, 4000);
}

// say shows text on the button, and tells it to those who listen to the page instead of looking at it.
function say(button, text) {
  button.textContent = text;
  let status = document.getElementById("copied");
  if (!status) {
    status = document.createElement("p");
    status.id = "copied";
    status.className = "unseen";
    status.setAttribute("role", "status");
    document.body.append(status);
  }
  status.textContent = "";
  requestAnimationFrame(() => (status.textContent = text));
}
