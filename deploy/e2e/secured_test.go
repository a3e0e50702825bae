//go:build apache

package e2e

import (
	"context"
	"fmt"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weirlog/weir/deploy/acls"
	"github.com/weirlog/weir/deploy/prometheus/recording"
	"github.com/weirlog/weir/shared/bus/cluster"
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/testenv"
	"github.com/weirlog/weir/shared/testenv/apache"
	"github.com/weirlog/weir/shared/testenv/authority"
	"github.com/weirlog/weir/shared/testenv/postgrestest"
)

// Every service as a user of its own at an Apache Kafka that allows what weir
// acls says and nothing else, over TLS, and at PostgreSQL as a role that owns
// nothing. A right that is taken away is one line in the log and an alert;
// nothing is lost, and the service goes on once it is given back.
func TestSecuredProcesses(t *testing.T) {
	judges, s := newRecordings(t), startSecured(t)
	in, started := startProcesses(t, map[string]string{
		"WEIR_TRUSTED_PROXIES": "127.0.0.1", "WEIR_BROKERS": s.node.SignInAddr(), "WEIR_BROKERS_CA_FILE": s.authorities,
	}, s.settings)
	scenario(t, in, func(ctx context.Context, _ <-chan struct{}) {
		for _, l := range losses {
			f := judges.begin(l.fault, s.processes())
			s.lose(t, ctx, l, started[l.service])
			must(t, f.Phase(ctx, recording.FaultMinutes, s.processes()))
			s.permit(t)
			quiet(t, ctx, in)
		}
	})
	judges.judge()
}

// A loss is that of rights to the log.
type loss struct {
	service, fault string
	rights         apache.Rights
	said           string // what the service says then
}

var losses = []loss{
	{"INGEST", mayNotWrite, apache.Writing, "cannot publish"},
	{"LEDGER", mayNotRead, apache.AllRights, "cannot read all partitions"},
	{"GROUPING", mayNotRead, apache.AllRights, "cannot read all partitions"},
}

// lose takes rights from a service, and waits until it says so.
func (s *secured) lose(t *testing.T, ctx context.Context, l loss, from served) {
	t.Helper()
	must(t, s.node.Revoke(ctx, contract.TopicLogs, "User:"+strings.ToLower(l.service), l.rights))
	from.awaitLine(t, l.said+".*Topic Authorization Failed")
}

// awaitLine waits until the service has said something from now on, as a
// regular expression.
func (s served) awaitLine(t *testing.T, line string) {
	t.Helper()
	before, wanted := len(s.output.String()), regexp.MustCompile(line)
	testenv.Eventually(t, viewTimeout, func() error {
		if said := s.output.String()[before:]; !wanted.MatchString(said) {
			return fmt.Errorf("it does not say %q, but %q", line, said)
		}
		return nil
	})
}

// A secured installation is a node with a user for each program, and a database
// with two roles for each module.
type secured struct {
	node        *apache.Broker
	authorities string // file
	databases   map[string]string
	passwords   string            // folder
	metrics     map[string]string // addresses where modules show them
}

func startSecured(t *testing.T) *secured {
	t.Helper()
	trusted := authority.New(t, "trusted", time.Now())
	s := &secured{authorities: trusted.File, databases: map[string]string{}, passwords: t.TempDir(), metrics: map[string]string{}}
	for _, module := range contract.Modules() {
		s.metrics[module] = freeAddress(t)
	}
	users := map[string]string{}
	for _, program := range append(contract.Modules(), acls.Topics) {
		users[program] = "secret-of-" + program
		must(t, os.WriteFile(filepath.Join(s.passwords, program), []byte(users[program]), 0o600))
	}
	var err error
	s.node, err = apache.Start(t.Context(), apache.Config{
		Dir: filepath.Join(t.TempDir(), "node"), Brief: true,
		Secured: &apache.Secured{
			Users: users, Identity: trusted.Issue(t, "broker", time.Now().Add(time.Hour), "127.0.0.1").Both, Authorities: trusted.File,
			Keys: trusted.NewIssuer(t).Keys, Audience: "kafka.weir.example",
		},
	})
	must(t, err)
	t.Cleanup(func() { must(t, s.node.Stop()) })
	s.permit(t)
	s.migrate(t)
	return s
}

// permit gives what weir acls says.
func (s *secured) permit(t *testing.T) {
	t.Helper()
	must(t, cluster.Permit(t.Context(), []string{s.node.Addr()}, nil, acls.Permissions("User:{program}")))
}

// migrate makes a database with two roles for each module.
func (s *secured) migrate(t *testing.T) {
	t.Helper()
	variables := map[string]string{}
	for _, module := range contract.Modules() {
		var role string
		t.Cleanup(func() { postgrestest.Superuser(t, `DROP ROLE `+role) }) // once its database is gone
		owner := postgrestest.URL(t)
		s.databases[module] = postgrestest.Serving(owner)
		serving, err := url.Parse(s.databases[module])
		must(t, err)
		role = serving.User.Username()
		postgrestest.Superuser(t, `CREATE ROLE `+role+` LOGIN PASSWORD '`+role+`'`)
		variables["WEIR_"+strings.ToUpper(module)+"_DATABASE_URL"] = s.databases[module]
		variables["WEIR_"+strings.ToUpper(module)+"_MIGRATE_DATABASE_URL"] = owner
	}
	migrate := launch(t, build(t, "deploy/cmd/weir"), variables, "migrate")
	if err := migrate.wait(); err != nil {
		t.Fatalf("cannot migrate: %v\n%s", err, migrate.output)
	}
}

// settings are those of a service's own.
func (s *secured) settings(service string) map[string]string {
	program := strings.ToLower(service)
	own := map[string]string{"WEIR_BROKERS_USER": program, "WEIR_BROKERS_PASSWORD_FILE": filepath.Join(s.passwords, program)}
	if database := s.databases[program]; database != "" {
		own["WEIR_DATABASE_URL"], own["WEIR_METRICS_LISTEN"] = database, s.metrics[program]
	}
	return own
}

// processes are the addresses where all modules show their metrics.
func (s *secured) processes() []string { return slices.Sorted(maps.Values(s.metrics)) }
