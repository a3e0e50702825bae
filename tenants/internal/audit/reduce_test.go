package audit_test

import (
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/weirlog/weir/shared/eventstore"
	"github.com/weirlog/weir/shared/eventstore/eventstorepg"
	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/tenants"
	"github.com/weirlog/weir/tenants/internal/audit"
	"github.com/weirlog/weir/tenants/internal/projections"
	"github.com/weirlog/weir/tenants/internal/tenantstest"
)

var doomed = tenants.Deletable{Organization: "org_a", Project: "prj_a"}

// decided appends events about the deletion of org_a's project.
func decided(t *testing.T, pool *pgxpool.Pool, before int64, events ...tenants.Event) {
	t.Helper()
	stream := eventstore.Stream{Organization: "org_a", Name: "deletion/prj_a"}
	if err := projections.NewEvents(pool).Append(t.Context(), stream, before, nil, events...); err != nil {
		t.Fatal(err)
	}
}

// reduced erases the second stream of org_a,
// its project, and reduces its lines.
func reduced(t *testing.T, pool *pgxpool.Pool) (left tenants.Reduction) {
	t.Helper()
	err := pg.InTx(t.Context(), pool, func(tx pgx.Tx) error {
		if err := pg.AsSystem(t.Context(), tx); err != nil {
			return err
		}
		erased, err := eventstorepg.EraseTx(t.Context(), tx, "org_a", []string{"1"})
		if err != nil {
			return err
		}
		if err := audit.Reduce(t.Context(), tx, "org_a", "prj_a", erased); err != nil {
			return err
		}
		left, err = audit.Reduced(t.Context(), tx, "org_a", "prj_a")
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return left
}

// Lines of what is deleted keep who did what, and the chain
// holds: during the erasure, and after that by its last event.
func TestReducedLinesAreAttested(t *testing.T) {
	pool := tenantstest.OpenOwned(t)
	decided(t, pool, 0, tenants.DeletionRequested{Deletable: doomed, At: tenantstest.Noon}, tenants.DeletionBegun{Deletable: doomed, At: tenantstest.Noon})
	left := reduced(t, pool)
	if got := checkAudit(t, pool, "org_a"); got.Faults != nil || left.Lines != 1 {
		t.Errorf("while it is erased: %d lines are reduced, %v", left.Lines, got.Faults)
	}
	decided(t, pool, 2, tenants.DeletionFinished{Deletable: doomed, At: tenantstest.Noon, ReducedLines: left.Lines, ReducedHash: left.Hash()})
	if got := checkAudit(t, pool, "org_a"); got.Faults != nil || got.Lines != perOrganization+3 {
		t.Errorf("after that: %d lines, %v", got.Lines, got.Faults)
	}
	disableTriggers(t, pool)
	if err := asSystem(t, pool, `UPDATE audit_events SET actor = 'mem_x' WHERE reduced_by = 'prj_a'`); err != nil {
		t.Fatal(err)
	}
	if got := checkAudit(t, pool, "org_a"); len(got.Faults) != 1 || !strings.Contains(got.Faults[0].Detail, "reduced") {
		t.Errorf("a reduced line that was changed: %v", got.Faults)
	}
}

// A line reduced without a deletion is found,
// and so is an event that was erased alone.
func TestOtherReductionsAreFound(t *testing.T) {
	for name, tamper := range map[string]func(pool *pgxpool.Pool) error{
		"reduced and erased": func(pool *pgxpool.Pool) error {
			reduced(t, pool)
			return nil
		},
		"reduced": func(pool *pgxpool.Pool) error {
			return asSystem(t, pool, `UPDATE audit_events SET address = '', client = '', request = '', reduced_by = 'prj_x' WHERE organization = 'org_a' AND sequence = 2`)
		},
		"erased": func(pool *pgxpool.Pool) error {
			return asSystem(t, pool, `UPDATE events SET name = 'erased', data = '{}' WHERE organization = 'org_a' AND stream = '1'`)
		},
	} {
		pool := tenantstest.Open(t)
		if err := tamper(pool); err != nil {
			t.Fatal(err)
		}
		if got := checkAudit(t, pool, "org_a"); len(got.Faults) == 0 {
			t.Errorf("%s: nothing is found", name)
		}
	}
}

// The database allows a reduction of a line once, and no other change.
func TestLinesAreOnlyReduced(t *testing.T) {
	pool := tenantstest.Open(t)
	for _, statement := range []string{
		`UPDATE audit_events SET target_name = 'another', reduced_by = 'prj_x'`, `UPDATE audit_events SET target_name = ''`,
		`UPDATE audit_events SET after = '{}', reduced_by = 'prj_x'`,
	} {
		if err := asSystem(t, pool, statement); !refused(err) {
			t.Errorf("%s: %v", statement, err)
		}
	}
	const reduce = `UPDATE audit_events SET target_name = '', address = '', client = '', request = '', reduced_by = 'prj_x'`
	if err := asSystem(t, pool, reduce); err != nil {
		t.Error(err)
	}
	if err := asSystem(t, pool, reduce); !refused(err) {
		t.Errorf("again: %v", err)
	}
}
