package doctor

import (
	"bytes"
	"cmp"
	"encoding/json"
	"flag"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	ledger "github.com/weirlog/weir/ledger/app"
	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/shared/pg/pgtest"
	"github.com/weirlog/weir/shared/testenv"
	"github.com/weirlog/weir/shared/testenv/postgrestest"
)

var databaseFaults = []fault{
	{"wrong password", func(t *testing.T, i *installation, _ *Config) {
		t.Setenv("WEIR_DATABASE_URL", i.as(t, func(u *url.URL) { u.User = url.UserPassword(u.User.Username(), wrongPassword) }))
	}, Finding{Check: "database", Subject: "ledger", Level: Fail, Seen: "password authentication failed"}},
	{"wrong database", func(t *testing.T, i *installation, _ *Config) {
		t.Setenv("WEIR_LEDGER_DATABASE_URL", i.as(t, func(u *url.URL) { u.Path = "/weir_nowhere" }))
	}, Finding{Check: "database", Subject: "ledger", Level: Fail, Seen: `database "weir_nowhere" does not exist`}},
	{"stopped database", func(t *testing.T, i *installation, _ *Config) {
		t.Setenv("WEIR_DATABASE_URL", i.as(t, func(u *url.URL) { u.Host = unusable }))
	}, Finding{Check: "database", Subject: "tenants", Level: Fail, Seen: "refused"}},
	{"replica that is none", func(t *testing.T, i *installation, _ *Config) {
		t.Setenv("WEIR_LEDGER_REPLICA_DATABASE_URL", i.database)
	}, Finding{Check: "replica", Subject: "ledger", Level: Warn, Seen: "no standby of the database"}},
	{"stopped replica", func(t *testing.T, i *installation, _ *Config) {
		t.Setenv("WEIR_REPLICA_DATABASE_URL", i.as(t, func(u *url.URL) { u.Host = unusable }))
	}, Finding{Check: "replica", Subject: "ingest", Level: Warn, Seen: "refused"}},
	{"too few connections", func(_ *testing.T, _ *installation, c *Config) { c.Replicas = 1000 },
		Finding{Check: "connections", Subject: "", Level: Fail, Seen: "--replicas=1000"}},
	{"clocks that differ", func(_ *testing.T, _ *installation, c *Config) {
		c.Machine.Clock = func() time.Time { return time.Now().Add(10 * time.Minute) }
	}, Finding{Check: "clock", Subject: "grouping", Level: Fail, Seen: "10m0"}},
	{"missing migration", func(t *testing.T, i *installation, _ *Config) {
		i.change(t, `DELETE FROM ledger.migrations WHERE file = '0001_ledger.sql'`, `INSERT INTO ledger.migrations (set_name, file) VALUES ('ledger', '0001_ledger.sql')`)
	}, Finding{Check: "migrations", Subject: "ledger", Level: Fail, Seen: "ledger/0001_ledger.sql"}},
	{"newer version", func(t *testing.T, i *installation, _ *Config) {
		i.change(t, `INSERT INTO ingest.migrations (set_name, file) VALUES ('ingest', '9999_later.sql')`, `DELETE FROM ingest.migrations WHERE file = '9999_later.sql'`)
	}, Finding{Check: "migrations", Subject: "ingest", Level: Warn, Seen: "9999_later.sql"}},
}

// serveAs makes a role other than the owner serve the ledger, with
// other rights than serving needs.
func (i *installation) serveAs(t *testing.T, name, change string) {
	role := strings.Replace(i.role(t), "weir_test_", "weir_test_"+name+"_", 1)
	t.Helper()
	postgrestest.Superuser(t, `CREATE ROLE `+role+` LOGIN PASSWORD '`+role+`'`)
	t.Cleanup(func() { postgrestest.Superuser(t, `DROP ROLE `+role) })
	owner, err := pg.Open(t.Context(), i.database, "ledger")
	testenv.Must(t, err)
	defer owner.Close()
	t.Cleanup(func() {
		for _, what := range []string{"ALL TABLES IN SCHEMA ledger", "ALL SEQUENCES IN SCHEMA ledger", "ALL FUNCTIONS IN SCHEMA ledger", "SCHEMA ledger"} {
			i.exec(t, `REVOKE ALL ON `+what+` FROM `+role)
		}
	})
	testenv.Must(t, pg.Grant(t.Context(), owner, ledger.Schema(), role))
	i.exec(t, strings.ReplaceAll(change, "ROLE", role))
	t.Setenv("WEIR_LEDGER_DATABASE_URL", i.as(t, func(u *url.URL) { u.User = url.UserPassword(role, role) }))
}

