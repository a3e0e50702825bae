//go:build replicas

package e2e

import (
	"context"
	"fmt"
	"net/url"
	"path/filepath"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/shared/embedded/postgres"
	"github.com/weirlog/weir/shared/testenv"
)

// A pair is a PostgreSQL server and its standby, without which it commits
// nothing: whoever was answered loses nothing with it.
type pair struct {
	primary *postgres.Server
	standby string // address of its superuser
	url     string // of both: clients take the one that may be written to
}

func newPair(t *testing.T) *pair {
	t.Helper()
	primary, err := testenv.LocalPostgres(t.Context())
	must(t, err)
	t.Cleanup(func() { _ = primary.Stop(context.Background()) })
	second := freeAddress(t)
	p := &pair{primary: primary, standby: withHost(t, primary.AdminURL(), func(string) string { return second })}
	p.url = withHost(t, primary.URL(), func(first string) string { return first + "," + second })
	p.url += "&target_session_attrs=read-write&pool_max_conns=5"
	p.copy(t)
	for _, statement := range []string{
		`ALTER ROLE weir SET synchronous_commit = 'on'`, `ALTER SYSTEM SET synchronous_standby_names = '*'`, `SELECT pg_reload_conf()`,
	} {
		execute(t, primary.AdminURL(), statement)
	}
	testenv.Eventually(t, setupTimeout, p.synchronous(t))
	return p
}

func withHost(t *testing.T, address string, host func(string) string) string {
	t.Helper()
	u, err := url.Parse(address)
	must(t, err)
	u.Host = host(u.Host)
	return u.String()
}

// copy makes the standby and starts it, by the account that runs the primary,
// in its folder: it ends soon after that is removed.
func (p *pair) copy(t *testing.T) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), p.primary.AdminURL())
	must(t, err)
	defer conn.Close(context.WithoutCancel(t.Context()))
	var data, most string
	must(t, conn.QueryRow(t.Context(), `SELECT current_setting('data_directory'), current_setting('max_connections')`).Scan(&data, &most))
	u, err := url.Parse(p.standby)
	must(t, err)
	folder, bin := filepath.Join(filepath.Dir(data), "standby"), p.primary.Binaries()
	options := fmt.Sprintf("-p %s -c fsync=off -c max_connections=%s -c unix_socket_directories=%s", u.Port(), most, folder)
	for _, command := range []string{
		fmt.Sprintf(`%s/pg_basebackup -d "%s" -D %s -R -X stream --checkpoint=fast`, bin, p.primary.AdminURL(), folder),
		fmt.Sprintf(`%s/pg_ctl start -w -s -D %s -l %s/log -o "%s"`, bin, folder, folder, options),
	} {
		_, err := conn.Exec(t.Context(), fmt.Sprintf(`COPY (SELECT 1) TO PROGRAM '%s'`, command))
		must(t, err)
	}
	t.Cleanup(func() {
		if conn, err := pgx.Connect(context.Background(), p.standby); err == nil {
			_, _ = conn.Exec(context.Background(), fmt.Sprintf(`COPY (SELECT 1) TO PROGRAM '%s/pg_ctl stop -W -m immediate -D %s'`, bin, folder))
		}
	})
}

// synchronous reports whether commits wait for the standby.
func (p *pair) synchronous(t *testing.T) func() error {
	return func() error {
		conn, err := pgx.Connect(t.Context(), p.primary.AdminURL())
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

// failOver kills the primary and promotes the standby.
func (p *pair) failOver(t *testing.T) {
	t.Helper()
	must(t, p.primary.Kill())
	execute(t, p.standby, `SELECT pg_promote()`)
}

func execute(t *testing.T, address, statement string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), address)
	must(t, err)
	defer conn.Close(context.WithoutCancel(t.Context()))
	_, err = conn.Exec(t.Context(), statement)
	must(t, err)
}
