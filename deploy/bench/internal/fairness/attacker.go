package fairness

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"

	"github.com/weirlog/weir/deploy/bench/internal/subject"
	"github.com/weirlog/weir/deploy/client"
)

// A job is the attacking process's standard input, instead of a command line.
type job struct {
	Attack       string         `json:"attack"`
	BaseURL      string         `json:"base_url"`
	CAFile       string         `json:"ca_file"`
	Tenant       subject.Tenant `json:"tenant"`
	AdminToken   string         `json:"admin_token"` // tenants:admin of the tenant
	ConsoleURL   string         `json:"console_url"`
	ConsoleEmail string         `json:"console_email"` // a member of the tenant, whose password is also guessed
	ConsoleWord  string         `json:"console_password"`
}

// job makes an organization for an attack. Deep entries are viewed in the
// console, so they belong to the organization with a member.
func (r *run) job(ctx context.Context, a attack) (job, error) {
	env := r.weir.Env
	task := job{
		Attack: a.name, BaseURL: env.BaseURL, CAFile: env.CAFile,
		ConsoleURL: env.ConsoleURL, ConsoleEmail: env.ConsoleEmail, ConsoleWord: env.ConsolePassword,
		Tenant: subject.Tenant{Organization: env.Organization, Project: env.Project, Key: env.APIKey},
	}
	if a.name == "deep-entries" {
		return task, nil
	}
	made, err := subject.NewTenants(ctx, r.api, env.OperatorToken, a.name, 1)
	if err != nil {
		return task, err
	}
	task.Tenant = made[0]
	token, err := r.api.CreateServiceToken(ctx, env.OperatorToken, task.Tenant.Organization, a.name, "tenants:admin")
	task.AdminToken = token.Token
	return task, err
}

// An attacker is the process that attacks.
type attacker struct {
	command    *exec.Cmd
	orders     io.WriteCloser
	says       *bufio.Reader
	complaints bytes.Buffer
}

// Limits of an attack's preparation and end.
const (
	prepareTimeout = 3 * time.Minute
	stopTimeout    = time.Minute
)

// launch starts an attacker, waits until it is prepared, and lets it begin.
func launch(ctx context.Context, task job) (*attacker, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	a := &attacker{command: exec.CommandContext(ctx, self, "fair", "--attack")}
	a.command.Stderr = &a.complaints
	if a.orders, err = a.command.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := a.command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	a.says = bufio.NewReader(out)
	if err := a.command.Start(); err != nil {
		return nil, err
	}
	timeout := time.AfterFunc(prepareTimeout, func() { _ = a.command.Process.Kill() })
	defer timeout.Stop()
	err = json.NewEncoder(a.orders).Encode(task)
	if err == nil {
		_, err = a.says.ReadString('\n')
	}
	if err == nil {
		_, err = io.WriteString(a.orders, "true\n")
	}
	if err != nil {
		_ = a.command.Process.Kill()
		_ = a.command.Wait()
		return nil, fmt.Errorf("it was not prepared: %w: %s", err, a.complaints.String())
	}
	return a, nil
}

// stop ends the attack and returns the noisy tenant's answers.
func (a *attacker) stop() (*outcome, error) {
	timeout := time.AfterFunc(stopTimeout, func() { _ = a.command.Process.Kill() })
	defer timeout.Stop()
	found := &outcome{}
	failed := errors.Join(a.orders.Close(), json.NewDecoder(a.says).Decode(found))
	if err := a.command.Wait(); err != nil {
		return nil, fmt.Errorf("%w: %s", err, a.complaints.String())
	}
	return found, failed
}

// attackBy is the attacking process: it reads a job from in, prepares it,
// reports that to out, attacks from the next line of in until in ends,
// and writes its outcome.
func attackBy(ctx context.Context, in io.Reader, out io.Writer) error {
	orders, n := json.NewDecoder(in), &noisy{}
	if err := orders.Decode(&n.job); err != nil {
		return fmt.Errorf("cannot read the job: %w", err)
	}
	chosen, err := attackNamed(n.Attack)
	if err != nil {
		return err
	}
	if n.api, err = client.New(n.BaseURL, n.CAFile, 64); err != nil {
		return err
	}
	if n.browser, err = newBrowser(n.job); err != nil {
		return err
	}
	n.browser.Timeout = 0
	for _, prepare := range chosen.prepare {
		if err := prepare(ctx, n); err != nil {
			return fmt.Errorf("cannot prepare %q: %w", n.Attack, err)
		}
	}
	if _, err := io.WriteString(out, "prepared\n"); err != nil {
		return err
	}
	var begin bool
	if err := orders.Decode(&begin); err != nil {
		return fmt.Errorf("cannot read when to begin: %w", err)
	}
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		_, _ = io.Copy(io.Discard, in)
		cancel()
	}()
	if err := chosen.run(ctx, n); err != nil && ctx.Err() == nil {
		return fmt.Errorf("cannot attack with %q: %w", n.Attack, err)
	}
	return json.NewEncoder(out).Encode(&n.outcome)
}
