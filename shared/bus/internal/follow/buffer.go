package follow

import (
	"context"
	"time"

	"github.com/weirlog/weir/shared/bus/internal/budget"
	"github.com/weirlog/weir/shared/bus/internal/clock"
)

// A Buffer is what was fetched of the log and nobody has taken yet.
type Buffer struct {
	Chunks chan Chunk // to wait at; what comes out is given to Hold
	room   *budget.Budget
	held   *Chunk    // out of chunks, with records left
	newest time.Time // when the last record taken out was written
}

// NewBuffer holds at most so many bytes.
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

// Ready returns the next chunk without waiting; nil: none has come.
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

// Hold takes a chunk that came out of Chunks.
func (in *Buffer) Hold(c Chunk) *Chunk {
	in.held = &c
	return in.held
}

// Took removes the first n records of the held chunk, and reports
// whether it is used up; its room is free then.
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

// Late reports whether more has come that is older than the given age.
func (in *Buffer) Late(age time.Duration) bool {
	return (in.held != nil || len(in.Chunks) > 0) && clock.Now().Sub(in.newest) > age
}
