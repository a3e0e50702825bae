package pg_test

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/weirlog/weir/shared/embedded/postgres"
	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/shared/pg/pgtest"
	"github.com/weirlog/weir/shared/testenv"
	"github.com/weirlog/weir/shared/testenv/authority"
	"github.com/weirlog/weir/shared/testenv/postgrestest"
)

// A password in a file may change while connections are in use: new
// ones sign in with the file's password.
func TestChangedPassword(t *testing.T) {
	address, err := url.Parse(postgrestest.URL(t))
	testenv.Must(t, err)
	passfile := filepath.Join(t.TempDir(), "pgpass")
	set := func(password string) {
		t.Helper()
		testenv.Must(t, os.WriteFile(passfile, []byte("*:*:*:*:"+password+"\n"), 0o600))
	}
	password, _ := address.User.Password()
	address.User = url.User(address.User.Username())
	query := address.Query()
	query.Set("passfile", passfile)
	query.Set("pool_max_conns", "2")
	address.RawQuery = query.Encode()
	set(password)
	pool, err := pg.Open(t.Context(), address.String(), schema)
	testenv.Must(t, err)
	t.Cleanup(pool.Close)
	connect := func() error {
		connection, err := pool.Acquire(t.Context())
		if err == nil {
			t.Cleanup(connection.Release)
		}
		return err
	}
	testenv.Must(t, connect())
	set("wrong")
	if err := connect(); err == nil {
		t.Fatal("a new connection signed in with the former password")
	}
	set(password)
	if err := connect(); err != nil {
		t.Errorf("a new connection does not take the password of now: %v", err)
	}
}

// With verify-full only a server's certificate identifies it. An error
// names the setting, and replaced files are used without a restart.
func TestVerifiedServer(t *testing.T) {
	server, err := postgrestest.Start(t.Context())
	testenv.Must(t, err)
	t.Cleanup(func() { _ = server.Stop(context.Background()) })
	trusted, other := authority.New(t, "trusted", time.Now()), authority.New(t, "other", time.Now())
	soon := time.Now().Add(time.Hour)
	postgrestest.Encrypt(t, server, trusted.Issue(t, "postgres", soon, "127.0.0.1"))
	root := filepath.Join(t.TempDir(), "root.pem")
	copyFile(t, trusted.File, root)
	address := verified(t, server, root)
	pool, err := pg.OpenLater(t.Context(), address.String(), schema)
	testenv.Must(t, err)
	t.Cleanup(pool.Close)
	testenv.Eventually(t, func() error { return pool.Ping(t.Context()) }) // the server loads the certificate some time later
	var encrypted bool
	if err := pool.QueryRow(t.Context(), `SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()`).Scan(&encrypted); err != nil || !encrypted {
		t.Errorf("encrypted: %t, %v", encrypted, err)
	}

	elsewhere, guessed := *address, *address
	elsewhere.Host = "localhost:" + address.Port()
	guessed.User = url.UserPassword(address.User.Username(), "guessed")
	for name, c := range map[string]struct{ address, want string }{
		"an authority that is not the server's": {verified(t, server, other.File).String(), "sslrootcert in WEIR_DATABASE_URL"},
		"a name that the certificate lacks":     {elsewhere.String(), "by a name that its certificate has"},
		"a wrong password":                      {guessed.String(), "the password in WEIR_DATABASE_URL or its passfile"},
	} {
		if err := refusal(t, c.address); err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "guessed") {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}

	postgrestest.Encrypt(t, server, trusted.Issue(t, "postgres", time.Now().Add(-time.Minute), "127.0.0.1"))
	testenv.Eventually(t, func() error {
		if err := refusal(t, address.String()); err == nil || !strings.Contains(err.Error(), "which is out of date") {
			return fmt.Errorf("with an expired certificate: %w", err)
		}
		return nil
	})
	postgrestest.Encrypt(t, server, other.Issue(t, "postgres", soon, "127.0.0.1"))
	copyFile(t, other.File, root)
	testenv.Eventually(t, func() error {
		pool.Reset()
		return pool.Ping(t.Context())
	})
}

func verified(t *testing.T, server *postgres.Server, root string) *url.URL {
	t.Helper()
	address, err := url.Parse(server.URL())
	testenv.Must(t, err)
	address.RawQuery = url.Values{"sslmode": {"verify-full"}, "sslrootcert": {root}}.Encode()
	return address
}

func refusal(t *testing.T, address string) error {
	t.Helper()
	pool, err := pg.Open(t.Context(), address, schema)
	if err == nil {
		pool.Close()
	}
	return err
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	text, err := os.ReadFile(from)
	testenv.Must(t, err)
	testenv.Must(t, os.WriteFile(to, text, 0o600))
}

// A pool shows its connections in use and its limit.
func TestMeasure(t *testing.T) {
	pool, metrics := pgtest.Open(t, "measured"), prometheus.NewRegistry()
	pg.Measure(metrics, map[string]*pgxpool.Pool{"writes": pool})
	conn, err := pool.Acquire(t.Context())
	testenv.Must(t, err)
	defer conn.Release()
	if err := testutil.GatherAndCompare(metrics, strings.NewReader(fmt.Sprintf(`
# HELP weir_postgres_connections Connections to PostgreSQL: used by a transaction, or idle.
# TYPE weir_postgres_connections gauge
weir_postgres_connections{pool="writes",state="idle"} %d
weir_postgres_connections{pool="writes",state="used"} 1
# HELP weir_postgres_connections_limit How many connections to PostgreSQL a pool may have.
# TYPE weir_postgres_connections_limit gauge
weir_postgres_connections_limit{pool="writes"} %d
`, pool.Stat().IdleConns(), pool.Config().MaxConns)), "weir_postgres_connections", "weir_postgres_connections_limit"); err != nil {
		t.Error(err)
	}
}

// A look at a day locks no other, even after PostgreSQL would use a
// generic plan; afterwards nothing is locked.
func TestLookLocksOneDay(t *testing.T) {
	pool := open(t)
	const counting = `SELECT count(*) FROM pg_locks WHERE pid = pg_backend_pid() AND relation IN (SELECT inhrelid FROM pg_inherits)`
	err := pg.InTxAsSystem(t.Context(), pool, func(tx pgx.Tx) error {
		for past := range 20 {
			if err := pg.EnsureDays(t.Context(), tx, "notes", day.AddDate(0, 0, -past)); err != nil {
				return err
			}
		}
		return nil
	})
	testenv.Must(t, err)
	err = pg.InTxAsSystem(t.Context(), pool, func(tx pgx.Tx) error {
		for range 7 {
			held := -1
			err := pg.QueryInSavepoint(t.Context(), tx, `SELECT (`+counting+`) + (SELECT count(*) FROM notes WHERE day = $1)`, []any{day}, func(rows pgx.Rows) (err error) {
				held, err = pgx.CollectExactlyOneRow(rows, pgx.RowTo[int])
				return err
			})
			if err != nil || held > 3 { // the table and its indexes
				t.Errorf("%d days and indexes are locked, %v", held, err)
			}
		}
		var held int
		err := tx.QueryRow(t.Context(), counting).Scan(&held)
		if held > 0 {
			t.Errorf("%d are locked behind it", held)
		}
		return err
	})
	testenv.Must(t, err)
}
