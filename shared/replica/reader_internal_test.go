package replica

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/prometheus/client_golang/prometheus"
)

// lags is a standby that has replayed nothing, and whose time ends
// before its second answer.
type lags struct {
	end   context.CancelFunc
	asked int
}

func (l *lags) QueryRow(context.Context, string, ...any) pgx.Row {
	if l.asked++; l.asked > 1 {
		l.end()
	}
	return l
}

func (l *lags) Scan(into ...any) error {
	if l.asked > 1 {
		return context.Canceled
	}
	*into[2].(*string), *into[4].(*bool) = "7", true
	return nil
}

func TestBehindWhileItAsks(t *testing.T) {
	ctx, end := context.WithCancel(t.Context())
	defer end()
	if err := (position{server: "7"}).await(ctx, &lags{end: end}); !errors.Is(err, errBehind) {
		t.Errorf("got %v, want %v", err, errBehind)
	}
}

func TestUsable(t *testing.T) {
	at := position{server: "7", timeline: 2}
	for want, s := range map[string]state{
		"":                              {server: "7", timeline: 2, standby: true},
		"bypasses":                      {server: "7", timeline: 2, standby: true, bypasses: true},
		"no standby of":                 {server: "8", timeline: 2, standby: true},
		"no standby of the database":    {server: "7", timeline: 2},
		"timeline 1, the database on 2": {server: "7", timeline: 1, standby: true},
	} {
		err := at.usable(s)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: got %v, want %q", s, err, want)
		}
	}
}

// When a rest ends, one read tries the replica. The others do without
// until it is answered, or until another rest is over.
func TestOneReadTriesTheReplica(t *testing.T) {
	now := time.Unix(1, 0)
	h := newHealth(time.Second, Options{Clock: func() time.Time { return now }, Metrics: prometheus.NewRegistry(), Logger: slog.New(slog.DiscardHandler)})
	asked := func(want ...bool) {
		t.Helper()
		for i, ask := range want {
			if h.rests() == ask {
				t.Errorf("read %d asks the replica: %t", i, !ask)
			}
		}
	}
	asked(true, true)
	h.failed(t.Context(), errBehind)
	asked(false, false)
	now = now.Add(time.Second)
	asked(true, false, false)
	now = now.Add(time.Second)
	asked(true, false)
	gone, leave := context.WithCancel(t.Context())
	leave()
	h.failed(gone, context.Canceled)
	asked(true, false)
	h.answered() // one that had begun before
	asked(false)
	h.reached()
	asked(true, true)
	h.failed(gone, context.Canceled)
	asked(true, true)
}
