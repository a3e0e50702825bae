package ingest

// Sizes count UTF-8 bytes; a limit is inclusive.
const (
	kb = 1 << 10

	// MaxDepth is how deep arrays and objects may nest, the
	// body's own object being the first level.
	MaxDepth = 128
)

// Limits is how large a body's parts may be.
type Limits struct {
	Entries  int // entries in one request
	Message  int // bytes of the decoded message of an entry
	Metadata int // bytes of the compact JSON of an entry's metadata
	Entry    int // bytes of the compact JSON of a whole entry
	Faults   int // how many faults are listed; the others are only counted
}

// DefaultLimits are the limits that the interface promises.
func DefaultLimits() Limits {
	return Limits{Entries: 1000, Message: 10 * kb, Metadata: 100 * kb, Entry: 512 * kb, Faults: 100}
}
