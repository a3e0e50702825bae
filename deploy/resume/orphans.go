package resume

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/deploy/terminal"
	grouping "github.com/weirlog/weir/grouping/app"
	ingest "github.com/weirlog/weir/ingest/app"
	ledger "github.com/weirlog/weir/ledger/app"
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/contract/tier"
	"github.com/weirlog/weir/shared/erasure"
	"github.com/weirlog/weir/shared/pg"
	tenants "github.com/weirlog/weir/tenants/app"
)

// A holder is a module that holds something of organizations and projects.
type holder struct {
	module  string
	holders func(context.Context, pgx.Tx) ([]erasure.Deletion, error)
	holding func(context.Context, pgx.Tx, erasure.Deletion) (erasure.Holding, error)
}

var holders = []holder{
	{"ingest", ingest.Holders, ingest.Holding},
	{"grouping", grouping.Holders, grouping.Holding},
	{"ledger", ledger.Holders, ledger.Holding},
}

// An orphan is what tenants does not know, with what others hold of it.
type orphan struct {
	tenants.Orphan

	fate     fate
	holdings []erasure.Holding
}

// Orphans are all that tenants does not know.
type orphans struct {
	Choice

	home   *tenants.Orphanage
	all    []orphan          // each after what it belongs to
	again  []string          // organizations without an owner that an earlier run has readopted
	done   []string          // ids of what else an earlier run has readopted or erased
	owners map[string]string // by organization; bounded by those that are to be readopted
	now    time.Time
}

// ErrOrphans means that something is left that tenants does not know.
var ErrOrphans = errors.New("tenants does not know them, and nobody reaches what others hold of them: " +
	"weir resume --readopt=ID --owner=ADDRESS makes them exist again, --erase=ID erases them, --yes does it")

// findOrphans finds what tenants lacks, and what is chosen for it.
func (i *installation) findOrphans(ctx context.Context) (*orphans, error) {
	o := &orphans{Choice: i.Choice, now: time.Now()}
	if err := o.check(); err != nil {
		return nil, err
	}
	for _, topic := range []string{contract.TopicTenants, contract.TopicCredentials} {
		if err := i.seen.Topics[topic].Err; err != nil {
			return nil, fmt.Errorf("%s: %w: make what is missing with weir topics", topic, err)
		}
	}
	held, err := i.held(ctx) // before tenants is asked: what a running installation makes is there first
	if err != nil {
		return nil, err
	}
	if o.home, err = tenants.OpenOrphanage(ctx, i.pools["tenants"], i.brokers, i.dialer, time.Now, "weir resume"); err != nil {
		return nil, fmt.Errorf("tenants: cannot read what its topics tell: %w", err)
	}
	found, err := o.home.Find(ctx, held)
	if err != nil {
		return nil, fmt.Errorf("tenants: cannot find what it does not know: %w", err)
	}
	for _, one := range found {
		weighed, err := i.weigh(ctx, one)
		if err != nil {
			return nil, err
		}
		if weighed.fate = o.of(one); weighed.fate == readopted && one.Deleted && !slices.Contains(o.Readopt, one.ID()) {
			weighed.fate = stays
		}
		o.all = append(o.all, weighed)
	}
	return o, o.choose(ctx, i)
}

// held returns what the other modules hold something of.
func (i *installation) held(ctx context.Context) (held []erasure.Deletion, err error) {
	for _, h := range holders {
		err := pg.SnapshotAsSystem(ctx, i.pools[h.module], func(tx pgx.Tx) error {
			found, err := h.holders(ctx, tx)
			held = append(held, found...)
			return err
		})
		if err != nil {
			return nil, fmt.Errorf("%s: %w", h.module, err)
		}
	}
	return held, nil
}

