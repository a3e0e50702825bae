package e2e

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weirlog/weir/deploy/client"
	"github.com/weirlog/weir/ingest"
	"github.com/weirlog/weir/shared/testenv"
)

// An installation is the scenario's target: an address and
// the operator's token.
type installation struct {
	api      *client.Client
	operator string
}

// scenarioLimit bounds the scenario. Views and revocations are promised
// within a second of an answer, which `make bench` and `make
// bench-revocation` measure; other tests keep the machine busy here, so
// quietLimit only shows that they come without further load.
const (
	scenarioLimit = 10 * time.Minute
	quietLimit    = time.Minute
)

// quotaBytes is the installations' quota of the tier bootstrapper,
// small enough to be exhausted.
const quotaBytes = 60_000

// scenario is what must hold in every shape. disturb, if any, runs
// while traffic is posted and may do anything to the installation that
// it repairs before it returns; each value that it takes from underway
// begins a large post.
func scenario(t *testing.T, in installation, disturb func(ctx context.Context, underway <-chan struct{})) {
	ctx, cancel := context.WithTimeout(t.Context(), scenarioLimit)
	defer cancel()
	main, other := in.tenant(t, ctx, "main", "scale"), in.tenant(t, ctx, "other", "scale")
	m, o := &maker{mark: "main"}, &maker{mark: "other"}
	sentMain, sentOther := &history{}, &history{}

	traffic(t, ctx, in, main, m, sentMain, disturb)
	for i := range 5 {
		entries := o.some(30)
		deliver(t, ctx, in, other, fmt.Sprint("other's ", i), plainly(body(texts(entries)...)), entries, sentOther)
	}

	t.Run("views", func(t *testing.T) {
		verify(t, ctx, in, main, sentMain)
		verify(t, ctx, in, other, sentOther)
	})
	t.Run("quiet", func(t *testing.T) { quiet(t, ctx, in) })
	t.Run("occurrences", func(t *testing.T) { occurrences(t, ctx, in, other) })
	t.Run("isolation", func(t *testing.T) { isolation(t, ctx, in, main, other) })
	t.Run("idempotency", func(t *testing.T) { idempotency(t, ctx, in, main, m, sentMain) })
	t.Run("refusals", func(t *testing.T) { refusals(t, ctx, in, main) })
	t.Run("revocation", func(t *testing.T) { revocation(t, ctx, in) })
	t.Run("quota", func(t *testing.T) { quota(t, ctx, in) })
	t.Run("upgrade", func(t *testing.T) { upgrade(t, ctx, in) })
	t.Run("rate", func(t *testing.T) { rate(t, ctx, in) })
	t.Run("nothing refused was kept", func(t *testing.T) { verify(t, ctx, in, main, sentMain) })
}

// A tenant is an organization with one project, its key and its token for balances.
type tenant struct {
	organization, project, key, keyID, billing string
}

// tenant creates an organization, a project, a key and a billing token,
// and waits until posts are admitted.
func (in installation) tenant(t *testing.T, ctx context.Context, name, tier string) tenant {
	t.Helper()
	organization, err := in.api.CreateOrganization(ctx, in.operator, name, tier)
	testenv.Must(t, err)
	project, err := in.api.CreateProject(ctx, in.operator, organization.ID, name+"'s project")
	testenv.Must(t, err)
	key, err := in.api.CreateAPIKey(ctx, in.operator, project.ID, "prod", name+"'s key")
	testenv.Must(t, err)
	token, err := in.api.CreateServiceToken(ctx, in.operator, organization.ID, name+"'s billing", "billing:read")
	testenv.Must(t, err)
	if organization.Tier != tier || project.Organization != organization.ID || key.Organization != organization.ID ||
		key.Project != project.ID || key.Environment != "prod" || !strings.HasSuffix(key.Key, key.Last4) {
		t.Fatalf("created %+v, %+v, %+v", organization, project, key)
	}
	made := tenant{organization.ID, project.ID, key.Key, key.ID, token.Token}
	testenv.Eventually(t, func() error { // a request without entries is refused only once it is admitted
		_, err := in.api.Post(ctx, made.key, plainly(body()))
		return wantProblem(err, 400, "empty_batch")
	})
	return made
}

