package pg_test

import (
	"errors"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/shared/pg/pgtest"
	"github.com/weirlog/weir/shared/testenv"
	"github.com/weirlog/weir/shared/testenv/postgrestest"
)

// The serving role creates and drops days, and reads and writes with its
// rights as one organization, though it owns nothing. It can do no more.
func TestServing(t *testing.T) {
	pool := pgtest.Open(t, schema, pg.Partitions(), notes)
	for _, organization := range []string{"org_1", "org_2"} {
		testenv.Must(t, insert(t, pool, organization, asOrganization(organization)))
	}
	if rows := count(t, pool, asOrganization("org_1")); rows != 1 {
		t.Errorf("org_1 sees %d rows", rows)
	}
	for _, statement := range []string{
		`UPDATE notes SET text = ''`, `DELETE FROM notes`, `TRUNCATE notes`, `DROP TABLE notes`, `ALTER TABLE notes DISABLE ROW LEVEL SECURITY`,
		`UPDATE notes_20261121 SET text = ''`, `DROP TABLE notes_20261121`, `CREATE TABLE more (id int)`, `CREATE TABLE public.more (id int)`,
		`DELETE FROM migrations`, `DROP SCHEMA pgtest CASCADE`,
		`SELECT attach_partition('migrations', '2026-11-21', NULL, NULL)`, `SELECT hold_day('migrations', '2026-11-21')`, `SELECT drop_day('migrations', '2026-11-21')`,
	} {
		if _, err := pool.Exec(t.Context(), statement); err == nil || !strings.Contains(err.Error(), "42501") {
			t.Errorf("%s: %v, want it refused", statement, err)
		}
	}
	err := pg.InTx(t.Context(), pool, func(tx pgx.Tx) error {
		return errors.Join(pg.HoldDay(t.Context(), tx, "notes", day), pg.DropDay(t.Context(), tx, "notes", day))
	})
	if err != nil {
		t.Error(err)
	}
}

// A partition is of a day or of a value, and only one of a value has
// its own partitions.
func TestPartitionIsOfOneKind(t *testing.T) {
	pool := pgtest.Open(t, schema, pg.Partitions(), notes)
	for _, arguments := range []string{`NULL, NULL, NULL`, `'2026-11-21', 1, NULL`, `'2026-11-21', NULL, 'day'`, `'2026-11-21', 1, 'day'`} {
		if _, err := pool.Exec(t.Context(), `SELECT attach_partition('notes', `+arguments+`)`); err == nil || !strings.Contains(err.Error(), "22023") {
			t.Errorf("%s: %v, want it refused", arguments, err)
		}
	}
}

// Other roles have no rights: those of other modules neither see into
// the schema nor call its functions.
func TestServingIsForOneRole(t *testing.T) {
	owner := pgtest.OpenOwned(t, schema, pg.Partitions(), notes)
	var public int
	err := owner.QueryRow(t.Context(), `SELECT (SELECT count(*) FROM pg_namespace, aclexplode(nspacl) WHERE nspname = $1 AND grantee = 0)
		+ (SELECT count(*) FROM pg_class, aclexplode(relacl) WHERE relnamespace = $1::regnamespace AND grantee = 0)
		+ (SELECT count(*) FROM pg_proc, aclexplode(coalesce(proacl, acldefault('f', proowner))) WHERE pronamespace = $1::regnamespace AND grantee = 0)`,
		schema).Scan(&public)
	if err != nil || public != 0 {
		t.Errorf("everybody has %d rights, %v", public, err)
	}
}

// Grant gives and revokes: afterwards the role has the sets' rights,
// also to existing partitions.
func TestGrantTakesWhatIsNoLongerNeeded(t *testing.T) {
	url := pgtest.Owned(t, schema, pg.Partitions(), notes)
	owner, serving := connectTo(t, url), connectTo(t, postgrestest.Serving(url))
	testenv.Must(t, insert(t, serving, "org_1", asOrganization("org_1")))
	role := serving.Config().ConnConfig.User
	for rights, want := range map[string]bool{"SELECT, INSERT, DELETE": true, "SELECT": false} {
		now := notes
		now.Rights = pg.Rights{"notes": rights}
		testenv.Must(t, pg.Grant(t.Context(), owner, pg.Schema{Name: schema, Migrations: []pg.MigrationSet{pg.Partitions(), now}}, role))
		for _, statement := range []string{`DELETE FROM notes`, `DELETE FROM notes_20261121`} {
			if _, err := serving.Exec(t.Context(), statement); (err == nil) != want {
				t.Errorf("with %s, %s: %v", rights, statement, err)
			}
		}
	}
}

func connectTo(t *testing.T, url string) *pgxpool.Pool {
	t.Helper()
	pool, err := pg.Open(t.Context(), url, schema)
	testenv.Must(t, err)
	t.Cleanup(pool.Close)
	return pool
}

