// Package browser proves the console in a real browser, Chromium without a window: a person's whole way through it by
// keyboard alone and without scripts, every page by axe-core in light, dark and on a phone, with nothing to show and with texts
// as long as they may be, every text that somebody can enter as an attempt to run a script, and what stays in a browser.
// `make test-browser` runs it: its tests have the build tag "browser".
//
// Chromium is taken from WEIR_CHROMIUM or the PATH; without one the tests fail. WEIR_SCREENSHOTS names a folder for a
// picture of each page.
package browser
