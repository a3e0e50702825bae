// Package browser tests the console in Chromium, of WEIR_CHROMIUM or the
// PATH: by keyboard alone and without scripts, every page by axe-core, every
// text that somebody can enter as an attempt to run a script, and what stays
// in a browser (`make test-browser`). It touches pages alone and has no code
// of its own.
package browser
