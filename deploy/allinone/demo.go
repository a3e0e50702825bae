package allinone

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/weirlog/weir/deploy/client"
	"github.com/weirlog/weir/deploy/localca"
	"github.com/weirlog/weir/shared/atomicfile"
	"github.com/weirlog/weir/shared/identity"
	"github.com/weirlog/weir/shared/lifecycle"
)

// The demo organization.
const (
	demoName  = "Demo"
	demoTier  = "scale"
	demoEmail = "owner@demo.weir.example"
)

// openEnv reads an earlier start's file, and adds the values of this
// one. The operator's token is written before its first use.
func (a *App) openEnv() (err error) {
	if a.env, err = ReadDevEnv(a.dir.env()); err != nil {
		return err
	}
	_, port, err := net.SplitHostPort(a.listener.Addr().String())
	if err != nil {
		return err
	}
	origin := "https://" + net.JoinHostPort(a.config.host(), port)
	a.env.BaseURL, a.env.ConsoleURL, a.env.CAFile = origin+"/v1", origin+"/console", localca.In(a.dir.tls()).CA
	if operator := a.config.OperatorToken.Reveal(); operator != "" {
		a.env.OperatorToken = operator
	}
	if a.env.OperatorToken == "" {
		a.env.OperatorToken = identity.ServiceTokenPrefix + randomHex(24)
	}
	if a.env.WebhookKeys == "" {
		a.env.WebhookKeys = randomHex(32)
	}
	return a.env.Write(a.dir.env())
}

func randomHex(bytes int) string {
	random := make([]byte, bytes)
	_, _ = rand.Read(random) // never fails: see crypto/rand
	return hex.EncodeToString(random)
}

// A demo is the demo organization, as dev.env has it.
type demo struct {
	env    *DevEnv
	file   string // with env
	logger *slog.Logger
}

// demoRetry is the pause before another try.
const demoRetry = time.Second

// await is ensure, which it tries again where that may succeed later.
func (d *demo) await(ctx context.Context) error {
	for {
		err := d.ensure(ctx)
		var problem *client.Problem
		if err == nil || ctx.Err() != nil || !errors.As(err, &problem) || !problem.Temporary() {
			return err
		}
		d.logger.Warn("cannot set the demo organization up yet", slog.String("error", err.Error()))
		lifecycle.Pause(ctx, demoRetry)
	}
}

// ensure creates the missing parts of the demo organization by the
// public API. Each is written before the next, so that the next start
// continues an interrupted one.
func (d *demo) ensure(ctx context.Context) error {
	api, err := client.New(d.env.BaseURL, d.env.CAFile, 1)
	if err != nil {
		return err
	}
	defer api.Close()
	if err := d.dropForeign(ctx, api); err != nil {
		return err
	}
	for _, step := range d.steps(api) {
		if *step.value != "" {
			continue
		}
		if *step.value, err = step.create(ctx); err != nil {
			return err
		}
		if err := d.env.Write(d.file); err != nil {
			return err
		}
	}
	return nil
}

// Limits of the wait for the control plane's word about the demo
// organization: its tokens may not be published again yet.
const (
	demoWait = 30 * time.Second
	demoPoll = 200 * time.Millisecond
)

// dropForeign drops an organization in dev.env that this
// installation does not have, after a change of database. The file is
// the only copy of its credentials, so it is kept beside the new one.
func (d *demo) dropForeign(ctx context.Context, api *client.Client) error {
	if d.env.Organization == "" {
		return nil
	}
	foreign, err := d.isForeign(ctx, api)
	if err != nil || !foreign {
		return err
	}
	kept, err := KeepDevEnv(d.file, time.Now())
	if err != nil {
		return err
	}
	d.logger.Warn("this installation does not have the demo organization of dev.env: another one is created",
		"organization", d.env.Organization, "kept", kept)
	d.env.APIKey, d.env.ServiceToken, d.env.Organization, d.env.Project = "", "", "", ""
	d.env.ConsoleEmail, d.env.ConsolePassword = "", ""
	return nil
}

