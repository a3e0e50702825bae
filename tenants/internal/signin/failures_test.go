package signin_test

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/shared/testenv"
	"github.com/weirlog/weir/tenants/internal/query"
	"github.com/weirlog/weir/tenants/internal/signin"
	"github.com/weirlog/weir/tenants/internal/tenantstest"
)

// Failed sign-ins of an organization that is to be
// deleted are not due: they would delay others.
func TestFailuresOfTheHiddenAreNotDue(t *testing.T) {
	pool := tenantstest.Open(t)
	err := pg.InTxAsSystem(t.Context(), pool, func(tx pgx.Tx) error {
		_, err := tx.Exec(t.Context(), `INSERT INTO sign_in_failures (organization, member, failed, refused, networks, since, told_at)
			SELECT 'org_' || n, 'mem_' || n, 1, 0, '{}', $1::timestamptz, $1::timestamptz + (CASE n WHEN 'a' THEN interval '0' ELSE interval '1 s' END)
			  FROM unnest('{a,b}'::text[]) n`, tenantstest.Noon)
		if err != nil {
			return err
		}
		_, err = tx.Exec(t.Context(), `UPDATE organizations SET deletion = organization WHERE organization = 'org_a'`)
		return err
	})
	testenv.Must(t, err)
	due, err := signin.NewStore(query.NewReader(pool)).DueSignInFailures(t.Context(), tenantstest.Noon.Add(time.Hour), 1)
	if err != nil || len(due) != 1 || due[0].Organization != "org_b" {
		t.Errorf("due: %v, %v", due, err)
	}
}
