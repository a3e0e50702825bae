package groups_test

import (
	"errors"
	"testing"

	"github.com/weirlog/weir/grouping/internal/groupingtest"
	"github.com/weirlog/weir/grouping/internal/groups"
	"github.com/weirlog/weir/grouping/internal/postgres"
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/identity"
)

// found reports whether there is what was asked for.
func found(err error) bool {
	problem, refused := errors.AsType[*httpapi.Problem](err)
	return err == nil || !refused || problem.Code != httpapi.CodeNotFound
}

// Groups of a project that is to be deleted are hidden until it is restored.
func TestHiddenGroups(t *testing.T) {
	projects := identity.NewDirectory()
	service := groupingtest.With(t, func(config *groups.Config) { config.Projects = projects }).Groups
	find := func() (page postgres.Page) {
		page, err := service.List(t.Context(), "acme", postgres.GroupQuery{Limit: 10})
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
		found bool
	}{{contract.TypeDeletionRequested, 0, false}, {contract.TypeDeletionCancelled, 2, true}, {contract.TypeDeletionBegun, 0, false}} {
		if err := projects.Apply(step.kind, []byte(`{"organization":"acme","project":"shop"}`)); err != nil {
			t.Fatal(err)
		}
		if page := find(); len(page.Groups) != step.shown {
			t.Errorf("after %s: %d groups", step.kind, len(page.Groups))
		}
		if _, err := service.Similar(t.Context(), identity.Principal{Organization: "acme"}, before.Groups[0].ID); found(err) != step.found {
			t.Errorf("after %s what is similar is answered %v", step.kind, err)
		}
		if _, err := service.Detail(t.Context(), identity.Principal{Organization: "acme"}, before.Groups[0].ID); found(err) != step.found {
			t.Errorf("after %s a group is answered %v", step.kind, err)
		}
	}
}
