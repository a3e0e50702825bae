// Package recording has Prometheus judge what is done to processes within
// seconds as if it had lasted: it scrapes what they show, first while nothing
// happens and then while something does, plays that for hours and for minutes,
// and has promtool say which alerts of the real rules that raises. It imports
// nothing of Weir, and only tests import it.
package recording
