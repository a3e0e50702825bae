package groups_test

import (
	"errors"
	"testing"

	"github.com/weirlog/weir/grouping/internal/groupingtest"
	"github.com/weirlog/weir/grouping/internal/postgres"
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/identity"
)

// Groups of a project that is to be deleted are hidden until it is restored.
func TestHiddenGroups(t *testing.T) {
	groups := groupingtest.New(t)
	find := func() (page postgres.Page) {
		page, err := groups.Groups(t.Context(), "acme", postgres.GroupQuery{Limit: 10})
		if err != nil {
			t.Fatal(err)
		}
		return page
	}
	before := find()
	if len(before.Groups) != 2 {
		t.Fatalf("%d groups", len(before.Groups))
	}
	for _, step := range []struct {
		kind  string
		shown int
		err   error
	}{{contract.TypeDeletionRequested, 0, postgres.ErrNoGroup}, {contract.TypeDeletionCancelled, 2, nil}, {contract.TypeDeletionBegun, 0, postgres.ErrNoGroup}} {
		if err := groups.Projects.Apply(step.kind, []byte(`{"organization":"acme","project":"shop"}`)); err != nil {
			t.Fatal(err)
		}
		if page := find(); len(page.Groups) != step.shown {
			t.Errorf("after %s: %d groups", step.kind, len(page.Groups))
		}
		if _, err := groups.Similar(t.Context(), identity.Principal{Organization: "acme"}, before.Groups[0].ID); !errors.Is(err, step.err) {
			t.Errorf("after %s what is similar is answered %v", step.kind, err)
		}
		if _, err := groups.Group(t.Context(), identity.Principal{Organization: "acme"}, before.Groups[0].ID); !errors.Is(err, step.err) {
			t.Errorf("after %s a group is answered %v", step.kind, err)
		}
	}
}
