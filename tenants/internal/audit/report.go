package audit

import (
	"context"
	"crypto/sha256"
	"errors"
	"math/big"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/shared/eventstore"
	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/tenants"
	"github.com/weirlog/weir/tenants/internal/unitofwork"
)

// Projections are those of reports, which only the audit shows.
func Projections() unitofwork.Projections { return unitofwork.Unprojected[tenants.ChangeReported]() }

// Reports keep what other modules report for the audit.
type Reports struct{ work *unitofwork.Writer }

// NewReports returns the reports of a writer.
func NewReports(work *unitofwork.Writer) Reports { return Reports{work} }

// ReportStreams is what names of streams of reports begin with, before the project, a slash
// and digits, which sort before letters in any collation.
const ReportStreams = "report/"

// Keep adds a line to the audit in tx, once for each id. It ignores a project
// that there is not, or that is erased.
func (r Reports) Keep(ctx context.Context, tx pgx.Tx, report tenants.Report) error {
	by := unitofwork.Request{
		Caller: tenants.Caller{ID: report.Actor, Organization: report.Organization}, Kind: tenants.KindOf(report.Actor),
		ID: report.Request, Address: report.Address, Client: report.Client,
	}
	u, err := r.work.Join(ctx, tx, report.Organization, by)
	if err != nil {
		return err
	}
	project, err := unitofwork.Load[tenants.Project](ctx, u, unitofwork.Stream(report.Organization, "project", report.Change.Project))
	if err != nil || project.State.ID == "" {
		return err
	}
	if err := r.asMember(ctx, u, by); err != nil {
		return err
	}
	// An erasure takes the project before its reports: this is found, or comes too late.
	sum := sha256.Sum256([]byte(report.ID))
	name := ReportStreams + report.Change.Project + "/" + new(big.Int).SetBytes(sum[:16]).String()
	_, err = unitofwork.Change(ctx, u, eventstore.Stream{Organization: report.Organization, Name: name},
		func(c tenants.ReportedChange) ([]tenants.Event, error) { return c.Report(report.Change) })
	return err
}

// asMember has the unit act in the role of a member who is one still.
func (r Reports) asMember(ctx context.Context, u *unitofwork.Unit, by unitofwork.Request) error {
	if by.Kind != tenants.MemberActor {
		return nil
	}
	role, err := r.work.RoleOf(ctx, u.Reader(), pg.Organization(by.Caller.Organization), by.Caller.ID)
	if errors.Is(err, tenants.ErrNotFound) {
		return nil
	}
	u.As(tenants.Member{ID: by.Caller.ID, Organization: by.Caller.Organization, Role: role})
	return err
}
