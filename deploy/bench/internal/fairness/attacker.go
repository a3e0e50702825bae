package fairness

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/weirlog/weir/deploy/allinone"
	"github.com/weirlog/weir/deploy/bench/internal/subject"
	"github.com/weirlog/weir/deploy/client"
	"github.com/weirlog/weir/shared/lifecycle"
	"github.com/weirlog/weir/shared/testenv/measure"
)

// A job is the attacking process's standard input, instead of a command line.
type job struct {
	Attack     string          `json:"attack"`
	Env        allinone.DevEnv `json:"env"` // its member signs in, and is who is guessed at
	Tenant     subject.Tenant  `json:"tenant"`
	AdminToken string          `json:"admin_token"` // tenants:admin of the tenant
}

// job makes an organization for an attack. Deep entries are viewed in the
// console, so they belong to the organization with a member.
func (r *run) job(ctx context.Context, a attack) (job, error) {
	env := r.weir.Env
	task := job{Attack: a.name, Env: env, Tenant: subject.Tenant{Organization: env.Organization, Project: env.Project, Key: env.APIKey}}
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

// launch starts an attacker, and waits until it is prepared and begins.
func launch(ctx context.Context, task job) (*attacker, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	a := &attacker{command: exec.CommandContext(ctx, self, "fair", "--attack")}
	a.command.Stderr = &a.complaints
	orders, noOrders := a.command.StdinPipe()
	says, noSaying := a.command.StdoutPipe()
	if err := errors.Join(noOrders, noSaying, a.command.Start()); err != nil {
		return nil, err
	}
	a.orders, a.says = orders, bufio.NewReader(says)
	timeout := time.AfterFunc(prepareTimeout, func() { _ = a.command.Process.Kill() })
	defer timeout.Stop()
	if err = json.NewEncoder(a.orders).Encode(task); err == nil {
		_, err = a.says.ReadString('\n')
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
// reports that to out, attacks until in ends, and writes its outcome.
func attackBy(ctx context.Context, in io.Reader, out io.Writer) error {
	n := &noisy{}
	if err := json.NewDecoder(in).Decode(&n.job); err != nil {
		return fmt.Errorf("cannot read the job: %w", err)
	}
	all, err := chosen([]string{n.Attack})
	if err != nil {
		return err
	}
	if err := n.open(); err != nil {
		return err
	}
	for _, prepare := range all[0].prepare {
		if err := prepare(ctx, n); err != nil {
			return fmt.Errorf("cannot prepare %q: %w", n.Attack, err)
		}
	}
	if _, err := io.WriteString(out, "prepared\n"); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		_, _ = io.Copy(io.Discard, in)
		cancel()
	}()
	if err := all[0].run(ctx, n); err != nil && ctx.Err() == nil {
		return fmt.Errorf("cannot attack with %q: %w", n.Attack, err)
	}
	return json.NewEncoder(out).Encode(&n.outcome)
}

// A noisy tenant attacks.
type noisy struct {
	job

	api     *client.Client
	browser *subject.Browser
	plain   *http.Client // without cookies
	outcome outcome

	// What an attack has prepared.
	keys    []string // of further projects
	groups  []string
	bodies  []*subject.Body
	packed  []byte // a gzip body
	endless endlessParts
	streams []*http.Client // each with a connection of its own
}

func (n *noisy) open() (err error) {
	if n.api, err = client.New(n.Env.BaseURL, n.Env.CAFile, 64); err != nil {
		return err
	}
	if n.browser, err = subject.NewBrowser(n.Env); err != nil {
		return err
	}
	n.plain = subject.Over(n.browser.Transport)
	return n.browser.Known()
}

// repeat runs workers that each repeat one thing until ctx ends. After a
// failure without an answer they rest, so that they do not spin.
func repeat(ctx context.Context, workers int, once func(worker int) error) error {
	_, err := measure.Load{Workers: workers}.Run(ctx, func(ctx context.Context, worker int, _ time.Time) error {
		if once(worker) != nil {
			lifecycle.Pause(ctx, 20*time.Millisecond)
		}
		return nil
	})
	return err
}

// store posts bodies and waits until an entry can be read.
func (n *noisy) store(ctx context.Context, bodies [][]byte) error {
	for _, body := range bodies {
		for {
			_, err := n.api.Post(ctx, n.Tenant.Key, client.Batch{Body: body})
			var problem *client.Problem
			if errors.As(err, &problem) && problem.Status == http.StatusTooManyRequests {
				lifecycle.Pause(ctx, problem.RetryAfter)
				continue
			}
			if err != nil {
				return err
			}
			break
		}
	}
	return measure.Until(ctx, 100*time.Millisecond, func(ctx context.Context) (bool, error) {
		page, err := n.api.Logs(ctx, n.Tenant.Key, client.LogsQuery{Project: n.Tenant.Project, Limit: 1})
		return len(page.Items) > 0, err
	})
}

// An outcome counts a noisy tenant's answers, such as "200", "429
// overloaded", "200 incomplete" or "closed". Safe for concurrent use.
type outcome struct {
	mu    sync.Mutex
	Times map[string]int64 `json:"times"`
}

func (o *outcome) count(what string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.Times == nil {
		o.Times = map[string]int64{}
	}
	o.Times[what]++
}

// headBytes is how much of an answer is kept to find its code.
const headBytes = 4 << 10

// read counts an answer and reads it to its end, keeping only its
// beginning and end.
func (o *outcome) read(answer *http.Response) {
	defer answer.Body.Close()
	head, _ := io.ReadAll(io.LimitReader(answer.Body, headBytes))
	tail := lastBytes{}
	_, _ = io.Copy(&tail, answer.Body)
	o.count(describe(answer.StatusCode, head, tail.kept))
}

// describe names an answer's kind.
func describe(status int, head, tail []byte) string {
	what := fmt.Sprint(status)
	var problem struct{ Code string }
	if status >= http.StatusBadRequest && json.Unmarshal(head, &problem) == nil && problem.Code != "" {
		return what + " " + problem.Code
	}
	if incomplete := []byte(`"incomplete":true`); bytes.Contains(head, incomplete) || bytes.Contains(tail, incomplete) {
		return what + " incomplete"
	}
	return what
}

// lastBytes keeps the last bytes written to it.
type lastBytes struct{ kept []byte }

func (l *lastBytes) Write(p []byte) (int, error) {
	l.kept = append(l.kept, p[max(0, len(p)-headBytes):]...)
	l.kept = l.kept[max(0, len(l.kept)-headBytes):]
	return len(p), nil
}

// refused reports whether the noisy tenant was ever asked to slow down or stop.
func (o *outcome) refused() bool {
	for what := range o.Times {
		if strings.HasPrefix(what, "429") || strings.HasSuffix(what, "incomplete") || what == "closed" {
			return true
		}
	}
	return false
}

// String lists the answers, most frequent first.
func (o *outcome) String() string {
	kinds := slices.SortedFunc(maps.Keys(o.Times), func(a, b string) int { return cmp.Or(cmp.Compare(o.Times[b], o.Times[a]), cmp.Compare(a, b)) })
	for i, what := range kinds {
		kinds[i] = fmt.Sprintf("%d × %s", o.Times[what], what)
	}
	return strings.Join(kinds, ", ")
}
