package resume_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/weirlog/weir/deploy/allinone"
	"github.com/weirlog/weir/deploy/client"
	"github.com/weirlog/weir/deploy/continuous"
	"github.com/weirlog/weir/deploy/endpoint"
	"github.com/weirlog/weir/shared/embedded/postgres"
	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/testenv"
	"github.com/weirlog/weir/shared/testenv/kafkatest"
	"github.com/weirlog/weir/shared/testenv/postgrestest"
)

// The server is lost and recovered from a continuous backup that was made
// under load, to its end and then to an earlier instant: with the log,
// everything that was accepted is there once.
func TestRecovered(t *testing.T) {
	server, err := postgrestest.StartDurable(t.Context())
	testenv.Must(t, err)
	t.Cleanup(func() { _ = server.Stop(context.Background()) }) // it may be lost already
	dir, err := testenv.Scratch("weir-test-recovered-")
	testenv.Must(t, err)
	testenv.Must(t, os.Chmod(dir, 0o755))
	t.Cleanup(func() { os.RemoveAll(dir) })
	d := &drill{brokers: kafkatest.Brokers(t), dir: dir}
	d.on(t, server)
	var middle time.Time
	d.runs(t, "a continuous backup while it runs", func(t *testing.T, api *client.Client, env allinone.DevEnv) {
		d.post(t, api, env, 2)
		backup := d.backsUp(t, server)
		for d.status(t).Verified.IsZero() {
			d.post(t, api, env, 1)
		}
		middle = time.Now()
		d.post(t, api, env, 5)
		d.archived(t)
		backup()
	})
	d.doctorFinds(t, "archived up to")

	server = d.recovers(t, server, "end", time.Time{})
	d.resumes(t, "Every position is in its log")
	d.sound(t) // nothing has run since: all was in the backup
	d.runs(t, "the server is recovered", func(t *testing.T, api *client.Client, env allinone.DevEnv) { d.post(t, api, env, 2) })
	d.sound(t)

	d.recovers(t, server, "middle", middle)
	if sum, entries := d.kept(t); sum >= d.bytes || entries > d.entries-7 {
		t.Errorf("until %s there were %d bytes in %d charges, of %d in %d", middle, sum, entries, d.bytes, d.entries)
	}
	d.resumes(t, "Every position is in its log")
	d.runs(t, "an earlier instant", func(t *testing.T, api *client.Client, env allinone.DevEnv) { d.post(t, api, env, 2) })
	d.sound(t)
}

// on has the installation use a server.
func (d *drill) on(t *testing.T, server *postgres.Server) {
	d.database = server.URL()
	t.Setenv("WEIR_DATABASE_URL", d.database)
}

// backsUp backs a server up until the returned function is called.
func (d *drill) backsUp(t *testing.T, server *postgres.Server) (end func()) {
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	config := continuous.Config{
		To: d.backups(), Database: httpapi.Secret(server.AdminURL()), Slot: "weir_backup", Interval: 200 * time.Millisecond, Expect: endpoint.Modules, Amcheck: true,
		Schedule: continuous.Schedule{Every: time.Hour, Verify: time.Hour, Keep: 1},
	}
	go func() { ended <- continuous.Run(ctx, config, slog.New(slog.NewTextHandler(t.Output(), nil))) }()
	return func() {
		cancel()
		testenv.Must(t, <-ended)
	}
}

func (d *drill) status(t *testing.T) continuous.Status {
	t.Helper()
	status, err := continuous.ReadStatus(d.backups())
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	return status
}

// archived waits until all that is committed is in the backup.
func (d *drill) archived(t *testing.T) {
	t.Helper()
	now := time.Now()
	testenv.Eventually(t, func() error {
		if at := d.status(t).Archived; !at.After(now) {
			return fmt.Errorf("archived up to %s, want %s", at, now)
		}
		return nil
	})
}

// recovers loses a server, and starts the recovered one.
func (d *drill) recovers(t *testing.T, lost *postgres.Server, name string, until time.Time) *postgres.Server {
	t.Helper()
	testenv.Must(t, lost.Kill())
	home := filepath.Join(d.dir, name)
	testenv.Must(t, os.MkdirAll(home, 0o755))
	begun := time.Now()
	testenv.Must(t, continuous.Recover(t.Context(), continuous.RecoverConfig{From: d.backups(), To: filepath.Join(home, "data"), Until: until}, t.Output()))
	server, err := postgres.Start(t.Context(), postgres.Config{Dir: home, Throwaway: true, Durable: true, Logger: testenv.Logger(t)})
	testenv.Must(t, err)
	t.Cleanup(func() { _ = server.Stop(context.Background()) }) // it may be lost already
	t.Logf("recovered in %s", time.Since(begun).Round(time.Millisecond))
	d.on(t, server)
	d.forgets(t)
	return server
}

// forgets waits until the leases of the lost installation are over.
func (d *drill) forgets(t *testing.T) {
	t.Helper()
	conn := d.connect(t)
	testenv.Eventually(t, func() error {
		var held bool
		err := conn.QueryRow(t.Context(), `SELECT max(expires_at) > clock_timestamp() FROM (SELECT expires_at FROM ingest.bus_relays
			UNION ALL SELECT expires_at FROM ledger.bus_relays UNION ALL SELECT expires_at FROM grouping.bus_relays
			UNION ALL SELECT expires_at FROM tenants.bus_relays) AS leases`).Scan(&held)
		if err == nil && held {
			err = errors.New("a lease is held")
		}
		return err
	})
}