// weigh finds out what others hold of an orphan, and how its books began.
func (i *installation) weigh(ctx context.Context, one tenants.Orphan) (weighed orphan, err error) {
	weighed.Orphan = one
	if one.Key != "" {
		return weighed, nil
	}
	for _, h := range holders {
		err := pg.SnapshotAsSystem(ctx, i.pools[h.module], func(tx pgx.Tx) error {
			holding, err := h.holding(ctx, tx, erasure.Deletion{Organization: one.Organization, Project: one.Project})
			if holding.Amount > 0 {
				weighed.holdings = append(weighed.holdings, holding)
			}
			if err != nil || h.module != "ledger" || one.Project != "" || one.Tier != "" {
				return err
			}
			weighed.Tier, weighed.At, err = ledger.FirstPlan(ctx, tx, one.Organization)
			return err
		})
		if err != nil {
			return weighed, fmt.Errorf("%s: %w", h.module, err)
		}
	}
	if weighed.Tier == "" {
		weighed.Tier = tier.Indie // the smallest: nothing tells which it was
	}
	return weighed, nil
}

// choose checks what is chosen.
func (o *orphans) choose(ctx context.Context, i *installation) error {
	if err := pg.InTxAsSystem(ctx, i.pools["tenants"], func(tx pgx.Tx) error { return o.findDone(ctx, tx) }); err != nil {
		return fmt.Errorf("tenants: %w", err)
	}
	if err := o.checkKnown(); err != nil {
		return err
	}
	if err := o.chooseOwners(); err != nil {
		return err
	}
	for _, organization := range o.again {
		if err := o.home.CheckOwnerless(ctx, organization); err != nil {
			return err
		}
	}
	for organization, owner := range o.owners {
		if err := o.home.CheckOwner(ctx, organization, owner); err != nil {
			return err
		}
	}
	return nil
}

// findDone finds what an earlier run has done of what is chosen.
func (o *orphans) findDone(ctx context.Context, tx pgx.Tx) error {
	for _, id := range o.readopts() {
		if o.lists(id) {
			continue
		}
		if is, err := tenants.IsOrganization(ctx, tx, id); err != nil {
			return err
		} else if is {
			o.again = append(o.again, id)
		} else if err := o.addDone(ctx, tx, id, tenants.IsReadopted); err != nil {
			return err
		}
	}
	for _, id := range o.Erase {
		if err := o.addDone(ctx, tx, id, tenants.IsErased); err != nil {
			return err
		}
	}
	return nil
}

func (o *orphans) addDone(ctx context.Context, tx pgx.Tx, id string, is func(context.Context, pgx.Tx, string) (bool, error)) error {
	if o.lists(id) {
		return nil
	}
	done, err := is(ctx, tx, id)
	if done {
		o.done = append(o.done, id)
	}
	return err
}

// left returns ErrOrphans if nothing was chosen for some. Keys are taken
// back, and so are not among them.
func (o *orphans) left() error {
	var ids []string
	for _, one := range o.all {
		if one.fate == stays && one.Key == "" {
			ids = append(ids, one.ID())
		}
	}
	if len(ids) == 0 {
		return nil
	}
	return fmt.Errorf("%s: %w", strings.Join(ids, ", "), ErrOrphans)
}

// show lists the orphans, and what becomes of each.
func (o *orphans) show(out io.Writer) error {
	if len(o.all) == 0 {
		return nil
	}
	fmt.Fprintln(out, "\nThe topics or other modules know these, and tenants does not:")
	t := tabwriter.NewWriter(out, 0, 4, 2, ' ', 0)
	fmt.Fprintln(t, "KIND\tID\tOF\tNAME\tHAS\tSINCE\tLAST\tTHEN")
	for _, one := range o.all {
		first, last := one.span()
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", one.kind(), terminal.Line(one.ID()), terminal.Line(one.whole()),
			terminal.Line(cmp.Or(one.Name, "-")), cmp.Or(one.has(o.now), "-"), first, last, one.then(o.now))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintln(out, "What weir.logs.v1 alone has is listed once it is applied. Entries that moved to ClickHouse are not counted.")
	return err
}

func (o orphan) kind() string {
	switch {
	case o.Key != "":
		return "key"
	case o.Project != "":
		return "project"
	}
	return "organization"
}

// whole is the id of what it belongs to.
func (o orphan) whole() string {
	switch {
	case o.Key != "" && o.Project != "":
		return o.Project
	case o.ID() != o.Organization:
		return o.Organization
	}
	return "-"
}

