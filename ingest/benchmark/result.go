package benchmark

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime/pprof"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/weirlog/weir/shared/measure"
)

// A store is one that is measured.
type store interface {
	name() string
	processes(ctx context.Context) []measure.Process // the store, and its database
	keep(ctx context.Context, requests []request) error
	settle(ctx context.Context) error // until what came in is merged
	rest(ctx context.Context) error   // what it would do by itself, not counted
	size(ctx context.Context) (all int64, parts string, err error)
	ask(ctx context.Context, a ask, measured measured) (answer, error)
}

// measured does what counts of an answer.
type measured func(do func() error) error

// writers store chunks at the same time, as replicas of ingest do.
const writers = 2

// Goals of the store alone, on two cores.
const (
	goalPerSecond = 300_000
	goalBytes     = 70
)

// A result is what was measured.
type result struct {
	Command
	sample sample
	stored []stored // by store
	asked  []asked  // by question
	differ []string // answers that are not the same
}

// stored is what storing the day took.
type stored struct {
	store     string
	perSecond float64
	cpu       []time.Duration // of a million entries: the store, its database
	making    time.Duration   // of a million entries: the part of it that made them
	bytes     float64         // of an entry, on disk
	parts     string
}

// asked is a question and how long its answers took, by store.
type asked struct {
	question question
	took     []*measure.Samples
	cpu      [][]time.Duration // of all answers: each store, its database

	processes [][]measure.Process
}

// measure adds an answer of a store.
func (a asked) measure(store int) measured {
	return func(do func() error) error {
		database := measure.CPU(a.processes[store][1:]...) // a look at all of its processes takes as long as an answer
		own := measure.CPU(a.processes[store][0])
		err := a.took[store].Time(do)
		a.cpu[store][0] += own(1)[0]
		a.cpu[store][1] += database(1)[0]
		return err
	}
}

// each is the CPU of an answer of a store, on a machine that others use as well.
func (a asked) each(store int) []time.Duration {
	all := slices.Clone(a.cpu[store])
	for i := range all {
		all[i] /= time.Duration(max(1, a.took[store].Count()))
	}
	return all
}

// store stores the day.
func (r *result) store(ctx context.Context, s store) (err error) {
	stop, err := r.startProfile("storing in " + s.name())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stop()) }()
	d, begun, cpu := newDay(r.Entries), time.Now(), measure.CPU(s.processes(ctx)...)
	workers, working := errgroup.WithContext(ctx)
	for range writers {
		workers.Go(func() error {
			for {
				requests := d.chunk()
				if len(requests) == 0 {
					return nil
				}
				if err := s.keep(working, requests); err != nil {
					return err
				}
			}
		})
	}
	if err := workers.Wait(); err != nil {
		return err
	}
	took := time.Since(begun)
	if err := s.settle(ctx); err != nil {
		return err
	}
	millions := float64(r.Entries) / 1e6
	found := stored{store: s.name(), perSecond: float64(r.Entries) / took.Seconds(), cpu: cpu(millions), making: time.Duration(float64(d.took) / millions)}
	if err := s.rest(ctx); err != nil {
		return err
	}
	size, parts, err := s.size(ctx)
	found.bytes, found.parts, r.sample = float64(size)/float64(r.Entries), parts, d.sample
	r.stored = append(r.stored, found)
	return err
}

// ask asks every question of every store, with the same values.
func (r *result) ask(ctx context.Context, out io.Writer, stores []store) error {
	for _, q := range questions {
		if !r.only.MatchString(q.name) {
			continue
		}
		fmt.Fprintln(out, "asking for:", q.name)
		stop, err := r.startProfile(q.name)
		if err != nil {
			return err
		}
		a, err := r.repeat(ctx, stores, q)
		if err := errors.Join(err, stop()); err != nil {
			return fmt.Errorf("%s: %w", q.name, err)
		}
		r.asked = append(r.asked, a)
	}
	return nil
}

// startProfile writes a CPU profile, if it is wanted.
func (r *result) startProfile(of string) (stop func() error, err error) {
	if r.Profiles == "" {
		return func() error { return nil }, nil
	}
	file, err := os.Create(filepath.Join(r.Profiles, strings.ReplaceAll(of, " ", "-")+".pprof"))
	if err != nil {
		return nil, err
	}
	return func() error {
		pprof.StopCPUProfile()
		return file.Close()
	}, pprof.StartCPUProfile(file)
}

