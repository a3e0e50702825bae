// Package recording lets Prometheus judge seconds of a fault as if they
// had lasted: it scrapes processes, first undisturbed and then during
// the fault, extends that to hours and minutes, and lets promtool name
// the alerts of the real rules that fire. It imports nothing of Weir,
// and only tests import it.
package recording