// Traffic: how many clients post concurrently, how many batches each at
// least, and how often during a disturbance.
const (
	clients        = 4
	batchesEach    = 15
	disturbedPause = 50 * time.Millisecond // within the rate of the tier
	calmBatch      = 80                    // largest, in entries
	disturbedBatch = 12                    // a disturbance lasts minutes, and all its entries are read back
)

// traffic posts every trial and ordinary batches from several clients,
// despite the disturbance.
func traffic(t *testing.T, ctx context.Context, in installation, to tenant, m *maker, h *history, disturb func(context.Context, <-chan struct{})) {
	t.Helper()
	disturbed, underway := make(chan struct{}), make(chan struct{})
	var work sync.WaitGroup
	work.Go(func() {
		defer close(disturbed)
		if disturb != nil {
			disturb(ctx, underway)
		}
	})
	largest := calmBatch
	if disturb != nil {
		largest = disturbedBatch
	}
	for _, trial := range trials(t, m) {
		work.Go(func() { try(t, ctx, in, to, trial, h) })
	}
	work.Go(func() { large(t, ctx, in, to, m, h, underway, disturbed) })
	for number := range clients {
		work.Go(func() {
			for i := 0; (i < batchesEach || !isClosed(disturbed)) && ctx.Err() == nil && !t.Failed(); i++ {
				entries := m.some(1 + int(m.serial.Load())%largest)
				ordinary(t, ctx, in, to, entries, h, fmt.Sprintf("client %d batch %d", number, i), i%5 == 4)
				if disturb != nil {
					time.Sleep(disturbedPause) // a pace, not a wait
				}
			}
		})
	}
	work.Wait()
	if t.Failed() {
		t.FailNow()
	}
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// A large post. A part has nine of its entries.
const (
	largeEntries = 25
	largeMessage = 9 << 10
	largeMeta    = 90 << 10
	partBytes    = 900 << 10 // ingest's limit of one record
)

// large posts batches of several parts, two at once and one for each
// value from underway: in turn one that is sent until it is accepted,
// which its idempotency key makes one, and one that is sent once,
// without a key.
func large(t *testing.T, ctx context.Context, in installation, to tenant, m *maker, h *history, underway chan<- struct{}, disturbed <-chan struct{}) {
	t.Helper()
	for i := 0; ; i++ {
		entries, name := m.many(largeEntries), fmt.Sprintf("large batch %d", i)
		if i >= 2 {
			select {
			case <-disturbed:
				return
			case underway <- struct{}{}:
			}
		}
		if i%2 == 0 {
			deliver(t, ctx, in, to, name, plainly(body(texts(entries)...)), entries, h)
		} else {
			once(t, ctx, in, to, name, entries, h)
		}
	}
}

func (m *maker) many(n int) []sent {
	entries := make([]sent, n)
	for i := range entries {
		entries[i] = m.sized(largeMessage, largeMeta)
	}
	return entries
}

// ordinary posts one batch: until it is accepted, or once without
// regard to its outcome.
func ordinary(t *testing.T, ctx context.Context, in installation, to tenant, entries []sent, h *history, name string, careless bool) {
	if careless {
		once(t, ctx, in, to, name, entries, h)
		return
	}
	deliver(t, ctx, in, to, name, plainly(body(texts(entries)...)), entries, h)
}

// once posts a batch without a key. If no answer shows its outcome,
// each of its parts may be stored or not.
func once(t *testing.T, ctx context.Context, in installation, to tenant, name string, entries []sent, h *history) {
	t.Helper()
	accepted, err := in.api.Post(ctx, to.key, plainly(body(texts(entries)...)))
	var problem *client.Problem
	switch {
	case err == nil:
		checkAccepted(t, name, accepted, entries, 0)
		h.accepted(name, entries)
	case errors.As(err, &problem) && problem.Status == 429: // surely not stored
	default:
		for i, part := range parts(t, entries) {
			h.unknown(fmt.Sprintf("%s, part %d", name, i+1), part)
		}
	}
}

// parts cuts entries as ingest does: each part is one record of the log.
func parts(t *testing.T, entries []sent) (cut [][]sent) {
	t.Helper()
	batch, err := ingest.NewParser(ingest.DefaultLimits()).Parse(body(texts(entries)...))
	if err != nil {
		t.Error(err)
		return [][]sent{entries}
	}
	for _, part := range batch.Parts(nil, partBytes) {
		cut = append(cut, entries[part.First:part.First+part.Count])
	}
	return cut
}

// deliver posts a batch until it is accepted; its idempotency key makes
// any number of tries one.
func deliver(t *testing.T, ctx context.Context, in installation, to tenant, name string, batch client.Batch, entries []sent, h *history) {
	t.Helper()
	batch.IdempotencyKey = name
	accepted, err := in.api.Deliver(ctx, to.key, batch)
	if err != nil {
		t.Errorf("%s: %v", name, err)
		return
	}
	checkAccepted(t, name, accepted, entries, 0)
	h.accepted(name, entries)
}

// checkAccepted compares an answer with the entries that had to be
// accepted: a client can compute bytes_used.
func checkAccepted(t *testing.T, name string, accepted client.Accepted, entries []sent, rejected int) {
	t.Helper()
	var bytes int64
	for _, entry := range entries {
		bytes += int64(len(entry.text))
	}
	if accepted.Processed != len(entries) || accepted.BytesUsed != bytes || accepted.Rejected != rejected || accepted.Message == "" {
		t.Errorf("%s: answered %+v, want %d processed, %d rejected, %d bytes", name, accepted, len(entries), rejected, bytes)
	}
}

// try posts a trial and compares the answer.
func try(t *testing.T, ctx context.Context, in installation, to tenant, trial trial, h *history) {
	trial.batch.IdempotencyKey = "trial: " + trial.name
	accepted, err := in.api.Deliver(ctx, to.key, trial.batch)
	if trial.status != 0 {
		if err := wantProblem(err, trial.status, trial.code); err != nil {
			t.Errorf("%s: %v", trial.name, err)
			return
		}
		var problem *client.Problem
		_ = errors.As(err, &problem)
		checkFaults(t, trial, problem.Errors)
		return
	}
	if err != nil {
		t.Errorf("%s: %v", trial.name, err)
		return
	}
	checkAccepted(t, trial.name, accepted, trial.entries, trial.rejected)
	checkFaults(t, trial, accepted.Errors)
	h.accepted(trial.name, trial.entries)
}

func checkFaults(t *testing.T, trial trial, faults []client.Fault) {
	t.Helper()
	for _, want := range trial.faults {
		found := slices.ContainsFunc(faults, func(f client.Fault) bool {
			return f.Index != nil && f.Fix != "" && f.Detail != "" && strings.HasPrefix(fmt.Sprintf("%d %s %s", *f.Index, f.Pointer, f.Code), want)
		})
		if !found {
			t.Errorf("%s: no fault %q in %+v", trial.name, want, faults)
		}
	}
}

// wantProblem checks that err is the given refusal; any code for "".
func wantProblem(err error, status int, code string) error {
	var problem *client.Problem
	if !errors.As(err, &problem) || problem.Status != status || code != "" && problem.Code != code {
		return fmt.Errorf("got %w, want %d %s", orNothing(err), status, code)
	}
	if problem.RequestID == "" || problem.Detail == "" {
		return fmt.Errorf("a problem without request_id or detail: %w", problem)
	}
	return nil
}

func orNothing(err error) error {
	if err == nil {
		return errors.New("a success")
	}
	return err
}
