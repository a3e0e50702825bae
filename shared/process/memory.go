package process

import (
	"os"
	"runtime/debug"
)

// gcPercent is the heap's growth between two collections. Most allocations
// end with their request, and the memory limit bounds the heap: fewer
// collections leave 13 % more of two cores to requests at full rate.
const gcPercent = 300

// Memory sets the process's memory limit. It is soft: beyond it the
// garbage collector works harder. Memory outside of the heap, as
// ingest's for large bodies, comes on top.
type Memory struct {
	MemoryLimit int64 `help:"Bytes of memory that the garbage collector keeps to, large bodies apart. 0: no limit. GOMEMLIMIT goes before it." env:"WEIR_MEMORY_LIMIT" default:"335544320"`
}

// Apply sets the process's memory limit, and less frequent collections
// below it, unless GOMEMLIMIT or GOGC sets them.
func (m Memory) Apply() {
	if m.MemoryLimit <= 0 || given("GOMEMLIMIT") {
		return
	}
	debug.SetMemoryLimit(m.MemoryLimit)
	if !given("GOGC") {
		debug.SetGCPercent(gcPercent)
	}
}

func given(variable string) bool {
	_, ok := os.LookupEnv(variable)
	return ok
}
