package bus_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/grouping"
	"github.com/weirlog/weir/grouping/internal/bus"
	"github.com/weirlog/weir/grouping/internal/groups"
	"github.com/weirlog/weir/grouping/internal/postgres"
	sharedbus "github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/pg"
)

// owns sets the rules of the shop.
func (a *alerting) owns(t *testing.T, rules ...grouping.OwnerRule) postgres.OwnerRules {
	t.Helper()
	set, err := a.Owners.Set(t.Context(), a.request(), "shop", rules, nil)
	if err != nil {
		t.Fatal(err)
	}
	return set
}

// assignees are those of all groups, sorted.
func (a *alerting) assignees(t *testing.T) (all []string) {
	t.Helper()
	found, err := a.Groups.List(t.Context(), "acme", postgres.GroupQuery{Limit: 100})
	if err != nil {
		t.Fatal(err)
	}
	for _, g := range found.Groups {
		all = append(all, g.State.Assignee.ID)
	}
	slices.Sort(all)
	return all
}

func (a *alerting) remove(t *testing.T, member string) {
	t.Helper()
	gone, _ := json.Marshal(contract.MemberRemoved{Organization: "acme", Member: member, RemovedAt: *a.now})
	removal := sharedbus.Record{Topic: contract.TopicTenants, Value: gone, Headers: []sharedbus.Header{{Key: contract.HeaderType, Value: []byte(contract.TypeMemberRemoved)}}}
	err := pg.InTx(t.Context(), a.pool, func(tx pgx.Tx) error { return bus.ConsumeTenants(t.Context(), tx, []sharedbus.Record{removal}) })
	if err != nil {
		t.Fatal(err)
	}
}

// A new group is given to whom the first matching rule names, which its
// activity says; what came before the rules is, once somebody applies them.
func TestOwnersOfNewGroups(t *testing.T) {
	a := newAlerting(t)
	if err := a.come(t.Context(), false, 1); err != nil {
		t.Fatal(err)
	}
	*a.now = a.now.Add(time.Second)
	a.owns(t, grouping.OwnerRule{Path: "Cart.java", Assignee: "carts"}, grouping.OwnerRule{Function: "com.acme.pay.*", Assignee: "payments"})
	*a.now = a.now.Add(-time.Second)
	if err := a.come(t.Context(), false, 2); err != nil { // accepted before, read later
		t.Fatal(err)
	}
	*a.now = a.now.Add(2 * time.Second)
	if err := errors.Join(a.come(t.Context(), true, 3), a.come(t.Context(), false, 3, 3), a.come(t.Context(), false, 1, 3)); err != nil {
		t.Fatal(err)
	}
	if got := a.assignees(t); !slices.Equal(got, []string{"", "", "payments"}) {
		t.Errorf("assigned to %q", got)
	}
	found, err := a.Groups.List(t.Context(), "acme", postgres.GroupQuery{Limit: 9, Assignee: "payments"})
	if err != nil {
		t.Fatal(err)
	}
	activity, err := a.Groups.Activity(t.Context(), a.request().Who, found.Groups[0].ID, 100, 10)
	if err != nil || len(activity) != 1 || activity[0].By.ID != "" || activity[0].Reason != "Rule 2 matched: function:com.acme.pay.*." {
		t.Errorf("activity: %+v, %v", activity, err)
	}
	var appliers sync.WaitGroup
	var done [3]groups.Applied
	for i := range done {
		appliers.Go(func() {
			var err error
			if done[i], err = a.Owners.Apply(t.Context(), a.request(), "shop", postgres.GroupCursor{}); err != nil {
				t.Error(err)
			}
		})
	}
	appliers.Wait()
	if got := a.assignees(t); !slices.Equal(got, []string{"payments", "payments", "payments"}) || done[0].Assigned+done[1].Assigned+done[2].Assigned != 2 {
		t.Errorf("applied %+v: assigned to %q", done, got)
	}
}

// Neither rules nor groups are left to a member who was removed, also while
// groups are created.
func TestOwnersWithoutRemovedMembers(t *testing.T) {
	a := newAlerting(t)
	a.owns(t, grouping.OwnerRule{Path: "Cart.java", Assignee: "carts"}, grouping.OwnerRule{Path: "**", Assignee: "mem_2"})
	var consumer sync.WaitGroup
	consumer.Go(func() {
		for kind := range 20 {
			if err := a.come(t.Context(), false, kind); err != nil {
				t.Error(err)
			}
		}
	})
	for range 5 {
		a.remove(t, "mem_2")
	}
	consumer.Wait()
	if got := a.assignees(t); slices.Contains(got, "mem_2") || len(got) != 20 {
		t.Errorf("assigned to %q", got)
	}
	versions, err := a.Owners.Versions(t.Context(), "acme", "shop")
	if err != nil || len(versions) != 1 || len(versions[0].Rules) != 1 || versions[0].Rules[0].Assignee != "carts" {
		t.Errorf("rules: %+v, %v", versions, err)
	}
}

// The second of two who change rules is refused; twenty versions are kept.
func TestOwnersChangedAtOnce(t *testing.T) {
	a := newAlerting(t)
	var refused, set int
	var people sync.WaitGroup
	var mu sync.Mutex
	for i := range 4 {
		people.Go(func() {
			_, err := a.Owners.Set(t.Context(), a.request(), "shop", grouping.Owners{{Path: fmt.Sprint(i), Assignee: "a"}}, &time.Time{})
			mu.Lock()
			defer mu.Unlock()
			if set++; errors.Is(err, groups.ErrSettingsChanged) {
				refused++
			} else if err != nil {
				t.Error(err)
			}
		})
	}
	people.Wait()
	if set != 4 || refused != 3 {
		t.Errorf("%d of %d were refused", refused, set)
	}
	for i := range 25 {
		a.owns(t, grouping.OwnerRule{Path: fmt.Sprint("b", i), Assignee: "a"})
	}
	versions, err := a.Owners.Versions(t.Context(), "acme", "shop")
	if err != nil || len(versions) != 20 || versions[0].Rules[0].Path != "b24" {
		t.Errorf("%d versions: %+v, %v", len(versions), versions[0], err)
	}
}
