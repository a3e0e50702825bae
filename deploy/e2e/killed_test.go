package e2e

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/deploy/client"
	"github.com/weirlog/weir/deploy/localca"
	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/shared/testenv"
	"github.com/weirlog/weir/shared/testenv/kafkatest"
	"github.com/weirlog/weir/shared/testenv/postgrestest"
	"github.com/weirlog/weir/shared/testenv/programs"
)

// Kills: how often, how long the process may work before each, and how long
// the scenario waits for its return. A broker that outlives the process
// reassigns its partitions only after the member's session has timed out.
const (
	shortKills   = 3
	fullKills    = 10 // in make test-faults
	shortestLife = 200 * time.Millisecond
	longestLife  = 1500 * time.Millisecond
	aimLimit     = 2 * time.Second       // for the last large post to end
	largeLife    = 60 * time.Millisecond // typical duration of a large post
)

// Everything in one process, killed repeatedly while it is posted to, and
// while it is erasing an organization.
// The embedded broker lives in the process and dies with it.
func TestKilled(t *testing.T) {
	kafkatest.Parallel(t)
	program, dataDir := programs.Build(t, "deploy/cmd/weir"), t.TempDir()
	operator := "weirsvc_" + "0123456789abcdef0123456789abcdef0123456789abcdef"
	variables := map[string]string{"WEIR_LISTEN": freeAddress(t), "WEIR_DATA_DIR": dataDir, "WEIR_OPERATOR_TOKEN": operator, "WEIR_LOG_LEVEL": "info"}
	if givenBroker() {
		maps.Copy(variables, backends(t))
	} else {
		variables["WEIR_DATABASE_URL"] = postgrestest.URL(t)
		variables["WEIR_TIER_BOOTSTRAPPER_BYTES"] = fmt.Sprint(quotaBytes)
	}
	_, err := localca.Ensure(filepath.Join(dataDir, "tls"), time.Now())
	testenv.Must(t, err)
	in := connect(t, "https://"+variables["WEIR_LISTEN"]+"/v1", localca.In(filepath.Join(dataDir, "tls")).CA, operator)

	var running *programs.Process
	start := func() {
		running = programs.Launch(t, program, variables, "run")
		if err := running.AwaitReady(t.Context(), in.api.Ready, testenv.Patience); err != nil {
			t.Errorf("%v\n%s", err, running.Output)
		}
	}
	start()
	defer func() {
		if err := running.Stop(); err != nil {
			t.Errorf("did not stop in order: %v", err)
		}
		if t.Failed() {
			t.Logf("output of the last process:\n%s", running.Output)
		}
	}()
	scenario(t, in, func(ctx context.Context, underway <-chan struct{}) {
		for range testenv.Rounds(t, shortKills, fullKills) {
			life(ctx)
			aim(ctx, underway)
			running.Kill()
			begun := time.Now()
			start()
			t.Logf("back after %s", time.Since(begun).Round(time.Millisecond))
		}
	})
	t.Run("while watched", func(t *testing.T) {
		killedWhileWatched(t, in, program, map[string]string{
			"WEIR_BASE_URL": "https://" + variables["WEIR_LISTEN"] + "/v1", "WEIR_CA_FILE": localca.In(filepath.Join(dataDir, "tls")).CA, "HOME": t.TempDir(),
		}, func() { running.Kill(); start() })
	})
	t.Run("while erasing", func(t *testing.T) { killedWhileErasing(t, in, variables["WEIR_DATABASE_URL"], running, start) })
}

// life lets the process work for a random time.
func life(ctx context.Context) {
	select {
	case <-ctx.Done():
	case <-time.After(shortestLife + rand.N(longestLife-shortestLife)):
	}
}

// aim requests a large post and returns somewhere within it, unless the
// last one still runs.
func aim(ctx context.Context, underway <-chan struct{}) {
	select {
	case <-ctx.Done():
	case <-underway:
		time.Sleep(rand.N(largeLife)) // a random moment, not a wait
	case <-time.After(aimLimit):
	}
}

// givenBroker reports whether the tests use a broker outside of the process.
func givenBroker() bool {
	return os.Getenv("WEIR_TEST_BROKERS") != "" || os.Getenv("WEIR_TEST_BACKEND") == "containers"
}

// What a terminal follows goes on after a kill: entries that are accepted
// once it has come back are printed, each once.
func killedWhileWatched(t *testing.T, in installation, program string, variables map[string]string, kill func()) {
	to := in.tenant(t, t.Context(), "watched", "scale")
	variables["WEIR_API_KEY"] = to.key
	following := programs.Launch(t, program, variables, "tail", "watched")
	posted := 0
	post := func(when string) string {
		posted++
		mark := fmt.Sprintf("watched %s %d.", when, posted)
		entry := fmt.Sprintf(`{"timestamp":%q,"level":"info","message":%q}`, time.Now().UTC().Format(time.RFC3339), mark)
		_, err := in.api.Deliver(t.Context(), to.key, client.Batch{Body: body(entry), IdempotencyKey: mark})
		testenv.Must(t, err)
		return mark
	}
	isPrinted := func(mark string) error {
		if times := strings.Count(following.Output.String(), mark); times != 1 {
			return fmt.Errorf("%q is printed %d times", mark, times)
		}
		return nil
	}
	for _, when := range []string{"before", "after"} {
		testenv.Eventually(t, func() error { return isPrinted(post(when)) })
		var marks []string
		for range 20 {
			marks = append(marks, post(when))
		}
		testenv.Eventually(t, func() error {
			for _, mark := range marks {
				if err := isPrinted(mark); err != nil {
					return err
				}
			}
			return nil
		})
		if when == "before" {
			kill()
		}
	}
	if !strings.Contains(following.Output.String(), "entries may be missing") {
		t.Errorf("nothing says that the tail was cut: %s", following.Output)
	}
}

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
	testenv.Must(t, err)
	_, err = obstacle.Exec(t.Context(), `LOCK TABLE `+strings.Join(midway, `, `)+` IN SHARE MODE`)
	testenv.Must(t, err)
	testenv.Must(t, in.api.DeleteOrganization(t.Context(), in.operator, gone.organization))
	testenv.Eventually(t, func() error { return inTheMiddle(t.Context(), conn) })
	running.Kill()
	testenv.Must(t, obstacle.Rollback(t.Context()))

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
	testenv.Must(t, err)
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
	testenv.Eventually(t, func() error {
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
	testenv.Must(t, pgx.BeginFunc(t.Context(), conn, func(tx pgx.Tx) error {
		return errors.Join(pg.AsSystem(t.Context(), tx), tx.QueryRow(t.Context(), query, args...).Scan(&n))
	}))
	return n
}
