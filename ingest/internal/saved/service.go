package saved

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/weirlog/weir/ingest"
	"github.com/weirlog/weir/ingest/internal/postgres"
	"github.com/weirlog/weir/shared/identity"
	"github.com/weirlog/weir/shared/pg"
)

// ErrMayNot means that the caller's role may not change what everybody sees.
var ErrMayNot = errors.New("the role may not change shared searches")

// ErrPrivate means that only a shared search carries an alert.
var ErrPrivate = errors.New("only a shared search has an alert")

// ErrNoProject means that there is no such project that the caller can read.
var ErrNoProject = errors.New("there is no such project")

// ErrNoMember means that an API key has no searches of its own.
var ErrNoMember = errors.New("only a member has searches of their own")

// A Service keeps saved searches and the rules of alerts. Its errors are those
// above, postgres.ErrNoSearch and the like, and ingest.Invalid.
type Service struct {
	Pool        *pgxpool.Pool
	Directory   *identity.Directory
	MaxSearches int // shared ones of a project, and each member's
	MaxAlerts   int // of an organization
	Publish     func(ctx context.Context, tx pgx.Tx, n *ingest.Notice) error
	Published   func() // called after a commit with something to publish
	NewID       func() string
	Clock       func() time.Time
}

// MayShare reports whether who may save searches for everybody, and set alerts
// on them. An API key may, as it reads all: see keepTo for one that does not.
func MayShare(who identity.Principal) bool {
	return who.Member == "" || identity.RoleSharesSearches(who.Role())
}

func actor(who identity.Principal) string {
	if who.Member != "" {
		return who.Member
	}
	return who.ID
}

// sees reports whether a project may be named by who; empty: all projects.
func (s *Service) sees(who identity.Principal, project string) bool {
	if project == "" {
		_, alone := who.OnlyProject()
		return !alone
	}
	return s.Directory.Owns(who.Organization, project) && who.ReadsProject(project)
}

// List lists saved searches that who sees.
func (s *Service) List(ctx context.Context, who identity.Principal, filter postgres.SearchFilter) (found []postgres.SearchWithAlert, err error) {
	if filter.Project != "" && !s.Directory.Owns(who.Organization, filter.Project) {
		return nil, ErrNoProject
	}
	filter.Member, filter.Hidden = who.Member, slices.Collect(maps.Keys(s.Directory.Hidden(who.Organization)))
	if project, alone := who.OnlyProject(); alone {
		if filter.Only = true; filter.Project != "" && filter.Project != project {
			return nil, ErrNoProject
		}
		filter.Project = project
	}
	err = s.read(ctx, who, func(tx pgx.Tx) (err error) {
		found, err = postgres.SavedSearches(ctx, tx, pg.Organization(who.Organization), filter)
		return err
	})
	return found, err
}

func (s *Service) read(ctx context.Context, who identity.Principal, fn func(tx pgx.Tx) error) error {
	return pg.ReadAs(ctx, s.Pool, pg.Organization(who.Organization), fn)
}

func (s *Service) write(ctx context.Context, who identity.Principal, fn func(tx pgx.Tx) error) error {
	return pg.InTx(ctx, s.Pool, func(tx pgx.Tx) error {
		if err := pg.AsOrganization(ctx, tx, pg.Organization(who.Organization)); err != nil {
			return err
		}
		return fn(tx)
	})
}

// Find finds a saved search that who sees.
func (s *Service) Find(ctx context.Context, who identity.Principal, id string) (found ingest.SavedSearch, err error) {
	err = s.read(ctx, who, func(tx pgx.Tx) (err error) {
		found, err = s.find(ctx, tx, who, id)
		return err
	})
	return found, err
}

func (s *Service) find(ctx context.Context, tx pgx.Tx, who identity.Principal, id string) (ingest.SavedSearch, error) {
	found, err := postgres.SavedSearch(ctx, tx, pg.Organization(who.Organization), id, who.Member)
	if err == nil && !s.sees(who, found.Project) {
		return found, postgres.ErrNoSearch
	}
	return found, err
}

// findToChange finds a saved search that who may change.
func (s *Service) findToChange(ctx context.Context, tx pgx.Tx, who identity.Principal, id string) (ingest.SavedSearch, error) {
	found, err := s.find(ctx, tx, who, id)
	if err == nil && found.Owner == "" && !MayShare(who) {
		return found, ErrMayNot
	}
	return found, err
}