// has says what others hold of it, or of a key its state.
func (o orphan) has(now time.Time) string {
	if o.Key != "" {
		return string(o.KeyState(now))
	}
	var texts []string
	for _, h := range o.holdings {
		texts = append(texts, fmt.Sprintf("%d %s", h.Amount, h.What))
	}
	return strings.Join(texts, ", ")
}

// span is since when it is there, and when something was last seen of it.
func (o orphan) span() (first, last string) {
	begun, seen := o.At, time.Time{}
	for _, h := range o.holdings {
		if o.At.IsZero() && (begun.IsZero() || h.First.Before(begun)) {
			begun = h.First
		}
		if h.Last.After(seen) {
			seen = h.Last
		}
	}
	return stampOr(begun), stampOr(seen)
}

func stampOr(at time.Time) string {
	if at.IsZero() {
		return "-"
	}
	return stamp(at)
}

// comes reports whether it exists again: a key may be past that.
func (o orphan) comes(now time.Time) bool {
	return o.fate == readopted && (o.Key == "" || o.KeyState(now) != tenants.Gone && o.KeyState(now) != tenants.Expired)
}

// then says what becomes of it.
func (o orphan) then(now time.Time) string {
	switch {
	case o.comes(now):
		return "is readopted"
	case o.fate == erased && o.Key == "":
		return "is erased"
	case o.Key != "" && o.KeyState(now) == tenants.InForce:
		return "is taken back"
	case o.Key != "":
		return "stays refused"
	case o.Deleted:
		return "stays, deleted"
	}
	return "stays"
}

// decide does what is chosen. Each organization is readopted whole or not
// at all, and an interrupted run can be repeated.
func (o *orphans) decide(ctx context.Context, out io.Writer) error {
	if err := o.home.Continue(ctx); err != nil {
		return fmt.Errorf("tenants: %w", err)
	}
	for _, organization := range o.organizations() {
		if err := o.readopt(ctx, out, organization); err != nil {
			return fmt.Errorf("tenants: %w", err)
		}
	}
	for _, one := range o.all {
		if one.fate != erased || one.Key != "" || one.Project != "" && o.erases(one.Organization) {
			continue
		}
		if err := o.home.Erase(ctx, one.Orphan); err != nil {
			return fmt.Errorf("tenants: %w", err)
		}
		if _, err := fmt.Fprintf(out, "\nErased: %s. The services remove all of it within 15 minutes of their start.\n", one.ID()); err != nil {
			return err
		}
	}
	return nil
}

// organizations are those of which something is to be readopted, sorted.
func (o *orphans) organizations() []string {
	all := slices.Clone(o.again)
	for _, one := range o.all {
		if one.comes(o.now) {
			all = append(all, one.Organization)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// erases reports whether an organization is to be erased, with its projects.
func (o *orphans) erases(organization string) bool {
	return slices.ContainsFunc(o.all, func(one orphan) bool { return one.ID() == organization && one.fate == erased })
}

// readopt readopts what is chosen of one organization.
func (o *orphans) readopt(ctx context.Context, out io.Writer, organization string) error {
	var chosen []tenants.Orphan
	var ids []string
	for _, one := range o.all {
		if one.Organization == organization && one.comes(o.now) {
			chosen, ids = append(chosen, one.Orphan), append(ids, one.ID())
		}
	}
	code, err := o.home.Readopt(ctx, organization, chosen, o.owners[organization])
	if err != nil {
		return err
	}
	if len(ids) > 0 {
		if _, err := fmt.Fprintf(out, "\nReadopted: %s.\n", strings.Join(ids, ", ")); err != nil {
			return err
		}
	}
	if owner := o.owners[organization]; owner != "" {
		_, err = fmt.Fprintf(out, "\nGive this link to %s and nobody else. It works for 7 days, once the services run, and makes them the owner of %s:\n\n    %s\n\n"+
			"weir resume --yes --readopt=%s --owner=%s prints another one, as long as nobody has come.\n",
			terminal.Line(owner), organization, tenants.InvitationLink(o.ConsoleOrigin, code), organization, terminal.Line(owner))
	}
	return err
}