var roleFaults = []fault{
	{"role that bypasses row level security", func(t *testing.T, i *installation, _ *Config) {
		postgrestest.Superuser(t, `ALTER ROLE `+i.role(t)+` BYPASSRLS`)
		t.Cleanup(func() { postgrestest.Superuser(t, `ALTER ROLE `+i.role(t)+` NOBYPASSRLS`) })
	}, Finding{Check: "role", Subject: "ingest", Level: Fail, Seen: "BYPASSRLS"}},
	{"role that sees another module's schema", func(t *testing.T, i *installation, _ *Config) {
		other := strings.Replace(i.role(t), "weir_test_", "weir_test_other_", 1)
		postgrestest.Superuser(t, `CREATE ROLE `+other+` LOGIN PASSWORD '`+other+`'`)
		t.Cleanup(func() { postgrestest.Superuser(t, `DROP ROLE `+other) })
		i.change(t, `GRANT USAGE ON SCHEMA ledger, tenants TO `+other, `REVOKE USAGE ON SCHEMA ledger, tenants FROM `+other)
		t.Setenv("WEIR_LEDGER_DATABASE_URL", i.as(t, func(u *url.URL) { u.User = url.UserPassword(other, other) }))
	}, Finding{Check: "role", Subject: "ledger", Level: Fail, Seen: "may look into the schema of tenants"}},
	{"role that owns what another one migrates", func(t *testing.T, i *installation, _ *Config) {
		t.Setenv("WEIR_LEDGER_MIGRATE_DATABASE_URL", i.database)
	}, Finding{Check: "role", Subject: "ledger", Level: Fail, Seen: "owns its schema"}},
	{"role that may do more than serve", func(t *testing.T, i *installation, _ *Config) {
		i.serveAs(t, "serving", `GRANT TRUNCATE ON ledger.links TO ROLE`)
	}, Finding{Check: "role", Subject: "ledger", Level: Fail, Seen: "more than serving needs with links"}},
	{"role that may change a column", func(t *testing.T, i *installation, _ *Config) {
		i.serveAs(t, "changing", `GRANT UPDATE (decided) ON ledger.links TO ROLE`)
	}, Finding{Check: "role", Subject: "ledger", Level: Fail, Seen: "more than serving needs with links"}},
	{"role that can't use a sequence", func(t *testing.T, i *installation, _ *Config) {
		i.serveAs(t, "counting", `REVOKE USAGE ON SEQUENCE ledger.versions FROM ROLE`)
	}, Finding{Check: "role", Subject: "ledger", Level: Fail, Seen: "can't use as serving needs versions"}},
	{"role that may make tables", func(t *testing.T, i *installation, _ *Config) {
		i.serveAs(t, "making", `GRANT CREATE ON SCHEMA ledger TO ROLE`)
	}, Finding{Check: "role", Subject: "ledger", Level: Fail, Seen: "may make things in its schema"}},
	{"row level security that is not forced", func(t *testing.T, i *installation, _ *Config) {
		i.change(t, `ALTER TABLE ledger.links NO FORCE ROW LEVEL SECURITY`, `ALTER TABLE ledger.links FORCE ROW LEVEL SECURITY`)
	}, Finding{Check: "role", Subject: "ledger", Level: Fail, Seen: "not forced on links"}},
}

// lost drops an object of the ledger until the test ends.
func lost(lose, restore string) func(*testing.T, *installation, *Config) {
	return func(t *testing.T, i *installation, _ *Config) { i.change(t, lose, restore) }
}

