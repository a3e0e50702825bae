// Package browser tests the console in Chromium, of WEIR_CHROMIUM or
// the PATH: by keyboard only and without scripts, every page by
// axe-core, every text that somebody can enter as an attempt to run a
// script, and what stays in a browser (`make test-browser`). It touches
// only pages and has only tests.
package browser
