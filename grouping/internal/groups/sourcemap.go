package groups

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/grouping"
	"github.com/weirlog/weir/grouping/internal/postgres"
	"github.com/weirlog/weir/grouping/sourcemap"
	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/pg"
)

// SourceMaps say where the calls of built scripts were written.
type SourceMaps struct {
	db       *store
	announce Announce
	rules    *postgres.RuleBook
	uploads  *httpapi.Limiter
}

// mapMargin is how long after its upload a map begins to hold: when an
// error that was accepted then is read, the upload has been committed,
// and clocks may differ a little. So it does not matter when it is read.
const mapMargin = 2 * time.Second

// hold is from when on a change of maps holds.
func (s *SourceMaps) hold() time.Time { return s.db.now().Add(mapMargin) }

// An Upload is a source map as it was sent.
type Upload struct {
	Release string
	Name    string // or address of the script
	DebugID string // empty: that in the map, if any
	Text    []byte
}

// uploadsAtOnce bounds the memory of uploads: each takes 160 MiB at most.
var uploadsAtOnce = httpapi.LimiterConfig{
	Slots: 2, PerOrganization: 1, Wait: 30 * time.Second, Module: "weir_grouping", Noun: "uploads", Asked: "uploads of source maps",
}

// AcquireUpload waits until an upload may be read, as few are at once.
func (s *SourceMaps) AcquireUpload(ctx context.Context, organization string) (release func(), err error) {
	return s.uploads.Acquire(ctx, organization)
}

const maxScript = 1000 // bytes of a script's name

// Upload keeps a source map. It is not created if there is the same one.
func (s *SourceMaps) Upload(ctx context.Context, request Request, project string, upload Upload) (kept postgres.SourceMap, created bool, err error) {
	m, err := upload.check()
	if err != nil {
		return kept, false, err
	}
	read, err := sourcemap.Read(upload.Text)
	var fault sourcemap.Fault
	if errors.As(err, &fault) {
		return kept, false, grouping.Invalid{Detail: fault.Detail, Fix: "Send the map as the bundler wrote it, in version 3."}
	}
	if err != nil {
		return kept, false, err
	}
	if m.DebugID == "" {
		m.DebugID = read.DebugID
	}
	if m.Release == "" && m.DebugID == "" {
		return kept, false, grouping.Invalid{Field: "release", Detail: "Neither a release nor a debug id says to which errors the map belongs.",
			Fix: "Name the release, or have the bundler write a debug id into the map."}
	}
	now := s.db.now()
	digest := sha256.Sum256(upload.Text)
	id := sha256.Sum256([]byte(project + "\n" + m.Release + "\n" + m.Name + "\n" + m.DebugID + "\n" + now.Format(time.RFC3339Nano) + "\n" + string(digest[:])))
	m.ID, m.Digest, m.Size, m.Segments = mapPrefix+hex.EncodeToString(id[:16]), digest[:], int64(len(upload.Text)), read.Segments
	m.Uploaded, m.UploadedBy, m.Used = now, request.Who.ID, now.Truncate(24*time.Hour)
	of := postgres.Project{Organization: request.Who.Organization, Name: project}
	err = s.db.write(ctx, of.Organization, func(tx pgx.Tx) error {
		if kept, created, err = postgres.SaveMap(ctx, tx, of, m, read.Parts, s.hold); err != nil || !created {
			return err
		}
		if err := postgres.SearchMaps(ctx, tx, of, now); err != nil {
			return err
		}
		return s.db.tell(ctx, tx, request, project, changeOfMap(mapUploaded, kept, nil, mapFields(kept)))
	})
	if errors.Is(err, postgres.ErrMapsFull) {
		err = httpapi.NewProblem(http.StatusConflict, "limit_reached", fmt.Sprintf("The organization has as many source maps as it may have: %d, or %d bytes. "+
			"Delete maps of old releases, or wait: those that no error uses go after 90 days, and replaced ones after 30.", postgres.MaxMaps, postgres.MaxStored))
	}
	return kept, created, err
}

const mapPrefix = "smp_"

