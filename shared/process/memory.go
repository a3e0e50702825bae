package process

import (
	"os"
	"runtime/debug"
)

// Memory is the setting of how much memory a process keeps to. It is soft: what has to be there is there, and beyond the limit the
// garbage collector works harder. What a module takes from the system by itself, as ingest does for large bodies, is counted by
// that module and comes on top.
type Memory struct {
	MemoryLimit int64 `help:"Bytes of memory that the garbage collector keeps to, large bodies apart. 0: no limit. GOMEMLIMIT goes before it." env:"WEIR_MEMORY_LIMIT" default:"335544320"`
}

// Apply sets the limit of this process. Where GOMEMLIMIT is set, the runtime has taken that already.
func (m Memory) Apply() {
	if _, given := os.LookupEnv("GOMEMLIMIT"); m.MemoryLimit > 0 && !given {
		debug.SetMemoryLimit(m.MemoryLimit)
	}
}
