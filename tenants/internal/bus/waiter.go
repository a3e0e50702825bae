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

// A CredentialWaiter follows weir.credentials.v1: a change read
// back from the broker is in force here, and about now everywhere.
type CredentialWaiter struct {
	credentials *identity.Credentials
	wake        func()
	timeout     time.Duration
	logger      *slog.Logger

	mu      sync.Mutex
	waiting map[string][]waiter // by contract.CredentialKey; bounded by the changes under way
}

type waiter struct {
	key     string
	state   string
	version int64 // or a later one
	done    chan struct{}
}

// An Awaited is the expected state of a credential.
type Awaited struct {
	Key     string // see contract.CredentialKey
	State   string
	Version int64 // or a later one
}

// NewCredentialWaiter returns a waiter that feeds credentials,
// and waits for at most timeout. Its Wake calls wake.
func NewCredentialWaiter(credentials *identity.Credentials, wake func(), timeout time.Duration, logger *slog.Logger) *CredentialWaiter {
	return &CredentialWaiter{
		credentials: credentials, wake: wake, timeout: timeout, logger: logger, waiting: map[string][]waiter{},
	}
}

// Wake makes the relay read what was appended.
func (c *CredentialWaiter) Wake() { c.wake() }

// Apply applies a record of weir.credentials.v1.
func (c *CredentialWaiter) Apply(record weirbus.Record) error {
	if err := c.credentials.Consume(record); err != nil {
		return err
	}
	switch record.Header(contract.HeaderType) {
	case contract.TypeCredentialChanged:
		return releaseAs(c, record, func(now contract.Credential) (string, int64) { return now.State, now.Version })
	case contract.TypeHolderChanged:
		return releaseAs(c, record, func(now contract.Holder) (string, int64) { return now.State, now.Version })
	}
	return nil
}

// releaseAs releases those who wait for a record's
// state. Unreadable records were reported before.
func releaseAs[C any](c *CredentialWaiter, record weirbus.Record, now func(C) (state string, version int64)) error {
	var carried C
	if json.Unmarshal(record.Value, &carried) == nil {
		state, version := now(carried)
		c.release(string(record.Key), state, version)
	}
	return nil
}

// A Watch watches some credentials.
type Watch struct {
	waiter  *CredentialWaiter
	waiters []waiter
}

// Watch begins to watch credentials, before their
// change is committed. The caller stops the watch.
func (c *CredentialWaiter) Watch(awaited ...Awaited) *Watch {
	watch := &Watch{waiter: c}
	for _, each := range awaited {
		watch.waiters = append(watch.waiters, c.expect(each))
	}
	return watch
}

// Stop ends the watch.
func (w *Watch) Stop() { w.waiter.forget(w.waiters...) }

// Wait returns once all credentials have
// the expected state, or after the timeout.
func (w *Watch) Wait(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, w.waiter.timeout)
	defer cancel()
	for _, each := range w.waiters {
		select {
		case <-each.done:
		case <-ctx.Done():
			w.waiter.logger.Warn("a credential is not in force yet", slog.String("state", each.state), slog.Duration("waited", w.waiter.timeout))
			return
		}
	}
}

func (c *CredentialWaiter) expect(awaited Awaited) waiter {
	w := waiter{key: awaited.Key, state: awaited.State, version: awaited.Version, done: make(chan struct{})}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.waiting[awaited.Key] = append(c.waiting[awaited.Key], w)
	return w
}

func (c *CredentialWaiter) forget(waiters ...waiter) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, w := range waiters {
		c.waiting[w.key] = slices.DeleteFunc(c.waiting[w.key], func(other waiter) bool { return other.done == w.done })
		if len(c.waiting[w.key]) == 0 {
			delete(c.waiting, w.key)
		}
	}
}

// release releases those who wait for a credential's state.
func (c *CredentialWaiter) release(key, state string, version int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, w := range c.waiting[key] {
		if w.state == state && w.version <= version {
			close(w.done)
			c.waiting[key][i].state = "" // no credential has this state: releases once
		}
	}
}
