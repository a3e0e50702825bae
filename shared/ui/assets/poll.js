// Waiting: <p role="status" data-poll="address"> shows the text that the address answers with: 202 as long as there is
// something to wait for, 200 when it is there. Then the element gets data-state="done". It asks every two seconds, for
// ten minutes, and only while somebody looks. Without this script the page has a link to load it again.

const every = 2_000;
const patience = 10 * 60_000;

for (const element of document.querySelectorAll("[data-poll]")) {
  wait(element, Date.now() + patience);
}

async function wait(element, until) {
  while (Date.now() < until) {
    await new Promise((resolve) => setTimeout(resolve, every));
    if (!document.hidden && (await ask(element))) {
      return;
    }
  }
}

// ask tells whether the waiting is over. A network that fails once is asked again.
async function ask(element) {
  let answer;
  try {
    answer = await fetch(element.dataset.poll, { redirect: "manual", headers: { Accept: "text/plain" } });
  } catch {
    return false;
  }
  if (answer.status >= 500 || answer.status === 429) {
    return false;
  }
  if (!answer.ok) {
    return true; // signed out, or gone: loading the page again tells
  }
  show(element, await answer.text());
  if (answer.status === 200) {
    element.dataset.state = "done";
  }
  return answer.status === 200;
}

function show(element, text) {
  if (element.textContent !== text) {
    element.textContent = text;
  }
}
