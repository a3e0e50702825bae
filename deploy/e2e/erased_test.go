package e2e

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/deploy/client"
	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/shared/testenv"
	"github.com/weirlog/weir/shared/testenv/programs"
)

// canary occurs in all that is deleted, and in nothing else.
const canary = "Quetzal"

// midway is a table of each module: others are erased before it, and
// others after it.
var midway = []string{"grouping.error_groups", "ingest.inbox_held", "ledger.inbox_held", "tenants.devices"}

// Everything in one process, killed while every module is erasing an
// organization: after a restart it continues, erases and reports all,
// once, and touches nothing else.
func killedWhileErasing(t *testing.T, in installation, database string, running *programs.Process, start func()) {
	conn, other := dial(t, database), dial(t, database)
	gone, goneSent := in.posted(t, canary)
	living, livingSent := in.posted(t, "living")
	verify(t, t.Context(), in, gone, goneSent)
	verify(t, t.Context(), in, living, livingSent)
	groups := rowsOf(t, conn, "grouping.error_groups", gone.organization)
	if places := placesOf(t, conn, gone.organization); groups == 0 || len(places) < 5 {
		t.Errorf("%d groups; the search finds the canary only in %v", groups, places)
	}

	obstacle, err := other.Begin(t.Context())
	must(t, err)
	_, err = obstacle.Exec(t.Context(), `LOCK TABLE `+strings.Join(midway, `, `)+` IN SHARE MODE`)
	must(t, err)
	must(t, in.api.DeleteOrganization(t.Context(), in.operator, gone.organization))
	testenv.Eventually(t, viewTimeout, func() error { return inTheMiddle(t.Context(), conn) })
	running.Kill()
	must(t, obstacle.Rollback(t.Context()))

	start()
	removed := in.isGone(t, gone.organization)
	if removed["ingest"]["blocks"]+removed["ingest"]["small_blocks"] == 0 || removed["grouping"]["error_groups"] != int64(groups) ||
		removed["tenants"]["projects"] != 1 || removed["ledger"] == nil {
		t.Errorf("removed %v, want what there was, and %d groups", removed, groups)
	}
	verify(t, t.Context(), in, living, livingSent)
	if places := placesOf(t, conn, gone.organization); len(places) > 0 {
		t.Errorf("the canary is in %v", places)
	}
}

func dial(t *testing.T, database string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), database)
	must(t, err)
	t.Cleanup(func() { _ = conn.Close(context.WithoutCancel(t.Context())) })
	return conn
}

// posted creates an organization with the mark everywhere, with
// entries and errors.
func (in installation) posted(t *testing.T, mark string) (tenant, *history) {
	t.Helper()
	made, m, h := in.tenant(t, t.Context(), mark, "scale"), &maker{mark: mark}, &history{}
	entries := m.some(60)
	deliver(t, t.Context(), in, made, mark, plainly(body(texts(entries)...)), entries, h)
	return made, h
}

// inTheMiddle reports whether every module has erased something and has
// more to erase.
func inTheMiddle(ctx context.Context, conn *pgx.Conn) error {
	var waiting int
	err := conn.QueryRow(ctx, `SELECT count(DISTINCT relation) FROM pg_locks JOIN pg_stat_activity USING (pid)
		WHERE NOT granted AND relation = ANY ($1::text[]::regclass[]) AND query LIKE 'DELETE FROM % WHERE organization = $1%'`, midway).Scan(&waiting)
	if err == nil && waiting != len(midway) {
		err = fmt.Errorf("%d modules are in the middle of erasing", waiting)
	}
	return err
}

// isGone waits until a deletion has finished, and returns what each
// module has removed.
func (in installation) isGone(t *testing.T, organization string) (removed map[string]map[string]int64) {
	t.Helper()
	testenv.Eventually(t, viewTimeout, func() error {
		answer, err := in.api.Call(t.Context(), client.Request{Method: "GET", Path: "/deletions?organization=" + organization,
			Header: map[string]string{"Authorization": "Bearer " + in.operator}})
		if err != nil {
			return err
		}
		var list struct {
			Items []struct {
				ID, State string
				Removed   map[string]map[string]int64
			}
		}
		if err := json.Unmarshal(answer.Body, &list); err != nil {
			return err
		}
		if len(list.Items) != 1 || list.Items[0].State != "gone" {
			return fmt.Errorf("not gone: %s", answer.Body)
		}
		removed = list.Items[0].Removed
		return nil
	})
	return removed
}

// placesOf returns the tables that contain the canary, and those with
// an organization's compressed content.
func placesOf(t *testing.T, conn *pgx.Conn, organization string) (places []string) {
	t.Helper()
	patterns := []string{"%" + canary + "%", "%" + hex.EncodeToString([]byte(canary)) + "%"} // as text, and as bytes are shown
	for _, table := range readTables(t, conn) {
		name := table.Schema + "." + table.Name
		if counted(t, conn, `SELECT count(*) FROM `+name+` r WHERE r::text ILIKE ANY ($1)`, patterns) > 0 {
			places = append(places, name)
		}
	}
	for _, name := range []string{"ingest.blocks", "ingest.small_blocks", "ingest.merged_blocks", "grouping.error_groups", "grouping.group_hashes"} {
		if rowsOf(t, conn, name, organization) > 0 {
			places = append(places, name)
		}
	}
	return places
}

func rowsOf(t *testing.T, conn *pgx.Conn, table, organization string) int {
	t.Helper()
	return counted(t, conn, `SELECT count(*) FROM `+table+` WHERE organization = $1`, organization)
}

func counted(t *testing.T, conn *pgx.Conn, query string, args ...any) (n int) {
	t.Helper()
	must(t, pgx.BeginFunc(t.Context(), conn, func(tx pgx.Tx) error {
		return errors.Join(pg.AsSystem(t.Context(), tx), tx.QueryRow(t.Context(), query, args...).Scan(&n))
	}))
	return n
}
