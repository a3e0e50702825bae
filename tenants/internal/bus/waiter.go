package bus

import (
	"context"
	"encoding/json"
	"log/slog"
	"slices"
	"sync"
	"time"

	weirbus "github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/identity"
)

// A CredentialWaiter follows weir.credentials.v1, and lets a change of a credential pass once it has come back from the broker: from
// then on it is in force here, and about now everywhere.
type CredentialWaiter struct {
	credentials *identity.Credentials
	wake        func()
	patience    time.Duration
	logger      *slog.Logger

	mu      sync.Mutex
	waiting map[string][]waiter // by contract.CredentialKey
}

type waiter struct {
	key     string
	state   string
	version int64 // or a later one
	done    chan struct{}
}

// An Awaited is what a credential shall be.
type Awaited struct {
	Key     string // see contract.CredentialKey
	State   string
	Version int64 // or a later one
}

// NewCredentialWaiter returns a waiter that feeds credentials, calls wake after a change, and makes it wait for at most patience.
func NewCredentialWaiter(credentials *identity.Credentials, wake func(), patience time.Duration, logger *slog.Logger) *CredentialWaiter {
	return &CredentialWaiter{
		credentials: credentials, wake: wake, patience: patience, logger: logger, waiting: map[string][]waiter{},
	}
}

// Wake makes the relay look for what was appended.
func (g *CredentialWaiter) Wake() { g.wake() }

// Apply takes a record of weir.credentials.v1.
func (g *CredentialWaiter) Apply(record weirbus.Record) error {
	key := string(record.Key)
	if err := g.credentials.Apply(key, record.Value); err != nil {
		return err
	}
	var credential contract.Credential
	if len(record.Value) > 0 && json.Unmarshal(record.Value, &credential) == nil {
		g.release(key, credential)
	}
	return nil
}

// Pass runs change, and if that changed something, waits until the credential under key is in state, or for the waiter's
// patience: the change is kept by then, so what is late is only its effect.
func (g *CredentialWaiter) Pass(ctx context.Context, key, state string, change func() (changed bool, err error)) error {
	w := g.expect(Awaited{Key: key, State: state})
	defer g.forget(w)
	changed, err := change()
	if err != nil || !changed {
		return err
	}
	g.Wake()
	g.await(ctx, w)
	return nil
}

// PassAll is Pass for a change that only shows on its way which credentials it changes: it says so by expect, before
// it is kept.
func (g *CredentialWaiter) PassAll(ctx context.Context, change func(expect func(Awaited)) error) error {
	var waiters []waiter
	defer func() { g.forget(waiters...) }()
	err := change(func(awaited Awaited) { waiters = append(waiters, g.expect(awaited)) })
	if err != nil {
		return err
	}
	g.Wake()
	g.await(ctx, waiters...)
	return nil
}

// await waits for all of them together at most for the waiter's patience.
func (g *CredentialWaiter) await(ctx context.Context, waiters ...waiter) {
	ctx, cancel := context.WithTimeout(ctx, g.patience)
	defer cancel()
	for _, w := range waiters {
		select {
		case <-w.done:
		case <-ctx.Done():
			g.logger.Warn("a credential is not in force yet", slog.String("state", w.state), slog.Duration("waited", g.patience))
			return
		}
	}
}

func (g *CredentialWaiter) expect(awaited Awaited) waiter {
	w := waiter{key: awaited.Key, state: awaited.State, version: awaited.Version, done: make(chan struct{})}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.waiting[awaited.Key] = append(g.waiting[awaited.Key], w)
	return w
}

func (g *CredentialWaiter) forget(waiters ...waiter) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, w := range waiters {
		g.waiting[w.key] = slices.DeleteFunc(g.waiting[w.key], func(other waiter) bool { return other.done == w.done })
		if len(g.waiting[w.key]) == 0 {
			delete(g.waiting, w.key)
		}
	}
}

// release lets those pass that wait for what a credential is now.
func (g *CredentialWaiter) release(key string, now contract.Credential) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for i, w := range g.waiting[key] {
		if w.state == now.State && w.version <= now.Version {
			close(w.done)
			g.waiting[key][i].state = "" // is never a credential's state: passes once
		}
	}
}
