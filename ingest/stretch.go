package ingest

import "time"

// StretchOffsets is the length of a stretch: at most this is read twice
// at a start, at each end of a partition.
const StretchOffsets = 1 << 15

// A Stretch is a run of offsets of a partition, numbered from its
// beginning: from StretchOffsets * Number on.
type Stretch struct {
	Partition int
	Number    int64
}

// From is the first offset of a stretch.
func (s Stretch) From() int64 { return s.Number * StretchOffsets }

// To is the offset behind it.
func (s Stretch) To() int64 { return s.From() + StretchOffsets }

// StretchAt is the first stretch of a partition that begins at
// an offset or behind it.
func StretchAt(partition int, offset int64) Stretch {
	return Stretch{Partition: partition, Number: (offset + StretchOffsets - 1) / StretchOffsets}
}

// Run is a run of s alone.
func (s Stretch) Run() StretchRun { return StretchRun{s.Partition, s.Number, s.Number + 1} }

// A StretchRun is consecutive stretches of a partition that are summed up
// together, by their numbers: from First to before After.
type StretchRun struct {
	Partition    int
	First, After int64
}

// From is the first offset of a run.
func (r StretchRun) From() int64 { return r.First * StretchOffsets }

// To is the offset behind it.
func (r StretchRun) To() int64 { return r.After * StretchOffsets }

// Stretches is how many r has.
func (r StretchRun) Stretches() int64 { return r.After - r.First }

// FoldAt returns the index of the first of two adjacent runs with the
// fewest stretches together, so that no run grows beyond two shares of
// all; -1: no two are adjacent.
func FoldAt(runs []StretchRun) int {
	at, fewest := -1, int64(0)
	for i := 1; i < len(runs); i++ {
		stretches := runs[i-1].Stretches() + runs[i].Stretches()
		if runs[i-1].After == runs[i].First && (at < 0 || stretches < fewest) {
			at, fewest = i-1, stretches
		}
	}
	return at
}

// A Charge is the cost of an organization's requests accepted in
// one period, the last at a position.
type Charge struct {
	Organization string
	Project, Key string // empty in a sum
	At           time.Time
	Bytes        int64
	Partition    int
	Offset       int64
}
