//go:build disk

package e2e

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"log/slog"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/deploy/allinone"
	"github.com/weirlog/weir/deploy/allinone/allinonetest"
	"github.com/weirlog/weir/shared/embedded/kafka"
	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/testenv"
	"github.com/weirlog/weir/shared/testenv/postgrestest"
)

var sizes = flag.String("sizes", "72,100", "of the entries whose bytes on the disk are measured")

// Small requests: how fast they come and for how long, and how many bytes
// each may take on the disk for one that is charged.
const (
	smallEvery  = 20 * time.Millisecond
	smallFirst  = 30 * time.Second // not measured: merges once, and makes the files that have a least size
	smallFor    = time.Minute
	mostPerByte = 10
	mostSingle  = 100 // ranges of the ledger that remain of one record
)

// Requests of one small entry, 50 a second from three organizations with two
// projects each, take less than ten times what they are charged: all files of
// the log and all tables with their indexes, once merges, compaction and
// VACUUM have gone over them, which they do within minutes, and without the
// write-ahead log, which is used again.
func TestSmallRequestsOnDisk(t *testing.T) {
	k := keepSmall(t)
	k.post(smallFirst, 100)
	for text := range strings.SplitSeq(*sizes, ",") {
		size, err := strconv.Atoi(text)
		testenv.Must(t, err)
		before := k.sizes()
		requests, charged := k.post(smallFor, size)
		report, kept := costs(before, k.sizes(), requests)
		ratio := float64(kept) / float64(charged)
		t.Logf("%d requests of %d bytes: %.1f bytes kept for each\n%s", requests, charged/requests, ratio, report)
		if ratio >= mostPerByte {
			t.Errorf("a request of %d bytes takes %.1f times as many on the disk, want less than %d", size, ratio, mostPerByte)
		}
	}
}

// keptSmall is an installation whose files and tables are measured.
type keptSmall struct {
	t       *testing.T
	in      installation
	tenants []tenant
	dir     string
	broker  *kafka.Broker
	db      *pgx.Conn
	charged map[string]int64 // by organization
}

func keepSmall(t *testing.T) *keptSmall {
	t.Helper()
	dir, logger := t.TempDir(), slog.New(slog.DiscardHandler)
	broker, err := kafka.Start(kafka.Config{Dir: dir, Logger: logger, Open: true})
	testenv.Must(t, err)
	t.Cleanup(func() { testenv.Must(t, broker.Close()) })
	modules, err := allinone.ModulesFromEnvironment()
	testenv.Must(t, err)
	database := postgrestest.URL(t)
	app, err := allinone.New(t.Context(), allinone.Config{
		Listen: "127.0.0.1:0", DataDir: t.TempDir(), DatabaseURL: httpapi.Secret(database), Brokers: []string{broker.Addr()}, Modules: modules,
	}, logger)
	testenv.Must(t, err)
	allinonetest.Run(t, app)
	k := &keptSmall{t: t, in: connect(t, app.Env().BaseURL, app.Env().CAFile, app.Env().OperatorToken), dir: dir, broker: broker, charged: map[string]int64{}}
	for i := range 3 {
		first := k.in.tenant(t, t.Context(), fmt.Sprint("small", i), "scale")
		k.tenants = append(k.tenants, first, k.second(first))
	}
	k.db, err = pgx.Connect(t.Context(), database)
	testenv.Must(t, err)
	t.Cleanup(func() { _ = k.db.Close(context.Background()) })
	return k
}

// second is another project of an organization.
func (k *keptSmall) second(of tenant) tenant {
	k.t.Helper()
	project, err := k.in.api.CreateProject(k.t.Context(), k.in.operator, of.organization, "second project")
	testenv.Must(k.t, err)
	key, err := k.in.api.CreateAPIKey(k.t.Context(), k.in.operator, project.ID, "prod", "second key")
	testenv.Must(k.t, err)
	testenv.Eventually(k.t, func() error {
		_, err := k.in.api.Post(k.t.Context(), key.Key, plainly(body()))
		return wantProblem(err, 400, "empty_batch")
	})
	return tenant{of.organization, project.ID, key.Key, key.ID, of.billing}
}

