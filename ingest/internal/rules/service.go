package rules

import (
	"context"
	"errors"
	"net/http"
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
	"github.com/weirlog/weir/shared/ruletext"
)

// A Service keeps the rules of projects. What is wrong with a request is a
// Problem or a ruletext.Conflict.
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
	Rules  postgres.Rules
	Former ruletext.Version
}

// May reports whether who may change rules: roles that change what everybody
// sees, and API keys that read the whole organization.
func May(who identity.Principal) bool {
	_, alone := who.OnlyProject()
	return !alone && (who.Member == "" || identity.RoleSharesSearches(who.Role()))
}

func mayNot() error {
	roles := strings.Join(identity.RolesThatShareSearches(), "s, ") + "s"
	return httpapi.NewProblem(http.StatusForbidden, httpapi.CodeForbidden,
		"Rules are changed by an API key whose access is \"full\", and in the console by "+roles+".")
}

// own checks that who reads a project.
func (s *Service) own(who identity.Principal, project string) error {
	err := searches.ErrNoProject
	if project != "" && !s.Searches.Directory.Hides(who.Organization, project) {
		_, err = s.Searches.Readable(who, project)
	}
	if errors.Is(err, searches.ErrNoProject) {
		return httpapi.NotFound("project", project)
	}
	return err
}

// Versions lists the versions of a project's rules, which who may read.
func (s *Service) Versions(ctx context.Context, who identity.Principal, project string) ruletext.Lister {
	return func(before int64, limit int) (found []ruletext.Version, err error) {
		if err := s.own(who, project); err != nil {
			return nil, err
		}
		err = pg.ReadAs(ctx, s.Pool, pg.Organization(who.Organization), func(tx pgx.Tx) error {
			found, err = postgres.RuleVersions(ctx, tx, who.Organization, project, before, limit)
			return err
		})
		return found, err
	}
}

// Set sets the rules of a project, which are in force in all replicas about a
// second later. The same text again changes nothing.
func (s *Service) Set(ctx context.Context, who identity.Principal, from Origin, wish ruletext.Wish) (last ruletext.Version, err error) {
	if !May(who) {
		return last, mayNot()
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

func (s *Service) set(ctx context.Context, tx pgx.Tx, who identity.Principal, from Origin, wish ruletext.Wish) (next ruletext.Version, saved bool, err error) {
	if err := postgres.LockRules(ctx, tx, who.Organization, wish.Project); err != nil {
		return next, false, err
	}
	former, next, err := wish.Next(func(before int64, limit int) ([]ruletext.Version, error) {
		return postgres.RuleVersions(ctx, tx, who.Organization, wish.Project, before, limit)
	}, check)
	if err != nil || next.Number == former.Number {
		return next, false, err
	}
	if next.By, next.At = who.ID, s.Clock().UTC().Truncate(time.Microsecond); who.Member != "" {
		next.By, next.ByName = who.Member, who.Name
	}
	change := Change{Origin: from, Rules: postgres.Rules{Organization: who.Organization, Project: wish.Project, Version: next}, Former: former}
	if err := postgres.InsertRules(ctx, tx, &change.Rules); err != nil {
		return next, false, err
	}
	return next, true, s.Save(ctx, tx, change)
}

func check(text string) error {
	_, err := parse(text)
	return err
}

func parse(text string) (*ingest.Ruleset, error) {
	set, err := ingest.ParseRules(text)
	var invalid ingest.Invalid
	if errors.As(err, &invalid) {
		return nil, httpapi.Invalid("/"+invalid.Field, httpapi.CodeInvalidRequest, invalid.Detail, invalid.Fix)
	}
	return set, err
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
	set, err := parse(text)
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