// isForeign reports whether the control plane says that it does not
// have the organization of dev.env. Only its database knows: a refused
// token proves nothing. Without an answer the organization is kept.
func (d *demo) isForeign(ctx context.Context, api *client.Client) (bool, error) {
	deadline := time.Now().Add(demoWait)
	for ctx.Err() == nil {
		_, err := api.Organization(ctx, d.env.OperatorToken, d.env.Organization)
		var problem *client.Problem
		switch {
		case err == nil:
			return false, nil
		case errors.As(err, &problem) && problem.Status == http.StatusNotFound:
			return true, nil
		case time.Now().After(deadline):
			d.logger.Warn("cannot find whether the demo organization of dev.env is known here: it is kept", "error", err)
			return false, nil
		}
		lifecycle.Pause(ctx, demoPoll)
	}
	return false, ctx.Err()
}

// A demoStep fills one value of dev.env.
type demoStep struct {
	value  *string
	create func(ctx context.Context) (string, error)
}

func (d *demo) steps(api *client.Client) []demoStep {
	env := d.env
	return []demoStep{
		{&env.Organization, func(ctx context.Context) (string, error) {
			organization, err := api.CreateOrganization(ctx, env.OperatorToken, demoName, demoTier)
			return organization.ID, err
		}},
		{&env.Project, func(ctx context.Context) (string, error) {
			project, err := api.CreateProject(ctx, env.OperatorToken, env.Organization, demoName)
			return project.ID, err
		}},
		{&env.ServiceToken, func(ctx context.Context) (string, error) {
			token, err := api.CreateServiceToken(ctx, env.OperatorToken, env.Organization, "billing", "billing:read")
			return token.Token, err
		}},
		{&env.APIKey, func(ctx context.Context) (string, error) {
			key, err := api.CreateAPIKey(ctx, env.OperatorToken, env.Project, "prod", "demo")
			return key.Key, err
		}},
		{&env.ConsolePassword, func(ctx context.Context) (string, error) { return d.createOwner(ctx, api) }},
	}
}

// createOwner creates the person who signs in to the console. An
// address belongs to one person, so if an earlier demo organization has
// it, another one is generated.
func (d *demo) createOwner(ctx context.Context, api *client.Client) (password string, err error) {
	password = randomHex(12)
	d.env.ConsoleEmail = demoEmail
	member := client.NewMember{Organization: d.env.Organization, Email: demoEmail, Name: "Demo Owner", Role: "owner", Password: password}
	err = api.CreateMember(ctx, d.env.OperatorToken, member)
	var problem *client.Problem
	if errors.As(err, &problem) && problem.Status == http.StatusConflict {
		member.Email = fmt.Sprintf("owner-%s@demo.weir.example", randomHex(4))
		d.env.ConsoleEmail = member.Email
		err = api.CreateMember(ctx, d.env.OperatorToken, member)
	}
	return password, err
}

// EnvFile is the name of the data directory's file with shell variables
// that reach the demo organization.
const EnvFile = "dev.env"

// A DevEnv is what a client on this machine needs. It is also the only store
// of the demo organization's credentials: all others keep only hashes.
type DevEnv struct {
	BaseURL         string // ends in /v1
	CAFile          string // absolute
	APIKey          string // of the demo organization, environment prod
	ServiceToken    string // billing:read of the demo organization
	OperatorToken   string // creates organizations
	Organization    string
	Project         string
	ConsoleURL      string
	ConsoleEmail    string
	ConsolePassword string
	WebhookKeys     string // the secrets of webhooks derive from them
}

type variable struct {
	name  string
	value *string
}

