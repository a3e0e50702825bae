package main

import (
	"encoding/json"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/weirlog/weir/deploy/bench/internal/soak"
	"github.com/weirlog/weir/deploy/bench/internal/subject"
	"github.com/weirlog/weir/deploy/docs/docstest"
	"github.com/weirlog/weir/shared/testenv"
	"github.com/weirlog/weir/shared/testenv/postgrestest"
)

// The page's benchmark command measures something of every kind.
func TestThePageIsFollowed(t *testing.T) {
	t.Parallel()
	run := exec.CommandContext(t.Context(), "sh", "-c", docstest.BlocksOf(t, "size.md", "How large an installation has to be")[0])
	run.Dir, run.Env = "../..", append(os.Environ(), "ARGS=--broker=embedded --short")
	out, err := run.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, row := range []string{
		"entries/s accepted", "CPU per batch", "entries/s for each core", "naive server", "context switches", "bytes of PostgreSQL's log",
		"until the group shows it", "until the live tail shows it", "At rest Weir",
	} {
		if !strings.Contains(string(out), row) {
			t.Errorf("it has no row %q:\n%s", row, out)
		}
	}
}

// Every kind of request is measured at the front door.
func TestFrontDoor(t *testing.T) {
	t.Parallel()
	program := filepath.Join(t.TempDir(), "bench")
	for _, command := range [][]string{{"go", "build", "-o", program, "."}, {program, "front", "--short", "--embedded"}} {
		out, err := exec.CommandContext(t.Context(), command[0], command[1:]...).CombinedOutput()
		if err != nil {
			t.Fatalf("%q: %v\n%s", command, err, out)
		}
		if command[0] == "go" {
			continue
		}
		for _, row := range []string{"100 entries ", "half as many", "the same as OTLP", "1 entry ", "429", "naive server", "of what they cost the naive server", "as OTLP they cost"} {
			if !strings.Contains(string(out), row) {
				t.Errorf("it has no row %q:\n%s", row, out)
			}
		}
	}
}

// After four months nothing grows.
func TestSoak(t *testing.T) {
	t.Parallel()
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

// The measured batch has as many errors as it says, and no two are alike.
// That entries are legal is tested beside their generator.
func TestBody(t *testing.T) {
	b, at := subject.NewBody(subject.EntriesPerBatch, 1), time.Now()
	first := string(b.Text)
	b.Fill(at)
	var batch struct {
		Logs []struct{ Error *struct{ Type string } }
	}
	if err := json.Unmarshal(b.Text, &batch); err != nil || len(batch.Logs) != subject.EntriesPerBatch || first == string(b.Text) {
		t.Fatalf("%d entries, %v", len(batch.Logs), err)
	}
	errors := int64(0)
	for _, entry := range batch.Logs {
		if entry.Error != nil {
			errors++
		}
	}
	if errors != b.Errors || errors == 0 {
		t.Errorf("%d errors, %d by its own account", errors, b.Errors)
	}
}
