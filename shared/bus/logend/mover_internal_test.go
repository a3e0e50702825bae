package logend

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/bus/bustest"
	"github.com/weirlog/weir/shared/bus/publisher"
	"github.com/weirlog/weir/shared/testenv"
	"github.com/weirlog/weir/shared/testenv/kafkatest"
)

// Records written during a move are found before anything is deleted.
func TestWritesDuringAMove(t *testing.T) {
	t.Parallel()
	brokers, topic := kafkatest.Shared(t), "test.logend.written"
	bustest.Ensure(t, brokers, topic, 1, nil)
	l, err := (&Mover{Brokers: brokers, Topic: topic}).open(t.Context(), 0)
	testenv.Must(t, err)
	defer l.conn.Close()
	bustest.Publish(t, bustest.NewPublisher(t, publisher.Config{Brokers: brokers}), topic, 0, 1, 1)
	if err := l.cut(t.Context(), 0); !errors.Is(err, ErrWritten) {
		t.Errorf("cut: %v", err)
	}
	if err := l.fill(t.Context(), 10); !errors.Is(err, ErrWritten) {
		t.Errorf("filled up: %v", err)
	}
	if _, err := l.Move(t.Context(), 0, 0, 10); !errors.Is(err, ErrWritten) {
		t.Errorf("moved, though it ended elsewhere: %v", err)
	}
}

// Wherever a copy is interrupted, the next run completes it, with
// each record once.
func TestCopyResumes(t *testing.T) {
	t.Parallel()
	const to, had = 300, 40
	for name, interrupted := range map[string]func(context.Context, *log) error{
		"while it fills up":  func(ctx context.Context, l *log) error { return l.fill(ctx, 100) },
		"filled up":          func(ctx context.Context, l *log) error { return l.fill(ctx, to) },
		"while it copies":    func(ctx context.Context, l *log) error { return errors.Join(l.fill(ctx, to), l.copy(ctx, 0, 15)) },
		"before it deletes":  func(ctx context.Context, l *log) error { return errors.Join(l.fill(ctx, to), l.copy(ctx, 0, had)) },
		"and it was written": func(ctx context.Context, l *log) error { return errors.Join(l.fill(ctx, to), l.copy(ctx, 3, had)) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := filling(t, bustest.TopicName("test.logend."+name), had)
			before := recordsOf(t, l, 0)
			testenv.Must(t, interrupted(t.Context(), l))
			done, err := l.Move(t.Context(), 0, l.end, to)
			if name == "and it was written" {
				if !errors.Is(err, ErrWritten) {
					t.Errorf("what follows is no copy: %+v, %v", done, err)
				}
				return
			}
			if after := recordsOf(t, l, 0); err != nil || done.To != to || !slices.Equal(before, after) {
				t.Errorf("%+v, %v: %d records of %d", done, err, len(after), had)
			}
		})
	}
}

// A copy directly behind the log is found, too.
func TestCopyResumesInALongerLog(t *testing.T) {
	t.Parallel()
	l := filling(t, "test.logend.longer", 40)
	before := recordsOf(t, l, 0)
	testenv.Must(t, errors.Join(l.fill(t.Context(), 41), l.copy(t.Context(), 0, 7)))
	done, err := l.Move(t.Context(), 0, l.end, 20)
	if after := recordsOf(t, l, 0); err != nil || done.To != 41 || !slices.Equal(before, after) {
		t.Errorf("%+v, %v: %d records of %d", done, err, len(after), len(before))
	}
}

// A log that lost its end keeps what is left, and goes on behind what it
// lost. An interruption is seen, and the next run fills the rest.
func TestFill(t *testing.T) {
	t.Parallel()
	l := filling(t, "test.logend.filled", 40)
	before := recordsOf(t, l, 0)
	if filled, err := l.Filled(t.Context(), 0, l.end); err != nil || filled {
		t.Errorf("before: %t, %v", filled, err)
	}
	if err := l.Fill(t.Context(), 0, l.end-1, 100); !errors.Is(err, ErrWritten) {
		t.Errorf("it ends elsewhere: %v", err)
	}
	testenv.Must(t, l.fill(t.Context(), 90))
	if filled, err := l.Filled(t.Context(), 0, l.end); err != nil || !filled {
		t.Errorf("interrupted: %t, %v", filled, err)
	}
	testenv.Must(t, l.Fill(t.Context(), 0, l.end, 100))
	bounds, err := l.bounds(t.Context())
	if after := recordsOf(t, l, 0); err != nil || bounds.Start != 0 || bounds.End != 100 || len(after) != 100 || !slices.Equal(before, after[:40]) {
		t.Errorf("%+v, %v: %d records", bounds, err, len(after))
	}
}

func filling(t *testing.T, topic string, records int) *log {
	t.Helper()
	brokers := kafkatest.Shared(t)
	bustest.Ensure(t, brokers, topic, 1, nil)
	bustest.Publish(t, bustest.NewPublisher(t, publisher.Config{Brokers: brokers}), topic, 0, records, 4)
	l, err := (&Mover{Brokers: brokers, Topic: topic}).open(t.Context(), 0)
	testenv.Must(t, err)
	t.Cleanup(func() { l.conn.Close() })
	return l
}

func recordsOf(t *testing.T, l *log, from int64) (found []string) {
	t.Helper()
	bounds, err := l.bounds(t.Context())
	testenv.Must(t, err)
	_, err = l.reader().Read(t.Context(), 0, from, bounds.End, func(r bus.Record) {
		found = append(found, string(r.Key)+" "+string(r.Value)+" "+r.Header(bus.HeaderID))
	})
	testenv.Must(t, err)
	return found
}
