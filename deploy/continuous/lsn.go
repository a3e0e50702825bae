package continuous

import (
	"fmt"
	"strconv"
	"strings"
)

// An LSN is a position in the write-ahead log.
type LSN uint64

// UnmarshalText reads PostgreSQL's form, such as 1/6B374D48.
func (l *LSN) UnmarshalText(text []byte) error {
	high, low, found := strings.Cut(string(text), "/")
	h, err := strconv.ParseUint(high, 16, 32)
	if err != nil || !found {
		return fmt.Errorf("%q is no position in the write-ahead log", text)
	}
	lo, err := strconv.ParseUint(low, 16, 32)
	*l = LSN(h<<32 | lo)
	return err
}

// MarshalText writes that form.
func (l LSN) MarshalText() ([]byte, error) { return []byte(l.String()), nil }

func (l LSN) String() string { return fmt.Sprintf("%X/%X", uint64(l)>>32, uint64(l)&0xFFFFFFFF) }

// A segment is one file of the log: its timeline, and its number.
type segment struct {
	timeline uint32
	number   uint64
}

// segmentName has a file's timeline and number in 24 hexadecimal digits.
const segmentName = 24

// segmentOf reads the name of a file; size is that of a segment.
func segmentOf(name string, size uint64) (s segment, ok bool) {
	if len(name) != segmentName {
		return s, false
	}
	timeline, err := strconv.ParseUint(name[:8], 16, 32)
	high, err2 := strconv.ParseUint(name[8:16], 16, 32)
	low, err3 := strconv.ParseUint(name[16:], 16, 32)
	if err != nil || err2 != nil || err3 != nil {
		return s, false
	}
	return segment{uint32(timeline), high*perID(size) + low}, true
}

func (s segment) name(size uint64) string {
	return fmt.Sprintf("%08X%08X%08X", s.timeline, s.number/perID(size), s.number%perID(size))
}

// perID is how many segments share the middle digits of their names.
func perID(size uint64) uint64 { return 1 << 32 / size }

func (l LSN) segment(size uint64) uint64 { return uint64(l) / size }
