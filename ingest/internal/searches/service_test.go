package searches_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	"github.com/weirlog/weir/ingest"
	"github.com/weirlog/weir/ingest/internal/searches"
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/identity"
)

// A seen finder records the project of the search.
type seen struct{ project string }

func (s *seen) Page(_ context.Context, _ string, search ingest.Search) (*searches.Answer, error) {
	s.project = search.Project
	return &searches.Answer{}, nil
}

// A search is limited to the projects that its caller may read.
func TestSearchStaysInside(t *testing.T) {
	directory := identity.NewDirectory()
	for project, organization := range map[string]string{"prj_1": "org", "prj_2": "org", "prj_3": "other"} {
		fact, err := json.Marshal(contract.ProjectCreated{Organization: organization, Project: project})
		if err != nil || directory.Apply(contract.TypeProjectCreated, fact) != nil {
			t.Fatal(err)
		}
	}
	bound := identity.Principal{Organization: "org", Project: "prj_1", Access: contract.AccessProject}
	for _, c := range []struct {
		who         identity.Principal
		asked, want string
		err         error
	}{
		{identity.Principal{Organization: "org"}, "", "", nil},
		{identity.Principal{Organization: "org"}, "prj_2", "prj_2", nil},
		{identity.Principal{Organization: "org"}, "prj_3", "", searches.ErrNoProject},
		{identity.Principal{Organization: "org"}, "prj_4", "", searches.ErrNoProject},
		{bound, "", "prj_1", nil},
		{bound, "prj_2", "", searches.ErrNoProject},
	} {
		finder := &seen{}
		s := &searches.Service{Directory: directory, Searches: finder}
		_, err := s.Search(t.Context(), c.who, ingest.Search{Project: c.asked})
		if !errors.Is(err, c.err) || finder.project != c.want {
			t.Errorf("%+v asks for %q: %v, searched in %q", c.who, c.asked, err, finder.project)
		}
	}
}