// check checks what is to be kept, for everybody or for who alone.
func (s *Service) check(who identity.Principal, wanted *ingest.SavedSearch, shared bool) error {
	if err := wanted.Check(); err != nil {
		return err
	}
	wanted.Owner = ""
	switch {
	case !s.sees(who, wanted.Project):
		return ErrNoProject
	case shared && !MayShare(who):
		return ErrMayNot
	case !shared && who.Member == "":
		return ErrNoMember
	case !shared:
		wanted.Owner = who.Member
	}
	return nil
}

// Create saves a search. The same key of who has the same effect once.
func (s *Service) Create(ctx context.Context, who identity.Principal, wanted ingest.SavedSearch, shared bool, key string) (ingest.SavedSearch, error) {
	if err := s.check(who, &wanted, shared); err != nil {
		return wanted, err
	}
	now := s.Clock().UTC().Truncate(time.Microsecond)
	wanted.Organization, wanted.Version, wanted.ID = who.Organization, 1, "srch_"+s.NewID()
	wanted.CreatedBy, wanted.UpdatedBy, wanted.CreatedAt, wanted.UpdatedAt = actor(who), actor(who), now, now
	if key != "" {
		sum := sha256.Sum256([]byte(who.Organization + "\n" + who.ID + "\n" + key))
		wanted.ID = "srch_" + hex.EncodeToString(sum[:16])
	}
	err := s.write(ctx, who, func(tx pgx.Tx) error {
		if again, err := s.find(ctx, tx, who, wanted.ID); !errors.Is(err, postgres.ErrNoSearch) {
			wanted = again
			return err
		}
		return postgres.InsertSearch(ctx, tx, &wanted, s.MaxSearches)
	})
	return wanted, err
}

// Update replaces a saved search of a version. It stays private or shared where
// shared is what it was.
func (s *Service) Update(ctx context.Context, who identity.Principal, wanted ingest.SavedSearch, shared bool) (ingest.SavedSearch, error) {
	if err := s.check(who, &wanted, shared); err != nil {
		return wanted, err
	}
	err := s.write(ctx, who, func(tx pgx.Tx) error {
		now, err := s.findToChange(ctx, tx, who, wanted.ID)
		if err != nil {
			return err
		}
		if _, err := postgres.FindAlert(ctx, tx, pg.Organization(who.Organization), wanted.ID); err == nil && !shared {
			return ErrPrivate
		} else if err != nil && !errors.Is(err, postgres.ErrNoAlert) {
			return err
		}
		wanted.Organization, wanted.CreatedBy, wanted.CreatedAt = now.Organization, now.CreatedBy, now.CreatedAt
		wanted.UpdatedBy, wanted.UpdatedAt, wanted.Version = actor(who), s.Clock().UTC().Truncate(time.Microsecond), wanted.Version+1
		return postgres.UpdateSearch(ctx, tx, &wanted, s.MaxSearches)
	})
	return wanted, err
}

// Delete removes a saved search of a version, with its alert; 0: of any.
func (s *Service) Delete(ctx context.Context, who identity.Principal, id string, version int64) (found ingest.SavedSearch, err error) {
	err = s.write(ctx, who, func(tx pgx.Tx) error {
		if found, err = s.findToChange(ctx, tx, who, id); err != nil {
			return err
		}
		return postgres.DeleteSearch(ctx, tx, &found, version)
	})
	return found, err
}

// Alert finds the alert of a saved search.
func (s *Service) Alert(ctx context.Context, who identity.Principal, id string) (found postgres.Alert, err error) {
	err = s.read(ctx, who, func(tx pgx.Tx) error {
		if _, err := s.find(ctx, tx, who, id); err != nil {
			return err
		}
		found, err = postgres.FindAlert(ctx, tx, pg.Organization(who.Organization), id)
		return err
	})
	return found, err
}

// History lists the newest evaluations of an alert, and those that changed
// something.
func (s *Service) History(ctx context.Context, who identity.Principal, id string) (all, changes []postgres.Evaluated, err error) {
	err = s.read(ctx, who, func(tx pgx.Tx) error {
		if _, err := s.find(ctx, tx, who, id); err != nil {
			return err
		}
		if all, err = postgres.AlertHistory(ctx, tx, pg.Organization(who.Organization), id, false); err != nil {
			return err
		}
		changes, err = postgres.AlertHistory(ctx, tx, pg.Organization(who.Organization), id, true)
		return err
	})
	return all, changes, err
}

