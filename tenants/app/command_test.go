package app_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/shared/testenv"
	"github.com/weirlog/weir/shared/testenv/postgrestest"
	"github.com/weirlog/weir/shared/testenv/programs"
)

// A program is the built program tenants with a world's settings.
type program struct {
	path string
	env  []string
}

func (w world) program(t *testing.T) program {
	t.Helper()
	return program{programs.Build(t, "tenants/cmd/tenants"), []string{"PATH=" + os.Getenv("PATH"), "WEIR_DATABASE_URL=" + w.database, "WEIR_BROKERS=" + strings.Join(w.brokers, ",")}}
}

// run runs a command and returns its standard output,
// its standard error, and whether it succeeded.
func (p program) run(t *testing.T, args ...string) (out, notes string, ok bool) {
	t.Helper()
	command := exec.CommandContext(t.Context(), p.path, args...)
	var stdout, stderr bytes.Buffer
	command.Env, command.Stdout, command.Stderr = p.env, &stdout, &stderr
	ok = command.Run() == nil
	return strings.TrimSuffix(stdout.String(), "\n"), stderr.String(), ok
}

// must runs a command that must succeed, and returns its output.
func (p program) must(t *testing.T, args ...string) string {
	t.Helper()
	out, notes, ok := p.run(t, args...)
	if !ok {
		t.Fatalf("tenants %q: %s%s", args, out, notes)
	}
	return out
}

// refused runs a command that must fail with some words, and print nothing.
func (p program) refused(t *testing.T, want string, args ...string) {
	t.Helper()
	if out, notes, ok := p.run(t, args...); ok || out != "" || !strings.Contains(notes, want) {
		t.Errorf("tenants %q: ok %t, printed %q, notes %q, want %q", args, ok, out, notes, want)
	}
}

// An installation is set up from the command line: what is created
// there is in force when the command ends, even for processes that
// were serving before, and secrets are on standard output alone.
func TestFirstStepsAtTheServer(t *testing.T) {
	w := newWorld(t)
	w.database = postgrestest.URL(t) // not migrated yet
	tenants := w.program(t)
	tenants.refused(t, "(weir migrate adds them, as the role that owns the schema)", "organization", "create", "Acme", "--tier", "scale")
	p := w.start(t, "")

	organization := tenants.must(t, "organization", "create", "Acme Ltd.", "--tier", "scale")
	project := tenants.must(t, "project", "create", "Checkout", "--organization", organization)
	token := tenants.must(t, "service-token", "create", "Admin", "--organization", organization, "--scope", "tenants:admin,billing:read")
	p.awaitStatus(t, token, "/v1/projects", 200)
	if got := p.call(t, token, "GET", "/v1/projects", ""); got.items(t)[0]["id"] != project {
		t.Errorf("the token gets %s", got.text)
	}
	key, notes, ok := tenants.run(t, "key", "create", "checkout", "--project", project, "--environment", "prod", "--expires-at", "2099-01-01T00:00:00Z")
	if !ok || !regexp.MustCompile(`^weir_[0-9a-f]{48}$`).MatchString(key) || strings.Contains(notes, key[5:]) {
		t.Errorf("the key is %q, notes %q", key, notes)
	}
	id := regexp.MustCompile(`key_[0-9a-f]+`).FindString(notes)
	n := w.follow(t)
	n.awaitLookup(t, key, nil)
	if got := tenants.must(t, "key", "revoke", id, "--reason", "leaked"); got != id {
		t.Errorf("revoking prints %q", got)
	}
	if got := p.call(t, token, "GET", "/v1/api-keys?project="+project, ""); got.items(t)[0]["state"] != "revoked" {
		t.Errorf("the key is %s", got.text)
	}
	tokenID := p.call(t, token, "GET", "/v1/service-tokens", "").items(t)[0]["id"].(string)
	tenants.must(t, "service-token", "revoke", tokenID)
	p.awaitStatus(t, token, "/v1/projects", 401)
	if got := tenants.must(t, "organization", "list"); got != organization+"\tscale\tAcme Ltd." {
		t.Errorf("the organizations are %q", got)
	}
	if got := tenants.must(t, "project", "list", "--organization", organization); got != project+"\tCheckout" {
		t.Errorf("the projects are %q", got)
	}
	if strings.Contains(w.dump(t), key[9:49]) {
		t.Error("a secret is kept")
	}
	tenants.linksWork(t, p)
}

