package rules

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/weirlog/weir/ingest"
	"github.com/weirlog/weir/ingest/internal/postgres"
	"github.com/weirlog/weir/ingest/internal/searches"
	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/identity"
	"github.com/weirlog/weir/shared/pg"
)

// ErrMayNot means that the caller may not change the rules of a project.
var ErrMayNot = errors.New("the caller may not change rules")

// ErrNoProject means that there is no such project that the caller can read.
var ErrNoProject = searches.ErrNoProject

// A Service keeps the rules of projects. Its errors are those above,
// postgres.ErrNoRules, a Conflict and ingest.Invalid.
type Service struct {
	Pool     *pgxpool.Pool
	Searches *searches.Service // finds what previews are made of
	Turns    *httpapi.Limiter  // of previews
	Save     func(ctx context.Context, tx pgx.Tx, c Change) error
	Saved    func() // called after a commit with something to publish
	Clock    func() time.Time
}

// An Origin is where a change comes from, for the audit.
type Origin struct{ Request, Address, Client string }

// A Change is new rules of a project.
type Change struct {
	Origin
	Version        ingest.RuleVersion
	Former         int64  // the version before it; 0: none
	Added, Removed string // lines
}

// A Wish is what somebody wants to be a project's rules.
type Wish struct {
	Project   string
	Text      string
	Note      string
	IfVersion *int64 // refuses another version; nil: none
	Restore   int64  // the version whose text it is; 0: none
}

// A Conflict means that the rules were changed meanwhile.
type Conflict struct {
	Wanted int64
	Now    ingest.RuleVersion
}

func (c Conflict) Error() string {
	return fmt.Sprintf("The rules are at version %d, not %d: somebody changed them meanwhile.", c.Now.Version, c.Wanted)
}

// May reports whether who may change rules: roles that change what everybody
// sees, and API keys that read the whole organization.
func May(who identity.Principal) bool {
	_, alone := who.OnlyProject()
	return !alone && (who.Member == "" || identity.RoleSharesSearches(who.Role()))
}

// own checks that who reads a project.
func (s *Service) own(who identity.Principal, project string) error {
	if project == "" || s.Searches.Directory.Hides(who.Organization, project) {
		return ErrNoProject
	}
	_, err := s.Searches.Readable(who, project)
	return err
}

func (s *Service) read(ctx context.Context, who identity.Principal, project string, fn func(tx pgx.Tx) error) error {
	if err := s.own(who, project); err != nil {
		return err
	}
	return pg.ReadAs(ctx, s.Pool, pg.Organization(who.Organization), fn)
}

// Newest returns the rules of a project.
func (s *Service) Newest(ctx context.Context, who identity.Principal, project string) (v ingest.RuleVersion, err error) {
	err = s.read(ctx, who, project, func(tx pgx.Tx) error {
		v, err = newest(ctx, tx, who.Organization, project)
		return err
	})
	return v, err
}

func newest(ctx context.Context, tx pgx.Tx, organization, project string) (ingest.RuleVersion, error) {
	found, err := postgres.RuleVersions(ctx, tx, organization, project, maxVersion, 1)
	if err != nil || len(found) == 0 {
		return ingest.RuleVersion{Organization: organization, Project: project}, err
	}
	return found[0], nil
}

const maxVersion = int64(1)<<62 - 1

// Version returns a version of a project's rules.
func (s *Service) Version(ctx context.Context, who identity.Principal, project string, version int64) (v ingest.RuleVersion, err error) {
	err = s.read(ctx, who, project, func(tx pgx.Tx) error {
		v, err = postgres.FindRules(ctx, tx, who.Organization, project, version)
		return err
	})
	return v, err
}

// Versions lists the versions of a project's rules before a number, the newest
// first; 0: all.
func (s *Service) Versions(ctx context.Context, who identity.Principal, project string, before int64, limit int) (list []ingest.RuleVersion, err error) {
	if before == 0 {
		before = maxVersion
	}
	err = s.read(ctx, who, project, func(tx pgx.Tx) error {
		list, err = postgres.RuleVersions(ctx, tx, who.Organization, project, before, limit)
		return err
	})
	return list, err
}

