// One-time codes: a link carries its code behind the #, which browsers send to nobody. This puts it into the field
// <input data-code> and takes it out of the address bar and the history. Without this script the reader pastes it.

const field = document.querySelector("input[data-code]");
const code = location.hash.slice(1);

if (field && code) {
  field.value = code;
  history.replaceState(null, "", location.pathname + location.search);
  field.form.querySelector("input:not([type=hidden]):not([data-code])")?.focus();
}
