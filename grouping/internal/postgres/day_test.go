package postgres_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/grouping"
	"github.com/weirlog/weir/grouping/internal/postgres"
)

// The numbers of groups are those of a naive count, however transactions split
// the errors; those of several groups are their sum. Users are as many as there are, within the error.
func TestNumbersAddUp(t *testing.T) {
	pool, random := open(t), rand.New(rand.NewPCG(7, 0))
	types := []string{"A", "B", "C"}
	hours, services, users := map[string]map[time.Time]int64{}, map[string]map[string]int64{}, map[string]map[string]bool{}
	for _, typ := range append(types, "all") {
		hours[typ], services[typ], users[typ] = map[time.Time]int64{}, map[string]int64{}, map[string]bool{}
	}
	for range 20 {
		var all []grouping.Occurrence
		for range random.IntN(200) {
			o := seen(types[random.IntN(len(types))], -time.Duration(random.IntN(40*24))*time.Hour)
			o.Service, o.User = fmt.Sprintf("svc\x00%d", random.IntN(15)), fmt.Sprint(random.IntN(300))
			for _, typ := range []string{o.Error.Type, "all"} {
				hours[typ][o.At]++
				services[typ][fmt.Sprintf("svc\uFFFD%s", o.Service[4:])]++
				users[typ][o.User] = true
			}
			all = append(all, o)
		}
		mustApply(t, pool, all...)
	}
	ids := map[string][]string{}
	for _, g := range list(t, pool, "acme", postgres.GroupQuery{}) {
		ids[g.Type] = append(ids[g.Type], g.ID)
		ids["all"] = append(ids["all"], g.ID)
	}
	for typ := range hours {
		found := read(t, pool, "acme", func(ctx context.Context, tx pgx.Tx) (postgres.Numbers, error) {
			return postgres.FindNumbers(ctx, tx, "acme", ids[typ], noon.AddDate(0, 0, -grouping.DaysKept), noon)
		})
		var sum int64
		for hour, n := range found.Hours {
			if sum += n; n != hours[typ][grouping.HourAt(hour)] {
				t.Errorf("%s: %d errors at %s, want %d", typ, n, grouping.HourAt(hour), hours[typ][grouping.HourAt(hour)])
			}
		}
		var named int64
		for _, share := range found.Tags[2] {
			if named += share.N; share.N != services[typ][share.Name] {
				t.Errorf("%s: %d errors of service %q, want %d", typ, share.N, share.Name, services[typ][share.Name])
			}
		}
		if want := int64(len(users[typ])); named != sum || found.Users != want || sum == 0 {
			t.Errorf("%s: %d errors, %d with a service, of %d users, want %d", typ, sum, named, found.Users, want)
		}
	}
	merge(t, pool, 0, ids["all"]...)
	mustApply(t, pool, seen("A", 0), seen("B", 0))
	head := only(t, pool)
	found := read(t, pool, "acme", func(ctx context.Context, tx pgx.Tx) (postgres.Numbers, error) {
		return postgres.FindNumbers(ctx, tx, "acme", []string{head.ID}, noon.AddDate(0, 0, -grouping.DaysKept), noon)
	})
	recent := read(t, pool, "acme", func(ctx context.Context, tx pgx.Tx) (map[string]*postgres.Recent, error) {
		return postgres.FindRecent(ctx, tx, "acme", []string{head.ID}, noon)
	})[head.ID]
	var sum, ofDay int64
	for hour, n := range found.Hours {
		if sum += n; noon.Sub(grouping.HourAt(hour)) < 24*time.Hour {
			ofDay += n
		}
	}
	if sum != head.Count || found.Users != int64(len(users["all"])) || recent.Hours.Sum() != ofDay || recent.Users == 0 {
		t.Errorf("merged they have %d errors, of %d, of %d users; of late %+v, want %d", sum, head.Count, found.Users, recent, ofDay)
	}
}