var objectFaults = []fault{
	{"dropped index", lost(`DROP INDEX ledger.links_hour`, `CREATE INDEX links_hour ON ledger.links (hour)`),
		Finding{Check: "schema", Subject: "ledger", Level: Warn, Seen: "the index links_hour of links is missing"}},
	{"dropped constraint", lost(`ALTER TABLE ledger.answers DROP CONSTRAINT answers_pkey`,
		`ALTER TABLE ledger.answers ADD CONSTRAINT answers_pkey PRIMARY KEY (organization, key)`),
		Finding{Check: "schema", Subject: "ledger", Level: Fail, Seen: "the constraint answers_pkey of answers is missing"}},
	{"disabled trigger", lost(`ALTER TABLE ledger.facts DISABLE TRIGGER facts_take_turn`, `ALTER TABLE ledger.facts ENABLE TRIGGER facts_take_turn`),
		Finding{Check: "schema", Subject: "ledger", Level: Fail, Seen: "the trigger facts_take_turn of facts is missing"}},
	{"policy of another name", lost(`ALTER POLICY organization ON ledger.links RENAME TO everybody`, `ALTER POLICY everybody ON ledger.links RENAME TO organization`),
		Finding{Check: "schema", Subject: "ledger", Level: Fail, Seen: "the policy organization of links is missing"}},
}

var update = flag.Bool("update", false, "rewrite the lists of objects")

// The doctor knows exactly the objects of all migrations; -update
// writes them after a migration.
func TestObjectsAreThoseOfMigrations(t *testing.T) {
	for _, m := range modules {
		rows, err := pgtest.Open(t, m.schema.Name, m.schema.Migrations...).Query(t.Context(), objectsQuery, m.schema.Name)
		testenv.Must(t, err)
		made, err := pgx.CollectRows(rows, pgx.RowToStructByPos[object])
		testenv.Must(t, err)
		slices.SortFunc(made, func(a, b object) int {
			return cmp.Or(cmp.Compare(a.Table, b.Table), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name))
		})
		if *update {
			writeObjects(t, m.name, made)
			continue
		}
		known, err := objectsOf(m.name)
		testenv.Must(t, err)
		if !slices.Equal(known, made) {
			t.Errorf("the migrations of %s have changed: go test ./deploy/doctor -run TestObjects -update", m.name)
		}
	}
}

func writeObjects(t *testing.T, module string, objects []object) {
	t.Helper()
	var lines bytes.Buffer
	encoder := json.NewEncoder(&lines)
	encoder.SetEscapeHTML(false)
	for _, o := range objects {
		testenv.Must(t, encoder.Encode(o))
	}
	testenv.Must(t, os.WriteFile("objects/"+module+".jsonl", lines.Bytes(), 0o644))
}

// Each setting without which the server may lose commits or fill is found, and no
// other. Test servers have some of them on purpose.
func TestSettingsThatAreOff(t *testing.T) {
	pool, err := pg.Open(t.Context(), postgrestest.URL(t), "ledger")
	testenv.Must(t, err)
	defer pool.Close()
	c := &moduleChecker{checker: newChecker(Config{}), module: modules[1], pool: pool}
	c.serverSettings(t.Context())
	var want []Level
	for _, setting := range sorted(neededOn) {
		var value string
		testenv.Must(t, pool.QueryRow(t.Context(), `SELECT current_setting($1)`, setting).Scan(&value))
		if value == "off" {
			want = append(want, neededOn[setting].level)
		}
	}
	var found []Level
	for _, f := range c.report.Findings {
		found = append(found, f.Level)
	}
	if !slices.Equal(found, want) {
		t.Errorf("found %+v, want %v", c.report.Findings, want)
	}
}

// Log is kept for a standby that is away for a while, and not unnoticed for one that is gone.
func TestAbandonedSlots(t *testing.T) {
	for slot, want := range map[replicationSlot]bool{
		{Name: "away", Kept: 1 << 20}: false, {Name: "behind", Active: true, Kept: 1 << 40}: false, {Name: "gone", Kept: 1<<30 + 1}: true,
	} {
		if slot.abandoned() != want {
			t.Errorf("%+v is abandoned: %t", slot, !want)
		}
	}
}

// Servers elsewhere must not be reached in the clear, unless the network is private.
func TestPrivateHosts(t *testing.T) {
	for host, want := range map[string]bool{"localhost": true, "127.0.0.1": true, "::1": true, "10.0.0.1": false, "postgres": false, "": false} {
		c := newChecker(Config{})
		if c.isPrivate(host) != want {
			t.Errorf("%q is private: %t", host, !want)
		}
		if c.PrivateNetwork = true; !c.isPrivate(host) {
			t.Errorf("%q is not private in a private network", host)
		}
	}
}
