// Package docs has the pages that programs show. It imports nothing.
package docs

import _ "embed" // the pages

// Searching is the page about the query language, in Markdown.
//
//go:embed searching.md
var Searching string
