package bus

import (
	"context"
	"fmt"
	"time"

	"github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/bus/logrange"
	"github.com/weirlog/weir/shared/contract/calendar"
)

// replayReadSize is how many records of a partition are read together.
const replayReadSize = 2_500

// A replayedLog is a partition of the log that is read again, some entries ahead.
type replayedLog struct {
	reader    *logrange.Reader
	partition int
	start     int64 // offset of the first record there is
	read, end int64 // offsets: read through, and where to stop
	ahead     []entry
	accepted  time.Time // when the next entry was, or an earlier one
	skipped   int       // records that can't be applied
	lost      bool      // it has fillers: what they stand for was booked, and is gone
}

// fill reads ahead and reports whether there is a next entry below an offset.
func (l *replayedLog) fill(ctx context.Context, through int64) (found bool, err error) {
	for len(l.ahead) == 0 && l.read < min(through, l.end) {
		next := min(l.read+replayReadSize, l.end)
		if _, err := l.reader.Read(ctx, l.partition, l.read, next, l.keep); err != nil {
			return false, err
		}
		if l.lost {
			return false, fmt.Errorf("%w: partition %d has fillers before offset %d: weir resume has put them where it had lost its end", ErrLost, l.partition, next)
		}
		l.read = next
		l.updateAccepted()
	}
	return len(l.ahead) > 0 && l.ahead[0].charge.Cause.Offset < through, nil
}

func (l *replayedLog) keep(record bus.Record) {
	if record.IsFiller() {
		l.lost = true
		return
	}
	read, err := parseEntry(record)
	if err != nil {
		l.skipped++
		return
	}
	l.ahead = append(l.ahead, read)
}

func (l *replayedLog) shift() entry {
	first := l.ahead[0]
	l.ahead = l.ahead[1:]
	l.updateAccepted()
	return first
}

// updateAccepted sets when the next entry was accepted. It never goes
// back: a partition keeps its order.
func (l *replayedLog) updateAccepted() {
	if len(l.ahead) > 0 {
		l.accepted = calendar.Later(l.accepted, l.ahead[0].logs.Time)
	}
}