// awaitStatus waits until a token gets a status: what is in
// force for the process that changed it soon is for the others.
func (p *process) awaitStatus(t *testing.T, token, path string, status int) {
	t.Helper()
	testenv.Eventually(t, func() error {
		if got := p.call(t, token, "GET", path, ""); got.status != status {
			return fmt.Errorf("the token gets %d %s, want %d", got.status, got.text, status)
		}
		return nil
	})
}

// A refusal prints notes with a remedy, and
// nothing that a script could take for a result.
func testRefusalsAtTheServer(t *testing.T, p *process) {
	tenants := p.world.program(t)
	acme := p.tenant(t, "Acme")
	for want, args := range map[string][]string{
		"Use one of indie, bootstrapper":       {"organization", "create", "A", "--tier", "Indie"},
		`no organization "org_x"`:              {"project", "create", "A", "--organization", "org_x"},
		`no project "prj_x"`:                   {"key", "create", "A", "--project", "prj_x", "--environment", "dev"},
		"Use one of prod, staging, dev":        {"key", "create", "A", "--project", acme.project, "--environment", "production"},
		"which is past":                        {"key", "create", "A", "--project", acme.project, "--environment", "dev", "--expires-at", "2001-01-01T00:00:00Z"},
		"missing flags: --environment":         {"key", "create", "A", "--project", acme.project},
		`no API key "key_x"`:                   {"key", "revoke", "key_x"},
		`no service token "tok_x"`:             {"service-token", "revoke", "tok_x"},
		"with a colon between":                 {"service-token", "create", "A", "--organization", acme.organization, "--scope", "all"},
		"unexpected argument frobnicate":       {"frobnicate"},
		"WEIR_DATABASE_URL is not a URL":       {"organization", "list", "--database-url", "mysql://x"},
		"cannot reach the database at 127.0.0": {"audit", "verify", "--database-url", "postgres://weir:hunter2@127.0.0.1:1/x"},
	} {
		tenants.refused(t, want, args...)
	}
	if _, notes, _ := tenants.run(t, "audit", "verify", "--database-url", "postgres://weir:hunter2@127.0.0.1:1/x"); strings.Contains(notes, "hunter2") {
		t.Errorf("the password is shown: %s", notes)
	}
}

// Each command explains itself.
func TestHelp(t *testing.T) {
	tenants := program{path: world{}.program(t).path}
	for want, args := range map[string][]string{
		"Without a command it serves":       {"--help"},
		"$WEIR_OPERATOR_TOKEN":              {"serve", "--help"},
		"so a script can keep it":           {"organization", "create", "--help"},
		"Go on with \"tenants key create\"": {"project", "create", "--help"},
		"alone and once":                    {"key", "create", "--help"},
		"read the audit":                    {"service-token", "create", "--help"},
		"hash of the line before":           {"audit", "verify", "--help"},
	} {
		out := strings.Join(strings.Fields(tenants.must(t, args...)), " ")
		if !strings.Contains(out, want) {
			t.Errorf("tenants %q lacks %q: %s", args, want, out)
		}
	}
}

