package postgrestest

import (
	"context"
	"crypto/rand"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/shared/embedded/postgres"
	"github.com/weirlog/weir/shared/testenv"
	"github.com/weirlog/weir/shared/testenv/authority"
	"github.com/weirlog/weir/shared/testenv/fault"
	"github.com/weirlog/weir/shared/testenv/internal/backend"
	"github.com/weirlog/weir/shared/testenv/port"
)

// A Database is one of the test's own on a server with faults.
type Database struct {
	*fault.Server
	URL string // through the network
}

// Faulty gives the test a database of its own as URL does, on a server
// that no test without faults uses. If only WEIR_TEST_DATABASE_URL
// names the server, only the network before it can have faults.
//
// All faults are healed when the test ends. Tests with faults take
// turns, parallel or not: one that also needs a shared server asks for
// it after this.
func Faulty(t testing.TB) *Database {
	t.Helper()
	fault.Turn(t)
	admin, process, where, err := serverForFaults(t)
	if err != nil {
		t.Fatalf("testenv: no PostgreSQL that faults can be done to: %v", err)
	}
	backend.Announce("PostgreSQL for faults", where)
	server, url := fault.Before(t, "PostgreSQL", newDatabase(t, admin), process)
	return &Database{server, url}
}

// faultyServer is this package's second server: its faults must not
// affect tests without faults.
var faultyServer = sync.OnceValues(func() (*postgres.Server, error) {
	return start(context.Background(), postgres.Config{Killable: true})
})

// serverForFaults returns the superuser's URL of a server for faults.
func serverForFaults(t testing.TB) (admin string, process fault.Process, where string, err error) {
	t.Helper()
	if url := backend.Given(testenv.EnvDatabase); url != "" {
		return url, fault.Given(testenv.EnvDatabase), "given by " + testenv.EnvDatabase, nil
	}
	switch backend.Chosen() {
	case "containers":
		admin, process, err = inContainer(t)
		return admin, process, "container of " + backend.PostgresImage(), err
	case "machine", "kafka":
		server, err := faultyServer()
		if err != nil {
			return "", nil, "", err
		}
		return server.AdminURL(), server, "local server, binaries in " + server.Binaries(), nil
	default:
		return "", nil, "", backend.ErrUnknown()
	}
}

// A Pair is a PostgreSQL server of this machine and its synchronous
// standby: no acknowledged commit is lost with the primary.
type Pair struct {
	Primary *postgres.Server
	Standby string // address of its superuser
	URL     string // of both: clients take the one that may be written to
	Replica string // of the standby alone
}

// NewPair starts the two, which end with the test.
func NewPair(t testing.TB) *Pair {
	t.Helper()
	primary, err := StartDurable(t.Context())
	testenv.Must(t, err)
	t.Cleanup(func() { _ = primary.Stop(context.Background()) })
	free, err := port.Free()
	testenv.Must(t, err)
	second := net.JoinHostPort("127.0.0.1", strconv.Itoa(free))
	alone := func(string) string { return second }
	p := &Pair{Primary: primary, Standby: withHost(t, primary.AdminURL(), alone), Replica: withHost(t, primary.URL(), alone)}
	p.URL = withHost(t, primary.URL(), func(first string) string { return first + "," + second })
	p.URL += "&target_session_attrs=read-write&pool_max_conns=5"
	p.copy(t)
	for _, statement := range []string{
		`ALTER ROLE weir SET synchronous_commit = 'on'`, `ALTER SYSTEM SET synchronous_standby_names = '*'`, `SELECT pg_reload_conf()`,
	} {
		p.Execute(t, primary.AdminURL(), statement)
	}
	testenv.Eventually(t, p.synchronous(t))
	return p
}

func withHost(t testing.TB, address string, host func(string) string) string {
	t.Helper()
	u, err := url.Parse(address)
	testenv.Must(t, err)
	u.Host = host(u.Host)
	return u.String()
}

