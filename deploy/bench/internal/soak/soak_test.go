package soak_test

import (
	"log/slog"
	"os"
	"strings"
	"testing"

	"github.com/weirlog/weir/deploy/bench/internal/soak"
	"github.com/weirlog/weir/shared/testenv"
	"github.com/weirlog/weir/shared/testenv/postgrestest"
)

// After four months nothing grows.
func TestShort(t *testing.T) {
	config := soak.Short()
	config.Dir, config.DatabaseURL = t.TempDir(), postgrestest.URL(t)
	config.Logger = slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError}))
	report, err := soak.Run(t.Context(), config, t.Output())
	testenv.Must(t, err)
	for _, grown := range report.Grown() {
		t.Error(grown)
	}
	for _, table := range report.Untouched() {
		t.Errorf("%s: whether it stays empty is not what was expected", table)
	}
	testenv.Must(t, report.Write(t.Output()))
	if n := len(report.Days); n != config.Days/config.Month {
		t.Errorf("%d looks", n)
	}
}

// Steady growth is found, even slow, and growth up to a bound is not.
func TestGrown(t *testing.T) {
	report := soak.Report{FlatFrom: 90}
	for month, n := range []int64{100, 900, 1000, 1010, 1020, 1015} {
		report.Begin(30 * (month + 1))
		report.Note(soak.Rows, "flat", n)
		report.Note(soak.Rows, "growing", int64(1000*(month+1)))
		report.Note(soak.Rows, "creeping", int64(100+month))
		report.Note(soak.Rows, "ledger.facts", int64(100+month))
	}
	if grown := report.Grown(); len(grown) != 2 || !strings.Contains(grown[0], "growing") || !strings.Contains(grown[1], "creeping") {
		t.Errorf("grown are %q", grown)
	}
}
