package fairness

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/weirlog/weir/deploy/allinone"
	"github.com/weirlog/weir/deploy/bench/internal/subject"
	"github.com/weirlog/weir/deploy/client"
	"github.com/weirlog/weir/shared/lifecycle"
	"github.com/weirlog/weir/shared/measure"
)

// A job is what an attacking process is to do.
type job struct {
	Attack     string
	Env        allinone.DevEnv // its member signs in, and is who is guessed at
	Tenant     subject.Tenant
	AdminToken string // tenants:admin of the tenant
}

// job makes an organization for an attack. Deep entries are viewed in the
// console, so they belong to the organization with a member.
func (r *run) job(ctx context.Context, a attack) (job, error) {
	env := r.weir.Env
	task := job{Attack: a.Name, Env: env, Tenant: subject.Tenant{Organization: env.Organization, Project: env.Project, Key: env.APIKey}}
	if a.Name == "deep-entries" {
		return task, nil
	}
	made, err := r.weir.NewTenants(ctx, a.Name, 1)
	if err != nil {
		return task, err
	}
	task.Tenant = made[0]
	token, err := r.weir.CreateServiceToken(ctx, env.OperatorToken, task.Tenant.Organization, a.Name, "tenants:admin")
	task.AdminToken = token.Token
	return task, err
}

// Attacker is the attacking process.
type Attacker struct{}

// Run reads a job from standard input, prepares it, says so, attacks until ctx
// ends, and writes its outcome.
func (Attacker) Run(ctx context.Context) error {
	n := &noisy{}
	if err := json.NewDecoder(os.Stdin).Decode(&n.job); err != nil {
		return fmt.Errorf("cannot read the job: %w", err)
	}
	all, err := chosen([]string{n.Attack})
	if err != nil {
		return err
	}
	if err := n.open(); err != nil {
		return err
	}
	for _, what := range all[0].Prepare {
		if err := n.prepare(ctx, what); err != nil {
			return fmt.Errorf("cannot prepare %q: %w", n.Attack, err)
		}
	}
	fmt.Fprintln(os.Stdout, "prepared")
	if err := all[0].run(ctx, n); err != nil && ctx.Err() == nil {
		return fmt.Errorf("cannot attack with %q: %w", n.Attack, err)
	}
	return json.NewEncoder(os.Stdout).Encode(&n.outcome)
}

// A noisy tenant attacks.
type noisy struct {
	job

	api     *client.Client
	browser *subject.Browser
	plain   *http.Client          // without cookies
	streams [senders]*http.Client // each sends requests as streams of a connection of its own
	bodies  [senders]*subject.Body
	cursors [maxWorkers]string // of the page that each worker reads next
	outcome outcome

	// What an attack has prepared.
	keys    []string // of further projects
	groups  []string
	packed  []byte // a gzip body
	endless endlessParts
}

const (
	senders    = 8    // of bodies and streams
	maxWorkers = 1000 // more than any attack has
)

func (n *noisy) open() (err error) {
	if n.api, err = client.New(n.Env.BaseURL, n.Env.CAFile, 64); err != nil {
		return err
	}
	if n.browser, err = subject.NewBrowser(n.Env); err != nil {
		return err
	}
	n.plain = subject.Over(n.browser.Transport)
	for i := range senders {
		n.bodies[i] = subject.NewBody(1000, uint64(i))
		n.streams[i] = subject.Over(&http.Transport{TLSClientConfig: n.browser.TLS, ForceAttemptHTTP2: true})
	}
	return nil
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

// An outcome counts a noisy tenant's answers, such as "200", "429
// overloaded", "200 incomplete" or "closed". Safe for concurrent use.
type outcome struct {
	mu    sync.Mutex
	Times map[string]int64
}

func (o *outcome) count(what string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.Times == nil {
		o.Times = map[string]int64{}
	}
	o.Times[what]++
}

// keptBytes is how much of each end of an answer is kept to find its code.
const keptBytes = 4 << 10

// read counts an answer, reads it to its end, and returns that end.
func (o *outcome) read(answer *http.Response) (tail []byte) {
	defer answer.Body.Close()
	head, _ := io.ReadAll(io.LimitReader(answer.Body, keptBytes))
	last := lastBytes{kept: slices.Clone(head)}
	_, _ = io.Copy(&last, answer.Body)
	o.count(describe(answer.StatusCode, head, last.kept))
	return last.kept
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
	l.kept = append(l.kept, p[max(0, len(p)-keptBytes):]...)
	l.kept = l.kept[max(0, len(l.kept)-keptBytes):]
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
