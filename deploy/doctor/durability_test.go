package doctor

import (
	"slices"
	"testing"

	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/shared/testenv/postgrestest"
)

// Each setting by which the server may lose commits is found, and no
// other. Test servers have some of them on purpose.
func TestUndurableIsFound(t *testing.T) {
	pool, err := pg.Open(t.Context(), postgrestest.URL(t), "ledger")
	must(t, err)
	defer pool.Close()
	e := &examination{Config: Config{}.orDefault()}
	e.durability(t.Context(), opened{module: modules[1], pool: pool})
	var want []Level
	for _, setting := range sorted(undurable) {
		var value string
		must(t, pool.QueryRow(t.Context(), `SELECT current_setting($1)`, setting).Scan(&value))
		if value == "off" {
			want = append(want, undurable[setting].level)
		}
	}
	var found []Level
	for _, f := range e.report.Findings {
		found = append(found, f.Level)
	}
	if !slices.Equal(found, want) {
		t.Errorf("found %+v, want %v", e.report.Findings, want)
	}
}