// maxShownID is how much of an id that is refused is shown, in bytes.
const maxShownID = 64

// checkRule returns the first fault of a rule. Who is removed later is taken out of it.
func (s *Service) checkRule(organization string, rule *ingest.AlertRule) error {
	if err := rule.Check(identity.RolesThatRead(identity.ReadLogs)); err != nil {
		return err
	}
	if id, found := s.Directory.NoReader(organization, identity.ReadLogs, rule.Members...); found {
		return ingest.Invalid{Field: "mail_members", Detail: fmt.Sprintf("%.*q is no member who reads logs.", maxShownID, id),
			Fix: "Use ids of members of the organization, which begin with mem_; one who was just added is known in a moment."}
	}
	return nil
}

// SetAlert sets the rule of a saved search's alert, which is new where version
// is 0.
func (s *Service) SetAlert(ctx context.Context, who identity.Principal, id string, rule ingest.AlertRule, version int64) (set postgres.Alert, err error) {
	if err := s.checkRule(who.Organization, &rule); err != nil {
		return set, err
	}
	now := s.Clock().UTC().Truncate(time.Second)
	err = s.write(ctx, who, func(tx pgx.Tx) error {
		search, err := s.findToChange(ctx, tx, who, id)
		if err != nil {
			return err
		}
		if search.Owner != "" {
			return ErrPrivate
		}
		set = postgres.Alert{Alert: ingest.NewAlert(rule, now), Search: search, UpdatedBy: actor(who), UpdatedAt: now, NextAt: now}
		if version == 0 {
			err = postgres.InsertAlert(ctx, tx, &set, s.MaxAlerts)
		} else {
			err = postgres.UpdateRule(ctx, tx, &set, version)
		}
		if err != nil {
			return err
		}
		set, err = postgres.FindAlert(ctx, tx, pg.Organization(who.Organization), id)
		return err
	})
	return set, err
}

// changeAlert changes the alert of a search that who may change.
func (s *Service) changeAlert(ctx context.Context, who identity.Principal, id string,
	change func(tx pgx.Tx, found *postgres.Alert) error) (found postgres.Alert, err error) {
	err = s.write(ctx, who, func(tx pgx.Tx) error {
		if _, err := s.findToChange(ctx, tx, who, id); err != nil {
			return err
		}
		if found, err = postgres.FindAlert(ctx, tx, pg.Organization(who.Organization), id); err != nil {
			return err
		}
		return change(tx, &found)
	})
	return found, err
}

// DeleteAlert removes the alert of a saved search; version 0: of any version.
func (s *Service) DeleteAlert(ctx context.Context, who identity.Principal, id string, version int64) error {
	_, err := s.changeAlert(ctx, who, id, func(tx pgx.Tx, _ *postgres.Alert) error {
		return postgres.DeleteAlert(ctx, tx, pg.Organization(who.Organization), id, version)
	})
	return err
}

// Mute has nothing told of an alert until a time; zero ends that.
func (s *Service) Mute(ctx context.Context, who identity.Principal, id string, until time.Time) (postgres.Alert, error) {
	return s.changeAlert(ctx, who, id, func(tx pgx.Tx, found *postgres.Alert) error {
		found.MutedUntil = until
		return postgres.MuteAlert(ctx, tx, pg.Organization(who.Organization), id, until)
	})
}

// Test sends what is sent when the alert fires, marked as a test. Once a minute:
// else postgres.ErrTested.
func (s *Service) Test(ctx context.Context, who identity.Principal, id string) error {
	now := s.Clock().UTC()
	_, err := s.changeAlert(ctx, who, id, func(tx pgx.Tx, found *postgres.Alert) error {
		if err := postgres.TestAlert(ctx, tx, pg.Organization(who.Organization), id, now); err != nil {
			return err
		}
		return s.Publish(ctx, tx, &ingest.Notice{
			Search: found.Search, Rule: found.AlertRule, State: ingest.AlertFiring, Before: found.Told, Number: found.Facts + 1,
			Of: ingest.Evaluation{At: now.Truncate(time.Second), Entries: found.Threshold}, Test: true,
		})
	})
	if err == nil {
		s.Published()
	}
	return err
}
