package transaction

import (
	"context"
	"errors"
	"log/slog"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/shared/bus"
)

// answers is a mover with commits of unknown outcome; Moved gives its
// answers in turn.
type answers struct {
	moves []error // nil: the positions have moved
	done  bool
}

var errNotMoved = errors.New("not moved")

func (m *answers) Move(context.Context, pgx.Tx) error { return nil }
func (m *answers) Committed()                         { m.done = true }
func (m *answers) Moved(context.Context) (bool, error) {
	err := m.moves[0]
	m.moves = m.moves[1:]
	if errors.Is(err, errNotMoved) {
		return false, nil
	}
	return err == nil, err
}

// Before a lane gives up, it asks whether an attempt was committed, and
// notes it if so.
func TestGivingUpALaneAsksFirst(t *testing.T) {
	r := &Runner{Logger: slog.New(slog.DiscardHandler)}
	failed, silent := errors.New("the effect failed"), errors.New("the database does not answer")
	for name, c := range map[string]struct {
		moves []error
		want  error
		done  bool
	}{
		"its answer was lost": {[]error{nil}, nil, true}, "none was": {[]error{errNotMoved}, failed, false},
		"the database comes back": {[]error{silent, silent, nil}, nil, true}, "another has the partition": {[]error{silent, bus.ErrFenced}, bus.ErrFenced, false},
	} {
		t.Run(name, func(t *testing.T) {
			m := &answers{moves: c.moves}
			err := r.giveUp(t.Context(), m, failed)
			var transient *TransientError
			if errors.As(err, &transient) {
				err = transient.err
			}
			if !errors.Is(err, c.want) || m.done != c.done || len(m.moves) > 0 {
				t.Errorf("error %v, noted %v, %d answers not asked for", err, m.done, len(m.moves))
			}
		})
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := r.giveUp(ctx, &answers{moves: []error{silent}}, failed); !errors.Is(err, context.Canceled) {
		t.Errorf("at its end it returns %v", err)
	}
}
