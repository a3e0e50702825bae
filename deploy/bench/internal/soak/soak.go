package soak

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"
)

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

// Short is five months in steps of five days, for tests.
func Short() Config {
	return Config{
		Days: 150, Step: 5, Month: 30, FlatFrom: 120,
		Kept: Kept{Tiers: [4]int{7, 10, 20, 20}, TransfersMonths: 3, BooksMonths: 3, AuditDays: 30, ParkedDays: 30, DeletionsMonths: 3},
	}
}

// Run lets the days pass, and returns the measurements at the end
// of each month.
func Run(ctx context.Context, config Config, progress io.Writer) (report Report, err error) {
	r := &run{Config: config, clock: &clock{}, report: Report{FlatFrom: config.FlatFrom}}
	if r.receiver, err = startReceiver(); err != nil {
		return report, err
	}
	defer func() { err = errors.Join(err, r.receiver.stop()) }()
	if err := r.start(ctx); err != nil {
		return report, err
	}
	defer func() { err = errors.Join(err, r.stop()) }()
	if r.tenants, err = newTenants(ctx, r.api, r.operator(), r.receiver.url); err != nil {
		return report, err
	}
	for r.day = 0; r.day < config.Days; r.day += config.Step {
		if err := r.pass(ctx); err != nil {
			return report, fmt.Errorf("day %d: %w", r.day, err)
		}
		if next := r.day + config.Step; next%config.Month == 0 {
			fmt.Fprintf(progress, "  day %d: %d records accepted\n", next, r.accepted)
			if err := r.endMonth(ctx, next); err != nil {
				return report, fmt.Errorf("day %d: %w", next, err)
			}
		}
	}
	return r.report, nil
}

// A run is one life of an installation.
type run struct {
	Config
	installation

	clock    *clock
	receiver *receiver
	tenants  []*tenant
	visitors visitors
	day      int
	accepted int64 // records of weir.logs.v1
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
	for _, t := range r.tenants {
		if err := r.passOf(ctx, t); err != nil {
			return err
		}
	}
	if err := r.awaitApplied(ctx, r.accepted); err != nil {
		return err
	}
	r.clock.skip(time.Duration(r.Step) * day)
	return errors.Join(r.app.Prune(ctx), r.broker.Retain(ctx))
}

// passOf is a tenant's day.
func (r *run) passOf(ctx context.Context, t *tenant) error {
	if err := t.end(ctx, r.api, r.day); err != nil || t.deleted {
		return err
	}
	if err := r.changeTier(ctx, t); err != nil {
		return err
	}
	sent, err := t.live(ctx, r.api, r.clock.Now(), r.day, r.Month)
	r.accepted += sent
	return errors.Join(err, t.visit(ctx, r.console))
}

// beginMonth does what happens once a month beside the tenants' work.
func (r *run) beginMonth(ctx context.Context, month int) error {
	if err := r.changeVisitors(ctx, month); err != nil {
		return err
	}
	accepted, err := r.exceedBudget(ctx)
	r.accepted += accepted
	return errors.Join(err, r.publishMisfits(ctx, r.tenants[1]), r.console.askForPasskey(ctx))
}

// endMonth restarts everything, as operators sometimes do, and measures.
func (r *run) endMonth(ctx context.Context, passed int) error {
	if err := errors.Join(r.stop(), r.start(ctx)); err != nil {
		return err
	}
	if err := errors.Join(r.awaitSealed(ctx, r.clock.Now().Add(-day/2)), r.awaitErased(ctx)); err != nil {
		return err
	}
	if err := errors.Join(r.app.Prune(ctx), r.noteWritten(ctx)); err != nil {
		return err
	}
	found, err := r.look(ctx)
	r.report.Looks = append(r.report.Looks, Look{Day: passed, Sizes: found})
	return err
}

func (r *run) start(ctx context.Context) error {
	return r.installation.start(ctx, r.Config, r.clock.Now)
}