func (e *DevEnv) variables() []variable {
	return []variable{
		{"WEIR_BASE_URL", &e.BaseURL},
		{"WEIR_CA_FILE", &e.CAFile},
		{"WEIR_API_KEY", &e.APIKey},
		{"WEIR_SERVICE_TOKEN", &e.ServiceToken},
		{"WEIR_OPERATOR_TOKEN", &e.OperatorToken},
		{"WEIR_ORGANIZATION", &e.Organization},
		{"WEIR_PROJECT", &e.Project},
		{"WEIR_CONSOLE_URL", &e.ConsoleURL},
		{"WEIR_CONSOLE_EMAIL", &e.ConsoleEmail},
		{"WEIR_CONSOLE_PASSWORD", &e.ConsolePassword},
		{"WEIR_WEBHOOK_KEYS", &e.WebhookKeys},
	}
}

// ReadDevEnv reads the file at path; without one it returns the zero
// value. A file without values is damaged: it held the only copy.
func ReadDevEnv(path string) (env DevEnv, err error) {
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return env, nil
	}
	if err != nil {
		return env, fmt.Errorf("cannot read %q: %w", path, err)
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		if err := env.read(lines.Text()); err != nil {
			return env, fmt.Errorf("%q is damaged: %w: repair it, or remove it to get another demo organization", path, err)
		}
	}
	if err := lines.Err(); err != nil {
		return env, fmt.Errorf("cannot read %q: %w", path, err)
	}
	if env == (DevEnv{}) {
		return env, fmt.Errorf("%q is damaged: it has no values: repair it, or remove it to get another demo organization", path)
	}
	return env, nil
}

func (e *DevEnv) read(line string) error {
	if strings.TrimSpace(line) == "" || strings.HasPrefix(line, "#") {
		return nil
	}
	name, quoted, ok := strings.Cut(line, "=")
	value, unquoted := unquote(quoted)
	if !ok || !unquoted {
		return fmt.Errorf("the line that begins with %q is none of NAME='value'", name)
	}
	for _, v := range e.variables() {
		if v.name == name {
			*v.value = value
		}
	}
	return nil
}

// Write replaces the file at path atomically, also in a power cut. Only
// its owner may read it. A file with the same values stays, so that it
// needs no space on a full disk.
func (e *DevEnv) Write(path string) error {
	if was, err := ReadDevEnv(path); err == nil && was == *e {
		return nil
	}
	text := "# How to reach the demo organization: . " + quote(path) + "\n"
	for _, v := range e.variables() {
		text += v.name + "=" + quote(*v.value) + "\n"
	}
	if err := atomicfile.Write(path, text, 0o600); err != nil {
		return fmt.Errorf("cannot write %q: %w", path, err)
	}
	return nil
}

// maxKept is how many earlier files KeepDevEnv leaves.
const maxKept = 5

// KeepDevEnv copies the file at path to path.<time>, so that the
// credentials in it outlive another demo organization, and returns where
// to. The newest five copies stay.
func KeepDevEnv(path string, at time.Time) (kept string, err error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("cannot keep %q: %w", path, err)
	}
	kept = path + "." + at.UTC().Format("20060102T150405.000Z")
	if err := atomicfile.Write(kept, string(text), 0o600); err != nil {
		return "", fmt.Errorf("cannot keep %q: %w", path, err)
	}
	return kept, dropOldest(filepath.Dir(path), filepath.Base(path)+".2")
}

// dropOldest removes all but the newest kept files of a folder, whose
// names begin with a prefix and sort by their time.
func dropOldest(dir, prefix string) error {
	files, err := os.ReadDir(dir) // sorted
	if err != nil {
		return err
	}
	files = slices.DeleteFunc(files, func(f fs.DirEntry) bool { return !strings.HasPrefix(f.Name(), prefix) })
	for _, f := range files[:max(0, len(files)-maxKept)] {
		if err := os.Remove(filepath.Join(dir, f.Name())); err != nil {
			return err
		}
	}
	return nil
}

// quote quotes text as one word of a POSIX shell.
func quote(text string) string {
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}

