package bus_test

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/shared/prune"
	"github.com/weirlog/weir/shared/testenv"
	"github.com/weirlog/weir/tenants/internal/bus"
	"github.com/weirlog/weir/tenants/internal/challenge"
	"github.com/weirlog/weir/tenants/internal/keys"
	"github.com/weirlog/weir/tenants/internal/people"
	"github.com/weirlog/weir/tenants/internal/registry"
	"github.com/weirlog/weir/tenants/internal/signin"
	"github.com/weirlog/weir/tenants/internal/tenantstest"
)

const day = 24 * time.Hour

// pruneAt prunes the tables as of a time.
func pruneAt(t *testing.T, pool *pgxpool.Pool, now time.Time, forget bus.ForgetCredentials) error {
	t.Helper()
	tables := func(clock func() time.Time) []prune.Table {
		return slices.Concat([]prune.Table{challenge.Table(clock)}, signin.Tables(clock), people.Tables(clock), keys.Tables(clock, forget),
			registry.Tables(clock, forget))
	}
	return prune.New(prune.Config{
		Pool: pool, Tables: tables, Clock: func() time.Time { return now }, Metrics: prometheus.NewRegistry(), Logger: slog.New(slog.DiscardHandler),
	}).RunOnce(t.Context())
}

// rows counts those of a table, as the system.
func rows(t *testing.T, pool *pgxpool.Pool, table string) (n int) {
	t.Helper()
	as(t, pool, func(tx pgx.Tx) error { return tx.QueryRow(t.Context(), `SELECT count(*) FROM `+table).Scan(&n) })
	return n
}

func as(t *testing.T, pool *pgxpool.Pool, fn func(tx pgx.Tx) error) {
	t.Helper()
	testenv.Must(t, pg.InTxAsSystem(t.Context(), pool, fn))
}

// seed adds what the organizations of tenantstest lack.
func seed(t *testing.T, pool *pgxpool.Pool) {
	t.Helper()
	as(t, pool, func(tx pgx.Tx) error {
		_, err := tx.Exec(t.Context(), `
			INSERT INTO challenges VALUES ('*', repeat('0', 64), 'p', '', '{}', $1);
			`, tenantstest.Noon)
		if err != nil {
			return err
		}
		for _, statement := range []string{
			`INSERT INTO api_key_usage (organization, api_key, accepted, rejected, refused, accepted_since, rejected_since, last_used_at, address, client)
				SELECT organization, id, 1, 0, 0, 0, 0, $1, '', '' FROM api_keys`,
			`INSERT INTO api_key_users SELECT organization, id, 'a', 'c', $1 FROM api_keys`,
			`INSERT INTO devices SELECT organization, id, repeat(right(organization, 1), 64), '', $1, $1 FROM members WHERE removed_at IS NULL`,
			`INSERT INTO sign_in_failures SELECT organization, id, 0, 0, '{}', NULL, $1 FROM members WHERE removed_at IS NOT NULL
				ON CONFLICT (organization, member) DO UPDATE SET failed = 0, refused = 0, told_at = $1`,
		} {
			if _, err := tx.Exec(t.Context(), statement, tenantstest.Noon); err != nil {
				return err
			}
		}
		return nil
	})
}

// Each table keeps what has ended for its time
// and no longer, and all that is in force.
func TestTables(t *testing.T) {
	pool := tenantstest.Open(t)
	seed(t, pool)
	before := map[string]int{}
	tables := []string{
		"sessions", "challenges", "devices", "sign_in_failures", "invitations", "members", "passkeys", "api_keys", "service_tokens", "api_key_usage", "api_key_users",
		"organizations", "projects",
	}
	for _, table := range tables {
		before[table] = rows(t, pool, table)
	}
	var forgotten []string
	forget := func(_ context.Context, credentials []bus.EndedCredential) error {
		for _, credential := range credentials {
			forgotten = append(forgotten, credential.ID)
		}
		return nil
	}
	testenv.Must(t, pruneAt(t, pool, tenantstest.Noon, forget))
	for _, table := range tables {
		if n := rows(t, pool, table); n != before[table] || n == 0 {
			t.Errorf("at once %d of %d rows of %s are left", n, before[table], table)
		}
	}
	testenv.Must(t, pruneAt(t, pool, tenantstest.Noon.Add(120*day), forget))
	if err := pruneAt(t, pool, tenantstest.Noon.Add(121*day), forget); err != nil { // members are removed after what refers to them
		t.Fatal(err)
	}
	want := map[string]int{"members": 2, "passkeys": 2, "organizations": 2, "projects": 2}
	for _, table := range tables {
		if n := rows(t, pool, table); n != want[table] {
			t.Errorf("after 121 days %d rows of %s are left, want %d", n, table, want[table])
		}
	}
	slices.Sort(forgotten)
	if !slices.Equal(forgotten, []string{"key_a", "key_b", "tok_a", "tok_b"}) {
		t.Errorf("forgotten are %v", forgotten)
	}
}

// What can't be forgotten everywhere stays.
func TestCredentialsAreForgottenFirst(t *testing.T) {
	pool, away := tenantstest.Open(t), errors.New("the broker is away")
	err := pruneAt(t, pool, tenantstest.Noon.Add(91*day), func(context.Context, []bus.EndedCredential) error { return away })
	if !errors.Is(err, away) || rows(t, pool, "api_keys") != 2 || rows(t, pool, "service_tokens") != 2 {
		t.Errorf("%d keys and %d tokens are left, %v", rows(t, pool, "api_keys"), rows(t, pool, "service_tokens"), err)
	}
}
