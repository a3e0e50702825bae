package query

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/identity"
	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/shared/pg/pgtest"
)

// An organization that reads without pause has half of the
// slots and a bounded queue; beyond that it gets 429. Another
// organization and the process's own work are served at once.
func TestReadersTakeTurns(t *testing.T) {
	reader := NewReader(pgtest.Open(t, "tenants")).Limited(httpapi.NewLimiter(httpapi.LimiterConfig{Slots: 4, Module: "weir_tenants", Noun: "reads"}, prometheus.NewRegistry()))
	as := func(organization string) context.Context {
		return identity.NewContext(t.Context(), identity.Principal{Organization: organization})
	}
	held, refused, finish := make(chan bool, 40), make(chan error, 40), make(chan bool)
	hold := func(pgx.Tx) error {
		held <- true
		<-finish
		return nil
	}
	var wait sync.WaitGroup
	for range cap(held) {
		wait.Go(func() {
			if err := reader.read(as("noisy"), "noisy", hold); err != nil {
				refused <- err
			}
		})
	}
	for range 2 {
		<-held
	}
	for range cap(held) - 2 - 16 {
		var problem *httpapi.Problem
		if err := <-refused; !errors.As(err, &problem) || problem.Status != http.StatusTooManyRequests {
			t.Errorf("refused with %v", err)
		}
	}
	if len(held) != 0 {
		t.Errorf("%d more are at work", len(held))
	}
	for whose, ctx := range map[pg.Organization]context.Context{"quiet": as("quiet"), "noisy": t.Context()} {
		if err := reader.read(ctx, whose, func(pgx.Tx) error { return nil }); err != nil {
			t.Errorf("%s: %v", whose, err)
		}
	}
	close(finish)
	wait.Wait()
}
