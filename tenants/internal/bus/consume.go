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

// A Gate follows weir.credentials.v1, and lets a change of a credential pass once it has come back from the broker: from
// then on it is in force here, and about now everywhere.
type Gate struct {
	credentials *identity.Credentials
	wake        func()
	patience    time.Duration
	logger      *slog.Logger

	mu      sync.Mutex
	waiting map[string][]waiter // by contract.CredentialKey
}

type waiter struct {
	state string
	done  chan struct{}
}

// NewGate returns a gate that feeds credentials, calls wake after a change, and makes it wait for at most patience.
func NewGate(credentials *identity.Credentials, wake func(), patience time.Duration, logger *slog.Logger) *Gate {
	return &Gate{
		credentials: credentials, wake: wake, patience: patience, logger: logger, waiting: map[string][]waiter{},
	}
}

// Wake makes the relay look for what was appended.
func (g *Gate) Wake() { g.wake() }

// Apply takes a record of weir.credentials.v1. One that can't be read is reported and passed over: it must not keep the
// others from changing.
func (g *Gate) Apply(record weirbus.Record) {
	key := string(record.Key)
	if err := g.credentials.Apply(key, record.Value); err != nil {
		g.logger.Error("cannot apply a credential", slog.Int64("offset", record.Offset), slog.String("error", err.Error()))
		return
	}
	var credential contract.Credential
	if len(record.Value) > 0 && json.Unmarshal(record.Value, &credential) == nil {
		g.release(key, credential.State)
	}
}

// Pass runs change, and if that changed something, waits until the credential under key is in state, or for the gate's
// patience: the change is kept by then, so what is late is only its effect.
func (g *Gate) Pass(ctx context.Context, key, state string, change func() (changed bool, err error)) error {
	w := waiter{state: state, done: make(chan struct{})}
	g.expect(key, w)
	defer g.forget(key, w)
	changed, err := change()
	if err != nil || !changed {
		return err
	}
	g.Wake()
	ctx, cancel := context.WithTimeout(ctx, g.patience)
	defer cancel()
	select {
	case <-w.done:
	case <-ctx.Done():
		g.logger.Warn("a credential is not in force yet", slog.String("state", state), slog.Duration("waited", g.patience))
	}
	return nil
}

func (g *Gate) expect(key string, w waiter) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.waiting[key] = append(g.waiting[key], w)
}

func (g *Gate) forget(key string, w waiter) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.waiting[key] = slices.DeleteFunc(g.waiting[key], func(other waiter) bool { return other.done == w.done })
	if len(g.waiting[key]) == 0 {
		delete(g.waiting, key)
	}
}

// release lets those pass that wait for the state which a credential is in now.
func (g *Gate) release(key, state string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for i, w := range g.waiting[key] {
		if w.state == state {
			close(w.done)
			g.waiting[key][i].state = "" // is never a credential's state: passes once
		}
	}
}
