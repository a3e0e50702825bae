package notifications_test

import (
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/tenants/internal/notifications"
	"github.com/weirlog/weir/tenants/internal/tenantstest"
)

// However many deliveries wait for a project that is to be
// deleted, which is hidden for days, a claim does not scan them.
func TestWhatIsHiddenIsNotLookedAt(t *testing.T) {
	pool, now := tenantstest.OpenOwned(t), tenantstest.Noon
	err := pg.InTxAsSystem(t.Context(), pool, func(tx pgx.Tx) error {
		for _, statement := range []string{
			`UPDATE projects SET deletion = 'deleting' WHERE id = 'prj_a'`,
			`INSERT INTO deliveries (organization, id, webhook, project, type, body, created_at, state, begun_at, next_at)
				SELECT 'org_a', 'msg_' || i, 'whk', CASE i WHEN 0 THEN '' ELSE 'prj_a' END, 'x', '{}', '2026-01-01', 'pending', '2026-01-01',
					timestamptz '2026-01-02' - i * interval '1 second' FROM generate_series(0, 20000) i`,
			`ANALYZE deliveries`,
		} {
			if _, err := tx.Exec(t.Context(), statement); err != nil {
				return err
			}
		}
		rows, err := tx.Query(t.Context(), `EXPLAIN (ANALYZE, TIMING OFF, COSTS OFF) `+notifications.ClaimQueryForTest(),
			now, 4, 32, now.Add(time.Minute), []string{"org_a"}, []int{0})
		if err != nil {
			return err
		}
		lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
		plan := strings.Join(lines, "\n")
		if looked := maxRows(t, plan); looked > 10 || !regexp.MustCompile(`Update on deliveries \w+ \(actual rows=1 `).MatchString(plan) {
			t.Errorf("%d rows are looked at:\n%s", looked, plan)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// maxRows is the largest number of rows
// that any part of a plan found or skipped.
func maxRows(t *testing.T, plan string) (rows int) {
	t.Helper()
	for _, match := range regexp.MustCompile(`(?:actual rows=|Rows Removed by [^:]*: )(\d+)`).FindAllStringSubmatch(plan, -1) {
		n, err := strconv.Atoi(match[1])
		if err != nil {
			t.Fatal(err)
		}
		rows = max(rows, n)
	}
	return rows
}
