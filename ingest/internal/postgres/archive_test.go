package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/weirlog/weir/ingest"
	"github.com/weirlog/weir/ingest/internal/objects"
	"github.com/weirlog/weir/ingest/internal/postgres"
	"github.com/weirlog/weir/shared/erasure"
	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/shared/prune"
	"github.com/weirlog/weir/shared/testenv"
)

// An archive is a log store with texts in a folder, at a time.
type archive struct {
	*rig
	dir string
	now time.Time

	objects.Store
	put func() error // instead of an answer; nil: none
}

func newArchive(t *testing.T) *archive {
	t.Helper()
	a := &archive{rig: newRig(t), dir: filepath.Join(t.TempDir(), "archive"), now: noon.Add(48 * time.Hour)}
	var err error
	if a.Store, err = objects.Open("file://" + a.dir); err != nil {
		t.Fatal(err)
	}
	padding := strings.Repeat("x", 1000)
	for _, organization := range []string{"org_1", "org_2"} {
		var large []ingest.Stored
		for i := range 100 {
			large = append(large, a.entry(noon.Unix()+int64(i), padding))
		}
		a.keep(a.block(organization, "prj_1", large...), a.block(organization, "prj_1", large[:70]...), a.block(organization, "prj_2", large[:80]...),
			a.block(organization, "prj_2", a.entry(noon.Unix(), "small")))
	}
	return a
}

func (a *archive) Put(ctx context.Context, name string, body []byte) error {
	err := a.Store.Put(ctx, name, body)
	if err == nil && a.put != nil {
		return a.put()
	}
	return err
}

func (a *archive) run() error {
	return postgres.NewArchiver(postgres.ArchiverConfig{
		Pool: a.pool, Objects: a, After: time.Hour, Clock: func() time.Time { return a.now }, Metrics: prometheus.NewRegistry(), Logger: slog.New(slog.DiscardHandler),
	}).RunOnce(a.t.Context())
}

func (a *archive) prune() {
	a.t.Helper()
	pruner := prune.New(prune.Config{
		Pool: a.pool, Tables: func(clock func() time.Time) []prune.Table { return postgres.Tables(a, clock) },
		Clock: func() time.Time { return a.now }, Metrics: prometheus.NewRegistry(), Logger: slog.New(slog.DiscardHandler),
	})
	testenv.Must(a.t, pruner.RunOnce(a.t.Context()))
}

func (a *archive) files() (names []string) {
	a.t.Helper()
	entries, err := os.ReadDir(a.dir)
	testenv.Must(a.t, err)
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	return names
}

// moved counts blocks whose texts are in objects.
func (a *archive) moved() (blocks int) {
	a.t.Helper()
	a.system(func(tx pgx.Tx) error {
		return tx.QueryRow(a.t.Context(), `SELECT count(*) FROM blocks WHERE object IS NOT NULL AND texts = ''`).Scan(&blocks)
	})
	return blocks
}

// found are all texts of an organization, and the count of one of them.
func (a *archive) found(organization pg.Organization) (string, error) {
	store := postgres.NewStore(postgres.Config{
		Readers: a.pool, Objects: a, Limits: postgres.DefaultLimits(), Clock: time.Now, Metrics: prometheus.NewRegistry(),
	})
	result, err := store.Search(a.t.Context(), organization, ingest.Search{Limit: 1000})
	if err != nil {
		return "", err
	}
	var texts strings.Builder
	for _, found := range result.Found {
		fmt.Fprintf(&texts, "%s %s\n", found.Project, found.Text)
	}
	counted, err := store.Count(a.t.Context(), organization, ingest.Count{Search: ingest.Search{Query: mustQuery("5*")}}, 1)
	fmt.Fprint(&texts, counted.Levels.Sum())
	return texts.String(), err
}

func (a *archive) mustFind(organization pg.Organization) string {
	a.t.Helper()
	texts, err := a.found(organization)
	testenv.Must(a.t, err)
	return texts
}

