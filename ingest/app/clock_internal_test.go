package app

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/weirlog/weir/ingest/internal/postgres"
	"github.com/weirlog/weir/shared/identity"
	"github.com/weirlog/weir/shared/pg/pgtest"
	"github.com/weirlog/weir/shared/service"
	"github.com/weirlog/weir/shared/testenv/wallclock"
)

// A process with a clock a month ahead accepts nothing, and so opens no
// period, until the clock is right. One slightly ahead, or without a
// database, accepts.
func TestAClockThatRunsAheadAcceptsNothing(t *testing.T) {
	pool := pgtest.Open(t, postgres.Schema, postgres.Migrations()...)
	ahead := 30 * 24 * time.Hour
	machine := func() time.Time { return time.Now().Add(ahead) }
	a := &App{followed: &followed{credentials: identity.NewCredentials(time.Now)}, spending: &spending{}, clockWatch: &clockWatch{pool: pool, machine: machine, logger: slog.New(slog.DiscardHandler)}}
	a.spending.read.Store(true)
	a.spending.counted.Store(true)
	a.base, a.logWatch = &service.Base{}, soundLog(t)
	if err := a.Ready(); err == nil {
		t.Error("it is ready before the clocks were compared")
	}
	for _, c := range []struct {
		ahead   time.Duration
		accepts bool
	}{{ahead, false}, {30 * time.Minute, true}, {61 * time.Minute, false}, {-ahead, true}, {ahead, false}} {
		ahead = c.ahead
		a.clockWatch.compare(t.Context())
		if err := a.Ready(); (err == nil) != c.accepts || err != nil && !strings.Contains(err.Error(), "ahead of the database's") {
			t.Errorf("%v ahead: %v", c.ahead, err)
		}
	}
	pool.Close()
	a.clockWatch.compare(t.Context())
	if a.Ready() == nil {
		t.Error("a clock that is ahead is believed once the database is away")
	}
	a.clockWatch = &clockWatch{pool: pool, machine: machine, logger: a.clockWatch.logger}
	a.clockWatch.compare(t.Context())
	if err := a.Ready(); err != nil {
		t.Errorf("without a database: %v", err)
	}
}

// A clock that was set back is warned of once, by how much; one that only
// goes on, or was set forward, is not.
func TestAClockSetBackIsNoticed(t *testing.T) {
	var log bytes.Buffer
	w := &clockWatch{logger: slog.New(slog.NewTextHandler(&log, nil))}
	now := time.Now()
	for i, step := range []struct {
		set  time.Duration
		want string
	}{{0, ""}, {0, ""}, {-10 * time.Minute, "by=10m0s"}, {-10 * time.Minute, ""}, {time.Hour, ""}, {0, "by=1h0m0s"}} {
		log.Reset()
		now = now.Add(clockInterval)
		w.notice(wallclock.Set(now, step.set))
		if warned := strings.Contains(log.String(), "level=WARN"); warned != (step.want != "") || !strings.Contains(log.String(), step.want) {
			t.Errorf("reading %d: %q, want %q", i+1, log.String(), step.want)
		}
	}
}
