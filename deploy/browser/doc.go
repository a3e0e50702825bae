// Package browser tests the console in Chromium: by keyboard alone and
// without scripts, every page by axe-core in light, dark and on a phone,
// every text that somebody can enter as an attempt to run a script, and
// what stays in a browser. It touches pages alone and has no code of its
// own. `make test-browser` runs it (build tag "browser") with the Chromium
// of WEIR_CHROMIUM or the PATH, and fails without one. WEIR_SCREENSHOTS
// names a folder for a picture of each page.
package browser