// copy makes the standby and starts it, by the account that runs the
// primary, in its folder: it ends soon after that is removed.
func (p *Pair) copy(t testing.TB) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), p.Primary.AdminURL())
	testenv.Must(t, err)
	defer conn.Close(context.WithoutCancel(t.Context()))
	var data, most string
	testenv.Must(t, conn.QueryRow(t.Context(), `SELECT current_setting('data_directory'), current_setting('max_connections')`).Scan(&data, &most))
	u, err := url.Parse(p.Standby)
	testenv.Must(t, err)
	folder, bin := filepath.Join(filepath.Dir(data), "standby"), p.Primary.Binaries()
	options := fmt.Sprintf("-p %s -c max_connections=%s -c unix_socket_directories=%s", u.Port(), most, folder)
	for _, command := range []string{
		fmt.Sprintf(`%s/pg_basebackup -d "%s" -D %s -R -X stream --checkpoint=fast`, bin, p.Primary.AdminURL(), folder),
		fmt.Sprintf(`%s/pg_ctl start -w -s -D %s -l %s/log -o "%s"`, bin, folder, folder, options),
	} {
		_, err := conn.Exec(t.Context(), fmt.Sprintf(`COPY (SELECT 1) TO PROGRAM '%s'`, command))
		testenv.Must(t, err)
	}
	t.Cleanup(func() {
		if conn, err := pgx.Connect(context.Background(), p.Standby); err == nil {
			_, _ = conn.Exec(context.Background(), fmt.Sprintf(`COPY (SELECT 1) TO PROGRAM '%s/pg_ctl stop -W -m immediate -D %s'`, bin, folder))
		}
	})
}

// synchronous reports whether commits wait for the standby.
func (p *Pair) synchronous(t testing.TB) func() error {
	return func() error {
		conn, err := pgx.Connect(t.Context(), p.Primary.AdminURL())
		if err != nil {
			return err
		}
		defer conn.Close(context.WithoutCancel(t.Context()))
		var state string
		if err := conn.QueryRow(t.Context(), `SELECT sync_state FROM pg_stat_replication`).Scan(&state); err != nil || state != "sync" {
			return fmt.Errorf("the standby is %q: %w", state, err)
		}
		return nil
	}
}

// FailOver kills the primary and promotes the standby.
func (p *Pair) FailOver(t testing.TB) {
	t.Helper()
	testenv.Must(t, p.Primary.Kill())
	p.Execute(t, p.Standby, `SELECT pg_promote()`)
}

// Execute runs a statement as a superuser of one of the two.
func (p *Pair) Execute(t testing.TB, address, statement string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), address)
	testenv.Must(t, err)
	defer conn.Close(context.WithoutCancel(t.Context()))
	_, err = conn.Exec(t.Context(), statement)
	testenv.Must(t, err)
}

// Encrypt gives a server a certificate for new connections. The server
// writes the files itself: it may run as another user.
func Encrypt(t testing.TB, server *postgres.Server, certificate authority.Certificate) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), server.AdminURL())
	testenv.Must(t, err)
	defer conn.Close(context.WithoutCancel(t.Context()))
	for file, from := range map[string]string{"server.crt": certificate.Cert, "server.key": certificate.Key} {
		text, err := os.ReadFile(from)
		testenv.Must(t, err)
		_, err = conn.Exec(t.Context(), fmt.Sprintf(`COPY (SELECT unnest(string_to_array('%s', chr(10)))) TO PROGRAM 'umask 077; cat > %s'`, text, file))
		testenv.Must(t, err)
	}
	for _, statement := range []string{`ALTER SYSTEM SET ssl = on`, `SELECT pg_reload_conf()`} {
		_, err := conn.Exec(t.Context(), statement)
		testenv.Must(t, err)
	}
}

// inContainer returns the superuser's URL of a PostgreSQL in a container.
func inContainer(t testing.TB) (admin string, _ fault.Process, err error) {
	t.Helper()
	port, err := port.Free()
	if err != nil {
		return "", nil, err
	}
	password := rand.Text()
	admin = fmt.Sprintf("postgres://postgres:%s@127.0.0.1:%d/postgres?sslmode=disable", password, port)
	p, err := backend.RunContainer(backend.PostgresImage(), 5432, port, map[string]string{"POSTGRES_PASSWORD": password}, func(ctx context.Context) error {
		conn, err := pgx.Connect(ctx, admin)
		if err != nil {
			return err
		}
		return conn.Close(ctx)
	})
	if err != nil {
		return "", nil, err
	}
	p.RemoveAtEnd(t)
	return admin, p, nil
}
