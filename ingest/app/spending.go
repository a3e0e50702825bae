package app

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/weirlog/weir/ingest/internal/admission"
	"github.com/weirlog/weir/ingest/internal/bus"
	"github.com/weirlog/weir/ingest/internal/uncounted"
	"github.com/weirlog/weir/shared/bus/state"
	"github.com/weirlog/weir/shared/lifecycle"
	"github.com/weirlog/weir/shared/service"
)

// spending tells the gate what requests have spent that the published
// accounts don't have yet, and among how many replicas the rest is divided.
type spending struct {
	gate      *admission.Gate
	accounts  *state.Reader
	log       *bus.Log
	uncounted *uncounted.Reader
	read      atomic.Bool // what is uncounted
	counted   atomic.Bool // replicas are
	clock     func() time.Time
	logger    *slog.Logger
}

func newSpending(config Config, base *service.Base, gate *admission.Gate, accounts *state.Reader) *spending {
	log := &bus.Log{Brokers: config.Brokers, Dialer: base.Dialer}
	return &spending{
		gate: gate, accounts: accounts, log: log, clock: base.Clock, logger: base.Logger,
		uncounted: &uncounted.Reader{Log: log, Pool: base.Pool, Logger: base.Logger},
	}
}

func (s *spending) loops() []func(context.Context) error {
	return []func(context.Context) error{s.readUncounted, s.resolve, s.countReplicas}
}

// known is nil once what the ledger has not counted is found, and
// replicas are counted.
func (s *spending) known() error {
	switch {
	case !s.read.Load():
		return errors.New("the log behind the ledger is not read yet")
	case !s.counted.Load():
		return errors.New("the replicas of ingest are not counted yet")
	}
	return nil
}

// readUncounted finds once what was accepted before this process started and
// is not in the accounts. It runs after the accounts are read, as the
// gap starts where they end.
func (s *spending) readUncounted(ctx context.Context) error {
	select {
	case <-s.accounts.Ready():
	case <-ctx.Done():
		return nil
	}
	for ctx.Err() == nil {
		charges, err := s.uncounted.Read(ctx, s.gate.Marker())
		if err == nil {
			for _, c := range charges {
				s.gate.Found(c)
			}
			s.read.Store(true)
			break
		}
		s.logger.Warn("cannot read the log behind the ledger yet", slog.String("error", err.Error()))
		lifecycle.Pause(ctx, retryDelay)
	}
	return nil
}

// gapInterval is how often it checks whether the ledger is far behind.
const gapInterval = 5 * time.Second

// sum keeps later starts of all processes short while the ledger is
// far behind.
func (s *spending) sum(ctx context.Context) error {
	for ; ctx.Err() == nil; lifecycle.Pause(ctx, gapInterval) {
		if s.accounts.Complete() != nil {
			continue
		}
		if err := s.uncounted.Sum(ctx, s.gate.Marker()); err != nil && ctx.Err() == nil {
			s.logger.Warn("cannot sum up the log behind the ledger yet", slog.String("error", err.Error()))
		}
	}
	return nil
}

// How often requests of unknown outcome are resolved, and how long after the
// publisher gave up a copy of one can still arrive at the broker.
const (
	resolveInterval = 5 * time.Second
	resolveAfter    = 30 * time.Second
)

// resolve finds, for requests of unknown outcome, the offsets below
// which they are if they are in the log.
func (s *spending) resolve(ctx context.Context) error {
	for ; ctx.Err() == nil; lifecycle.Pause(ctx, resolveInterval) {
		before := s.clock().Add(-resolveAfter)
		if !s.gate.Incomplete(before) {
			continue
		}
		ends, err := s.log.Ends(ctx)
		if err != nil {
			s.logger.Warn("cannot resolve requests of unknown outcome yet", slog.String("error", err.Error()))
			continue
		}
		s.gate.Resolve(before, ends)
	}
	return nil
}

// replicasInterval is how often replicas are counted. Until then a new
// one and the others may each admit all that is left.
const replicasInterval = 2 * time.Second

// countReplicas divides quotas among the running replicas. While they
// can't be counted the last number holds.
func (s *spending) countReplicas(ctx context.Context) error {
	for ; ctx.Err() == nil; lifecycle.Pause(ctx, replicasInterval) {
		replicas, err := bus.Replicas(ctx, s.log.Brokers, s.log.Dialer)
		if err != nil {
			if ctx.Err() == nil {
				s.logger.Warn("cannot count the replicas of ingest", slog.String("error", err.Error()))
			}
			continue
		}
		s.gate.Divide(replicas)
		s.counted.Store(true)
	}
	return nil
}
