package bus_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/bus/bustest"
	"github.com/weirlog/weir/shared/testenv"
)

// The fault tests are short unless testenv.EnvRounds is set; "full"
// runs the README's rounds.
func TestMain(m *testing.M) {
	if text := os.Getenv(envMember); text != "" {
		if err := runMember(text); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	code := bustest.Main(m)
	if os.Getenv(testenv.EnvRounds) != "" {
		counts.print(os.Stdout)
	}
	os.Exit(code)
}

func runMember(text string) error {
	var m member
	if err := json.Unmarshal([]byte(text), &m); err != nil {
		return err
	}
	return m.consume()
}

// tally counts what the fault tests of a run found.
type tally struct {
	mu   sync.Mutex
	rows []row
}

type row struct {
	fault                                  string
	rounds, records, lost, twice, repeated int
}

var counts tally

func (c *tally) add(r row) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.rows = append(c.rows, r)
	if os.Getenv(testenv.EnvRounds) != "" {
		fmt.Printf("counted: %+v\n", r) // all that is left of a run ended early
	}
}

// print writes the faults as a table.
func (c *tally) print(to io.Writer) {
	fmt.Fprintln(to, "| fault | rounds | records | lost | applied twice | again in the log |\n|---|---|---|---|---|---|")
	for _, r := range c.rows {
		fmt.Fprintf(to, "| %s | %d | %d | %d | %d | %d |\n", r.fault, r.rounds, r.records, r.lost, r.twice, r.repeated)
	}
}

// each runs the rounds in turn, and prints its progress if
// testenv.EnvRounds is set.
func each(t testing.TB, n int, round func(i int)) {
	t.Helper()
	begin := time.Now()
	for i := range n {
		round(i)
		if os.Getenv(testenv.EnvRounds) != "" && (i+1)%max(1, n/5) == 0 {
			fmt.Printf("%s: round %d of %d after %s\n", t.Name(), i+1, n, time.Since(begin).Round(time.Second))
		}
	}
}

// chance returns a random source with a new seed for each run.
func chance(t testing.TB) *rand.Rand {
	t.Helper()
	return testenv.Random(t, uint64(time.Now().UnixNano()))
}

// settle waits until the whole log has taken effect, and counts records
// lost, applied twice or repeated.
func settle(t testing.TB, r row, tr *traffic, brokers []string, topic string, pool *pgxpool.Pool) row {
	t.Helper()
	tr.stop()
	log := bustest.ReadAll(t, brokers, topic)
	r.lost, r.repeated = tr.audit(t, log)
	return settleEffects(t, r, pool, log)
}

func settleEffects(t testing.TB, r row, pool *pgxpool.Pool, log []bus.Record) row {
	t.Helper()
	r.records = len(log)
	awaitEffects(t, pool, r.records)
	a := bustest.Count(t, pool)
	r.lost += r.records - a.Distinct
	r.twice = a.All - a.Distinct
	if r.lost != 0 || r.twice != 0 || a.OutOfOrder != 0 {
		t.Errorf("%d records of %d lost, %d applied twice, %d in disorder", r.lost, r.records, r.twice, a.OutOfOrder)
	}
	counts.add(r)
	return r
}

// awaitEffects waits for n effects while more appear. It only counts rows:
// reading them takes the database, which the consumers need, much longer.
func awaitEffects(t testing.TB, pool *pgxpool.Pool, n int) {
	t.Helper()
	begin := time.Now()
	applied, progress, shown := 0, begin, begin
	for applied < n && time.Since(progress) < 2*bustest.Timeout {
		time.Sleep(100 * time.Millisecond) // between two looks
		var now int
		if err := pool.QueryRow(context.Background(), `SELECT count(*) FROM effects`).Scan(&now); err != nil {
			t.Fatal(err)
		}
		if now > applied {
			applied, progress = now, time.Now()
		}
		if os.Getenv(testenv.EnvRounds) != "" && time.Since(shown) > 10*time.Second {
			shown = time.Now()
			fmt.Printf("%s: %d of %d records applied after %s\n", t.Name(), applied, n, time.Since(begin).Round(time.Second))
		}
	}
}