// post sends requests of one entry for d, and waits until they are charged,
// their blocks are merged and the ledger's ranges are joined.
func (k *keptSmall) post(d time.Duration, size int) (requests, charged int64) {
	k.t.Helper()
	requests = int64(d / smallEvery)
	var all sync.WaitGroup
	var mu sync.Mutex
	tick := time.NewTicker(smallEvery)
	defer tick.Stop()
	for i := range requests {
		<-tick.C
		to := k.tenants[i%int64(len(k.tenants))]
		all.Go(func() {
			accepted, err := k.in.api.Post(k.t.Context(), to.key, plainly(body(smallEntry(i, size))))
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				k.t.Errorf("cannot post: %v", err)
			}
			k.charged[to.organization] += accepted.BytesUsed
			charged += accepted.BytesUsed
		})
	}
	all.Wait()
	k.settle()
	return requests, charged
}

// smallEntry has exactly size bytes.
func smallEntry(i int64, size int) string {
	entry := fmt.Sprintf(`{"timestamp":%q,"level":"info","message":"%d`, time.Now().UTC().Format("2006-01-02T15:04:05.000Z"), i)
	words := " user opened the cart with items and went on to pay for the order by card as before" // compresses as logs do
	for len(entry)+2 < size {
		entry += words[len(entry)%len(words):][:min(len(words)-len(entry)%len(words), size-2-len(entry))]
	}
	return entry + `"}`
}

// settle waits until everything is charged and nothing is left to merge soon.
func (k *keptSmall) settle() {
	k.t.Helper()
	testenv.Eventually(k.t, func() error {
		for _, to := range k.tenants {
			balance, err := k.in.api.Balance(k.t.Context(), to.billing, to.organization)
			if want := k.charged[to.organization]; err == nil && balance.Consumed != want {
				err = fmt.Errorf("%d of %d bytes are charged", balance.Consumed, want)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
	k.execute(`SELECT set_config('weir.organization', '*', false)`)
	testenv.Eventually(k.t, func() (err error) {
		var due, single int
		err = k.db.QueryRow(k.t.Context(), `SELECT (SELECT count(*) FROM ingest.small_blocks WHERE due_at < now() + interval '1 minute'),
			(SELECT count(*) FROM ledger.ranges WHERE records = 1)`).Scan(&due, &single)
		if due > 0 || single > mostSingle {
			return fmt.Errorf("%d projects have blocks to merge, and the ledger has %d ranges of one record", due, single)
		}
		return err
	})
}

func (k *keptSmall) execute(statement string) {
	k.t.Helper()
	_, err := k.db.Exec(k.t.Context(), statement)
	testenv.Must(k.t, err)
}

// keptTables are all tables and indexes; a partition counts as its whole.
const keptTables = `SELECT n.nspname || '.' || coalesce(whole.relname, c.relname), sum(pg_table_size(c.oid))::bigint
	FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace LEFT JOIN pg_class whole ON whole.oid = pg_partition_root(c.oid)
	WHERE n.nspname IN ('grouping', 'ingest', 'ledger', 'tenants') AND c.relkind IN ('r', 'i') GROUP BY 1`

// sizes are the bytes of each topic, table and index. Blocks and ranges are
// packed first: what becomes of them frees what the next ones use.
func (k *keptSmall) sizes() map[string]int64 {
	k.t.Helper()
	testenv.Must(k.t, errors.Join(k.broker.Compact(k.t.Context()), k.broker.Pack(k.t.Context())))
	k.execute(`VACUUM`)
	for _, table := range []string{"ingest.blocks", "ledger.ranges"} {
		k.execute(`VACUUM FULL ` + table)
	}
	rows, err := k.db.Query(k.t.Context(), keptTables)
	testenv.Must(k.t, err)
	found := map[string]int64{}
	var name string
	var bytes int64
	_, err = pgx.ForEachRow(rows, []any{&name, &bytes}, func() error {
		found[name] = bytes
		return nil
	})
	testenv.Must(k.t, err)
	testenv.Must(k.t, filepath.WalkDir(filepath.Join(k.dir, "partitions"), func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		info, err := entry.Info()
		partition := filepath.Base(filepath.Dir(path))
		found[partition[:strings.LastIndexByte(partition, '-')]] += info.Size()
		return err
	}))
	return found
}

// costs are the bytes of a request by place, the most first, and those of all.
func costs(before, after map[string]int64, requests int64) (report string, all int64) {
	type place struct {
		name  string
		bytes int64
	}
	var places []place
	for name, bytes := range after {
		if grown := bytes - before[name]; grown != 0 {
			places, all = append(places, place{name, grown}), all+grown
		}
	}
	slices.SortFunc(places, func(a, b place) int { return cmp.Compare(b.bytes, a.bytes) })
	for _, p := range places {
		report += fmt.Sprintf("%6.0f  %s\n", float64(p.bytes)/float64(requests), p.name)
	}
	return report, all
}