// Days that services drop meanwhile do not stop a grant.
func TestGrantBesideDrops(t *testing.T) {
	url := pgtest.Owned(t, schema, pg.Partitions(), notes)
	owner, serving := connectTo(t, url), connectTo(t, postgrestest.Serving(url))
	testenv.Must(t, insert(t, serving, "org_1", asOrganization("org_1")))
	now, granted := notes, make(chan error, 1)
	now.Rights = pg.Rights{"notes": "SELECT"}
	err := pg.InTx(t.Context(), serving, func(tx pgx.Tx) error {
		if err := pg.DropDay(t.Context(), tx, "notes", day); err != nil {
			return err
		}
		role := serving.Config().ConnConfig.User
		go func() {
			granted <- pg.Grant(t.Context(), owner, pg.Schema{Name: schema, Migrations: []pg.MigrationSet{pg.Partitions(), now}}, role)
		}()
		untilWaiting(t, owner)
		return nil
	})
	if err := errors.Join(err, <-granted); err != nil {
		t.Error(err)
	}
}

// untilWaiting returns once a transaction waits for a lock or
// for another transaction.
func untilWaiting(t *testing.T, pool *pgxpool.Pool) {
	t.Helper()
	testenv.Eventually(t, func() error {
		var waiting bool
		err := pool.QueryRow(t.Context(), `SELECT EXISTS (SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock')`).Scan(&waiting)
		if err == nil && !waiting {
			err = errors.New("nobody waits yet")
		}
		return err
	})
}

// untilGivenWay returns once a migration knows that it did not get its
// lock: PostgreSQL lets writers pass before its client has read why.
func untilGivenWay(t *testing.T, pool *pgxpool.Pool) {
	t.Helper()
	testenv.Eventually(t, func() error {
		var trying bool
		err := pool.QueryRow(t.Context(), `SELECT EXISTS (SELECT FROM pg_stat_activity
			WHERE datname = current_database() AND query LIKE 'ALTER TABLE notes%' AND state <> 'idle')`).Scan(&trying)
		if err == nil && trying {
			err = errors.New("the migration still tries")
		}
		return err
	})
}

// Correct rights are not touched, so that services notice nothing.
func TestGrantAgainChangesNothing(t *testing.T) {
	url := pgtest.Owned(t, schema, pg.Partitions(), notes)
	owner := connectTo(t, url)
	serving, err := pgx.ParseConfig(postgrestest.Serving(url))
	testenv.Must(t, err)
	versions := func() (all string) {
		err := owner.QueryRow(t.Context(), `SELECT string_agg(xmin::text, ' ' ORDER BY at) FROM (
			SELECT oid AS at, xmin FROM pg_namespace WHERE nspname = $1 UNION ALL SELECT oid, xmin FROM pg_class WHERE relnamespace = $1::regnamespace
			UNION ALL SELECT oid, xmin FROM pg_proc WHERE pronamespace = $1::regnamespace) AS entries`, schema).Scan(&all)
		testenv.Must(t, err)
		return all
	}
	before := versions()
	testenv.Must(t, pg.Grant(t.Context(), owner, pg.Schema{Name: schema, Migrations: []pg.MigrationSet{pg.Partitions(), notes}}, serving.User))
	if after := versions(); after != before {
		t.Errorf("entries of the catalogue are of %s instead of %s", after, before)
	}
}

// A role that doesn't own the schema migrates nothing; its error names
// the missing migrations and the role that adds them.
func TestServingDoesNotMigrate(t *testing.T) {
	url := pgtest.URL(t, schema, pg.Partitions(), notes)
	if _, err := pg.OpenMigrated(t.Context(), url, "elsewhere", notes); !errors.Is(err, pg.ErrNotMigrated) || !strings.Contains(err.Error(), "weir migrate") {
		t.Errorf("of a schema that is not there: %v", err)
	}
	pool := connectTo(t, url)
	more := pg.MigrationSet{Name: "more", FS: fstest.MapFS{"migrations/0001_more.sql": {Data: []byte(`CREATE TABLE more (id int)`)}}}
	if err := pg.Migrate(t.Context(), pool, schema, pg.Partitions(), notes); err != nil {
		t.Errorf("of what is up to date: %v", err)
	}
	err := pg.Migrate(t.Context(), pool, schema, pg.Partitions(), notes, more)
	if !errors.Is(err, pg.ErrNotMigrated) || !strings.Contains(err.Error(), "more/0001_more.sql") || !strings.Contains(err.Error(), "weir migrate") {
		t.Errorf("of what is missing: %v", err)
	}
}

// A role that can't migrate also refuses an unfinished restore.
func TestServingRefusesAPart(t *testing.T) {
	url := pgtest.Owned(t, schema, pg.Partitions(), notes)
	owner, serving := connectTo(t, url), connectTo(t, postgrestest.Serving(url))
	must := func(err error) {
		t.Helper()
		testenv.Must(t, err)
	}
	must(pg.InTx(t.Context(), owner, func(tx pgx.Tx) error { return pg.Comment(t.Context(), tx, schema, pg.Unfinished) }))
	if err := pg.Migrate(t.Context(), serving, schema, pg.Partitions(), notes); err == nil || !strings.Contains(err.Error(), "part of a backup") {
		t.Errorf("Migrate = %v", err)
	}
}
