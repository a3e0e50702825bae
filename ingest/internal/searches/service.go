package searches

import (
	"context"
	"errors"

	"github.com/weirlog/weir/ingest"
	"github.com/weirlog/weir/shared/identity"
)

// ErrNoProject means that there is no such project that the caller can read.
var ErrNoProject = errors.New("there is no such project")

// A Finder finds a page of an organization's entries.
type Finder interface {
	Page(ctx context.Context, organization string, search ingest.Search) (*Answer, error)
}

// A Service keeps each search to what its caller may read.
type Service struct {
	Directory *identity.Directory
	Searches  Finder
}

// Search finds a page of what the caller may read: entries of a project of its
// organization, or of its key's own project.
func (s *Service) Search(ctx context.Context, who identity.Principal, search ingest.Search) (*Answer, error) {
	project, err := s.readable(who, search.Project)
	if err != nil {
		return nil, err
	}
	search.Project, search.Hidden = project, s.Directory.Hidden(who.Organization)
	return s.Searches.Page(ctx, who.Organization, search)
}

// readable is the project that a search is kept to; empty: to none.
func (s *Service) readable(who identity.Principal, project string) (string, error) {
	if project == "" {
		if own, alone := who.OnlyProject(); alone {
			return own, nil
		}
		return "", nil
	}
	if !s.Directory.Owns(who.Organization, project) || !who.ReadsProject(project) {
		return "", ErrNoProject
	}
	return project, nil
}
