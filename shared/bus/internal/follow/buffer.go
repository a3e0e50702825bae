package follow

import (
	"context"
	"time"

	"github.com/weirlog/weir/shared/bus/internal/budget"
	"github.com/weirlog/weir/shared/bus/internal/clock"
)

// A Buffer holds fetched chunks of the log until they are consumed.
type Buffer struct {
	Chunks chan Chunk // to receive from; pass each chunk to Hold
	room   *budget.Budget
	held   *Chunk    // received, with records left
	newest time.Time // time of the last record taken out
}

// NewBuffer returns a buffer for at most so many bytes.
func NewBuffer(bytes int) *Buffer {
	return &Buffer{Chunks: make(chan Chunk, 64), room: budget.New(bytes)}
}

// Receive adds a chunk once there is room.
func (in *Buffer) Receive(ctx context.Context, c Chunk) error {
	if err := in.room.Take(ctx, c.Bytes+1); err != nil {
		return err
	}
	select {
	case in.Chunks <- c:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Ready returns the next chunk without waiting; nil: none.
func (in *Buffer) Ready() *Chunk {
	if in.held == nil {
		select {
		case c := <-in.Chunks:
			in.held = &c
		default:
		}
	}
	return in.held
}

// Hold takes a chunk received from Chunks.
func (in *Buffer) Hold(c Chunk) *Chunk {
	in.held = &c
	return in.held
}

// Took removes the first n records of the held chunk. It reports
// whether the chunk is used up and its room free.
func (in *Buffer) Took(n int) (usedUp bool) {
	c := in.held
	if n > 0 {
		in.newest = c.Records[n-1].Time
	}
	if c.Records = c.Records[n:]; len(c.Records) > 0 {
		return false
	}
	in.room.Give(c.Bytes + 1)
	in.held = nil
	return true
}

// Late reports whether the next records are older than the given age.
func (in *Buffer) Late(age time.Duration) bool {
	return (in.held != nil || len(in.Chunks) > 0) && clock.Now().Sub(in.newest) > age
}
