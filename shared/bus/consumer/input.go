package consumer

import (
	"context"
	"time"

	"github.com/weirlog/weir/shared/bus/internal/budget"
	"github.com/weirlog/weir/shared/bus/internal/clock"
	"github.com/weirlog/weir/shared/bus/internal/follow"
)

// input is what was fetched of the log and is in no transaction yet.
type input struct {
	chunks chan follow.Chunk
	room   *budget.Budget
	held   *follow.Chunk // out of chunks, with records left
	newest time.Time     // when the last record taken out was written
}

func newInput(bytes int) *input {
	return &input{chunks: make(chan follow.Chunk, 64), room: budget.New(bytes)}
}

// receive adds a chunk once there is room.
func (in *input) receive(ctx context.Context, c follow.Chunk) error {
	if err := in.room.Take(ctx, c.Bytes+1); err != nil {
		return err
	}
	select {
	case in.chunks <- c:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// ready returns the next chunk without waiting; nil: none has come.
func (in *input) ready() *follow.Chunk {
	if in.held == nil {
		select {
		case c := <-in.chunks:
			in.held = &c
		default:
		}
	}
	return in.held
}

func (in *input) hold(c follow.Chunk) *follow.Chunk {
	in.held = &c
	return in.held
}

// took removes the first n records of the held chunk, and reports
// whether it is used up; its room is free then.
func (in *input) took(n int) (usedUp bool) {
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

// late reports whether more has come that is older than the given age.
func (in *input) late(age time.Duration) bool {
	return (in.held != nil || len(in.chunks) > 0) && clock.Now().Sub(in.newest) > age
}
