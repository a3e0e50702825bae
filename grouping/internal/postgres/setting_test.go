package postgres_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/grouping"
	"github.com/weirlog/weir/grouping/internal/postgres"
	"github.com/weirlog/weir/shared/pg"
)

// A setting holds for what is accepted from its time on, also when that is
// read again later; a project keeps the newest.
func TestSettings(t *testing.T) {
	pool := open(t)
	shop := postgres.Project{Organization: "acme", Name: "shop"}
	for i := range 110 {
		err := pg.InTx(t.Context(), pool, func(tx pgx.Tx) error {
			if err := pg.AsOrganization(t.Context(), tx, "acme"); err != nil {
				return err
			}
			return postgres.SaveSetting(t.Context(), tx, "acme", "shop", postgres.Setting{Since: noon.Add(time.Duration(i) * time.Hour), Paths: grouping.Paths{User: []string{fmt.Sprint(i)}}})
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	all := read(t, pool, "acme", func(ctx context.Context, tx pgx.Tx) (postgres.Settings, error) {
		return postgres.FindSettings(ctx, tx, []postgres.Project{shop, {Organization: "acme", Name: "cafe"}})
	})
	of := func(project postgres.Project, hour time.Duration) []string {
		return all.Of(project, noon.Add(hour*time.Hour)).User
	}
	if len(all[shop]) != 100 || len(all) != 1 {
		t.Errorf("%d settings of %d projects", len(all[shop]), len(all))
	}
	if got := fmt.Sprint(of(shop, 1000), of(shop, 50), of(shop, 9), of(postgres.Project{Organization: "acme", Name: "cafe"}, 50)); got != "[109] [50] [user.id user] [user.id user]" {
		t.Error(got)
	}
}
