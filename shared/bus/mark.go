package bus

import (
	"encoding/binary"
	"hash/crc32"
	"time"
)

// A Mark identifies a record: a log that was shortened and has grown
// since has another one at its offset.
type Mark struct {
	Offset int64
	Time   time.Time
	Sum    uint32 // CRC-32C of the time, the key, the headers, and the size of the value
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Mark returns the record's mark. It reads no value, which may be
// large: among the headers is the record's id.
func (r Record) Mark() Mark {
	var fixed [16]byte
	binary.BigEndian.PutUint64(fixed[:], uint64(r.Time.UnixMilli())) //nolint:gosec // any number
	binary.BigEndian.PutUint64(fixed[8:], uint64(len(r.Value)))      //nolint:gosec // a size
	sum := crc32.Update(crc32.Checksum(fixed[:], castagnoli), castagnoli, r.Key)
	for i := range r.Headers {
		sum = crc32.Update(sum, castagnoli, r.Headers[i].Value)
	}
	return Mark{Offset: r.Offset, Time: r.Time, Sum: sum}
}
