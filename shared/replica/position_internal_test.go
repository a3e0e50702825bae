package replica

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
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
