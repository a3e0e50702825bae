package process

import (
	"os"
	"runtime/debug"
)

// gcPercent is by how much the heap may grow between two collections. Most of what Weir allocates ends with its request, and the memory
// limit bounds the heap: collecting less often leaves more of the processor to requests, 13 % on two cores at full rate.
const gcPercent = 300

// Memory is the setting of how much memory a process keeps to. It is soft: what has to be there is there, and beyond the limit the
// garbage collector works harder. What a module takes from the system by itself, as ingest does for large bodies, is counted by
// that module and comes on top.
type Memory struct {
	MemoryLimit int64 `help:"Bytes of memory that the garbage collector keeps to, large bodies apart. 0: no limit. GOMEMLIMIT goes before it." env:"WEIR_MEMORY_LIMIT" default:"335544320"`
}

// Apply sets the limit of this process, and below it a collector that runs less often. Where GOMEMLIMIT or GOGC is set, the runtime has
// taken that already.
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
