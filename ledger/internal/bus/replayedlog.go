package bus

import (
	"context"
	"time"

	"github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/bus/logrange"
	"github.com/weirlog/weir/shared/contract/calendar"
)

// replayedChunk is how much of a partition is read at once.
const replayedChunk = 2_500

// A replayedLog is a partition of the log that is read again, some entries ahead.
type replayedLog struct {
	reader    *logrange.Reader
	partition int
	read, end int64 // what was read ahead, and is to be
	ahead     []entry
	accepted  time.Time // when the first of these was, or one before it
	passed    int       // records that can't be applied
}

// fill reports whether an entry below an offset is next, and reads it.
func (l *replayedLog) fill(ctx context.Context, through int64) (found bool, err error) {
	for len(l.ahead) == 0 && l.read < min(through, l.end) {
		next := min(l.read+replayedChunk, l.end)
		if _, err := l.reader.Read(ctx, l.partition, l.read, next, l.keep); err != nil {
			return false, err
		}
		l.read = next
		l.look()
	}
	return len(l.ahead) > 0 && l.ahead[0].charge.Cause.Offset < through, nil
}

func (l *replayedLog) keep(record bus.Record) {
	read, err := parseEntry(record)
	if err != nil {
		l.passed++
		return
	}
	l.ahead = append(l.ahead, read)
}

func (l *replayedLog) shift() entry {
	first := l.ahead[0]
	l.ahead = l.ahead[1:]
	l.look()
	return first
}

// look notes when the next entry was accepted. What lies behind one of later
// counts as later: a partition has its order.
func (l *replayedLog) look() {
	if len(l.ahead) > 0 {
		l.accepted = calendar.Later(l.accepted, l.ahead[0].logs.Time)
	}
}
