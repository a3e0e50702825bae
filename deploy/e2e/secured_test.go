//go:build apache

package e2e

import (
	"context"
	"crypto/rand"
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
	"github.com/weirlog/weir/deploy/endpoint"
	"github.com/weirlog/weir/deploy/prometheus/recording"
	"github.com/weirlog/weir/deploy/provision"
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/testenv"
	"github.com/weirlog/weir/shared/testenv/apache"
	"github.com/weirlog/weir/shared/testenv/authority"
	"github.com/weirlog/weir/shared/testenv/postgrestest"
)

// Every service with its own user at an Apache Kafka that allows only
// the rights of weir acls, and at PostgreSQL as a role that owns
// nothing, both over TLS, by the commands of secure.md. The doctor finds
// nothing. A revoked right causes one line in the log and an alert;
// nothing is lost, and the service continues once it is restored.
func TestSecuredProcesses(t *testing.T) {
	judges, s := newRecordings(t), startSecured(t)
	in, started := startProcesses(t, map[string]string{
		"WEIR_TRUSTED_PROXIES": "127.0.0.1", "WEIR_BROKERS": s.given["WEIR_BROKERS"], "WEIR_BROKERS_CA_FILE": s.given["WEIR_BROKERS_CA_FILE"],
	}, s.settings)
	s.as(acls.Doctor, "weir doctor")
	scenario(t, in, func(ctx context.Context, _ <-chan struct{}) {
		for _, l := range losses {
			f := judges.begin(l.fault, s.processes())
			s.lose(t, ctx, l, started[l.service])
			testenv.Must(t, f.Phase(ctx, recording.FaultMinutes, s.processes()))
			s.as(administrator, "weir acls --apply")
			quiet(t, ctx, in)
		}
	})
	judges.judge()
}

// A loss is that of rights to the log.
type loss struct {
	service, fault string
	rights         apache.Rights
	said           string // the service's message then
}

var losses = []loss{
	{"INGEST", mayNotWrite, apache.Writing, "cannot publish"},
	{"LEDGER", mayNotRead, apache.AllRights, "cannot read all partitions"},
	{"GROUPING", mayNotRead, apache.AllRights, "cannot read all partitions"},
}

// lose revokes rights of a service, and waits for its message.
func (s *secured) lose(t *testing.T, ctx context.Context, l loss, from served) {
	t.Helper()
	testenv.Must(t, s.node.Revoke(ctx, contract.TopicLogs, "User:"+strings.ToLower(l.service), l.rights))
	from.awaitLine(t, l.said+".*Topic Authorization Failed")
}

// awaitLine waits until the service writes a new line that matches
// a regular expression.
func (s served) awaitLine(t *testing.T, line string) {
	t.Helper()
	before, wanted := len(s.Output.String()), regexp.MustCompile(line)
	testenv.Eventually(t, func() error {
		if said := s.Output.String()[before:]; !wanted.MatchString(said) {
			return fmt.Errorf("it does not say %q, but %q", line, said)
		}
		return nil
	})
}

// administrator is the broker's user who may change rights.
const administrator = "admin"

// A secured installation is the result of the page on a node that
// admits only users, and a server with a certificate.
type secured struct {
	*operator

	node    *apache.Broker
	metrics map[string]string // addresses of modules' metrics
}

func startSecured(t *testing.T) *secured {
	t.Helper()
	trusted, passwords := authority.New(t, "trusted", time.Now()), map[string]string{administrator: rand.Text()}
	node, err := apache.Start(t.Context(), apache.Config{
		Dir: filepath.Join(t.TempDir(), "node"), Brief: true,
		Secured: &apache.Secured{
			Users: passwords, Identity: issue(t, trusted).Both, Authorities: trusted.File,
			Keys: trusted.NewIssuer(t).Keys, Audience: "kafka.weir.example",
		},
	})
	testenv.Must(t, err)
	t.Cleanup(func() { testenv.Must(t, node.Stop()) })
	s := &secured{operator: newOperator(t, node.SignInAddr()), node: node, metrics: map[string]string{}}
	for _, module := range contract.Modules() {
		s.metrics[module] = freeAddress(t)
	}
	postgrestest.Encrypt(t, s.postgres, issue(t, trusted))
	s.provide(passwords, trusted)
	s.secure()
	return s
}

// issue issues the certificate of a local server.
func issue(t *testing.T, by *authority.Authority) authority.Certificate {
	t.Helper()
	return by.Issue(t, "server", time.Now().Add(time.Hour), "127.0.0.1")
}

// provide creates the databases, and the files that the page expects.
func (s *secured) provide(passwords map[string]string, trusted *authority.Authority) {
	s.t.Helper()
	s.run(`weir provision secrets --postgres "$PGHOST" && psql --quiet --host="$PGHOST" --username="$PGUSER" --file=secrets/roles.sql`)
	authorities, err := os.ReadFile(trusted.File)
	testenv.Must(s.t, err)
	s.write("kafka_ca.pem", string(authorities))
	s.write("postgres_ca.pem", string(authorities))
	s.write(provision.BrokerPassword(administrator), passwords[administrator])
	lines := ""
	for _, module := range contract.Modules() {
		for _, kind := range []string{"", "_migrate"} {
			address, err := url.Parse(s.read("secrets/" + module + kind + "_database_url"))
			testenv.Must(s.t, err)
			password, _ := address.User.Password()
			lines += fmt.Sprintf("*:*:*:%s:%s\n", address.User.Username(), password)
		}
	}
	s.write("pgpass", lines)
	delete(s.given, "PGPASSWORD") // it overrides a passfile
}

func (s *secured) write(secret, text string) {
	s.t.Helper()
	testenv.Must(s.t, os.WriteFile(filepath.Join(s.folder, "secrets", secret), []byte(text), 0o600))
}

// secure follows the page, and migrates.
func (s *secured) secure() {
	s.t.Helper()
	s.follow("secure.md", "Encrypt")
	steps := s.blocks("secure.md", "Allow what is needed")
	s.as(administrator, steps[0])
	s.as(acls.Topics, steps[1])
	s.follow("secure.md", "Encrypt, and verify the server")
	for _, module := range contract.Modules() {
		s.given[endpoint.DatabaseOf(module)] = s.database(module)
		s.given[endpoint.MigratingDatabaseOf(module)] = strings.Replace(s.database(module), "//"+module+"@", "//"+module+"_owner@", 1)
	}
	s.run("weir migrate")
}

// database returns the page's address of the ledger's database, for a module.
func (s *secured) database(module string) string {
	return strings.ReplaceAll(s.given["WEIR_DATABASE_URL"], "ledger", module)
}

// as runs commands as a user of the broker.
func (s *secured) as(user, block string) {
	s.t.Helper()
	maps.Copy(s.given, s.signIn(user))
	s.run(block)
}

// signIn returns the settings of a user of the broker.
func (s *secured) signIn(user string) map[string]string {
	return map[string]string{
		"WEIR_BROKERS_USER": user, "WEIR_BROKERS_PASSWORD_FILE": filepath.Join(s.folder, "secrets", provision.BrokerPassword(user)),
	}
}

// settings returns a service's own.
func (s *secured) settings(service string) map[string]string {
	program := strings.ToLower(service)
	own := s.signIn(program)
	if metrics := s.metrics[program]; metrics != "" {
		own["WEIR_DATABASE_URL"], own["WEIR_METRICS_LISTEN"] = s.database(program), metrics
	}
	return own
}

// processes returns the addresses of all modules' metrics.
func (s *secured) processes() []string { return slices.Sorted(maps.Values(s.metrics)) }