func unquote(word string) (text string, ok bool) {
	word = strings.TrimSpace(word)
	if len(word) < 2 || word[0] != '\'' || word[len(word)-1] != '\'' {
		return "", false
	}
	return strings.ReplaceAll(word[1:len(word)-1], `'\''`, "'"), true
}

// WriteHints writes what runs where, with commands to paste into any
// POSIX shell, in one write: a reader of the first line has the rest.
func (a *App) WriteHints(out io.Writer, took time.Duration) {
	var text bytes.Buffer
	a.compose(&text, took)
	_, _ = out.Write(text.Bytes())
}

func (a *App) compose(text *bytes.Buffer, took time.Duration) {
	fmt.Fprintf(text, `Weir is ready after %.1f s: %s
Data in %s. Ctrl-C stops in order; the next start finds everything as it was.
`, took.Seconds(), a.env.BaseURL, a.dir.path)
	if a.env.ConsolePassword != "" {
		fmt.Fprintf(text, "Console: %s as %s, password in %s\n", a.env.ConsoleURL, a.env.ConsoleEmail, filepath.Join(a.dir.path, EnvFile))
	} else {
		fmt.Fprintf(text, "Console: %s\n", a.env.ConsoleURL)
	}
	hints := demoHints
	if a.env.APIKey == "" {
		hints = firstHints
	}
	fmt.Fprintf(text, hints, quote(a.dir.env()))
}

// demoHints are commands to try with the demo organization.
const demoHints = `
Post a batch:
  . %[1]s; curl --cacert "$WEIR_CA_FILE" "$WEIR_BASE_URL/logs" -H "x-api-key: $WEIR_API_KEY" -H "Content-Type: application/json" -d '{"logs": [
    {"timestamp": "'"$(date -u +%%Y-%%m-%%dT%%H:%%M:%%SZ)"'", "level": "info", "message": "cart opened", "metadata": {"cart": 4711}},
    {"timestamp": "'"$(date -u +%%Y-%%m-%%dT%%H:%%M:%%SZ)"'", "level": "error", "message": "checkout failed", "error": {"type": "TypeError",
     "message": "total is undefined", "stack_trace": ["at total (/srv/shop/cart.js:41:13)", "at checkout (/srv/shop/pay.js:7:2)"]}}]}'

Read the balance:
  . %[1]s; curl --cacert "$WEIR_CA_FILE" "$WEIR_BASE_URL/organizations/$WEIR_ORGANIZATION/balance" -H "Authorization: Bearer $WEIR_SERVICE_TOKEN"

List the error groups:
  . %[1]s; curl --cacert "$WEIR_CA_FILE" "$WEIR_BASE_URL/projects/$WEIR_PROJECT/error-groups" -H "x-api-key: $WEIR_API_KEY"

Read the logs, newest first:
  . %[1]s; curl --cacert "$WEIR_CA_FILE" "$WEIR_BASE_URL/logs?project=$WEIR_PROJECT&limit=10" -H "x-api-key: $WEIR_API_KEY"

A minute of realistic traffic: make demo

`

// firstHints are for an installation without a demo organization: it
// always has the operator's token.
const firstHints = `
There is no demo organization here. Who has signed in to the console creates a project and an API key there, and is shown a command that
sends the first log. Anyone who runs Weir does the same over the API:

List the organizations:
  . %[1]s; curl --cacert "$WEIR_CA_FILE" "$WEIR_BASE_URL/organizations" -H "Authorization: Bearer $WEIR_OPERATOR_TOKEN"

Create an organization:
  . %[1]s; curl --cacert "$WEIR_CA_FILE" "$WEIR_BASE_URL/organizations" -H "Authorization: Bearer $WEIR_OPERATOR_TOKEN" \
    -H "Content-Type: application/json" -d '{"name": "Acme", "tier": "indie"}'

Read what else there is to call:
  . %[1]s; curl --cacert "$WEIR_CA_FILE" "$WEIR_BASE_URL/openapi.json"

`