// Set sets the rules of a project, which are in force in all replicas about a
// second later. The same text again changes nothing.
func (s *Service) Set(ctx context.Context, who identity.Principal, from Origin, wish Wish) (last ingest.RuleVersion, err error) {
	if !May(who) {
		return last, ErrMayNot
	}
	if err := s.own(who, wish.Project); err != nil {
		return last, err
	}
	saved := false
	err = pg.InTx(ctx, s.Pool, func(tx pgx.Tx) error {
		if err := pg.AsOrganization(ctx, tx, pg.Organization(who.Organization)); err != nil {
			return err
		}
		last, saved, err = s.set(ctx, tx, who, from, wish)
		return err
	})
	if err == nil && saved {
		s.Saved()
	}
	return last, err
}

func (s *Service) set(ctx context.Context, tx pgx.Tx, who identity.Principal, from Origin, wish Wish) (last ingest.RuleVersion, saved bool, err error) {
	if err := postgres.LockRules(ctx, tx, who.Organization, wish.Project); err != nil {
		return last, false, err
	}
	if last, err = newest(ctx, tx, who.Organization, wish.Project); err != nil {
		return last, false, err
	}
	if wish.Restore > 0 {
		restored, err := postgres.FindRules(ctx, tx, who.Organization, wish.Project, wish.Restore)
		if err != nil {
			return last, false, err
		}
		wish.Text = restored.Text
	}
	if last.Text == wish.Text { // perhaps the same request again
		return last, false, nil
	}
	if wish.IfVersion != nil && *wish.IfVersion != last.Version {
		return last, false, Conflict{*wish.IfVersion, last}
	}
	next := ingest.RuleVersion{
		Organization: who.Organization, Project: wish.Project, Version: last.Version + 1, Text: wish.Text, Note: strings.TrimSpace(wish.Note),
		By: who.ID, At: s.Clock().UTC().Truncate(time.Microsecond), Restored: wish.Restore,
	}
	if who.Member != "" {
		next.By, next.ByName = who.Member, who.Name
	}
	if err := next.Check(); err != nil {
		return last, false, err
	}
	if err := postgres.InsertRules(ctx, tx, &next); err != nil {
		return last, false, err
	}
	change := Change{Origin: from, Version: next, Former: last.Version, Added: linesBeyond(next.Text, last.Text), Removed: linesBeyond(last.Text, next.Text)}
	return next, true, s.Save(ctx, tx, change)
}

// linesBeyond are the lines of a text that another one lacks.
func linesBeyond(text, other string) string {
	have := map[string]bool{} // bounded by the text
	for line := range strings.Lines(other) {
		have[strings.TrimSpace(line)] = true
	}
	var beyond []string
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" && !have[line] {
			beyond = append(beyond, line)
		}
	}
	return strings.Join(beyond, "\n")
}

// Bounds of a preview.
const (
	previewEntries = 1000
	previewBytes   = 2 << 20
	previewTime    = 2 * time.Second // of applying the rules
)

// A Preview is what rules would do to the newest entries of a project.
type Preview struct {
	ingest.RulesPreview
	Incomplete bool // not all of those entries were looked at
}

// NewTurns returns the turns of previews, of which so many are under way at once.
func NewTurns(slots int, metrics prometheus.Registerer) *httpapi.Limiter {
	return httpapi.NewLimiter(httpapi.LimiterConfig{Slots: slots, Module: "weir_ingest", Noun: "previews"}, metrics)
}

// Preview tries rules on the newest entries of a project that are stored. A
// Problem 429 means that its organization had its share.
func (s *Service) Preview(ctx context.Context, who identity.Principal, project, text string) (p Preview, err error) {
	if err := s.own(who, project); err != nil {
		return p, err
	}
	set, err := ingest.ParseRules(text)
	if err != nil {
		return p, err
	}
	release, err := s.Turns.Acquire(ctx, who.Organization)
	if err != nil {
		return p, err
	}
	defer release()
	found, err := s.Searches.Search(ctx, who, ingest.Search{Project: project, Limit: previewEntries, MaxBytes: previewBytes})
	if err != nil {
		return p, err
	}
	defer found.Close()
	ends := s.Clock().Add(previewTime)
	previewer := ingest.NewPreviewer(set, func() bool { return ctx.Err() != nil || s.Clock().After(ends) })
	for i := range found.Found {
		if !previewer.Add(&found.Found[i]) {
			p.Incomplete = true
			break
		}
	}
	p.RulesPreview = previewer.Preview()
	p.Incomplete = p.Incomplete || found.Incomplete
	return p, ctx.Err()
}
