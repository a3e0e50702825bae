package ingest

import "time"

// StretchOffsets is the length of a stretch: what is read twice at a start, at most, of each
// partition.
const StretchOffsets = 1 << 15

// A Stretch is a run of offsets of a partition, numbered from its beginning: from StretchOffsets *
// Number on.
type Stretch struct {
	Partition int
	Number    int64
}

// From is the first offset of a stretch.
func (s Stretch) From() int64 { return s.Number * StretchOffsets }

// To is the offset behind it.
func (s Stretch) To() int64 { return s.From() + StretchOffsets }

// StretchAt is the first stretch of a partition that begins at an offset or behind it.
func StretchAt(partition int, offset int64) Stretch {
	return Stretch{Partition: partition, Number: (offset + StretchOffsets - 1) / StretchOffsets}
}

// Next is the stretch behind s.
func (s Stretch) Next() Stretch { return Stretch{s.Partition, s.Number + 1} }

// A Charge is the cost of an organization's requests accepted in one period, the last at a
// position.
type Charge struct {
	Organization string
	At           time.Time
	Bytes        int64
	Partition    int
	Offset       int64
}
