package soak

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"go.yaml.in/yaml/v4"
	"golang.org/x/sync/errgroup"

	"github.com/weirlog/weir/deploy/bench/internal/subject"
)

// Command lets a year pass.
type Command struct {
	Short bool `help:"Five months in steps of half a month, as the tests do."`
}

// Help is called by kong.
func (Command) Help() string {
	return `All of Weir lives through a year by a clock of its own, in minutes; life.yaml says who does what. Retentions are shorter than the
defaults, so that every bound is reached. The table has a column for each month: rows and size of every table, size of every topic and
file, memory. It fails where something still grows after the third of the longest retentions, and where nothing has come into a table
that should not stay empty.`
}

// Run lets the time pass and prints a table.
func (c *Command) Run(ctx context.Context, logger *slog.Logger) error {
	config := Year()
	if c.Short {
		config = Short()
	}
	config.Logger = slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError})) // thousands of sign-ins fail on purpose
	var report Report
	subject.Say("Letting %d days pass:", config.Days)
	err := subject.In(ctx, logger, func(dir, database string) (err error) {
		config.Dir, config.DatabaseURL = dir, database
		report, err = Run(ctx, config, os.Stdout)
		return err
	})
	if err != nil {
		return err
	}
	if err := report.Write(os.Stdout); err != nil {
		return err
	}
	if grown := report.Grown(); len(grown) > 0 {
		return fmt.Errorf("what still grows: %s", strings.Join(grown, "; "))
	}
	if untouched := report.Untouched(); len(untouched) > 0 {
		return fmt.Errorf("whether they stay empty is not what was expected of %s: see deploy/bench/internal/soak/report.go", strings.Join(untouched, ", "))
	}
	subject.Say("Nothing has grown since day %d.", config.FlatFrom)
	return nil
}

const day = 24 * time.Hour

// Config is how long Weir runs.
type Config struct {
	Dir         string // for everything that is written; it must be empty
	DatabaseURL string // of an empty database
	Days        int    // that pass
	Step        int    // days that pass at once
	Month       int    // days between two looks, and two starts
	FlatFrom    int    // the day from which on nothing grows any more: later than the longest bound
	Kept        Kept
	Logger      *slog.Logger
}

// Kept are the configurable retentions. All others have their defaults.
type Kept struct {
	Tiers           [4]int // days for indie, bootstrapper, compliance and scale
	TransfersMonths int
	BooksMonths     int
	AuditDays       int
	ParkedDays      int
	DeletionsMonths int
}

// Year is a year in which every bound is reached three times. Its
// longest retentions are shorter than the defaults, for which a year
// would be too short.
func Year() Config {
	return Config{
		Days: 360, Step: 1, Month: 30, FlatFrom: 270,
		Kept: Kept{Tiers: [4]int{7, 30, 60, 60}, TransfersMonths: 3, BooksMonths: 3, AuditDays: 60, ParkedDays: 30, DeletionsMonths: 3},
	}
}

// Short is five months in steps of half a month, for tests.
func Short() Config {
	return Config{
		Days: 150, Step: 15, Month: 30, FlatFrom: 120,
		Kept: Kept{Tiers: [4]int{7, 10, 20, 20}, TransfersMonths: 3, BooksMonths: 3, AuditDays: 30, ParkedDays: 30, DeletionsMonths: 3},
	}
}

// Run lets the days pass, and returns the measurements at the end
// of each month.
func Run(ctx context.Context, config Config, progress io.Writer) (report Report, err error) {
	r := &run{Config: config, clock: &clock{}, report: Report{FlatFrom: config.FlatFrom}}
	receiver := startReceiver()
	defer receiver.Close()
	if err := yaml.Unmarshal(lifeText, &r.life); err != nil {
		return report, err
	}
	if err := r.start(ctx); err != nil {
		return report, err
	}
	defer func() { err = errors.Join(err, r.stop()) }()
	if err := r.found(ctx, receiver.URL); err != nil {
		return report, err
	}
	for r.day = 0; r.day < config.Days; r.day += config.Step {
		if err := r.pass(ctx); err != nil {
			return report, fmt.Errorf("day %d: %w", r.day, err)
		}
		if next := r.day + config.Step; next%config.Month == 0 {
			fmt.Fprintf(progress, "  day %d: %d records accepted\n", next, r.accepted.Load())
			if err := r.endMonth(ctx, next); err != nil {
				return report, fmt.Errorf("day %d: %w", next, err)
			}
		}
	}
	return r.report, nil
}

// startReceiver accepts what webhooks send, and fails at every tenth request.
func startReceiver() *httptest.Server {
	var requests atomic.Int64
	receiver := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if requests.Add(1)%10 == 0 {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}))
	receiver.Config.SetKeepAlivesEnabled(false) // so that what a start before has left open ends
	receiver.Start()
	return receiver
}

// A run is one life of an installation.
type run struct {
	Config
	installation

	life
	clock    *clock
	visitors known // of this month
	day      int
	accepted atomic.Int64 // records of weir.logs.v1
	signing  sync.Mutex   // one network signs in one at a time, else some are told to wait
	report   Report
}

// pass is one step, a day or several: what is sent is applied
// everywhere, then time passes, and expired data is removed.
func (r *run) pass(ctx context.Context) error {
	if r.day%r.Month == 0 {
		if err := r.beginMonth(ctx, r.day/r.Month); err != nil {
			return err
		}
	}
	var days errgroup.Group
	for _, t := range r.Tenants {
		if err := r.changeTier(ctx, t); err != nil {
			return err
		}
	}
	for _, t := range r.Tenants {
		days.Go(func() error { return r.passOf(ctx, t) })
	}
	if err := days.Wait(); err != nil {
		return err
	}
	if err := r.awaitApplied(ctx, r.accepted.Load()); err != nil {
		return err
	}
	r.clock.skip(time.Duration(r.Step) * day)
	return errors.Join(r.app.Prune(ctx), r.broker.Retain(ctx))
}

// beginMonth does what happens once a month beside the tenants' work.
func (r *run) beginMonth(ctx context.Context, month int) error {
	if err := r.changeVisitors(ctx, month); err != nil {
		return err
	}
	return errors.Join(r.exceedBudget(ctx), r.publishInvalidRecords(ctx, r.Tenants[1]), r.askForPasskey(ctx))
}

// endMonth restarts everything, as operators sometimes do, and measures.
func (r *run) endMonth(ctx context.Context, passed int) error {
	if err := errors.Join(r.stop(), r.start(ctx)); err != nil {
		return err
	}
	if err := r.awaitSealed(ctx, r.clock.Now().Add(-day/2)); err != nil {
		return err
	}
	if passed >= r.FlatFrom { // what is judged
		if err := r.awaitErased(ctx); err != nil {
			return err
		}
	}
	if err := errors.Join(r.app.Prune(ctx), r.noteWritten(ctx)); err != nil {
		return err
	}
	r.report.Begin(passed)
	return r.look(ctx)
}

func (r *run) start(ctx context.Context) error {
	return r.installation.start(ctx, r.Config, r.clock.Now)
}
