package groups

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/grouping"
	"github.com/weirlog/weir/grouping/internal/postgres"
	"github.com/weirlog/weir/grouping/sourcemap"
	"github.com/weirlog/weir/grouping/trace"
	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/identity"
	"github.com/weirlog/weir/shared/pg"
)

// Map finds where the calls of errors were written, in projects that have
// source maps. The caller's transaction must see all organizations.
func (s *Service) Map(ctx context.Context, tx pgx.Tx, errs []grouping.Occurrence) error {
	var g grouping.Grouper
	mapper, places := postgres.NewMapper(), make([][]trace.Place, len(errs))
	for i, o := range errs {
		if !o.Error.Learned.Maps {
			continue
		}
		places[i] = g.Places(o.Error)
		mapper.Ask(projectOf(o), buildOf(o), o.Accepted, places[i])
	}
	if err := mapper.Find(ctx, tx); err != nil {
		return err
	}
	for i, o := range errs {
		if len(places[i]) > 0 {
			errs[i].Error.Mapping = mapper.Mapping(projectOf(o), buildOf(o), o.Accepted, places[i])
		}
	}
	return nil
}

func projectOf(o grouping.Occurrence) postgres.Project {
	return postgres.Project{Organization: o.Organization, Name: o.Project}
}

func buildOf(o grouping.Occurrence) postgres.Build {
	return postgres.Build{Release: grouping.KnownRelease(o.Release), DebugIDs: o.DebugIDs}
}

// mapMargin is how long after its upload a map begins to hold: when an
// error that was accepted then is read, the upload has been committed,
// and clocks may differ a little. So it does not matter when it is read.
const mapMargin = 2 * time.Second

// mapsHold is from when on a change of maps holds.
func (s *Service) mapsHold() time.Time {
	return s.Clock().UTC().Truncate(time.Microsecond).Add(mapMargin)
}

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
func (s *Service) AcquireUpload(ctx context.Context, organization string) (release func(), err error) {
	return s.uploads.Acquire(ctx, organization)
}

const maxScript = 1000 // bytes of a script's name

// UploadMap keeps a source map. It is not created if there is the same one.
func (s *Service) UploadMap(ctx context.Context, who identity.Principal, project string, upload Upload) (kept postgres.SourceMap, created bool, err error) {
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
	now := s.Clock().UTC().Truncate(time.Microsecond)
	digest := sha256.Sum256(upload.Text)
	id := sha256.Sum256([]byte(project + "\n" + m.Release + "\n" + m.Name + "\n" + m.DebugID + "\n" + now.Format(time.RFC3339Nano) + "\n" + string(digest[:])))
	m.ID, m.Digest, m.Size, m.Segments = mapPrefix+hex.EncodeToString(id[:16]), digest[:], int64(len(upload.Text)), read.Segments
	m.Uploaded, m.UploadedBy, m.Used = now, who.ID, now.Truncate(24*time.Hour)
	of := postgres.Project{Organization: who.Organization, Name: project}
	err = s.write(ctx, who.Organization, func(tx pgx.Tx) error {
		if kept, created, err = postgres.SaveMap(ctx, tx, of, m, read.Parts, s.mapsHold); err != nil || !created {
			return err
		}
		return postgres.SearchMaps(ctx, tx, of, now)
	})
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

// write runs fn in a transaction of the organization, whose requests take turns.
func (s *Service) write(ctx context.Context, organization string, fn func(tx pgx.Tx) error) error {
	release, err := s.limiter.Acquire(ctx, organization)
	if err != nil {
		return err
	}
	defer release()
	return pg.InTx(ctx, s.Pool, func(tx pgx.Tx) error {
		if err := pg.AsOrganization(ctx, tx, pg.Organization(organization)); err != nil {
			return err
		}
		return fn(tx)
	})
}

// Maps lists the source maps of a project, the newest first,
// of one release unless that is empty.
func (s *Service) Maps(ctx context.Context, organization, project, release string, after postgres.MapPlace, limit int) (found []postgres.SourceMap, err error) {
	err = s.read(ctx, organization, func(tx pgx.Tx, _ pg.Organization) (err error) {
		found, err = postgres.FindMaps(ctx, tx, postgres.Project{Organization: organization, Name: project}, release, after, limit)
		return err
	})
	return found, err
}

// MapSearch is how far the samples of a project have been mapped anew.
func (s *Service) MapSearch(ctx context.Context, organization, project string) (found postgres.MapSearch, err error) {
	err = s.read(ctx, organization, func(tx pgx.Tx, _ pg.Organization) (err error) {
		found, err = postgres.FindMapSearch(ctx, tx, postgres.Project{Organization: organization, Name: project})
		return err
	})
	return found, err
}

// SearchDue maps samples of errors anew for which maps have come later, and
// merges groups that are the same by these. Several processes may do so.
func (s *Service) SearchDue(ctx context.Context) error {
	for found := true; found; {
		err := pg.InTxAsSystem(ctx, s.Pool, func(tx pgx.Tx) (err error) {
			found, err = postgres.SearchDue(ctx, tx, s.Clock(), s.mapsHold(), s.rules)
			return err
		})
		if err != nil {
			return err
		}
	}
	return s.joinMapped(ctx)
}

// DeleteMap ends a source map. If there is none, the error is postgres.ErrNoMap.
func (s *Service) DeleteMap(ctx context.Context, organization, project, id string) error {
	return s.write(ctx, organization, func(tx pgx.Tx) error {
		of := postgres.Project{Organization: organization, Name: project}
		return postgres.DeleteMap(ctx, tx, of, id, s.mapsHold())
	})
}
