// Package ui is the console's shell: one layout, one stylesheet, the
// components of pages, and the headers that protect them, which allow the
// few scripts that a page names; everything works without scripts. Each
// module renders its own pages with Pages, and README.md describes how.
package ui