func (u Upload) check() (m postgres.SourceMap, err error) {
	m.Release = grouping.KnownRelease(u.Release)
	if m.Release != u.Release {
		return m, grouping.Invalid{Field: "release", Detail: fmt.Sprintf("The release is %.100q.", u.Release),
			Fix: fmt.Sprintf("Send one line of at most %d bytes.", grouping.MaxRelease)}
	}
	if u.Name == "" || len(u.Name) > maxScript {
		return m, grouping.Invalid{Field: "name", Detail: fmt.Sprintf("The name %.100q of the script is empty or longer than %d bytes.", u.Name, maxScript),
			Fix: "Send the address of the script that the map belongs to, or its path, such as ~/static/app.js."}
	}
	if m.DebugID = sourcemap.DebugID(u.DebugID); u.DebugID != "" && m.DebugID == "" {
		return m, grouping.Invalid{Field: "debug_id", Detail: fmt.Sprintf("The debug id is %.100q.", u.DebugID), Fix: "Send a UUID."}
	}
	m.Name = sourcemap.ScriptName(u.Name)
	return m, nil
}

// List lists the source maps of a project, the newest first,
// of one release unless that is empty.
func (s *SourceMaps) List(ctx context.Context, organization, project, release string, after postgres.MapPlace, limit int) ([]postgres.SourceMap, error) {
	return read(ctx, s.db, organization, func(tx pgx.Tx, _ pg.Organization) ([]postgres.SourceMap, error) {
		return postgres.FindMaps(ctx, tx, postgres.Project{Organization: organization, Name: project}, release, after, limit)
	})
}

// Progress is how far the samples of a project have been mapped again.
func (s *SourceMaps) Progress(ctx context.Context, organization, project string) (postgres.MapSearch, error) {
	return read(ctx, s.db, organization, func(tx pgx.Tx, _ pg.Organization) (postgres.MapSearch, error) {
		return postgres.FindMapSearch(ctx, tx, postgres.Project{Organization: organization, Name: project})
	})
}

// Delete ends a source map.
func (s *SourceMaps) Delete(ctx context.Context, request Request, project, id string) error {
	of := postgres.Project{Organization: request.Who.Organization, Name: project}
	return s.db.write(ctx, of.Organization, func(tx pgx.Tx) error {
		deleted, err := postgres.DeleteMap(ctx, tx, of, id, s.hold())
		if errors.Is(err, postgres.ErrNoMap) {
			return httpapi.NotFound("source map", id)
		}
		if err != nil {
			return err
		}
		return s.db.tell(ctx, tx, request, project, changeOfMap(mapDeleted, deleted, mapFields(deleted), nil))
	})
}

// Remap maps samples of errors again for which maps have come later, and
// merges groups that are the same by these. Several processes may do so.
func (s *SourceMaps) Remap(ctx context.Context) error {
	err := repeat(ctx, s.db.pool, func(tx pgx.Tx) (more bool, err error) {
		return postgres.SearchDue(ctx, tx, s.db.clock(), s.hold(), s.rules)
	})
	if err != nil {
		return err
	}
	err = repeat(ctx, s.db.pool, func(tx pgx.Tx) (more bool, err error) {
		join, found, err := postgres.TakeMapMerge(ctx, tx)
		if err != nil || !found {
			return false, err
		}
		if err := pg.AsOrganization(ctx, tx, pg.Organization(join.Organization)); err != nil {
			return false, err
		}
		return true, s.join(ctx, tx, join)
	})
	if err != nil {
		return fmt.Errorf("cannot merge groups by a source map: %w", err)
	}
	return nil
}

// join merges groups that a source map shows to be one, each pair once: who
// takes them apart again is not overruled.
func (s *SourceMaps) join(ctx context.Context, tx pgx.Tx, join postgres.MapMerge) error {
	families, err := join.Families(ctx, tx)
	if err != nil || len(families) < len(join.Groups) {
		return err
	}
	into, other := families[0], families[1]
	if other.Head.Group.FirstSeen.Before(into.Head.Group.FirstSeen) {
		into, other = other, into
	}
	decided, err := into.Versions().Merge([]grouping.Family{other.Versions()}, nil, s.db.now())
	var invalid grouping.Invalid
	if errors.Is(err, grouping.ErrFull) || errors.As(err, &invalid) {
		return nil // they stay apart
	}
	if err != nil {
		return err
	}
	of := ""
	if join.Release != "" {
		of = " of release " + join.Release
	}
	why := "The source map" + of + " came: as they were written, errors of this group and another are the same, and were merged."
	for id, d := range decided {
		if d.Reason == "" {
			d.Reason = why
			decided[id] = d
		}
	}
	return s.announce.recordMerges(ctx, tx, join.Organization, postgres.DecidedGroups(families, decided), postgres.Author{})
}
