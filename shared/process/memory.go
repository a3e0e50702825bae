package process

import (
	"os"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

// The heap's growth between two collections, in percent. Most allocations
// end with their request, and the memory limit bounds the heap: under load,
// fewer collections leave 13 % more of two cores to requests. A process at
// rest keeps little more than it uses.
const (
	percentUnderLoad = 300
	percentAtRest    = 40
)

// At rest, a process allocates less than restBytes in watchInterval.
const (
	watchInterval = 10 * time.Second
	restBytes     = 20 << 20
)

// Memory sets the process's memory limit. It is soft: beyond it the
// garbage collector works harder. Memory outside of the heap, as
// ingest's for large bodies, comes on top.
type Memory struct {
	MemoryLimit int64 `help:"Bytes of memory that the garbage collector keeps to, large bodies apart. 0: no limit. GOMEMLIMIT goes before it." env:"WEIR_MEMORY_LIMIT" default:"201326592"`
}

// Apply sets the process's memory limit, and how often it collects garbage
// below it, by its load, unless GOMEMLIMIT or GOGC sets them.
func (m Memory) Apply() {
	if m.MemoryLimit <= 0 || given("GOMEMLIMIT") {
		return
	}
	debug.SetMemoryLimit(m.MemoryLimit)
	if !given("GOGC") {
		debug.SetGCPercent(percentUnderLoad)
		go followLoad()
	}
}

// A collector adapts garbage collection to the load.
type collector struct {
	allocated uint64 // bytes, so far
	atRest    bool
}

// followLoad adapts garbage collection until the process ends.
func followLoad() {
	c := collector{allocated: allocated()}
	for range time.Tick(watchInterval) {
		c.follow(allocated())
	}
}

// follow is told each watchInterval how many bytes have been allocated so
// far. At the end of a load, memory that is free goes back to the system.
func (c *collector) follow(allocated uint64) {
	rests := allocated-c.allocated < restBytes
	c.allocated = allocated
	if rests == c.atRest {
		return
	}
	c.atRest = rests
	if !rests {
		debug.SetGCPercent(percentUnderLoad)
		return
	}
	debug.SetGCPercent(percentAtRest)
	debug.FreeOSMemory()
}

// allocated returns the bytes that the process has allocated on its heap so far.
func allocated() uint64 {
	sample := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}

func given(variable string) bool {
	_, ok := os.LookupEnv(variable)
	return ok
}
