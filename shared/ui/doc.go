// Package ui is the console's shell: one layout, one stylesheet, the components that pages are made of, and the headers
// that protect them. Each module has its own pages, in its internal/console, and renders them with Pages.
//
// Everything that people can do is a link or a form, and works without scripts. A few small ones make it easier: a page
// names those that it uses, and the policy allows no others. README.md describes how.
package ui