func (r *result) repeat(ctx context.Context, stores []store, q question) (asked, error) {
	a := asked{question: q}
	for _, s := range stores {
		a.processes = append(a.processes, s.processes(ctx))
		a.took, a.cpu = append(a.took, new(measure.Samples)), append(a.cpu, make([]time.Duration, 2))
	}
	random := rand.New(rand.NewPCG(1, uint64(len(q.name))))
	const least = 3
	for begun, n := time.Now(), 0; n < r.Repeats && (n < least || time.Since(begun) < r.Each*time.Duration(len(stores))); n++ {
		if err := r.askOnce(ctx, stores, &a, q.ask(random, &r.sample)); err != nil {
			return a, err
		}
	}
	return a, nil
}

// askOnce compares the answers.
func (r *result) askOnce(ctx context.Context, stores []store, a *asked, values ask) error {
	var first answer
	for i, s := range stores {
		found, err := s.ask(ctx, values, a.measure(i))
		if err != nil {
			return fmt.Errorf("%s: %w", s.name(), err)
		}
		if i == 0 {
			first = found
		} else if !slices.Equal(first.times, found.times) || !maps.Equal(first.counts, found.counts) {
			r.differ = append(r.differ, fmt.Sprintf("%s (%s%s): %s has %s, %s %s", a.question.name, values.query, values.to.Format(" 15:04:05.000"),
				stores[0].name(), first, s.name(), found))
		}
	}
	return nil
}

// String shows little of an answer.
func (a answer) String() string {
	if a.counts != nil {
		return fmt.Sprintf("%d counts, %.200s", len(a.counts), fmt.Sprint(a.counts))
	}
	return fmt.Sprintf("%d entries, %.200s", len(a.times), fmt.Sprint(a.times))
}

// print prints a column for each store, then the goals.
func (r *result) print(out io.Writer) error {
	table := measure.NewTable(out, fmt.Sprintf("%d entries of a day, by %d writers, in transactions or requests of %d. Each store alone on the machine.",
		r.Entries, writers, entriesOfRequest*requestsOfChunk))
	r.storing(table)
	for _, a := range r.asked {
		row := []string{a.question.name + ", p50 / p95, CPU"}
		for i, took := range a.took {
			row = append(row, measure.Millis(took.Percentiles(50, 95)...)+", "+measure.Millis(a.each(i)...))
		}
		table.Row(row...)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	fmt.Fprintln(out)
	for _, s := range r.stored {
		if s.parts != "" {
			fmt.Fprintf(out, "%s: %s.\n", s.store, s.parts)
		}
	}
	r.goals(out)
	if len(r.differ) > 0 {
		return errors.New("answers differ:\n" + strings.Join(r.differ, "\n"))
	}
	return nil
}

func (r *result) storing(table measure.Table) {
	row := func(title string, cell func(s stored) string) {
		cells := []string{title}
		for _, s := range r.stored {
			cells = append(cells, cell(s))
		}
		table.Row(cells...)
	}
	row("", func(s stored) string { return s.store })
	row("entries/s in", func(s stored) string { return fmt.Sprintf("%.0f", s.perSecond) })
	row("CPU s of a million: store / database / making them", func(s stored) string {
		return fmt.Sprintf("%.2f / %.2f / %.2f", s.cpu[0].Seconds(), s.cpu[1].Seconds(), s.making.Seconds())
	})
	row("bytes kept of an entry", func(s stored) string { return fmt.Sprintf("%.1f", s.bytes) })
}

func (r *result) goals(out io.Writer) {
	goal := func(met bool, text string, values ...any) { fmt.Fprintln(out, measure.Goal(met, text, values...)) }
	weir, peer := r.stored[0], slices.IndexFunc(r.stored, func(s stored) bool { return s.store == victoriaLogs })
	goal(weir.perSecond >= goalPerSecond, "%d entries/s in: %.0f", goalPerSecond, weir.perSecond)
	goal(weir.bytes <= goalBytes, "%d bytes of an entry at most: %.1f", goalBytes, weir.bytes)
	for _, a := range r.asked {
		p95 := a.took[0].Percentiles(95)[0]
		goal(p95 <= a.question.goal, "%s within %s (p95): %s", a.question.name, a.question.goal, measure.Millis(p95))
		if peer >= 0 {
			times := float64(p95) / float64(max(1, a.took[peer].Percentiles(95)[0]))
			goal(times <= goalPeer, "%s in %g times what VictoriaLogs takes: %.2f", a.question.name, goalPeer, times)
		}
	}
}
