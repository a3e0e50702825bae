package fairness

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"sync"
	"time"

	"github.com/weirlog/weir/deploy/bench/internal/measure"
)

// An attacker is a separate process that attacks, apart from the measuring one.
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

// startAttacker creates an organization for an attack, prepares the
// attack and begins it.
func (r *run) startAttacker(ctx context.Context, a attack) (*attacker, measure.Tenant, error) {
	task, err := r.job(ctx, a)
	if err != nil {
		return nil, task.Tenant, err
	}
	n, err := r.launch(ctx)
	if err != nil {
		return nil, task.Tenant, err
	}
	if err := n.begin(task); err != nil {
		n.kill()
		return nil, task.Tenant, err
	}
	return n, task.Tenant, nil
}

// launch starts the process of an attacker.
func (r *run) launch(ctx context.Context) (n *attacker, err error) {
	n = &attacker{command: exec.CommandContext(ctx, r.Attacker[0], r.Attacker[1:]...)}
	n.command.Stderr = &n.complaints
	if n.orders, err = n.command.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := n.command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	n.says = bufio.NewReader(out)
	return n, n.command.Start()
}

// job returns the attacker's input. Deep entries are viewed in the
// console, so they belong to the organization with a member.
func (r *run) job(ctx context.Context, a attack) (job, error) {
	env := r.subject.Env
	task := job{
		Attack: a.name, BaseURL: env.BaseURL, CAFile: env.CAFile,
		ConsoleURL: env.ConsoleURL, ConsoleEmail: env.ConsoleEmail, ConsoleWord: env.ConsolePassword,
		Tenant: measure.Tenant{Organization: env.Organization, Project: env.Project, Key: env.APIKey},
	}
	if a.name == "deep-entries" {
		return task, nil
	}
	made, err := measure.NewTenants(ctx, r.api, env.OperatorToken, a.name, 1)
	if err != nil {
		return task, err
	}
	task.Tenant = made[0]
	token, err := r.api.CreateServiceToken(ctx, env.OperatorToken, task.Tenant.Organization, a.name, "tenants:admin")
	task.AdminToken = token.Token
	return task, err
}

// begin sends the job, waits until it is prepared, and begins it.
func (n *attacker) begin(task job) error {
	timeout := time.AfterFunc(prepareTimeout, func() { _ = n.command.Process.Kill() })
	defer timeout.Stop()
	if err := json.NewEncoder(n.orders).Encode(task); err != nil {
		return err
	}
	if _, err := n.says.ReadString('\n'); err != nil {
		return fmt.Errorf("it was not prepared: %w: %s", err, n.complaints.String())
	}
	_, err := io.WriteString(n.orders, "true\n")
	return err
}

// stop ends the attack and returns the noisy tenant's answers.
func (n *attacker) stop() (*Outcome, error) {
	timeout := time.AfterFunc(stopTimeout, func() { _ = n.command.Process.Kill() })
	defer timeout.Stop()
	outcome := &Outcome{}
	failed := errors.Join(n.orders.Close(), json.NewDecoder(n.says).Decode(outcome))
	if err := n.command.Wait(); err != nil {
		return nil, fmt.Errorf("%w: %s", err, n.complaints.String())
	}
	return outcome, failed
}

func (n *attacker) kill() {
	_ = n.command.Process.Kill()
	_ = n.command.Wait()
}

// makers is how many organizations are created concurrently.
const makers = 8

// makeIdle creates idle organizations with a project and a key.
func (r *run) makeIdle(ctx context.Context) error {
	r.say("creating %d organizations that do nothing", r.Idle)
	numbers, failures := make(chan int), make(chan error, makers)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var working sync.WaitGroup
	for range makers {
		working.Go(func() {
			for number := range numbers {
				if err := r.makeOne(ctx, fmt.Sprintf("idle %d", number)); err != nil {
					failures <- err
					cancel()
					return
				}
			}
		})
	}
	r.count(ctx, numbers)
	working.Wait()
	close(failures)
	return <-failures
}

// makeOne creates an organization with a project and a key.
func (r *run) makeOne(ctx context.Context, name string) error {
	operator := r.subject.Env.OperatorToken
	organization, err := r.api.CreateOrganization(ctx, operator, name, "indie")
	if err != nil {
		return err
	}
	project, err := r.api.CreateProject(ctx, operator, organization.ID, name)
	if err != nil {
		return err
	}
	_, err = r.api.CreateAPIKey(ctx, operator, project.ID, "prod", name)
	return err
}

// count sends the numbers of idle organizations, and reports progress.
func (r *run) count(ctx context.Context, numbers chan<- int) {
	defer close(numbers)
	for number := range r.Idle {
		select {
		case numbers <- number:
		case <-ctx.Done():
			return
		}
		if (number+1)%1000 == 0 {
			r.say("  %d of %d", number+1, r.Idle)
		}
	}
}
