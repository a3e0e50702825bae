package bus_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weirlog/weir/grouping"
	"github.com/weirlog/weir/grouping/internal/groupingtest"
	"github.com/weirlog/weir/grouping/internal/groups"
	"github.com/weirlog/weir/grouping/internal/postgres"
	sharedbus "github.com/weirlog/weir/shared/bus"
)

// owns sets the rules of the shop.
func (w *world) owns(rules ...grouping.OwnerRule) postgres.OwnerRules {
	w.t.Helper()
	set, err := w.Owners.Set(w.t.Context(), w.request(), "shop", rules, nil)
	if err != nil {
		w.t.Fatal(err)
	}
	return set
}

// assignees are those of all groups, sorted.
func (w *world) assignees() (all []string) {
	w.t.Helper()
	found, err := w.Groups.List(w.t.Context(), "acme", postgres.GroupQuery{Limit: 100})
	if err != nil {
		w.t.Fatal(err)
	}
	for _, g := range found.Groups {
		all = append(all, g.State.Assignee.ID)
	}
	slices.Sort(all)
	return all
}

// A new group is given to whom the first matching rule names, which its
// activity says; what came before the rules is, once somebody applies them.
func TestOwnersOfNewGroups(t *testing.T) {
	a := newWorld(t)
	a.come(1)
	a.now = a.now.Add(time.Second)
	a.owns(grouping.OwnerRule{Path: "Cart.java", Assignee: "carts"}, grouping.OwnerRule{Function: "com.acme.pay.*", Assignee: "payments"})
	a.now = a.now.Add(-time.Second)
	a.come(2)
	a.now = a.now.Add(2 * time.Second)
	a.comeInVain(3)
	a.come(3, 3)
	a.come(1, 3)
	if got := a.assignees(); !slices.Equal(got, []string{"", "", "payments"}) {
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
	if got := a.assignees(); !slices.Equal(got, []string{"payments", "payments", "payments"}) || done[0].Assigned+done[1].Assigned+done[2].Assigned != 2 {
		t.Errorf("applied %+v: assigned to %q", done, got)
	}
}

// Rules of owners see the metadata of the first error, as far as rules asked for it when that came,
// also once a later version asks for something else.
func TestOwnersByMetadata(t *testing.T) {
	a := newWorld(t)
	failed := func(kind int, metadata string) sharedbus.Record {
		return a.accept(a.now, strings.Replace(groupingtest.Failure(kind), `"metadata":{`, `"metadata":{`+metadata+`,`, 1))
	}
	a.consume(failed(0, `"tenant":{"id":"acme"}`))
	a.now = a.now.Add(time.Second)
	a.owns(grouping.OwnerRule{Metadata: map[string]string{"tenant.id": "acme"}, Assignee: "acme"}, grouping.OwnerRule{Metadata: map[string]string{"plan": "gold"}, Assignee: "gold"})
	a.now = a.now.Add(time.Second)
	late := []sharedbus.Record{failed(1, `"tenant":{"id":"acme"}`), failed(2, `"tenant":{"id":"other"},"plan":"gold"`), failed(3, `"tenant":7`)}
	a.now = a.now.Add(time.Second)
	a.owns(grouping.OwnerRule{Metadata: map[string]string{"region": "eu*"}, Assignee: "europe"})
	a.now = a.now.Add(time.Second)
	a.consume(append(late, failed(4, `"tenant":{"id":"acme"},"region":"eu-1"`))...)
	if got, want := a.assignees(), []string{"", "", "acme", "europe", "gold"}; !slices.Equal(got, want) {
		t.Errorf("assigned to %q, want %q", got, want)
	}
	a.owns(grouping.OwnerRule{Metadata: map[string]string{"tenant.id": "*"}, Assignee: "any"})
	if done, err := a.Owners.Apply(t.Context(), a.request(), "shop", postgres.GroupCursor{}); err != nil || done.Assigned != 0 || done.Looked != 2 {
		t.Errorf("applied to errors of which nothing was kept: %+v, %v", done, err)
	}
	group, err := a.Groups.List(t.Context(), "acme", postgres.GroupQuery{Limit: 9, Assignee: "acme"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := a.Decisions.Decide(t.Context(), a.request(), group.Groups[0].ID, groups.DecisionRequest{Command: grouping.Command{Assign: &grouping.Assignee{}}}); err != nil {
		t.Fatal(err)
	}
	if done, err := a.Owners.Apply(t.Context(), a.request(), "shop", postgres.GroupCursor{}); err != nil || done.Assigned != 1 {
		t.Errorf("applied to what was kept: %+v, %v", done, err)
	}
}

// Neither rules nor groups are left to a member who was removed, also while
// groups are created.
func TestOwnersWithoutRemovedMembers(t *testing.T) {
	a := newWorld(t)
	a.owns(grouping.OwnerRule{Path: "Cart.java", Assignee: "carts"}, grouping.OwnerRule{Path: "**", Assignee: "mem_2"})
	var consumer sync.WaitGroup
	consumer.Go(func() {
		for kind := range 20 {
			if err := a.apply(t.Context(), a.failures(kind)...); err != nil {
				t.Error(err)
			}
		}
	})
	for range 5 {
		a.removed("mem_2")
	}
	consumer.Wait()
	if got := a.assignees(); slices.Contains(got, "mem_2") || len(got) != 20 {
		t.Errorf("assigned to %q", got)
	}
	versions, err := a.Owners.Versions(t.Context(), "acme", "shop")
	if err != nil || len(versions) != 1 || len(versions[0].Rules) != 1 || versions[0].Rules[0].Assignee != "carts" {
		t.Errorf("rules: %+v, %v", versions, err)
	}
}

// The second of two who change rules is refused; twenty versions are kept.
func TestOwnersChangedAtOnce(t *testing.T) {
	a := newWorld(t)
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
		a.owns(grouping.OwnerRule{Path: fmt.Sprint("b", i), Assignee: "a"})
	}
	versions, err := a.Owners.Versions(t.Context(), "acme", "shop")
	if err != nil || len(versions) != 20 || versions[0].Rules[0].Path != "b24" {
		t.Errorf("%d versions: %+v, %v", len(versions), versions[0], err)
	}
}
