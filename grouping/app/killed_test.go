package app_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/shared/testenv"
	"github.com/weirlog/weir/shared/testenv/port"
	"github.com/weirlog/weir/shared/testenv/programs"
)

// Of two replicas one is killed again and again, while groups are resolved and
// come back: each error counts once, and what was decided is published once, as
// it was recorded.
func TestKilledReplica(t *testing.T) {
	r := newRig(t)
	survivor, _ := r.start()
	awaitReady(t, survivor)
	key := r.project("acme", "shop")
	awaitKeys(t, survivor, key)
	accepted, want := 0, map[string]int64{}
	feed := func(n int) {
		for range n {
			typ := fmt.Sprintf("Error%c", 'A'+accepted%8)
			r.Accept(logs("acme", "shop", 1, released(typ, fmt.Sprintf("1.%d.0", accepted))))
			accepted++
			want[typ]++
		}
	}
	feed(8)
	r.awaitApplied()
	groups := list(t, survivor, key, "shop", "").Items
	for range testenv.Rounds(t, 1, 10) {
		killed := r.launch()
		for i := range 10 {
			for _, g := range groups {
				decide(t, survivor, key, g.ID, `{"status":"resolved"}`)
			}
			feed(16)
			if i == 7 {
				killed.Kill()
			}
		}
		r.awaitApplied()
	}
	if got := counts(t, survivor, key, "shop"); !maps.Equal(got, want) {
		t.Errorf("counts %v, want %v", got, want)
	}
	recorded := r.recorded()
	testenv.Eventually(t, func() error {
		if said := r.said(); !slices.Equal(said, recorded) {
			return fmt.Errorf("published are %d facts, and recorded %d decisions", len(said), len(recorded))
		}
		return nil
	})
	for _, kind := range []string{"resolved", "regressed"} {
		if !slices.ContainsFunc(recorded, func(line string) bool { return strings.Contains(line, kind) }) {
			t.Errorf("nothing was %s", kind)
		}
	}
}

// launch starts a replica of its own process, and waits until it has its share of the log.
func (r *rig) launch() *programs.Process {
	r.t.Helper()
	free, err := port.Free()
	testenv.Must(r.t, err)
	metrics := fmt.Sprintf("127.0.0.1:%d", free)
	replica := programs.Launch(r.t, programs.Build(r.t, "grouping/cmd/grouping"), map[string]string{
		"WEIR_BROKERS": strings.Join(r.config.Brokers, ","), "WEIR_DATABASE_URL": r.config.DatabaseURL.Reveal(), "WEIR_GROUPING_BATCH_WAIT": "10ms",
		"WEIR_METRICS_LISTEN": metrics,
	})
	shares := `weir_bus_lag_records{group="` + contract.GroupGrouping + `"`
	err = replica.AwaitReady(r.t.Context(), func(ctx context.Context) error {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+metrics+"/metrics", nil)
		if err != nil {
			return err
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			return err
		}
		defer response.Body.Close()
		text, err := io.ReadAll(response.Body)
		if err == nil && !strings.Contains(string(text), shares) {
			err = errors.New("it has no partition yet")
		}
		return err
	}, testenv.Patience)
	if err != nil {
		r.t.Fatalf("%v\n%s", err, replica.Output)
	}
	return replica
}

// recorded are the decisions that others learn of: group, number and kind.
func (r *rig) recorded() (lines []string) {
	r.t.Helper()
	err := pg.InTxAsSystem(r.t.Context(), r.pool, func(tx pgx.Tx) error {
		rows, err := tx.Query(r.t.Context(), `SELECT replace(stream, 'group/', '') || ' ' || version || ' ' || replace(name, 'grouping.v1.', '') FROM events`)
		if err != nil {
			return err
		}
		lines, err = pgx.CollectRows(rows, pgx.RowTo[string])
		return err
	})
	testenv.Must(r.t, err)
	slices.Sort(lines)
	return lines
}

// said are the decisions that were published, each id once.
func (r *rig) said() (lines []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for id, fact := range r.decided {
		name, _, _ := strings.Cut(id, " ")
		lines = append(lines, fmt.Sprintf("%s %d %s", fact.Group, fact.Version, name[strings.LastIndexByte(name, '_')+1:]))
	}
	slices.Sort(lines)
	return lines
}