// The audit of each organization and of the
// installation is verified, and tampering is reported.
func TestVerifyAtTheServer(t *testing.T) {
	w := newWorld(t)
	tenants, p := w.program(t), w.start(t, operatorToken)
	acme := p.tenant(t, "Acme")
	clean := regexp.MustCompile(`(?m)^\*\t1\t[0-9a-f]{64}\t0$\n^` + acme.organization + `\t4\t[0-9a-f]{64}\t0$`)
	if got := tenants.must(t, "audit", "verify"); !clean.MatchString(got) {
		t.Errorf("verified:\n%s", got)
	}
	if got := tenants.must(t, "audit", "verify", "--organization", "*"); strings.Contains(got, acme.organization) {
		t.Errorf("of the installation:\n%s", got)
	}
	tenants.refused(t, `no audit of organization "org_x"`, "audit", "verify", "--organization", "org_x")
	w.sql(t, `ALTER TABLE audit_events DISABLE TRIGGER USER`, `GRANT ALL ON audit_events TO CURRENT_USER`,
		`UPDATE audit_events SET actor = 'mem_x' WHERE sequence = 3`)
	out, notes, ok := tenants.run(t, "audit", "verify")
	if ok || !strings.Contains(notes, acme.organization+`: line 3 was changed: actor is "mem_x"`) || !strings.Contains(notes, "tampered") {
		t.Errorf("tampered: ok %t, printed %q, notes %q", ok, out, notes)
	}
}

// sql runs statements on the schema, as the system.
func (w world) sql(t *testing.T, statements ...string) {
	t.Helper()
	pool, err := pg.Open(t.Context(), postgrestest.Owner(w.database), "tenants")
	testenv.Must(t, err)
	defer pool.Close()
	for _, statement := range statements {
		err := pg.InTxAsSystem(t.Context(), pool, func(tx pgx.Tx) error {
			_, err := tx.Exec(t.Context(), statement)
			return err
		})
		testenv.Must(t, err)
	}
}

// linksWork checks that the first owner, and a member who lost the password,
// get in by a link that is on standard output alone.
func (p program) linksWork(t *testing.T, replica *process) {
	t.Helper()
	p.env = append(p.env, "WEIR_CONSOLE_ORIGIN=https://weir.example")
	link, notes, ok := p.run(t, "owner-link")
	if !ok || !regexp.MustCompile(`^https://weir\.example/console/welcome#weirown_[0-9a-f]{48}$`).MatchString(link) || strings.Contains(notes, "weirown_") {
		t.Fatalf("owner-link: %t, printed %q, notes %q", ok, link, notes)
	}
	ada := replica.browser("192.0.2.90")
	if got := ada.post(t, "/console/welcome", registration(codeOf(t, "weirown", link), "ada@example.com")); got.status != 303 {
		t.Fatalf("welcome: %d %s", got.status, got.body)
	}
	p.refused(t, "has members already", "owner-link")
	link = p.must(t, "reset-link", "ADA@example.com")
	if !strings.HasPrefix(link, "https://weir.example/console/reset#weirpwd_") {
		t.Fatalf("reset-link: %q", link)
	}
	code := codeOf(t, "weirpwd", link)
	if got := replica.browser("192.0.2.91").post(t, "/console/reset", map[string]string{"code": code, "password": "battery staple horse"}); got.status != 303 {
		t.Errorf("reset: %d %s", got.status, got.body)
	}
	if got := ada.get(t, membersPage); got.status != 303 {
		t.Errorf("the owner is still signed in: %d", got.status)
	}
	p.refused(t, `there is no member "nobody@example.com"`, "reset-link", "nobody@example.com")
}

// A deletion at the server is like any other,
// and can be restored during its grace.
func testDeletedByCommand(t *testing.T, p *process) {
	acme := p.tenant(t, "Acme")
	program := p.world.program(t)
	for _, what := range [][2]string{{"project", acme.project}, {"organization", acme.organization}} {
		if got := program.must(t, what[0], "delete", "--grace", "1h", what[1]); got != "deleting" {
			t.Errorf("deleted the %s: %s", what[0], got)
		}
		if got := program.must(t, what[0], "restore", what[1]); got != "cancelled" {
			t.Errorf("restored the %s: %s", what[0], got)
		}
	}
	if _, said, ok := program.run(t, "project", "delete", "prj_0"); ok || !strings.Contains(said, `there is no project \"prj_0\"`) && !strings.Contains(said, `there is no project "prj_0"`) {
		t.Errorf("deleted what there is not: %s", said)
	}
}