// Texts of past days move, by project, and are found and counted as before.
func TestTextsMoveToTheArchive(t *testing.T) {
	a := newArchive(t)
	before := a.mustFind("org_1")
	a.now = noon.Add(12 * time.Hour)
	if err := a.run(); err != nil || a.moved() != 0 {
		t.Fatalf("%d blocks moved before it is time, %v", a.moved(), err)
	}
	a.now = noon.Add(13 * time.Hour)
	for range 2 {
		if err := a.run(); err != nil || a.moved() != 6 || len(a.files()) != 4 {
			t.Fatalf("%d blocks moved to %d objects, want 6 to 4, %v", a.moved(), len(a.files()), err)
		}
	}
	if after := a.mustFind("org_1"); after != before {
		t.Errorf("found %d bytes, before %d", len(after), len(before))
	}
	testenv.Must(t, os.Remove(filepath.Join(a.dir, a.files()[0])))
	_, first := a.found("org_1")
	_, second := a.found("org_2")
	if first == nil && second == nil {
		t.Error("what is in an object that is lost is left out without an error")
	}
}

// An upload that fails, or whose answer is lost, changes nothing, and its
// object goes.
func TestAFailedUploadLeavesNothing(t *testing.T) {
	a := newArchive(t)
	before := a.mustFind("org_1")
	a.put = func() error { return errors.New("no answer") }
	if err := a.run(); err == nil || a.moved() != 0 || len(a.files()) != 1 {
		t.Fatalf("%d blocks moved to %d objects, %v", a.moved(), len(a.files()), err)
	}
	a.put = nil
	if err := a.run(); err != nil || a.moved() != 6 || len(a.files()) != 5 {
		t.Fatalf("%d blocks moved to %d objects, %v", a.moved(), len(a.files()), err)
	}
	a.prune()
	if len(a.files()) != 5 {
		t.Error("what may be under way was deleted")
	}
	a.now = a.now.Add(2 * time.Hour)
	a.prune()
	if len(a.files()) != 4 || a.mustFind("org_1") != before {
		t.Errorf("%d objects are left, want 4", len(a.files()))
	}
}

// One process archives at a time.
func TestOneArchiverAtATime(t *testing.T) {
	a := newArchive(t)
	var other error
	a.put = func() error {
		a.put = nil
		other = a.run()
		return nil
	}
	if err := a.run(); err != nil || other != nil || a.moved() != 6 || len(a.files()) != 4 {
		t.Errorf("%d blocks moved to %d objects, %v, %v", a.moved(), len(a.files()), err, other)
	}
}

// Objects go with a deleted organization, also one that was being
// written, and with their day.
func TestObjectsGoWithTheirBlocks(t *testing.T) {
	a := newArchive(t)
	kept := a.mustFind("org_2")
	testenv.Must(t, a.run())
	all := a.files()
	for _, table := range postgres.Erasable(a) {
		a.system(func(tx pgx.Tx) error {
			_, _, err := table.Erase(t.Context(), tx, erasure.Deletion{Organization: "org_1"}, "", 100_000)
			return err
		})
	}
	left := a.files()
	if len(left) != 2 || a.mustFind("org_2") != kept {
		t.Errorf("%d objects are left, want 2", len(left))
	}
	for _, name := range all { // uploads that end late
		if !slices.Contains(left, name) && a.Put(t.Context(), name, nil) != nil {
			t.Fatal("cannot write an object")
		}
	}
	a.now = time.Now().Add(2 * time.Hour)
	if a.prune(); len(a.files()) != 2 {
		t.Errorf("%d objects are left after uploads that ended late, want 2", len(a.files()))
	}
	for range 3 { // blocks of a later day, so that the clock is trusted; then each day goes
		a.now = noon.AddDate(0, 0, 40)
		late := a.entry(a.now.Unix(), "")
		late.ReceivedAt = a.now
		a.keep(a.block("org_2", "prj_1", late))
		a.prune()
	}
	if left := a.files(); len(left) != 0 {
		t.Errorf("%d objects outlive their day", len(left))
	}
}
