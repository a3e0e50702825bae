// Package ui is the console's shell: one layout, one stylesheet, the components
// of pages, and the headers that protect them. Each module renders its own
// pages with Pages. Everything that people can do is a link or a form and works
// without scripts; a page names the few scripts that it uses, and the policy
// allows no others. README.md describes how.
package ui
